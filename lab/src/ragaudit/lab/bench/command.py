"""`ragaudit bench`: measure the parts, each beside a stated baseline."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.log_commands import coalition, log
from ragaudit.lab.bench.options import (
    MAX_ROWS,
    Allowance,
    AsJson,
    Cores,
    Dimension,
    Keep,
    PostgreSql,
    Queries,
    Records,
    Rows,
    Runs,
    Sigma,
    TopK,
)

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Measure the parts, each beside a stated baseline.")


class Mode(StrEnum):
    """Which records of a window are proven."""

    ALL = "A"
    SAMPLE = "B"


ALLOWANCE = 20.0
SIDECAR_ROWS = (1000, 10_000)


@app.command("index", epilog="Example: ragaudit bench index --rows 10000 --dim 384 --runs 5")
def index(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 5, seconds: Allowance = ALLOWANCE, cores: Cores = None, keep: Keep = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Commit an index and prove it; verify the proof."""
    _run("index", rows, dimension, top_k, sigma, 1, runs, seconds, cores, keep, as_json)


@app.command("prove", epilog="Example: ragaudit bench prove --sigma 0.25\n\nU is then all rows.")
def prove(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 5, seconds: Allowance = ALLOWANCE, cores: Cores = None, keep: Keep = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Prove one record."""
    _run("prove", rows, dimension, top_k, sigma, 1, runs, seconds, cores, keep, as_json)


@app.command("verify", epilog="Example: ragaudit bench verify --rows 10000 --records 100 --json")
def verify(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "2",
    records: Records = 1, runs: Runs = 5, seconds: Allowance = ALLOWANCE, cores: Cores = None,
    keep: Keep = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Verify R records of one tenant in one batch with the compiled core."""
    _run("verify", rows, dimension, top_k, sigma, records, runs, seconds, cores, keep, as_json)


@app.command("reference", epilog="Example: ragaudit bench reference --runs 1")
def reference(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 2, seconds: Allowance = ALLOWANCE, cores: Cores = None, keep: Keep = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Verify one record with the pure-Python reference verifier."""
    _run("reference", rows, dimension, top_k, sigma, 1, runs, seconds, cores, keep, as_json)


@app.command("answer", epilog="Example: ragaudit bench answer --rows 10000 --runs 100")
def answer(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "2",
    queries: Queries = 100, runs: Runs = 20, seconds: Allowance = ALLOWANCE, cores: Cores = None,
    keep: Keep = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Answer one query in this process: everything but the durability of its log entry."""
    _run(
        "answer", rows, dimension, top_k, sigma, 1, runs, seconds, cores, keep, as_json, queries
    )  # fmt: skip


@app.command("answer-http", epilog="Example: ragaudit bench answer-http --runs 100")
def answer_http(
    rows: Rows = 1500, dimension: Dimension = 256, top_k: TopK = 5, sigma: Sigma = "2",
    runs: Runs = 100, cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Answer one query over HTTP: embedding, noise, selection, durable entry, signed receipt."""
    _run("answer-http", rows, dimension, top_k, sigma, 1, runs, ALLOWANCE, cores, None, as_json)


@app.command("audit", epilog="Example: ragaudit bench audit --rows 100000 --records 1400")
def audit(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "10",
    records: Records = 100, queries: Queries = 100, cores: Cores = None, keep: Keep = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Prove R sampled records, then check them as a verifier does; each side once."""
    _run(
        "audit", rows, dimension, top_k, sigma, records, 1, ALLOWANCE, cores, keep, as_json,
        queries,
    )  # fmt: skip


@app.command("bounds", epilog="Example: ragaudit bench bounds --domain 101 --json")
def bounds(
    domain: Annotated[
        int, typer.Option("--domain", min=8, max=1000, help="m, records of a finite prior.")
    ] = 101,
    runs: Runs = 20, seconds: Allowance = ALLOWANCE, cores: Cores = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Evaluate bounds on disclosure, one of every kind."""
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    with limited_to(cores) as used:  # before the libraries make their threads
        from ragaudit.lab.bench import bounds as scenario  # noqa: PLC0415
        from ragaudit.lab.bench import report  # noqa: PLC0415

        sizes = scenario.Domain(domain)
        with report.progress() as notify:
            measurements = scenario.bounds(sizes, runs, seconds, notify)
    found = report.report("bounds", sizes, used, measurements)
    report.show(found, measurements, as_json)


@app.command("ledger", epilog="Example: ragaudit bench ledger --entries 1000000 --json")
def ledger(
    database: Annotated[
        str | None,
        typer.Option("--database", help="URL of an empty database; SQLite in a new file if unset."),
    ] = None,
    entries: Annotated[
        int, typer.Option("--entries", min=2, max=10**8, help="n, entries in the log.")
    ] = 100_000,
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=10_000, help="Entries of a transaction.")
    ] = 256,
    runs: Runs = 100, seconds: Allowance = ALLOWANCE, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Append to a log, durable and checkpointed, beside the bare database; prove cold.

    The baseline inserts and commits the same bytes in the same batches. A cold proof opens a
    connection of its own; its baseline opens one and reads a row.
    """
    from ragaudit.lab.bench import ledger as scenario  # noqa: PLC0415
    from ragaudit.lab.bench import report  # noqa: PLC0415
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    sizes = scenario.LogSizes(entries, batch)
    with limited_to(None) as used, report.progress() as notify:
        measurements = scenario.ledger(sizes, database, runs, seconds, notify)
    found = report.report("ledger", sizes, used, measurements)
    report.show(found, measurements, as_json)


app.command("log", epilog="Example: ragaudit bench log --records 1000000 --accounts 20000")(log)
app.command("coalition", epilog="Example: ragaudit bench coalition --records 1000000")(coalition)


@app.command("jobs", epilog="Example: ragaudit bench jobs --database URL --cores 2 --workers 4")
def jobs(
    database: Annotated[
        str, typer.Option("--database", help="URL of an empty PostgreSQL database.")
    ],
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes.")] = 4,
    rows: Rows = 10_000, dimension: Dimension = 384, top_k: TopK = 5, sigma: Sigma = "2",
    records: Records = 1400, runs: Runs = 3, cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Commit rows and prove R records by workers over a queue, beside one process."""
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    with limited_to(cores) as used:  # before the libraries make their threads
        from ragaudit.lab.bench import jobs as scenario  # noqa: PLC0415
        from ragaudit.lab.bench import report  # noqa: PLC0415
        from ragaudit.lab.bench.workload import Sizes, Workload  # noqa: PLC0415

        sizes = scenario.JobSizes(rows, dimension, records, workers)
        work = Workload(Sizes(rows, dimension, top_k, sigma, records))
        with report.progress() as notify:
            measurements = scenario.jobs(sizes, work, database, runs, notify)
    found = report.report("jobs", sizes, used, measurements)
    report.show(found, measurements, as_json)


@app.command("generation", epilog="Example: ragaudit bench generation --rows 100000 --group 1")
def generation(
    rows: Rows = 1000, dimension: Dimension = 384,
    records: Annotated[
        int, typer.Option("--records", min=1, max=10**6, help="R, charge entries of a window.")
    ] = 1000,
    charged: Annotated[
        int, typer.Option("--charged", min=1, max=MAX_ROWS, help="Most rows of an entry.")
    ] = 50,
    uses: Annotated[int, typer.Option(min=1, max=2**16, help="M, uses of a document.")] = 3,
    group: Annotated[
        int, typer.Option("--group", min=1, max=2**16, help="T, entries proven together.")
    ] = 100,
    growth: Annotated[bool, typer.Option(help="Also with N, R, T, M doubled, each alone.")] = False,
    postgresql: PostgreSql = None, runs: Runs = 3,
    seconds: Allowance = ALLOWANCE, cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Prove and verify budgets and charges, charge and log a question; beside bare decisions."""
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    with limited_to(cores) as used:  # before the libraries make their threads
        from ragaudit.lab.bench import generation as scenario  # noqa: PLC0415
        from ragaudit.lab.bench import report  # noqa: PLC0415

        sizes = scenario.GenerationSizes(rows, dimension, records, charged, uses, group)
        with report.progress() as notify:
            measurements = scenario.generation(sizes, runs, seconds, notify, postgresql)
            if growth:
                measurements += scenario.growth(sizes, measurements, runs, seconds, notify)
    found = report.report("generation", sizes, used, measurements)
    report.show(found, measurements, as_json)


@app.command("sidecar", epilog="Example: ragaudit bench sidecar --rows 10000 --minutes 10")
def sidecar(
    rows: Annotated[
        list[int] | None, typer.Option("--rows", min=20, max=MAX_ROWS, help="N (repeatable).")
    ] = None,
    dimension: Dimension = 384, top_k: TopK = 10, runs: Runs = 200,
    clients: Annotated[int, typer.Option("--clients", min=2, max=64, help="Clients at once.")] = 16,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0, help="Minutes at half load, to measure memory.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Answer in front of a real Chroma, beside the bare store; needs chromadb."""
    from ragaudit.lab.bench import report, sidecar_report  # noqa: PLC0415
    from ragaudit.lab.bench.sidecar import measure  # noqa: PLC0415

    found = []
    for count in rows or SIDECAR_ROWS:
        if top_k >= count:
            raise MalformedError(f"K = {top_k}", where="--top-k", expected=f"below N = {count}")
        with report.progress() as notify:
            found.append(
                measure(
                    count, dimension, top_k, runs, clients, minutes, lambda text: notify(text, 0, 0)
                )
            )
    sidecar_report.show(found, as_json)


@app.command("service", epilog="Example: ragaudit bench service --seconds 60 --minutes 10")
def service(
    rows: Rows = 1500, top_k: TopK = 5,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, max=10_000, help="Queries a second.")
    ] = 200.0,
    seconds: Annotated[float, typer.Option("--seconds", min=0.5, help="Seconds to ask.")] = 30.0,
    accounts: Annotated[int, typer.Option("--accounts", min=2, max=256, help="Accounts.")] = 32,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0, help="Minutes at half the rate, to measure memory.")
    ] = 0.0,
    postgresql: PostgreSql = None,
    provers: Annotated[
        int, typer.Option("--provers", min=1, max=16, help="Prover processes, on PostgreSQL.")
    ] = 1,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Ask real services at a rate that does not wait: answers, receipts, memory, what bounds them.

    The times of answers count from the instants at which they were due to be asked, and stand
    beside those of requests that do nothing, asked likewise.
    """
    from ragaudit.lab.bench import report, service_report  # noqa: PLC0415
    from ragaudit.lab.bench.service import Load, measure  # noqa: PLC0415

    if top_k >= rows:
        raise MalformedError(f"K = {top_k}", where="--top-k", expected=f"below N = {rows}")
    load = Load(rows, top_k, rate, seconds, accounts, minutes, provers)
    with report.progress() as notify:
        run = measure(load, postgresql, lambda what: notify(what, 0, 0))
    service_report.show(run, as_json)


@app.command("window", epilog="Example: ragaudit bench window --records 100000 --json")
def window(
    records: Annotated[
        int, typer.Option("--records", min=10, max=10_000_000, help="R, records of the window.")
    ] = 10_000,
    rows: Rows = 1500,
    accounts: Annotated[int, typer.Option("--accounts", min=2, max=256, help="Accounts.")] = 16,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, help="Expected answers a second.")
    ] = 50.0,
    mode: Annotated[
        Mode, typer.Option("--mode", help="A: every record is proven; B: a sample.")
    ] = Mode.SAMPLE,
    postgresql: PostgreSql = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run a whole window through real services to its verdict: time and memory of each phase."""
    from ragaudit.lab.bench import end_to_end_report, report  # noqa: PLC0415
    from ragaudit.lab.bench.end_to_end import run_window  # noqa: PLC0415

    with report.progress() as notify:
        run = run_window(records, rows, accounts, rate, mode.value, postgresql, notify)
    end_to_end_report.show(run, as_json)


def _run(
    name: str, rows: int, dimension: int, top_k: int, sigma: str, records: int, runs: int,
    seconds: float, cores: int | None, keep: Path | None, as_json: bool, queries: int = 100,
) -> None:  # fmt: skip
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    if top_k >= rows:
        raise MalformedError(f"K = {top_k}", where="--top-k", expected=f"below N = {rows}")
    with limited_to(cores) as used:  # before the libraries make their threads
        from ragaudit.lab.bench import report  # noqa: PLC0415
        from ragaudit.lab.bench.task import Task, find  # noqa: PLC0415
        from ragaudit.lab.bench.workload import Sizes, Workload  # noqa: PLC0415

        work = Workload(Sizes(rows, dimension, top_k, sigma, records, queries), keep)
        with report.progress() as notify:
            measurements = find(name)(Task(work, runs, notify, seconds))
    found = report.report(name, work.sizes, used, measurements)
    report.show(found, measurements, as_json)


@app.command("all", epilog="Example: ragaudit bench all --max-rows 10000 --output /tmp/benchmarks")
def everything(
    inputs: Annotated[
        Path, typer.Option("--inputs", help="Folder of matrix, targets and template.")
    ] = Path("benchmarks"),
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Folder for results, document and plots, all in one."),
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", min=2, help="Leave out larger cases.")
    ] = None,
    keep: Keep = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Sample what misses its target with Linux perf.")
    ] = False,
    groth16: Annotated[
        bool, typer.Option("--groth16", help="Measure the Groth16 comparison too; needs cargo.")
    ] = False,
    render_only: Annotated[
        bool, typer.Option("--render-only", help="Measure nothing; make document and plots again.")
    ] = False,
) -> None:
    """Measure the declared matrix and make document and plots of the results.

    Without --output, results go to results/ in the folder of --inputs, the document to
    docs/benchmarks.md beside that folder and the plots to docs/benchmarks. What is stored for
    the present commit is not measured again.
    """
    from ragaudit.lab.bench.suite import run  # noqa: PLC0415 - loads matplotlib

    places = run.Places.of(inputs, output)
    if not render_only:
        run.measure(places, max_rows, keep, profile=profile, tell=typer.echo)
    if groth16 and not render_only:
        run.compare(places, max_rows, typer.echo)
    run.render(places)
    typer.echo(f"{places.document}")
