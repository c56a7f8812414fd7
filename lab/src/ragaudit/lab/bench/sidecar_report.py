"""What `ragaudit bench sidecar` shows."""

import json
from collections.abc import Callable, Mapping, Sequence

import typer
from ragaudit.lab.bench.machine import machine, software
from ragaudit.lab.bench.sidecar import Latency, SidecarRun
from rich.console import Console
from rich.table import Table

__all__ = ["show"]


def show(found: Sequence[SidecarRun], as_json: bool) -> None:
    """Print the runs: a table, or one JSON object with the machine.

    Args:
        found: one for each number of rows.
        as_json: whether a program reads it.
    """
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "machine": machine(),
                    "software": software(),
                    "runs": [run.to_json() for run in found],
                }
            )
        )
        return
    table = Table("", *(f"N = {run.rows:,}" for run in found), show_edge=False)
    for name, figure in _FIGURES.items():
        table.add_row(name, *(figure(run) for run in found))
    Console().print(table)
    clients = found[0].clients
    typer.echo(f"Each once, on this machine: one client, then {clients} with an account each.")


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def _rate(latency: Latency) -> str:
    return f"{latency.per_second:.0f}"


def _memory(run: SidecarRun) -> str:
    growth = run.growth
    if growth is None:
        return "not measured"
    return f"{run.memory[-1]:.0f} MiB, {growth:+.1f} in {len(run.memory) / 60:.1f} min"


_FIGURES: Mapping[str, Callable[[SidecarRun], str]] = {
    "store, one client: p50": lambda run: _ms(run.store.p50),
    "prover, one client: p50": lambda run: _ms(run.sidecar.p50),
    "  over the store": lambda run: f"{run.ratio:.2f} x",
    "store, many clients: p99": lambda run: _ms(run.store_busy.p99),
    "prover, many clients: p99": lambda run: _ms(run.sidecar_busy.p99),
    "  over the store ": lambda run: f"{run.ratio_busy:.2f} x",
    "store, answers a second": lambda run: _rate(run.store_busy),
    "prover, answers a second": lambda run: _rate(run.sidecar_busy),
    "set up to first receipt": lambda run: f"{run.first_receipt:.1f} s",
    "prover's memory at half load": _memory,
}
