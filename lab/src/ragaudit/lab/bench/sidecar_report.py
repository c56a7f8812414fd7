"""What `ragaudit bench sidecar` shows."""

import json
from collections.abc import Callable, Mapping, Sequence

import typer
from ragaudit.encoding.console import Console
from ragaudit.lab.bench.machine import machine, software
from ragaudit.lab.bench.sidecar import Latency, SidecarRun
from ragaudit.lab.bench.sidecar_phases import PHASES, Spent
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
    _show_spent(found)
    clients = found[0].clients
    typer.echo(f"Each once, on this machine: one client, then {clients} with an account each.")


def _show_spent(found: Sequence[SidecarRun]) -> None:
    """Print where the time of the prover's answers went."""
    columns = [(run, spent) for run in found for spent in (run.spent, run.spent_busy)]
    heads = [
        f"N = {run.rows:,}\n{1 if spent is run.spent else run.clients} at once"
        for run, spent in columns
    ]
    table = Table("in the prover, means", *heads, show_edge=False)
    for name in PHASES:
        if any(name in spent.phases for _, spent in columns):
            table.add_row(name, *(_ms(spent.phases.get(name, 0.0)) for _, spent in columns))
    for name, figure in _SPENT.items():
        table.add_row(name, *(figure(spent) for _, spent in columns))
    Console().print(table)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def _rate(latency: Latency) -> str:
    return f"{latency.per_second:.0f}"


def _memory(run: SidecarRun) -> str:
    growth = run.growth
    if growth is None:
        return "not measured"
    return f"{run.memory[-1]:.0f} MiB, {growth:+.1f} in {len(run.memory) / 60:.1f} min"


_SPENT: Mapping[str, Callable[[Spent], str]] = {
    "rest: HTTP, JSON, threads": lambda spent: _ms(spent.rest),
    "one transaction and fence": lambda spent: _ms(spent.durable),
    "answers in a transaction": lambda spent: f"{spent.answers:.1f}",
}
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
