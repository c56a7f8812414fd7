"""The harness of all measurements: clock, memory, machine; what is found as JSON and as a table.

A measurement is the median of repeated runs, with the peak memory of each (Linux can forget a
process's peak, other systems cannot) and the ratio against a baseline. Linux perf can sample one
measurement and nothing else of the process: it is started disabled with a pair of named pipes
(perf-record(1), --control); around the runs of the measurement that is wanted, this process tells
it to begin and to stop.
"""

import contextlib
import gc
import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import MalformedError
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc_pid_clear_refs(5): "reset the peak resident set size"


def reset_peak(clear: Path = _CLEAR) -> bool:
    """Make the present resident size the peak; return whether the system allowed it.

    Args:
        clear: where Linux is told to; another path in tests.
    """
    try:
        clear.write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def peak_memory_mib(status: Path = _STATUS) -> float:
    """Return the largest resident size of this process, in MiB, since its start or `reset_peak`.

    Args:
        status: where Linux tells it; where there is no such file, that of `getrusage` is taken,
            which is since the start.
    """
    try:
        lines = status.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


WANTED = "RAGAUDIT_BENCH_SAMPLED"
"""Environment: the measurement's name."""

PIPES = "RAGAUDIT_BENCH_PERF"
"""Environment: the folder of the pipes `control` and `acknowledged`."""


@contextmanager
def sampled(name: str) -> Iterator[None]:
    """Sample what is done inside, if this measurement is the one that is wanted.

    Args:
        name: of the measurement; compared with the environment variable `WANTED`.
    """
    pipes = os.environ.get(PIPES)
    if pipes is None or os.environ.get(WANTED) != name:
        yield
        return
    _tell(Path(pipes), "enable")
    try:
        yield
    finally:
        _tell(Path(pipes), "disable")


def _tell(pipes: Path, command: str) -> None:
    with (pipes / "control").open("w") as control:
        control.write(f"{command}\n")
    with (pipes / "acknowledged").open() as acknowledged:
        # perf has begun, or stopped, only when it answers; else runs next to this one are sampled.
        acknowledged.readline()


ALLOWANCE = 20.0
"""Seconds under the clock after which no further run is begun."""

STEP = "of it: "
"""How the names of measurements begin that are a part of the one before them."""


@dataclass(frozen=True)
class Measurement:
    """What was measured, how long its median run took, and beside which baseline.

    Attributes:
        name: what ran.
        median, lowest, highest: seconds of one run.
        runs: number of runs that count.
        warmed_up: whether a run that does not count went before. A first run that is longer
            than the allowance counts, and is the only one.
        records: number of records that one run treats.
        baseline: None, or the name of the measurement that it is compared with.
        ratio: this median over the baseline's, each divided by its number of records.
        size_bytes: size of what the run made, if it made bytes worth naming; of several, the
            median.
        peak_mib: largest resident size of the process during the runs, None if not measured.
        peak_of_process: whether the peak is that since the start of the process, because the
            system could not forget it.
        details: further numbers of the workload, by name.
    """

    name: str
    median: float
    lowest: float
    highest: float
    runs: int
    warmed_up: bool = True
    records: int = 1
    baseline: str | None = None
    ratio: float | None = None
    size_bytes: int | None = None
    peak_mib: float | None = None
    peak_of_process: bool = False
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def per_record(self) -> float:
        """Seconds of the median run for each of its records."""
        return self.median / self.records

    def beside(
        self,
        baseline: "Measurement",
        size_bytes: int | None = None,
        details: Mapping[str, float] | None = None,
    ) -> "Measurement":
        """Return this measurement with its ratio against another one.

        Args:
            baseline: of which a record is what a record is here.
            size_bytes: as of the attribute; what there is already stays if it is not given.
            details: added to those that there are.
        """
        return replace(
            self,
            baseline=baseline.name,
            ratio=self.per_record / baseline.per_record,
            size_bytes=self.size_bytes if size_bytes is None else size_bytes,
            details={**self.details, **(details or {})},
        )


def measure(
    name: str,
    action: Callable[[], object],
    runs: int,
    *,
    records: int = 1,
    allowance: float = ALLOWANCE,
) -> Measurement:
    """Run ``action`` once to warm up and up to ``runs`` times under the clock.

    If the first run, which warms up, takes longer than the allowance, it is the one that counts.

    Args:
        name: of the measurement; perf samples it if its name is the one that is wanted.
        action: what runs; its result is dropped.
        runs: under the clock, at most; one always counts.
        records: that one run treats.
        allowance: seconds under the clock after which no further run is begun.
    """
    gc.collect()
    forgot = reset_peak()
    with sampled(name):
        first = _seconds(action)
        warmed_up = first <= allowance
        seconds = [] if warmed_up else [first]
        while warmed_up and len(seconds) < runs and sum(seconds) < allowance:
            seconds.append(_seconds(action))
    return _with_peak(summarise(name, seconds), warmed_up, records, forgot)


