"""The steps of `ragaudit bench all`: measure, profile, render."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.machine import available_cores
from ragaudit.lab.bench.suite import (
    document,
    groth16,
    matrix,
    profiles,
    published,
    results,
    runner,
    targets,
)

__all__ = ["Places", "compare", "measure", "render"]


@dataclass(frozen=True)
class Places:
    """Where everything is read and written."""

    inputs: Path
    results: Path
    document: Path
    figures: Path

    @classmethod
    def of(cls, inputs: Path, output: Path | None) -> "Places":
        """Return where everything is read and written.

        Args:
            inputs: folder of matrix, targets, template and bounds.
            output: folder for all that is written; None for the repository that ``inputs`` lies in.
        """
        if output is None:
            docs = inputs.parent / "docs"
            return cls(inputs, inputs / "results", docs / "benchmarks.md", docs / "benchmarks")
        return cls(inputs, output, output / "benchmarks.md", output / "benchmarks")

    @property
    def measured(self) -> Path:
        return self.results / "results.json"

    @property
    def groth16(self) -> Path:
        return self.results / "groth16.json"

    @property
    def profiles(self) -> Path:
        return self.results / "profiles.json"


def measure(
    places: Places,
    max_rows: int | None,
    keep: Path | None,
    *,
    profile: bool,
    tell: Callable[[str], None],
) -> None:
    """Measure the matrix, and profile the targets that are not met.

    Args:
        places: where everything is.
        max_rows: leave out cases with more rows; None for no limit.
        keep: folder of rows and commitments; a temporary one if it is not given.
        profile: whether to profile the targets that are not met.
        tell: called with a line about each case.

    Raises:
        MalformedError: matrix or targets.
        InternalError: a measurement failed; what was measured before it is stored.
    """
    cases = matrix.load(places.inputs / "matrix.toml", available_cores(), max_rows)
    goals = targets.load(places.inputs / "targets.toml")
    commit = results.commit(Path.cwd())
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as temporary:
        folder = Path(temporary) if keep is None else keep
        found = runner.run(cases, places.measured, commit, tell, folder)
        if profile:
            missed = [each for each in targets.outcomes(goals, found) if each.met is False]
            _profile(missed, cases, places.profiles, folder, commit, tell)


def compare(places: Places, max_rows: int | None, tell: Callable[[str], None]) -> None:
    """Measure the Groth16 comparison that the matrix declares.

    Args:
        places, max_rows, tell: as of :func:`measure`.

    Raises:
        MalformedError: the matrix.
        UnsupportedError: there is no cargo, or no crate.
        InternalError: a run failed; the reports before it are stored.
    """
    declared = groth16.circuits(places.inputs / "matrix.toml")
    fitting = [each for each in declared if max_rows is None or each.rows <= max_rows]
    groth16.run(fitting, places.groth16, places.inputs.parent, results.commit(Path.cwd()), tell)


def _profile(
    missed: Sequence[targets.Outcome],
    cases: Sequence[matrix.Case],
    path: Path,
    folder: Path,
    commit: str,
    tell: Callable[[str], None],
) -> None:
    """Sample what is not yet sampled at this commit; each is stored at once."""
    if not profiles.possible():
        tell("perf is not installed: no profiles of the targets that are not met")
        return
    for each in missed:
        stored = {(known.what, known.rows): known for known in profiles.load(path)}
        key = (each.target.what, each.rows)
        case = next((one for one in cases if each.result and one.matches(each.result)), None)
        if case is None or (key in stored and stored[key].commit == commit):
            continue
        tell(f"profile: {each.target.what}, N = {each.rows:,}")
        stored[key] = profiles.take(each, case, folder, commit)
        profiles.save(path, list(stored.values()))


def render(places: Places) -> None:
    """Make document and plots from what is stored.

    Args:
        places: where everything is.

    Raises:
        MalformedError: an input.
    """
    inputs = places.inputs
    try:
        template = (inputs / "document.md").read_text()
    except OSError as error:
        raise MalformedError(f"template: {error}", where=str(inputs)) from error
    made = document.Inputs(
        template,
        targets.load(inputs / "targets.toml"),
        results.Results.load(places.measured),
        profiles.load(places.profiles),
        profiles.bounds(inputs / "bounds.toml"),
        groth16.load(places.groth16),
        published.load(inputs.parent / "docs" / "benchmarks" / "published.toml"),
    )
    places.document.parent.mkdir(parents=True, exist_ok=True)
    document.render(made, places.document, places.figures)
