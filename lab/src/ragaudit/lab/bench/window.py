"""A whole window through both services, from its creation to its verdict, each phase by itself.

Two processes do the work, as in operation; this one only asks, and looks on. Times between two
events are read from what the services themselves say; the peaks of their memory are reset before
each phase, so that a phase shows its own.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from ragaudit.cli.processes import ServiceFailed
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.harness import duration, show_json
from ragaudit.lab.bench.load import ask_without_pause, peaks, reset_peaks
from ragaudit.lab.bench.services import WINDOW, BothServices, WindowSizes, both_services
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.verifier.service.remote import Remote
from rich.table import Table

_POLL_SECONDS = 0.25
_HAND_OVER = 10  # seconds from the end to the sampling instant, beside those for the records
_HANDED_OVER_PER_SECOND = 500  # records; a busy machine must not miss the instant
_SKEW = 2
_RELEASE = 1
_DEADLINE = 24 * 3600
_SLACK = 10  # seconds of the window beyond the queries, for the last of their answers
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Phase:
    """One phase of the window.

    Attributes:
        name: of the phase.
        seconds: that it took.
        records: that it was about.
        peak_mib: largest resident size of each process meanwhile, MiB.
    """

    name: str
    seconds: float
    records: int
    peak_mib: dict[str, float]


@dataclass(frozen=True)
class EndToEnd:
    """A window that was run to its verdict.

    Attributes:
        rows: N.
        accounts, sampled: how many.
        asked: how many records were wanted.
        records: how many there are: fewer where the machine was slower than was expected.
        store: "sqlite" or "postgresql".
        result: of the verdict.
        bundle_bytes: of all evidence.
    """

    rows: int
    accounts: int
    asked: int
    records: int
    sampled: int
    store: str
    result: str
    bundle_bytes: int
    phases: tuple[Phase, ...]

    @property
    def peak_mib(self) -> dict[str, float]:
        """Largest resident size of each process over all phases, MiB."""
        found: dict[str, float] = {}
        for phase in self.phases:
            for name, size in phase.peak_mib.items():
                found[name] = max(size, found.get(name, 0.0))
        return found


class _Run:
    """Measures phases of a running window."""

    def __init__(self, both: BothServices, records: int, tell: Tell) -> None:
        self._both = both
        self.records = records
        self._tell = tell
        self._name = ""
        self.phases: list[Phase] = []

    def phase(self, name: str, action: Callable[[], float | None], records: int = 0) -> None:
        """Run a phase.

        Args:
            action: returns its seconds where another clock tells them better than this one.
            records: that it is about; all if not said.
        """
        self._name = name
        self.tell(0, 0)
        reset_peaks(self._both.processes)
        begun = time.perf_counter()
        told = action()
        seconds = time.perf_counter() - begun if told is None else told
        found = peaks(self._both.processes)
        self.phases.append(Phase(name, seconds, records or self.records, found))

    def tell(self, done: int, total: int) -> None:
        """Tell how far the phase is."""
        self._tell(self._name, done, total)

    def until(self, event: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Return the verifier's status of the window once ``event`` holds of it."""
        while not event(status := self._both.auditor.status(WINDOW)):
            self._both.check_alive()
            self.tell(*_done_of(status, self._both.auditor.progress(WINDOW)))
            time.sleep(_POLL_SECONDS)
        return status

    def between(self, first: str, last: str) -> float:
        """Wait for a time of the verifier's; return the seconds to it from one before."""
        times = self.until(lambda status: status["times"][last] is not None)["times"]
        return float(times[last] - times[first]) / 1000


