"""`ragaudit bench`: medians, peak memory, and the ratio against a baseline of the same run."""

import os
import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import Annotated, Any

import typer
from ragaudit.cli.bench.measure import Measurement, peak_memory_mib
from ragaudit.encoding.errors import MalformedError

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Measure the parts, each beside a stated baseline.")

Rows = Annotated[int, typer.Option("--rows", min=2, max=2**20, help="N, rows of the index.")]
Dimension = Annotated[int, typer.Option("--dim", min=1, max=4096, help="d, entries of a row.")]
TopK = Annotated[int, typer.Option("--top-k", min=1, max=1000, help="K, asked for; below N.")]
Sigma = Annotated[str, typer.Option("--sigma", help="Noise parameter, a decimal in cosine units.")]
Runs = Annotated[int, typer.Option("--runs", min=1, max=10_000, help="Runs under the clock.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("index", epilog="Example: ragaudit bench index --rows 1500 --dim 256 --runs 5")
def index(
    rows: Rows = 1500, dimension: Dimension = 256, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 5, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Commit an index and prove it."""
    _run("index", rows, dimension, top_k, sigma, runs, as_json)


@app.command("prove", epilog="Example: ragaudit bench prove --sigma 0.25 (U is then all rows)")
def prove(
    rows: Rows = 1500, dimension: Dimension = 256, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 20, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Prove one record."""
    _run("prove", rows, dimension, top_k, sigma, runs, as_json)


@app.command("verify", epilog="Example: ragaudit bench verify --rows 1500 --runs 50 --json")
def verify(
    rows: Rows = 1500, dimension: Dimension = 256, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 20, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Verify one record with the compiled core."""
    _run("verify", rows, dimension, top_k, sigma, runs, as_json)


@app.command("reference", epilog="Example: ragaudit bench reference --runs 1")
def reference(
    rows: Rows = 1500, dimension: Dimension = 256, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 2, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Verify one record with the pure-Python reference verifier."""
    _run("reference", rows, dimension, top_k, sigma, runs, as_json)


@app.command("answer", epilog="Example: ragaudit bench answer --runs 100")
def answer(
    rows: Rows = 1500, dimension: Dimension = 256, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 100, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Answer one query: noise, selection, durable entry, signed receipt."""
    _run("answer", rows, dimension, top_k, sigma, runs, as_json)


def _run(
    name: str, rows: int, dimension: int, top_k: int, sigma: str, runs: int, as_json: bool
) -> None:
    from ragaudit.cli.bench.scenarios import SCENARIOS  # noqa: PLC0415 - imports every member
    from ragaudit.cli.bench.workload import Sizes, Workload  # noqa: PLC0415

    if top_k >= rows:
        raise MalformedError(f"K = {top_k}", where="--top-k", expected=f"below N = {rows}")
    sizes = Sizes(rows, dimension, top_k, sigma)
    measurements = SCENARIOS[name](Workload(sizes), runs)
    report = {
        "scenario": name,
        "sizes": asdict(sizes),
        "machine": _machine(),
        "peak_memory_mib": round(peak_memory_mib(), 1),
        "measurements": [asdict(each) for each in measurements],
    }
    _show(report, measurements, as_json)


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "ragaudit": version("ragaudit-cli"),
    }


def _show(report: dict[str, Any], measurements: list[Measurement], as_json: bool) -> None:
    import json  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    if as_json:
        typer.echo(json.dumps(report))
        return
    sizes = report["sizes"]
    table = Table(
        title=f"{report['scenario']}: N = {sizes['rows']}, d = {sizes['dimension']}, "
        f"K = {sizes['top_k']}, sigma = {sizes['sigma']}",
        title_justify="left",
    )
    for heading in ("what", "median", "lowest", "highest", "runs", "ratio", "bytes"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    baselines = {each.baseline for each in measurements}
    for each in measurements:
        compared = "baseline" if each.name in baselines else ""
        table.add_row(
            each.name, _seconds(each.median), _seconds(each.lowest), _seconds(each.highest),
            str(each.runs), compared if each.ratio is None else f"{each.ratio:,.2f}",
            "" if each.size_bytes is None else f"{each.size_bytes:,}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        f"peak memory {report['peak_memory_mib']} MiB, {report['machine']['cores']} cores"
    )


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if value >= 1 else f"{value * 1000:.3f} ms"
