"""`ragaudit bench`: measure the parts, each beside a stated baseline."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.harness import (
    ALLOWANCE,
    Measurement,
    Notify,
    limited_to,
    progress,
    run,
)

if TYPE_CHECKING:
    from ragaudit.lab.bench.workload import Task

app = typer.Typer(no_args_is_help=True, help="Measure the parts, each beside a stated baseline.")

SIDECAR_ROWS = (1000, 10_000)
MAX_ROWS = 2**24  # as many as a statement may have

Rows = Annotated[int, typer.Option("--rows", min=2, max=MAX_ROWS, help="N, rows of the index.")]
Dimension = Annotated[int, typer.Option("--dim", min=1, max=4096, help="d, entries of a row.")]
TopK = Annotated[int, typer.Option("--top-k", min=1, max=1000, help="K, rows asked for; below N.")]
Sigma = Annotated[str, typer.Option("--sigma", help="Noise parameter, a decimal in cosine units.")]
Queries = Annotated[
    int, typer.Option("--queries", min=1, max=100_000, help="r, queries of an account.")
]
Records = Annotated[
    int, typer.Option("--records", min=1, max=100_000, help="R, records of one tenant.")
]
Runs = Annotated[int, typer.Option("--runs", min=1, max=10_000, help="Timed runs.")]
Allowance = Annotated[
    float, typer.Option("--seconds", min=0, help="Start no further run after this long.")
]
Cores = Annotated[int | None, typer.Option("--cores", min=1, help="Cores to use; all if unset.")]
Keep = Annotated[
    Path | None, typer.Option("--keep", help="Keep rows and commitments here and use them again.")
]
PostgreSql = Annotated[
    str | None,
    typer.Option(
        "--postgresql",
        help="URL of a PostgreSQL server that may create databases; SQLite if unset.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Mode(StrEnum):
    """Which records of a window are proven."""

    ALL = "A"
    SAMPLE = "B"


# What a command needs is imported in it: help answers at once, libraries make their threads when
# the cores are limited, and the peak of memory is that of what is measured.


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


@app.command("scores", epilog="Example: ragaudit bench scores --rows 100000 --questions 16")
def scores(
    rows: Rows = 1000, dimension: Dimension = 384, top_k: TopK = 5,
    questions: Annotated[
        int, typer.Option("--questions", min=1, max=1000, help="Questions that wait together.")
    ] = 16,
    runs: Runs = 20, seconds: Allowance = ALLOWANCE, cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Score rows exactly, for one question and for several at once; a record is a question."""
    _run("scores", rows, dimension, top_k, "2", questions, runs, seconds, cores, None, as_json)


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
    with limited_to(cores) as used:
        from ragaudit.lab.bench import bounds as scenario  # noqa: PLC0415

        sizes = scenario.Domain(domain)
        run(
            "bounds", sizes, used, as_json,
            lambda notify: scenario.bounds(sizes, runs, seconds, notify),
        )  # fmt: skip


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

    sizes = scenario.LogSizes(entries, batch)
    with limited_to(None) as used:
        run(
            "ledger", sizes, used, as_json,
            lambda notify: scenario.ledger(sizes, database, runs, seconds, notify),
        )  # fmt: skip


