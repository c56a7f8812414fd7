"""What a scenario found, as JSON and as a table; where it stands, on the terminal."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import typer
from ragaudit.encoding.console import Console
from ragaudit.lab.bench.bounds import Domain
from ragaudit.lab.bench.coalition import CoalitionSizes
from ragaudit.lab.bench.generation import GenerationSizes
from ragaudit.lab.bench.jobs import JobSizes
from ragaudit.lab.bench.large_log import LargeLogSizes
from ragaudit.lab.bench.ledger import LogSizes
from ragaudit.lab.bench.machine import machine, software
from ragaudit.lab.bench.measure import Measurement
from ragaudit.lab.bench.quantities import digits, duration
from ragaudit.lab.bench.task import Notify
from ragaudit.lab.bench.workload import Sizes
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["progress", "report", "show"]

_SYMBOLS: Final = {
    "rows": "N",
    "dimension": "d",
    "top_k": "K",
    "sigma": "sigma",
    "queries": "r",
    "records": "R",
    "accounts": "A",
    "domain": "m",
    "entries": "n",
    "batch": "entries of a batch",
    "charged": "rows of an entry",
    "uses": "M",
    "group": "T",
    "workers": "workers",
    "bits": "b",
}


def report(
    name: str,
    sizes: Sizes | Domain | LogSizes | LargeLogSizes | JobSizes | GenerationSizes | CoalitionSizes,
    cores: int,
    measurements: list[Measurement],
) -> dict[str, Any]:
    """Return everything that is said of one scenario, as JSON values.

    Args:
        name: of the scenario.
        sizes: of the workload.
        cores: on which it ran.
        measurements: in the order in which they are shown.
    """
    peaks = [each.peak_mib for each in measurements if each.peak_mib is not None]
    return {
        "scenario": name,
        "sizes": asdict(sizes),
        "cores": cores,
        "machine": machine(),
        "software": software(),
        "peak_memory_mib": max(peaks, default=None),
        "measurements": [asdict(each) for each in measurements],
    }


@contextmanager
def progress() -> Iterator[Notify]:
    """Show on standard error, if that is a terminal, what is being done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        bar = shown.add_task("", total=None)

        def notify(what: str, done: int, total: int) -> None:
            shown.update(bar, description=what, completed=done, total=total or None)

        yield notify


def show(found: dict[str, Any], measurements: list[Measurement], as_json: bool) -> None:
    """Print a report.

    Args:
        found: of `report`.
        measurements: the same that it was made of.
        as_json: whether to print the report as it is, else as a table.
    """
    if as_json:
        typer.echo(json.dumps(found))
        return
    console = Console()
    console.print(_table(found, measurements))
    console.print(f"{found['cores']} of {found['machine']['cores']} cores")
    if any(each.peak_of_process for each in measurements):
        console.print("peak memory is the process's since its start: it could not be reset")
    for each in measurements:
        if each.details:
            told = ", ".join(f"{name} {value:,.0f}" for name, value in each.details.items())
            console.print(f"{each.name}: {told}")


def _table(found: dict[str, Any], measurements: list[Measurement]) -> Table:
    sizes = ", ".join(f"{_SYMBOLS[name]} = {size}" for name, size in found["sizes"].items())
    table = Table(
        title=f"{found['scenario']}: {sizes}",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("what", min_width=24)
    for heading in ("median", "a record", "runs", "ratio", "MiB", "bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    baselines = {each.baseline for each in measurements}
    for each in measurements:
        compared = "baseline" if each.name in baselines else ""
        table.add_row(
            each.name,
            duration(each.median),
            duration(each.per_record) if each.records > 1 else "",
            str(each.runs),
            compared if each.ratio is None else digits(each.ratio),
            "" if each.peak_mib is None else f"{each.peak_mib:,.0f}",
            "" if each.size_bytes is None else f"{each.size_bytes:,}",
        )
    return table