def measure_once(name: str, action: Callable[[], object], *, records: int = 1) -> Measurement:
    """Run ``action`` once, under the clock: what is long, or cannot be repeated.

    Args:
        name, action, records: as of `measure`.
    """
    return measure(name, action, 1, records=records, allowance=-1.0)


def _with_peak(found: Measurement, warmed_up: bool, records: int, forgot: bool) -> Measurement:
    return replace(
        found,
        warmed_up=warmed_up,
        records=records,
        peak_mib=round(peak_memory_mib(), 1),
        peak_of_process=not forgot,
    )


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def summarise(name: str, seconds: Sequence[float]) -> Measurement:
    """Return the measurement of runs that were timed elsewhere.

    Args:
        name: of the measurement.
        seconds: of each run; at least one.
    """
    runs = len(seconds)
    return Measurement(name, statistics.median(seconds), min(seconds), max(seconds), runs)


def together(name: str, parts: Sequence[Measurement]) -> Measurement:
    """Return the measurement of what runs one part after the other.

    Medians and extremes are added up; a sum of medians is itself no median.

    Args:
        name: of the whole.
        parts: at least one.
    """
    return Measurement(
        name,
        median=sum(each.median for each in parts),
        lowest=sum(each.lowest for each in parts),
        highest=sum(each.highest for each in parts),
        runs=min(each.runs for each in parts),
        warmed_up=all(each.warmed_up for each in parts),
        peak_mib=max(each.peak_mib or 0.0 for each in parts),
        peak_of_process=any(each.peak_of_process for each in parts),
    )


def digits(value: float) -> str:
    """Return a number with three digits, or with all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def duration(seconds: float) -> str:
    """Return a time in seconds, in milliseconds below one, in microseconds below one of those."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds * 1e6)} µs"


# Instruction sets that the proof core, the matrix product or SHA-256 may use.
_FLAGS = ("avx2", "bmi2", "avx512f", "avx512ifma", "avx512_vnni", "sha_ni", "aes", "amx_int8")
_PACKAGES = ("ragaudit-cli", "ragaudit-core", "numpy", "faiss-cpu")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def limited_to(cores: int | None) -> Iterator[int]:
    """Keep every thread of this process on so many cores.

    Libraries that make their threads later make as many as that.

    Args:
        cores: how many; None leaves all as it is.

    Returns:
        A context manager that yields the number of cores and gives them all back.

    Raises:
        MalformedError: fewer cores are available.
    """
    allowed = os.sched_getaffinity(0)
    if cores is None:
        yield len(allowed)
        return
    if cores > len(allowed):
        raise MalformedError(f"{cores} cores", where="--cores", expected=f"at most {len(allowed)}")
    _pin(set(sorted(allowed)[:cores]))
    try:
        yield cores
    finally:
        _pin(allowed)


def _pin(cores: set[int]) -> None:
    """Threads that exist already are moved too; new ones inherit."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that just ended
            os.sched_setaffinity(int(task.name), cores)


def processor_seconds(process: int) -> float | None:
    """Return user and system time of a process so far, in seconds; None where there is no /proc.

    Args:
        process: its id.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime


def machine() -> dict[str, Any]:
    """Return processor, its instruction sets of note, cores and memory of this machine."""
    described = _cpuinfo()
    flags = set(described.get("flags", "").split())
    return {
        "architecture": platform.machine(),
        "processor": described.get("model name", "unknown"),
        "family": "/".join(described.get(f, "?") for f in ("cpu family", "model", "stepping")),
        "flags": [flag for flag in _FLAGS if flag in flags],
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def software() -> dict[str, str]:
    """Return the versions of Python and of what computes."""
    return {"python": platform.python_version(), **{each: _version(each) for each in _PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _cpuinfo() -> dict[str, str]:
    """The first processor of /proc/cpuinfo; nothing where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


Notify = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done and out of how much (0: unknown)."""


def silent(what: str, done: int, total: int) -> None:
    """Say nothing."""


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
    sizes: "DataclassInstance",
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


def run(
    name: str,
    sizes: "DataclassInstance",
    cores: int,
    as_json: bool,
    scenario: Callable[[Notify], list[Measurement]],
) -> None:
    """Run a scenario with its progress shown, and print what it found.

    Args:
        name, sizes, cores, as_json: as of `report` and `show`.
        scenario: is told where to say what is being done; returns what is shown, in order.
    """
    with progress() as notify:
        measurements = scenario(notify)
    show(report(name, sizes, cores, measurements), measurements, as_json)


def show_json(**found: Any) -> None:
    """Print one JSON object: the machine, its software, and what was found."""
    typer.echo(json.dumps({"machine": machine(), "software": software(), **found}))
