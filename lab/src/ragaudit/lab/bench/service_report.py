"""What `ragaudit bench service` shows."""

import json

import typer
from ragaudit.encoding.console import Console
from ragaudit.lab.bench.machine import machine, software
from ragaudit.lab.bench.memory_of import Growth
from ragaudit.lab.bench.open_load import Latency
from ragaudit.lab.bench.quantities import duration
from ragaudit.lab.bench.service import ServiceRun
from rich.table import Table

__all__ = ["show"]


def show(run: ServiceRun, as_json: bool) -> None:
    """Print a run: tables, or one JSON object with the machine.

    Args:
        as_json: whether a program reads it.
    """
    if as_json:
        typer.echo(json.dumps({"machine": machine(), "software": software(), "run": run.to_json()}))
        return
    load = run.load
    console = Console()
    title = f"service: N = {load.rows:,}, {load.rate:g} queries a second, {run.store}"
    table = Table("", "p50", "p99", "highest", title=title, title_justify="left", show_edge=False)
    table.add_row("embed the query, NumPy exact search", duration(run.search), "", "")
    for name, latency in (
        ("a request that does nothing", run.idle),
        ("answer, durable and signed", run.answers),
        ("from the answer to the receipt's proof", run.receipts),
    ):
        table.add_row(name, *_shown(latency))
    table.add_row("answer over the request", f"{run.ratio:.2f} x", f"{run.ratio_tail:.2f} x", "")
    console.print(table)
    typer.echo(f"answers a second: {run.per_second:.1f}; without a pause {run.most_per_second:.1f}")
    busy = ", ".join(f"{name} {cores:.2f}" for name, cores in run.cores.items())
    typer.echo(f"cores kept busy: {busy}")
    phases = ", ".join(f"{name} {duration(each)}" for name, each in run.spent.phases.items())
    typer.echo(f"an answer in the first prover: {phases}, the rest {duration(run.spent.rest)}")
    typer.echo(
        f"one transaction with its fence: {duration(run.spent.durable)}, "
        f"{run.spent.answers:.1f} answers in it"
    )
    typer.echo(f"what bounds it: {run.bound}")
    for name, growth in run.growth.items():
        if growth is not None:
            typer.echo(f"memory of the {name}: {_line(growth)}")


def _shown(latency: Latency) -> tuple[str, str, str]:
    return duration(latency.p50), duration(latency.p99), duration(latency.highest)


def _line(growth: Growth) -> str:
    words = "flat" if growth.flat else "not flat"
    return f"{growth.last:.1f} MiB, {growth.per_minute:+.2f} MiB a minute: {words}"
