"""Where the time of a missed target goes: samples of Linux perf, and what bounds it, in words.

The shares come from `take`; the words from benchmarks/bounds.toml, written by whoever read them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ragaudit.encoding.errors import InternalError, UnsupportedError
from ragaudit.lab.bench.harness import PIPES, WANTED
from ragaudit.lab.bench.matrix import Case, Outcome, reading, table

# A prime, so that samples do not fall into step with timers.
_HERTZ = 499
_SECONDS = 5  # of samples, or one run if that is longer
_RUNS = 1000
_LEAST_PERCENT = 2.0
_LINE = re.compile(r"\s*([0-9.]+)%\s*;\s*(\S+)\s*;\s*\[.\]\s*(.+?)\s*")
_PARAMETERS = re.compile(r"<[^<>]*>")

Bounds = Mapping[tuple[str, int], str]


@dataclass(frozen=True)
class Profile:
    """Samples of one target at one number of rows.

    Attributes:
        what, rows: the target.
        command: what was sampled, only while its measurement ran.
        shares: percent of the samples, library, function; falling, from 2 percent on.
    """

    what: str
    rows: int
    commit: str
    command: str
    shares: tuple[tuple[float, str, str], ...]


def load(path: Path) -> list[Profile]:
    """Return the profiles in a file; none if there is no file.

    Args:
        path: a JSON list, as `save` writes it.

    Raises:
        MalformedError: another layout.
    """
    if not path.exists():
        return []
    with reading("profiles", path):
        return [
            Profile(**{**each, "shares": tuple((p, d, f) for p, d, f in each["shares"])})
            for each in json.loads(path.read_text())
        ]


def save(path: Path, profiles: Sequence[Profile]) -> None:
    """Write all profiles."""
    path.write_text(json.dumps([asdict(each) for each in profiles], indent=1) + "\n")


def bounds(path: Path) -> Bounds:
    """Return what bounds a target, in words, by its name and number of rows.

    Args:
        path: benchmarks/bounds.toml, written by hand.

    Raises:
        MalformedError: not readable, or a member missing.
    """
    with reading("bounds", path):
        entries = tomllib.loads(path.read_text()).get("bound", [])
        return {(each["what"], each["rows"]): each["why"] for each in entries}


def possible() -> bool:
    """Return whether perf is installed."""
    return shutil.which("perf") is not None


def take(outcome: Outcome, case: Case, keep: Path, commit: str) -> Profile:
    """Run a case under perf and sample the target's measurement.

    Args:
        outcome: the target that is not met.
        case: the declared case that measures it; it runs longer here, for more samples.
        keep: folder of rows and commitments.
        commit: of the sources, to be stored with the profile.

    Raises:
        UnsupportedError: there is no perf here.
        InternalError: perf or the measurement failed.
    """
    perf = shutil.which("perf")
    if perf is None:
        raise UnsupportedError("perf is not installed", expected="Linux perf in the PATH")
    # The seconds end it: a short measurement has to run often for enough samples.
    often = replace(case, runs=_RUNS)
    arguments = ["bench", *often.arguments(keep, _SECONDS)]
    with tempfile.TemporaryDirectory(prefix="ragaudit-perf-") as folder:
        pipes = Path(folder)
        for name in ("control", "acknowledged"):
            os.mkfifo(pipes / name)
        data = pipes / "data"
        control = f"--control=fifo:{pipes / 'control'},{pipes / 'acknowledged'}"
        recording = [perf, "record", "-q", "-F", str(_HERTZ), "--delay=-1", control]
        _call(
            [*recording, "-o", str(data), "--", sys.executable, "-m", "ragaudit.cli", *arguments],
            {PIPES: str(pipes), WANTED: outcome.target.measurement},
        )
        reporting = ["--stdio", "--no-children", "-F", "overhead,dso,symbol", "-t", ";"]
        shown = _call([perf, "report", "-i", str(data), *reporting], {})
    command = f"ragaudit {' '.join(_public(arguments))}"
    return Profile(outcome.target.what, outcome.rows, commit, command, parse(shown))


def _public(arguments: Sequence[str]) -> list[str]:
    """The command without the folder of this machine."""
    at = arguments.index("--keep") if "--keep" in arguments else len(arguments)
    return [*arguments[:at], *arguments[at + 2 :]]


def _call(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    if done.returncode != 0:
        raise InternalError(f"exit status {done.returncode}", where=" ".join(command[:2]))
    return done.stdout


def parse(report: str) -> tuple[tuple[float, str, str], ...]:
    """Return the shares in a report of perf, without those below 2 percent.

    Args:
        report: text of ``perf report -t ';' -F overhead,dso,symbol``.

    Returns:
        Percent, library and function of each, in the report's order.
    """
    found = []
    for line in report.splitlines():
        match = _LINE.fullmatch(line)
        if match and float(match[1]) >= _LEAST_PERCENT:
            found.append((float(match[1]), match[2], _short(match[3])))
    return tuple(found)


def _short(symbol: str) -> str:
    """Type and method, or the last two parts of a path, without parameters."""
    if symbol.startswith("<") and " as " in symbol:
        owner = symbol.split(" as ", maxsplit=1)[0].lstrip("<&")
        return (
            f"{owner.split('::')[-1]}::{symbol.rsplit('::', maxsplit=1)[-1].removeprefix('_impl_')}"
        )
    plain = symbol
    while (shorter := _PARAMETERS.sub("", plain)) != plain:
        plain = shorter
    return "::".join([part for part in plain.split("::") if part][-2:])


def unmet(outcomes: Sequence[Outcome], profiles: Sequence[Profile], known: Bounds) -> str:
    """Return a section for each target that was measured and not met.

    Args:
        outcomes: of all targets.
        profiles: where the time of some goes.
        known: what bounds them, in words.
    """
    missed = [each for each in outcomes if each.met is False]
    if not missed:
        return "Every target that was measured is met."
    by_target = {(each.what, each.rows): each for each in profiles}
    return "\n\n".join(
        _section(each, by_target.get(key), known.get(key))
        for each in missed
        for key in [(each.target.what, each.rows)]
    )


def _section(outcome: Outcome, profile: Profile | None, bound: str | None) -> str:
    title = f"### {outcome.target.what}, N = {outcome.rows:,}"
    parts = [title, bound or "What bounds it is not written down."]
    if profile is None:
        parts.append("No profile is stored.")
    else:
        rows = [(f"`{name}`", library, f"{share:.1f} %") for share, library, name in profile.shares]
        parts.append(f"`{profile.command}`, commit `{profile.commit}`:")
        parts.append(table(("function", "in", "samples"), rows))
    return "\n\n".join(parts)
