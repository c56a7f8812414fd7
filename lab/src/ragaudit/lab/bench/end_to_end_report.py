"""What `ragaudit bench window` shows."""

import json
from dataclasses import asdict

import typer
from ragaudit.encoding.console import Console
from ragaudit.lab.bench.end_to_end import EndToEnd
from ragaudit.lab.bench.machine import machine, software
from ragaudit.lab.bench.quantities import duration
from rich.table import Table

__all__ = ["show"]


def show(run: EndToEnd, as_json: bool) -> None:
    """Print a run: a table, or one JSON object with the machine.

    Args:
        as_json: whether a program reads it.
    """
    if as_json:
        document = {**asdict(run), "peak_mib": run.peak_mib}
        typer.echo(json.dumps({"machine": machine(), "software": software(), "run": document}))
        return
    names = list(run.peak_mib)
    title = f"window: {run.records:,} records, {run.accounts} accounts, N = {run.rows:,}"
    columns = ("phase", "seconds", "a record", *(f"{name}, MiB" for name in names))
    table = Table(*columns, title=f"{title}, {run.store}", title_justify="left", show_edge=False)
    for phase in run.phases:
        each = duration(phase.seconds / phase.records)
        sizes = (f"{phase.peak_mib[name]:,.0f}" for name in names)
        table.add_row(phase.name, f"{phase.seconds:,.1f}", each, *sizes)
    table.add_row("largest", "", "", *(f"{run.peak_mib[name]:,.0f}" for name in names))
    Console().print(table)
    if run.records < run.asked:
        typer.echo(f"{run.asked - run.records:,} questions were left out: --rate was too high here")
    typer.echo(
        f"{run.sampled:,} records were sampled; verdict {run.result}; "
        f"the bundle has {run.bundle_bytes:,} bytes"
    )
