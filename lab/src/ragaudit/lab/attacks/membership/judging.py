"""The verdict of a membership test, from its exchanges alone: the same ones, the same verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import RefusedError
from ragaudit.lab.attacks.membership.campaign import Claim, Exchange, Plan
from ragaudit.lab.attacks.membership.documents import (
    PERMUTATIONS,
    SEPARABLE,
    Floats,
    Groups,
    Labels,
    Measured,
    cross_fitted,
    document_means,
    held_out_low,
    measure,
    permutation_p,
)
from ragaudit.lab.attacks.membership.endpoints import Answer
from ragaudit.lab.attacks.membership.probing import SIGNALS, WEIGHTS, signals
from ragaudit.lab.risk.estimation import area_under_curve, false_alarm

_ECHOES = 199
"""Permutations by which questions are compared."""


class Verdict(StrEnum):
    """By the threat specification's rule, with what it leaves open."""

    PASS = "PASS"  # noqa: S105
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class ClaimTest:
    """A claimed guarantee beside the AUC.

    Attributes:
        claim: what is claimed.
        refuted: whether both lower limits of the AUC exceed its cap, the exact one and the
            bootstrap's.
    """

    claim: Claim
    refuted: bool


@dataclass(frozen=True)
class Judgement:
    """What a test found.

    Attributes:
        verdict: PASS iff the AUC is below the threshold; INCONCLUSIVE if its interval holds it, or
            if it is below and the answers tell nothing that a test could rest on.
        primary: of the cross-fitted score, declared beforehand.
        exact_low: lower limit at 97.5 %, on documents of which the model knows nothing.
        p_permutation: that chance does as well; decides significance.
        exploratory: other scores, by name; no verdict rests on them.
        claim: None if none was made.
        false_alarm: how often scores that say nothing reach the threshold with so many documents.
        declined: questions without an answer.
        dumb: why the answers are none to rest a PASS on, "" if they are.
        warnings: what a reader must know.
    """

    verdict: Verdict
    primary: Measured
    exact_low: float
    p_permutation: float
    exploratory: tuple[tuple[str, float], ...]
    claim: ClaimTest | None
    false_alarm: float
    declined: int
    dumb: str
    warnings: tuple[str, ...]


def judge(
    plan: Plan, exchanges: Sequence[Exchange], done: Callable[[], object] = lambda: None
) -> Judgement:
    """Return the verdict.

    Args:
        plan: of the test.
        exchanges: all of its questions with their answers.
        done: is called after each permutation.
    """
    values, groups, labels = _measured(plan, exchanges)
    strategies = np.array([each.probe.strategy for each in exchanges])
    scores = cross_fitted(values, groups, labels, plan.seed)
    primary = measure(scores, labels, plan.seed)
    exact_low = held_out_low(values, groups, labels, plan.seed)
    p = permutation_p(values, groups, labels, plan.seed, PERMUTATIONS, done)
    declined = sum(not each.answer.text for each in exchanges)
    dumb = _dumb(exchanges, declined)
    return Judgement(
        _verdict(primary, plan.threshold, dumb),
        primary,
        exact_low,
        p,
        tuple(_exploratory(values, groups, labels, strategies, plan.seed)),
        _claimed(plan, primary.low, exact_low),
        false_alarm(int(labels.sum()), int((~labels).sum()), plan.threshold),
        declined,
        dumb,
        tuple(_warnings(plan, primary, declined / len(exchanges))),
    )


def check_questions(plan: Plan) -> None:
    """Check that a service which holds nothing, and repeats each question, would tell nothing.

    Args:
        plan: of the test.

    Raises:
        RefusedError: it would look leaky, as members are asked about in another way than others.
    """
    echoes = [Exchange(each, Answer(each.query)) for each in plan.probes()]
    p = permutation_p(*_measured(plan, echoes), plan.seed, _ECHOES)
    if p < SEPARABLE:
        raise RefusedError(
            f"the questions alone tell members from others (p {p:.3f})", where="documents",
            expected="documents of one kind, length and style; give many candidates with --pool",
        )  # fmt: skip


def _measured(plan: Plan, exchanges: Sequence[Exchange]) -> tuple[Floats, Groups, Labels]:
    """Signals by question, the document of each question, and which documents are members."""
    documents = plan.documents
    place = {name: at for at, name in enumerate(sorted(documents))}
    members = {each.id for each in plan.members}
    values = [
        signals(documents[each.probe.document], each.probe, each.answer.text, each.answer.citations)
        for each in exchanges
    ]
    return (
        np.array(values),
        np.array([place[each.probe.document] for each in exchanges]),
        np.array([name in members for name in sorted(documents)]),
    )


def _verdict(primary: Measured, threshold: float, dumb: str) -> Verdict:
    if primary.low <= threshold <= primary.high:
        return Verdict.INCONCLUSIVE
    if primary.auc >= threshold:
        return Verdict.FAIL
    return Verdict.INCONCLUSIVE if dumb else Verdict.PASS


def _dumb(exchanges: Sequence[Exchange], declined: int) -> str:
    """Why nothing was tested: a model's name misspelled, an error in place of every answer."""
    if 2 * declined > len(exchanges):
        return "Most questions had no answer: nothing was tested."
    if len({each.answer for each in exchanges}) == 1:
        return "All answers are the same: nothing was tested, if they are answers at all."
    return ""


def _claimed(plan: Plan, low: float, exact_low: float) -> ClaimTest | None:
    if plan.claim is None:
        return None
    # Of a perfect score the bootstrap's interval has no width: alone it would refute any claim.
    return ClaimTest(plan.claim, min(low, exact_low) > plan.claim.cap)


def _exploratory(
    values: Floats, groups: Groups, labels: Labels, strategies: npt.NDArray[np.str_], seed: int
) -> Sequence[tuple[str, float]]:
    found = []
    for name in sorted(set(strategies.tolist())):
        chosen = strategies == name
        scores = cross_fitted(values[chosen], groups[chosen], labels, seed)
        found.append((f"strategy {name}", area_under_curve(scores[labels], scores[~labels])))
    columns = [(f"signal {name}", values[:, at]) for at, name in enumerate(SIGNALS)]
    for name, column in [("fixed sum", values @ np.array(WEIGHTS)), *columns]:
        means = document_means(column, groups, len(labels))
        found.append((name, area_under_curve(means[labels], means[~labels])))
    return found


def _warnings(plan: Plan, primary: Measured, declined: float) -> Sequence[str]:
    found = []
    least = min(len(plan.members), len(plan.others))
    if least < 25:
        found.append(f"{least} documents of a class are few: 25 or more are recommended.")
    if primary.equal:
        found.append("All scores are equal: the answers say nothing of the documents.")
    if primary.high < 0.5:
        found.append(
            "The AUC is below 1/2 beyond chance: the classes may be swapped, or folds too small."
        )
    if declined > 0.1:
        found.append(f"{declined:.0%} of the questions had no answer: they carry no signal.")
    return found