def run_window(
    records: int,
    rows: int,
    accounts: int,
    rate: float,
    mode: str,
    postgresql: str | None,
    tell: Tell,
) -> EndToEnd:
    """Run a window of so many records to its verdict.

    Args:
        records: R, as far as there is time to answer them.
        rows: N.
        accounts: that ask, at once.
        rate: answers a second that this machine can be expected to give: a window's end is fixed
            before it opens.
        mode: "A", every record is proven, or "B", a sample.
        postgresql: as of `both_services`.
        tell: is told what is being done.

    Raises:
        ServiceFailed: as of `both_services`; or nothing was answered before the window's end.
        InternalError: the verdict on an honest window is another one than PASS.
    """
    sizes = WindowSizes(
        rows, top_k=5, accounts=accounts, queries=-(-records // accounts) + accounts,
seconds=round(records / rate) + _SLACK,
    )  # fmt: skip
    sampling_after = _HAND_OVER + records // _HANDED_OVER_PER_SECOND
    overrides = {
        "sampling_after_seconds": sampling_after,
        "clock_skew_seconds": _SKEW, "merge_delay_seconds": sampling_after - _SKEW,
        "release_seconds": _RELEASE,
        "audit": {
            "mode": mode, "beta": "0.01", "deadline_seconds": _DEADLINE,
            "tenants": {"eta": "0.0009765625", "minimum": 10},
        },
    }  # fmt: skip
    opened = both_services(
        sizes, postgresql=postgresql, overrides=overrides, tell=lambda what: tell(what, 0, 0)
    )
    with opened as both, TemporaryDirectory() as folder:
        run = _Run(both, records, tell)
        begun, started = both.created
        run.phases.append(Phase("commit and open", started - begun, rows, peaks(both.processes)))
        run.phase("queries", partial(_ask, both, run))
        if not run.records:
            raise ServiceFailed("nothing was answered", where="--rate", expected="a lower one")
        run.phase("until the end", partial(_await, both, run, _policy(both)["end"]))
        run.phase("close and hand over", partial(_closing, both, run))
        instant = partial(_await, both, run, _policy(both)["activation_instants"][-1])
        run.phase("until the sampling instant", instant)
        run.phase("sampling", partial(run.between, "listed", "challenged"))
        sampled = both.auditor.status(WINDOW)["counts"]["sampled"]
        run.phase("proofs", partial(run.between, "challenged", "sealed"), sampled)
        run.phase("audit", partial(run.between, "sealed", "decided"))
        path = Path(folder) / "bundle.zip"
        run.phase("bundle", partial(_download, both, path))
        status = both.auditor.status(WINDOW)
        if status["result"] != "PASS":
            raise InternalError(f"an honest window is judged {status['result']}", where=WINDOW)
        return EndToEnd(
            rows=rows,
            accounts=accounts,
            asked=records,
            records=run.records,
            sampled=sampled,
            store="sqlite" if postgresql is None else "postgresql",
            result=status["result"],
            bundle_bytes=path.stat().st_size,
            phases=tuple(run.phases),
        )


def _done_of(status: dict[str, Any], progress: dict[str, Any]) -> tuple[int, int]:
    """How much of what the window waits for is done: responses, or a step of the audit."""
    counts = status["counts"]
    if status["state"] == "challenged":
        return counts["responses"], counts["sampled"]
    return progress["done"], progress["total"]


def _ask(both: BothServices, run: _Run) -> None:
    askers, wanted = both.askers(), run.records
    # A machine that is slow for a while leaves questions out, instead of half an hour's work.
    until = _policy(both)["end"] - _SLACK
    try:
        found = ask_without_pause(askers, wanted, lambda done: run.tell(done, wanted), until)
        run.records = len(found.seconds)
    finally:
        for each in askers:
            each.close()


def _policy(both: BothServices) -> dict[str, Any]:
    return dict(both.operator.window(WINDOW)["policy"])


def _await(both: BothServices, run: _Run, instant: int) -> None:
    whole = instant - time.time()
    while (left := instant - time.time()) > 0:
        both.check_alive()
        run.tell(round(whole - left), round(whole))
        time.sleep(min(left, 1.0))


def _closing(both: BothServices, run: _Run) -> float:
    """From the end to a closed window whose log is in the verifier's hands."""
    end: int = _policy(both)["end"]
    status = run.until(lambda it: it["times"]["records"] and it["times"]["closed"])
    return float(max(status["times"]["records"], status["times"]["closed"]) / 1000 - end)


def _download(both: BothServices, path: Path) -> None:
    services = both.services
    said = AccessBody.from_json({"reader": "bench", "reason": "to measure the download"})
    with Remote(services.verifier_url, services.auditor_token) as remote, path.open("wb") as file:
        remote.bundle(WINDOW, said, file)


def show(run: EndToEnd, as_json: bool) -> None:
    """Print a run: a table, or one JSON object with the machine.

    Args:
        as_json: whether a program reads it.
    """
    if as_json:
        document = {**asdict(run), "peak_mib": run.peak_mib}
        show_json(run=document)
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
