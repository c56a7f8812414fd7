"""A claim that a membership test may refute: its cap, and how its result states it."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.lab.attacks.membership.campaign import Campaign, Claim, Plan
from ragaudit.lab.attacks.membership.command import figures, page, statement, summary
from ragaudit.lab.attacks.membership.endpoints import Template
from ragaudit.lab.attacks.membership.judging import Judgement, Verdict
from ragaudit.lab.attacks.membership.judging import _claimed as claimed
from ragaudit.lab.attacks.membership.scoring import held_out_low, measure
from ragaudit.ledger.messages.signed_results import MembershipResult

LABELS = np.arange(50) < 25
PERFECT = measure(LABELS.astype(np.float64), LABELS, 0)

Texts = tuple[str | None, str | None, str | None]
"""Epsilon, delta and mu as a command line has them."""


def plan_of(claim: Claim | None) -> Plan:
    return Plan(Template("http://x/", {"q": "{query}"}, "a"), (), (), ("verbatim",), 0, 0.65, claim)


def judgement(claim: Claim | None) -> tuple[Plan, Judgement]:
    """Of a perfect score, whose bootstrap has no width."""
    plan = plan_of(claim)
    low = held_out_low(LABELS[:, None].astype(np.float64), np.arange(50), LABELS, 0)
    test = claimed(plan, PERFECT.low, low)
    return plan, Judgement(Verdict.FAIL, PERFECT, low, 0.01, (), test, 0.03, 0, "", ())


@for_each(
    ("texts", "cap", "refuted"),
    [
        (("1", None, None), 0.7310586, True),  # 1 - (1 - delta)^2 / (1 + e^epsilon)
        (("0.5", "0.1", None), 1 - 0.81 * 0.3775407, True),
        (("10", None, None), 0.9999546, False),
        (("0", "1", None), 1.0, False),
        ((None, None, "0"), 0.5, True),  # Phi(mu / sqrt 2)
        ((None, None, "0.5"), 0.6381632, True),
        # The exact lower limit of twelve or thirteen pairs is below .76.
        ((None, None, "1"), 0.7602499, False),
        ((None, None, "5"), 0.9997965, False),
    ],
)
def test_a_perfect_score_refutes_no_weak_claim(texts: Texts, cap: float, refuted: bool) -> None:
    plan, found = judgement(Claim.of(*texts))
    assert PERFECT.low == 1 and plan.claim is not None and found.claim is not None
    assert plan.claim.cap == pytest.approx(cap, abs=1e-7)
    assert found.claim.refuted is refuted


@for_each(
    ("texts", "error", "what"),
    [
        (("1", None, "1"), MalformedError, "--claim-mu: two claims"),
        (("1", "0.1", "1"), MalformedError, "--claim-mu: two claims"),
        ((None, "0.1", "1"), MalformedError, "--claim-delta: a delta without its epsilon"),
        ((None, "0", None), MalformedError, "--claim-delta: a delta without its epsilon"),
        ((None, None, "-1"), InvalidArgumentError, "mu"),
        ((None, None, "1e16"), InvalidArgumentError, "mu"),
        ((None, None, "nan"), InvalidArgumentError, "mu"),
        ((None, None, ""), InvalidArgumentError, "mu"),
        (("1", "1.5", None), InvalidArgumentError, "delta"),
        (("1", "", None), InvalidArgumentError, "delta"),
        (("-1", None, None), InvalidArgumentError, "epsilon"),
    ],
)
def test_what_is_no_claim_is_refused(texts: Texts, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        Claim.of(*texts)


@pytest.mark.parametrize(
    ("texts", "stated", "test", "words"),
    [
        (("0.5", "1e-6", None), {"epsilon": "0.5", "delta": "1e-6"}, "claimed_epsilon",
         "CLAIM REFUTED: epsilon 0.5 at delta 1e-6 allows an AUC of at most 0.622460"),
        ((None, None, "0.5"), {"mu": "0.5"}, "claimed_mu",
         "CLAIM REFUTED: mu 0.5 allows an AUC of at most 0.638163"),
        ((None, None, "5"), {"mu": "5"}, "claimed_mu",
         "claim not refuted: mu 5 allows an AUC of at most 0.999797"),
    ],
)  # fmt: skip
def test_the_result_and_the_page_state_the_claim(
    texts: Texts, stated: dict[str, str], test: str, words: str, tmp_path: Path
) -> None:
    plan, found = judgement(Claim.of(*texts))
    assert found.claim is not None and plan.claim is not None
    refuted = found.claim.refuted
    assert figures(plan, found)["claim"] == {**stated, "cap": plan.claim.cap, "refuted": refuted}
    assert words in summary(plan, found) and words in page(plan, found)
    campaign = Campaign(tmp_path, plan)
    campaign.close()
    result = statement(plan, campaign, found)
    assert result.plan == hashlib.sha256((tmp_path / "plan.json").read_bytes()).hexdigest()
    body = result.to_json()
    assert (test in body["predicate"]["failedTests"]) is refuted
    assert (test in body["predicate"]["passedTests"]) is not refuted
    assert MembershipResult.parse(canonical_json.dumps(body)) == result
    assert {name: result.detail[f"claimed_{name}"] for name in stated} == stated


def test_another_claim_is_another_plan() -> None:
    claims = [("1", None, None), ("1", "0.1", None), (None, None, "1"), (None, None, None)]
    assert len({plan_of(Claim.of(*texts)).digest for texts in claims}) == 4


@pytest.mark.parametrize(
    ("refuted", "detail"),
    [
        (True, {}),
        (None, {"claimed_mu": "1"}),
        (False, {"claimed_mu": "1", "claimed_epsilon": "1"}),
        (None, {"claimed_mu": "1", "claimed_epsilon": "1"}),
    ],
)
def test_a_signed_result_states_the_one_claim_that_was_tested(
    refuted: bool | None, detail: dict[str, str]
) -> None:
    with pytest.raises(MalformedError, match="claim"):
        MembershipResult({"e": "ab" * 32}, "ab" * 32, "FAIL", refuted, detail)
