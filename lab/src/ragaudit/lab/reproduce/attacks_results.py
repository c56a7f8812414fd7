"""What an experiment on an attack found: areas with intervals, gates, and how they are shown."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from ragaudit.cli.figures import COLORS, axes, render
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.reproduce.comparison import Comparison, Table, as_json, as_text
from scipy import stats

FORMAT = "ragaudit/v1/reproduce-attacks"
ACCOUNTS = (1, 2, 5, 10, 20)
"""The paper's coalitions."""

ALLOWED_ERRORS = 5
"""Standard errors that a cell may be off its law: wrongly called off once in 1.7 million cells."""

TESTED = 0.045
"""The level of a test that is to be wrong in at most 5 % of runs: an area of some thousand trials,
and its error, are Gaussian up to less than the rest."""

_ONE_SIDED = float(stats.norm.isf(TESTED))
_INTERVAL = float(stats.norm.ppf(0.975))


class Area(NamedTuple):
    """The area under a ROC curve, its standard error and its 95 % interval."""

    auc: float
    error: float
    low: float
    high: float


def area(members: npt.ArrayLike, others: npt.ArrayLike) -> Area:
    """Return the Mann-Whitney area, ties half, with DeLong's error (DeLong and others 1988).

    The error is never below 1/T: by that much one more trial could have moved the area, where all
    trials were the same.

    Args:
        members, others: the attack's score in each trial of a world, at least two.
    """
    above, below = np.asarray(members, dtype=float), np.asarray(others, dtype=float)
    ranks = stats.rankdata(np.concatenate([above, below]))
    # How often each score is above one of the other world; ties count half.
    beaten = (ranks[: len(above)] - stats.rankdata(above)) / len(below)
    unbeaten = 1 - (ranks[len(above) :] - stats.rankdata(below)) / len(above)
    variance = beaten.var(ddof=1) / len(above) + unbeaten.var(ddof=1) / len(below)
    error = max(math.sqrt(variance), 1 / min(len(above), len(below)))
    auc = float(beaten.mean())
    return Area(auc, error, max(0.0, auc - _INTERVAL * error), min(1.0, auc + _INTERVAL * error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of a figure.

    Attributes:
        curve: which curve it is on.
        epsilon_acc: the promise to one account, in digits; empty where sigma is given instead.
        accounts: k, that pool what they see.
        trials: T, in each of the two worlds.
        auc, error, low, high: as of `Area`.
        theory: the area by the law of what was simulated; None where there is none.
        cap: the largest area of any attack at this noise; None where it is `theory`.
        paper: the digits that the paper prints, as an area.
    """

    curve: str
    epsilon_acc: str
    accounts: int
    trials: int
    auc: float
    error: float
    low: float
    high: float
    theory: float | None
    cap: float | None = None
    paper: str | None = None

    @property
    def where(self) -> str:
        """Which cell it is, in words."""
        promise = f", eps_acc = {self.epsilon_acc}" if self.epsilon_acc else ""
        return f"{self.curve}{promise}, k = {self.accounts}, T = {self.trials}"


def point(
    curve: str, epsilon_acc: str, accounts: int, members: npt.ArrayLike, others: npt.ArrayLike,
    *, theory: float | None, cap: float | None = None, paper: str | None = None,
) -> Point:  # fmt: skip
    """Return the cell of the attack's scores in both worlds.

    Args:
        curve, epsilon_acc, accounts, theory, cap, paper: as of `Point`.
        members, others: as of `area`.
    """
    found = area(members, others)
    return Point(
        curve=curve, epsilon_acc=epsilon_acc, accounts=accounts, trials=np.shape(members)[0],
        **found._asdict(), theory=theory, cap=cap, paper=paper,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gate:
    """A prediction that was tested.

    Attributes:
        name: of the paper, or ours.
        claim: what would have to hold.
        verdict: ``PASS``, ``FAIL`` or ``UNDECIDED``.
        figures: what was measured.
        errors: how often the verdict is wrong.
    """

    name: str
    claim: str
    verdict: str
    figures: str
    errors: str


def judged(estimate: float, error: float, low: float, high: float, chances: int = 1) -> str:
    """Return whether a quantity lies within limits: PASS, FAIL or UNDECIDED, see `decided`.

    Args:
        estimate, error: Gaussian, with its standard error.
        low, high: the limits.
        chances: as of `decided`.
    """
    return decided(Inside((estimate - low) / error, (high - estimate) / error), chances)


class Inside(NamedTuple):
    """How far inside two limits a quantity is, by each of two statistics.

    Attributes:
        low, high: standard normal where the quantity is at that limit, above 0 inside of it.
    """

    low: float
    high: float


def decided(inside: Inside, chances: int = 1) -> str:
    """Return whether a quantity lies within limits: PASS, FAIL or UNDECIDED.

    Two one-sided tests (Schuirmann 1987). PASS is wrong in at most 5 % of runs whose
    quantity lies outside, FAIL in at most 5 % of those where it lies inside. Where several
    quantities all have to lie inside, both hold for all of them together.

    Args:
        inside: of the quantity.
        chances: how many quantities are judged together; FAIL takes Bonferroni's share.
    """
    least = min(inside)
    if least >= _ONE_SIDED:
        return "PASS"
    return "FAIL" if least < -float(stats.norm.isf(TESTED / chances)) else "UNDECIDED"


def worst(verdicts: Iterable[str]) -> str:
    """Return the verdict about quantities that all have to lie inside."""
    found = set(verdicts)
    return next(each for each in ("FAIL", "UNDECIDED", "PASS") if each in found)


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure that is no area: a probability, a count, a cosine.

    Attributes:
        name: what it is.
        value: of ours.
        theory: by the law; None where there is none.
        error: standard error; 0 where nothing was sampled.
        paper: the digits that the paper prints.
        reason: why the paper's differs, or what has to be known.
    """

    name: str
    value: float
    theory: float | None = None
    error: float = 0.0
    paper: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One figure.

    Attributes:
        figure: its number.
        table: the paper's value beside ours beside the corrected theory, where there is either.
        points, findings: everything that was measured.
        gates: predictions that were tested.
        remarks: what cannot be reproduced and why, and what follows.
        files: PNG and SVG by name, drawn when asked for.
        shown: the findings as a table of text, in place of a line for each.
        failed: why it could not be computed; then nothing was measured.
    """

    figure: str
    table: Table
    points: tuple[Point, ...] = ()
    findings: tuple[Finding, ...] = ()
    gates: tuple[Gate, ...] = ()
    remarks: tuple[str, ...] = ()
    files: Callable[[], dict[str, bytes]] = field(default=dict, repr=False)
    shown: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """How much is run.

    Attributes:
        seed: of everything.
        quick: few trials, to see that it runs.
        progress: called with a name, the steps done and their number.
    """

    seed: int
    quick: bool = False
    progress: Callable[[str, int, int], None] = lambda name, done, total: None

    def generator(self, *path: int) -> np.random.Generator:
        """Return the random numbers of one cell: those of the others do not depend on it."""
        return np.random.default_rng([self.seed, *path])

    def trials(self, full: int) -> int:
        """Return T: a tenth of it, at least 20, where it is to be quick."""
        return max(20, full // 10) if self.quick else full


def not_computed(figure: str, error: RagauditError) -> Result:
    """Return the result of a figure that could not be computed.

    Args:
        figure: its number.
        error: why; of a service that did not start, for instance.
    """
    table = Table(f"attacks-{figure}", f"Figure {figure}", f"Figure {figure}", ())
    return Result(figure, table, failed=str(error))


def comparisons(
    points: Sequence[Point], findings: Sequence[Finding] = (), reasons: Mapping[str, str] = {}
) -> tuple[Comparison, ...]:
    """Return the rows of a table: what the paper or the theory has a value of.

    Args:
        points: areas; with five standard errors allowed.
        findings: other figures; those that were not sampled may be off by a unit of 1e-4.
        reasons: why the paper's value differs, by curve.
    """
    rows = [
        Comparison(
            each.where, each.paper, None if each.theory is None else f"{each.theory:.5f}", each.auc,
            reasons.get(each.curve, ""), ALLOWED_ERRORS * each.error,
        )
        for each in points
        if each.paper is not None or each.theory is not None
    ]  # fmt: skip
    rows += [
        Comparison(
            each.name, each.paper, None if each.theory is None else f"{each.theory:.5f}",
            each.value, each.reason, max(1e-4, ALLOWED_ERRORS * each.error),
        )
        for each in findings
        if each.paper is not None or each.theory is not None
    ]  # fmt: skip
    return tuple(rows)


def text(results: Sequence[Result]) -> str:
    """Return all figures as text."""
    return "\n\n".join(map(_text, results))


def _text(result: Result) -> str:
    lines = [as_text(result.table)] if result.table.rows else []
    alone = [each for each in result.points if each.theory is None and each.paper is None]
    lines += [
        f"{each.where}: {each.auc:.4f} ({each.low:.4f} to {each.high:.4f})"
        + ("" if each.cap is None else f", at most {each.cap:.4f} for any attack")
        for each in alone
    ]
    lines += (
        [result.shown]
        if result.shown
        else [
            f"{each.name}: {each.value:.5g}" + (f" ({each.reason})" if each.reason else "")
            for each in result.findings
            if each.theory is None and each.paper is None
        ]
    )
    if result.failed:
        lines += [f"{result.table.title}: NOT COMPUTED: {result.failed}"]
    for gate in result.gates:
        lines += [f"{gate.verdict}  {gate.name}: {gate.claim}", f"    {gate.figures}"]
        lines += [f"    {gate.errors}"]
    lines += [f"- {remark}" for remark in (*_sampled(result.points), *result.remarks)]
    return "\n".join(lines) + "\n"


def _sampled(points: Sequence[Point]) -> list[str]:
    """What the areas of a table may be off, by the number of trials."""
    found = []
    for trials in sorted({each.trials for each in points}):
        errors = [each.error for each in points if each.trials == trials]
        found.append(
            f"T = {trials:,}: standard errors of areas are {min(errors):.4f} to {max(errors):.4f}; "
            f"{ALLOWED_ERRORS} of them are allowed."
        )
    return found


def document(results: Sequence[Result], terms: Mapping[str, Any]) -> str:
    """Return everything as JSON, the same bytes for the same numbers.

    Args:
        results: of the figures that were run.
        terms: of the run.
    """
    value = {
        "format": FORMAT,
        "terms": dict(terms),
        "tables": as_json([each.table for each in results]),
        "figures": {
            each.figure: {
                "points": [asdict(cell) for cell in each.points],
                "findings": [asdict(finding) for finding in each.findings],
                "gates": [asdict(gate) for gate in each.gates],
                "remarks": list(each.remarks),
                "failed": each.failed,
            }
            for each in results
        },
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_MARKS = "osD^vP"


def areas(name: str, title: str, points: Sequence[Point]) -> dict[str, bytes]:
    """Return PNG and SVG of areas by coalition: measured, by theory, and as the paper prints them.

    Args:
        name: of the files.
        title: of the figure.
        points: a curve for each name, promise and number of trials; at most 18 of them.
    """
    with axes(title, "accounts in the coalition, k", "area under the ROC curve") as (figure, place):
        # The legend stands beside the axes and has long lines.
        figure.set_size_inches(9.6, 4.6)
        curves = dict.fromkeys((each.curve, each.epsilon_acc, each.trials) for each in points)
        for number, curve in enumerate(curves):
            own = [p for p in points if (p.curve, p.epsilon_acc, p.trials) == curve]
            color = COLORS[number % len(COLORS)]
            across = [each.accounts for each in own]
            place.errorbar(
                across, [each.auc for each in own],
                [[each.auc - each.low for each in own], [each.high - each.auc for each in own]],
                fmt=_MARKS[number // len(COLORS)], markersize=3.5, capsize=2, linewidth=1,
                color=color, label=f"{curve[0]}, eps {curve[1]}, T {curve[2]}",
            )  # fmt: skip
            known = [(each.accounts, each.theory) for each in own if each.theory is not None]
            if known:
                place.plot(*zip(*known, strict=True), "-", color=color, linewidth=1)
            printed = [(each.accounts, float(each.paper)) for each in own if each.paper is not None]
            if printed:
                place.plot(*zip(*printed, strict=True), "x", color=color, markersize=9)
        place.axhline(0.5, color="#888888", linewidth=0.8)
        place.set_xscale("log")
        place.set_xticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
        place.minorticks_off()
        place.plot([], [], "-", color=COLORS[5], label="by theory")
        if any(each.paper is not None for each in points):
            place.plot([], [], "x", color=COLORS[5], markersize=9, label="paper")
        place.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return render(figure, name)
