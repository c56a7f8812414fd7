"""What `ragaudit plan generation` advises is what a policy can have (spec 11.8)."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from generation_messages import GENERATION, KEYWORDS, policy_with
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plan_command import RUNNER
from ragaudit.cli.plan import generation
from ragaudit.cli.plan.command import app
from ragaudit.cli.plan.generation import GenerationPlan, Terms, document, make
from ragaudit.ledger.messages.policy import Policy

ADAPTIVE = {"edges": [9000, 6000], "enough": 40}
decimals = {
    "epsilon": st.decimals(Decimal("0.01"), 1000, places=12),
    "delta": st.decimals(Decimal("1e-12"), Decimal("0.9"), places=12),
}


def read_policies(plan: GenerationPlan) -> None:
    """Read each advised set of numbers as the policy that has it."""
    terms, value = plan.terms, document(plan)
    tokens = {
        **GENERATION["answerer"], "voters": terms.voters, "slots_per_voter": 1,
        "tokens": terms.tokens,
    }  # fmt: skip
    replay = {"differing_votes": 0}
    for each in value["murag"]:
        Policy.from_json(policy_with(
            epsilon=each["epsilon_question"], uses=each["uses"],
            answerer={**tokens, "epsilon_token": each["epsilon_token"]},
        ))  # fmt: skip
    if (each := value["murag_ada"]) is not None:
        Policy.from_json(policy_with(
            mechanism="murag-ada", epsilon=each["epsilon_question"], uses=each["uses"],
            threshold={**ADAPTIVE, "epsilon": each["epsilon_count"]}, replay=replay,
            answerer={**tokens, "epsilon_token": each["epsilon_token"]},
        ))  # fmt: skip
    if (ksa := value["dp_ksa"]) is not None:
        names = ("epsilon_choice", "sigma", "delta_test", "delta_conversion")
        chosen = {name: ksa[name] for name in names}
        answerer = {**KEYWORDS["answerer"], **chosen, "voters": terms.voters}
        changes: dict[str, Any] = {"answerer": answerer, "epsilon": ksa["epsilon"]}
        Policy.from_json(policy_with(**{**KEYWORDS, **changes, "uses": ksa["uses"]}))
        # Rounding never spends more than was granted.
        assert Fraction(ksa["epsilon"]) <= terms.epsilon
        assert Fraction(ksa["delta"]) <= terms.delta


@settings(max_examples=12, deadline=None)
@example(Decimal("0.01"), Decimal("1e-12"), 2048, 4096, 2, 65536)
@example(Decimal(1000), Decimal("0.9"), 1, 1, 1, 1)
@example(Decimal("7.123456789012"), Decimal("0.000001234567"), 30, 7, 3, 7)
@given(
    decimals["epsilon"], decimals["delta"], st.integers(1, 2**16), st.integers(1, 4096),
    st.integers(1, 3), st.none() | st.integers(1, 2**16),
)  # fmt: skip
def test_no_policy_refuses_what_is_advised(
    epsilon: Decimal, delta: Decimal, voters: int, tokens: int, asked: int, uses: int | None
) -> None:
    given_terms = Terms(
        epsilon=Fraction(epsilon), delta=Fraction(delta), questions=100, asked=asked,
        supporting=40, voters=voters, vocabulary=211, tokens=tokens, uses=uses,
    )  # fmt: skip
    read_policies(make(given_terms))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (("--epsilon", "0.01"), "sigma: out of range (expected at most 256)"),
        (("--delta", "1e-12"), "delta_test: too small for a policy"),
        (("--voters", "2049", "--supporting", "2000"), "voters"),
    ],
)
def test_where_no_policy_can_have_keyword_sets_it_says_why(
    changes: tuple[str, ...], why: str
) -> None:
    terms = ["--epsilon", "8", "--questions", "100", "--supporting", "40", "--asked", "3"]
    result = RUNNER.invoke(app, ["generation", *terms, *changes, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["dp_ksa"] is None
    (said,) = [each for each in found["sentences"] if "DP-KSA" in each]
    assert said.startswith("No policy can have DP-KSA at these terms: ")
    assert why in said
    text = RUNNER.invoke(app, ["generation", *terms, *changes]).stdout
    assert "DP-KSA instead" not in text


def test_budgets_too_small_to_count_with_have_no_line_for_murag_ada(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generation, "MOST_USES", 1)
    plan = make(Terms(
        epsilon=Fraction(1, 100), delta=Fraction(1, 10**6), questions=65536, asked=65536,
        supporting=40, voters=30, vocabulary=211, tokens=1, uses=65536,
    ))  # fmt: skip
    assert (plan.advised.uses, plan.adaptive) == (65536, None)
    assert document(plan)["murag_ada"] is None
