"""Stored results: one JSON document, each result with its machine, commit, date and sizes."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.suite.matrix import Case

__all__ = ["UNCOMMITTED", "Results", "commit"]

FORMAT = "ragaudit/benchmarks/1"
UNCOMMITTED = "+changes"
"""What follows a commit's hash when the sources were not exactly the commit's."""

# What does not change the program: results and documents are written by measuring.
_NOT_SOURCES = (":!benchmarks/results", ":!docs")


@dataclass(frozen=True)
class Results:
    """What was measured, in the order in which it was.

    Each result is a report of `ragaudit bench` with ``commit`` and ``date`` (UTC, ISO 8601).
    """

    results: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Return the results in a file; none if there is no file.

        Args:
            path: as `save` writes it.

        Raises:
            MalformedError: not such a file.
        """
        if not path.exists():
            return cls()
        try:
            document = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise MalformedError(f"results: {error}", where=str(path)) from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise MalformedError("another format", where=str(path), expected=FORMAT)
        return cls(tuple(document["results"]))

    def save(self, path: Path) -> None:
        """Write all or nothing: an interrupted run leaves the results that were there.

        Args:
            path: of the file; its folder is made if it is missing.
        """
        text = json.dumps({"format": FORMAT, "results": list(self.results)}, indent=1)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole: results of hours survive an interruption here.
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_text(text + "\n")
        unfinished.replace(path)

    def of(self, case: Case) -> Mapping[str, Any] | None:
        """Return the result of a case; None if it was not measured."""
        return next((each for each in self.results if case.matches(each)), None)

    def has(self, case: Case, commit: str) -> bool:
        """Return whether a case was measured at a commit whose sources nobody changed.

        Args:
            case: to be measured.
            commit: of :func:`commit`; one that is marked as changed is never had.
        """
        found = self.of(case)
        return found is not None and found["commit"] == commit and not commit.endswith(UNCOMMITTED)

    def with_result(self, case: Case, result: Mapping[str, Any]) -> "Results":
        """Return these results with one added, which replaces the case's.

        Args:
            case: what was measured.
            result: its report with ``commit`` and ``date``.
        """
        others = (each for each in self.results if not case.matches(each))
        return Results((*others, result))


def commit(folder: Path) -> str:
    """Return the commit of the sources, marked with `UNCOMMITTED` if they were changed since.

    Args:
        folder: in the repository; outside of one the commit is "unknown", and marked.
    """
    try:
        head = _git(folder, "rev-parse", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--", ".", *_NOT_SOURCES)
    except (OSError, subprocess.CalledProcessError):
        return "unknown" + UNCOMMITTED
    return head + (UNCOMMITTED if changes else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return found.stdout.strip()