@app.command("log", epilog="Example: ragaudit bench log --records 1000000 --accounts 20000")
def log(
    records: Annotated[int, typer.Option("--records", min=10, help="R, records.")] = 100_000,
    accounts: Annotated[int, typer.Option("--accounts", min=2, help="A, accounts.")] = 2000,
    cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Check a log of R records as a verifier does: download, rehash, counters, times, accounts."""
    with limited_to(cores) as used:
        from ragaudit.lab.bench.log import LargeLogSizes, check_log  # noqa: PLC0415

        sizes = LargeLogSizes(records, accounts)
        run("log", sizes, used, as_json, lambda notify: check_log(sizes, notify))


@app.command("coalition", epilog="Example: ragaudit bench coalition --records 1000000")
def coalition(
    records: Annotated[int, typer.Option("--records", min=10, help="R, records.")] = 100_000,
    accounts: Annotated[int, typer.Option("--accounts", min=2, help="A, accounts.")] = 2000,
    bits: Annotated[
        int, typer.Option("--bits", min=64, max=512, help="b, bits of a sketch; 64 divides it.")
    ] = 256,
    cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Estimate coalitions over R sketches, realistic and adversarial, beside every pair compared.

    In the table a record is a pair of records that are near in time.
    """
    if bits % 64:
        raise MalformedError(f"b = {bits}", where="--bits", expected="a multiple of 64")
    with limited_to(cores) as used:
        from ragaudit.lab.bench import coalition as scenario  # noqa: PLC0415

        sizes = scenario.CoalitionSizes(records, accounts, bits)
        run("coalition", sizes, used, as_json, lambda notify: scenario.coalition(sizes, notify))


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
    with limited_to(cores) as used:
        from ragaudit.lab.bench import jobs as scenario  # noqa: PLC0415
        from ragaudit.lab.bench.workload import Sizes, Workload  # noqa: PLC0415

        sizes = scenario.JobSizes(rows, dimension, records, workers)
        work = Workload(Sizes(rows, dimension, top_k, sigma, records))
        run(
            "jobs", sizes, used, as_json,
            lambda notify: scenario.jobs(sizes, work, database, runs, notify),
        )  # fmt: skip


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
    with limited_to(cores) as used:
        from ragaudit.lab.bench import generation as scenario  # noqa: PLC0415

        sizes = scenario.GenerationSizes(rows, dimension, records, charged, uses, group)

        def measured(notify: Notify) -> list[Measurement]:
            found = scenario.generation(sizes, runs, seconds, notify, postgresql)
            if growth:
                found += scenario.growth(sizes, found, runs, seconds, notify)
            return found

        run("generation", sizes, used, as_json, measured)


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
    from ragaudit.lab.bench import sidecar as scenario  # noqa: PLC0415

    found = []
    for count in rows or SIDECAR_ROWS:
        _check_top_k(top_k, count)
        with progress() as notify:
            found.append(
                scenario.measure(
                    count, dimension, top_k, runs, clients, minutes, lambda text: notify(text, 0, 0)
                )
            )
    scenario.show(found, as_json)


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
    from ragaudit.lab.bench import service as scenario  # noqa: PLC0415

    _check_top_k(top_k, rows)
    load = scenario.Load(rows, top_k, rate, seconds, accounts, minutes, provers)
    with progress() as notify:
        found = scenario.measure(load, postgresql, lambda what: notify(what, 0, 0))
    scenario.show(found, as_json)


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
    from ragaudit.lab.bench import window as scenario  # noqa: PLC0415

    with progress() as notify:
        found = scenario.run_window(records, rows, accounts, rate, mode.value, postgresql, notify)
    scenario.show(found, as_json)


def _run(
    name: str, rows: int, dimension: int, top_k: int, sigma: str, records: int, runs: int,
    seconds: float, cores: int | None, keep: Path | None, as_json: bool, queries: int = 100,
) -> None:  # fmt: skip
    _check_top_k(top_k, rows)
    with limited_to(cores) as used:
        from ragaudit.lab.bench.workload import Sizes, Task, Workload  # noqa: PLC0415

        scenario = _scenario(name)
        work = Workload(Sizes(rows, dimension, top_k, sigma, records, queries), keep)
        run(
            name, work.sizes, used, as_json,
            lambda notify: scenario(Task(work, runs, notify, seconds)),
        )  # fmt: skip


def _scenario(name: str) -> "Callable[[Task], list[Measurement]]":
    if name == "audit":
        from ragaudit.lab.bench.auditing import audit  # noqa: PLC0415

        return audit
    if name == "answer-http":
        from ragaudit.lab.bench.service import answer_http  # noqa: PLC0415

        return answer_http
    if name == "scores":
        from ragaudit.lab.bench.scoring import scores  # noqa: PLC0415

        return scores
    if name == "answer":
        from ragaudit.lab.bench.answering import answer  # noqa: PLC0415

        return answer
    from ragaudit.lab.bench import proofs  # noqa: PLC0415

    return {
        "index": proofs.index,
        "prove": proofs.prove,
        "verify": proofs.verify,
        "reference": proofs.reference,
    }[name]


def _check_top_k(top_k: int, rows: int) -> None:
    if top_k >= rows:
        raise MalformedError(f"K = {top_k}", where="--top-k", expected=f"below N = {rows}")


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
    docs/generated/measurements.md beside that folder and the plots to docs/benchmarks. What is
    stored for the present commit is not measured again.
    """
    from ragaudit.lab.bench import suite  # noqa: PLC0415 - loads matplotlib

    places = suite.Places.of(inputs, output)
    if not render_only:
        suite.measure(places, max_rows, keep, profile=profile, tell=typer.echo)
    if groth16 and not render_only:
        suite.compare(places, max_rows, typer.echo)
    suite.render(places)
    typer.echo(f"{places.document}")
