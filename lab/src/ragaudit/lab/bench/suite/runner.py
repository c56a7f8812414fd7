"""Running the cases, each in a process of its own, and storing every result at once."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.suite.matrix import Case
from ragaudit.lab.bench.suite.results import Results

__all__ = ["run"]

Tell = Callable[[str], None]


def run(cases: Sequence[Case], path: Path, commit: str, tell: Tell, folder: Path) -> Results:
    """Measure what is not yet stored for this commit; returns all results.

    Args:
        path: where results are stored, after each case.
        tell: gets a line for each case.
        folder: for rows and commitments that the cases share.

    Raises:
        InternalError: a measurement failed; what was measured before it is stored.
    """
    for number, case in enumerate(cases, start=1):
        # Read again for each case: nothing that was stored meanwhile is overwritten.
        results = Results.load(path)
        place = f"{number}/{len(cases)} {case}"
        if results.has(case, commit):
            tell(f"{place}: stored")
            continue
        begun = datetime.now(UTC)
        report = _measured(case, folder)
        stamped = {
            "commit": commit,
            "date": begun.isoformat(timespec="seconds"),
            **report,
        }
        results.with_result(case, stamped).save(path)
        tell(f"{place}: {(datetime.now(UTC) - begun).total_seconds():.0f} s with set-up")
    return Results.load(path)


def _measured(case: Case, folder: Path) -> dict[str, Any]:
    """Standard error stays the terminal's: progress is shown there."""
    # A process of its own: peak memory, caches and pinned cores begin afresh for each case.
    command = [sys.executable, "-m", "ragaudit.cli", "bench", *case.arguments(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise InternalError(f"exit status {done.returncode}", where=" ".join(command[3:]))
    report: dict[str, Any] = json.loads(done.stdout)
    return report
