"""`ragaudit plan generation`: numbers of the mechanisms' own laws, and what it says of them."""

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from chapters import DOCS, blocks
from for_each import for_each
from generation_messages import GENERATION, KEYWORDS, policy_with
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from plan_command import COUNT, NUMBER, RUNNER, members, several
from ragaudit.cli.plan import generation
from ragaudit.cli.plan.command import app
from ragaudit.cli.plan.generation import GenerationPlan, Terms, document, make
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.accounting.generation import channel_loss
from typer.testing import Result

TERMS = {"--epsilon": "8", "--questions": "100", "--supporting": "40", "--vocabulary": "211",
         "--tokens": "3"}  # fmt: skip
FRACTION = {"type": "string", "pattern": r"^[1-9][0-9]*(/[1-9][0-9]*)?$"}
CHANCE = {"type": "number", "minimum": 0, "maximum": 1}
SERVED: dict[str, Any] = {
    "uses": {"type": ["integer", "null"]},
    "epsilon_question": FRACTION, "epsilon_token": FRACTION,
    "served": {"type": "integer", "minimum": 0}, "chance": CHANCE, "right": NUMBER,
}  # fmt: skip
STREAM = members(**SERVED)
SCHEMA = members(
    format={"const": "ragaudit/v1/plan-generation"},
    terms=members(
        epsilon=FRACTION, delta=FRACTION, relation={"const": "null-replace"},
        protected_unit={"const": "row"}, questions=COUNT, asked=COUNT,
        supporting={"type": "integer", "minimum": 0}, voters=COUNT, vocabulary=COUNT, tokens=COUNT,
        uses={"type": ["integer", "null"]},
    ),
    epsilon_replace=FRACTION,
    naive=STREAM,
    murag=several(STREAM),
    advised=COUNT,
    murag_ada=members(**SERVED, epsilon_count=FRACTION, count_noise=NUMBER),
    votes_for_half=COUNT,
    dp_ksa=members(
        uses=COUNT, epsilon_choice=FRACTION, sigma=FRACTION, delta_test=FRACTION,
        delta_conversion=FRACTION, epsilon=FRACTION, delta=FRACTION, served=SERVED["served"],
        gap_for_half=NUMBER, chance=CHANCE, right=NUMBER,
    ),
    sentences=several({"type": "string"}),
)  # fmt: skip


def run(*more: str, **changes: str) -> Result:
    named = {**TERMS, **{f"--{name}": value for name, value in changes.items()}}
    flat = [part for option in named.items() for part in option]
    return RUNNER.invoke(app, ["generation", *flat, *more])


def planned(**changes: str) -> dict[str, Any]:
    result = run("--json", **changes)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(found)
    return found


def test_the_uses_with_most_right_answers_are_advised() -> None:
    plan = planned(asked="3")
    assert [each["uses"] for each in plan["murag"]] == [1, 2, 3]
    assert [each["served"] for each in plan["murag"]] == [33, 66, 100]
    assert [each["epsilon_question"] for each in plan["murag"]] == ["8", "4", "8/3"]
    assert plan["advised"] == max(plan["murag"], key=lambda each: float(each["right"]))["uses"] == 2
    assert plan["epsilon_replace"] == "16"
    assert plan["naive"]["epsilon_question"] == "2/25"
    assert plan["naive"]["right"] < 1 < plan["murag"][1]["right"]
    text = " ".join(plan["sentences"])
    assert "Budgets drain: a document is asked for 3 times and pays 2" in text
    assert "10 of 40 supporting documents pay without being read" in text
    # Fewer questions of each document, no drain; as many uses as it is asked for.
    assert planned(asked="1")["advised"] == 1
    assert planned(asked="1")["murag"][0]["served"] == 100


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": "2", "vocabulary": "50272", "voters": "50", "tokens": "4"},
         "A vote cannot succeed: at epsilon 0.5 per token and 50272 tokens, 87 voters must agree"),
        ({"supporting": "15"},
         "A vote cannot succeed: 15 supporting documents are not more than half of 30 voters"),
        ({"epsilon": "2.7"}, "Most answers would be wrong"),
        ({"epsilon": "30"}, "Choose M = 1 and eps_q = 30: at best"),
        ({"epsilon": "1", "delta": "0.0001"}, "DP-KSA would stay silent: 52.2 voters must agree"),
    ],
)  # fmt: skip
def test_it_says_plainly_what_cannot_work(changes: dict[str, str], said: str) -> None:
    assert said in " ".join(planned(**changes)["sentences"])
    assert said in " ".join(run(**changes).stdout.split())


def test_uses_that_are_given_are_judged_beside_the_advised_ones() -> None:
    plan = planned(asked="3", uses="5")
    assert [each["uses"] for each in plan["murag"]] == [1, 2, 3, 5]
    assert plan["advised"] == 2
    given = plan["murag"][3]
    assert (given["epsilon_question"], given["served"]) == ("8/5", 100)
    said = f"With M = 5 eps_q is 1.6: at best {given['right']:.1f} of 100 questions"
    assert said in " ".join(plan["sentences"])
    assert "MURAG, M = 5" in run(asked="3", uses="5").stdout
    # Of the advised number all is said already.
    assert "With M" not in " ".join(planned(asked="3", uses="2")["sentences"])


def test_counting_costs_a_fifth_and_says_its_noise() -> None:
    plan = planned(asked="3")
    advised, adaptive = plan["murag"][1], plan["murag_ada"]
    assert adaptive["epsilon_question"] == advised["epsilon_question"] == "4"
    assert adaptive["epsilon_count"] == "4/5"
    assert Fraction(adaptive["epsilon_token"]) == Fraction(16, 5) / 3
    assert adaptive["chance"] < advised["chance"]
    # The discrete Laplace law of scale 5/4, summed.
    mass = {n: math.exp(-0.8 * abs(n)) for n in range(-200, 201)}
    deviation = math.sqrt(sum(n * n * p for n, p in mass.items()) / sum(mass.values()))
    assert adaptive["count_noise"] == pytest.approx(deviation, abs=1e-6)
    assert f"a noise of {deviation:.1f} times sqrt(n)" in " ".join(plan["sentences"])


def test_the_text_shows_the_same_numbers() -> None:
    text = run(asked="3").stdout
    plan = planned(asked="3")
    row = next(line for line in text.splitlines() if line.startswith("MURAG, M = 2"))
    advised = plan["murag"][1]
    assert row.split()[-3:] == ["66", f"{advised['chance']:.3f}", f"{advised['right']:.1f}"]
    assert "epsilon 8 of a row for null-replace, 16 for replace, for any number of accounts" in text


@for_each(
    ("changes", "where"),
    [
        ({"epsilon": "0"}, "--epsilon"), ({"epsilon": "x"}, "--epsilon"),
        ({"delta": "1"}, "--delta"), ({"delta": "0"}, "--delta"),
        ({"questions": "0"}, "--questions"), ({"asked": "101"}, "--asked"),
        ({"supporting": "-1"}, "--supporting"), ({"voters": "0"}, "--voters"),
        ({"vocabulary": "1"}, "--vocabulary"), ({"tokens": "0"}, "--tokens"),
        ({"uses": "0"}, "--uses"), ({"uses": "65537"}, "--uses"),
    ],
)  # fmt: skip
def test_bad_terms_are_named(changes: dict[str, str], where: str) -> None:
    result = run("--json", **changes)
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert found["detail"].startswith(where), found


def test_the_chapters_command_runs() -> None:
    section = (DOCS / "planning.md").read_text().split("\n## Private generated answers")[1]
    (script,) = blocks(section, "sh")[:1]
    words = script.split()
    assert words[:3] == ["ragaudit", "plan", "generation"]
    result = RUNNER.invoke(app, words[2:])
    assert result.exit_code == 0
    assert "M = 2" in result.stdout


@pytest.mark.parametrize("epsilon", ["1/2", "1", "8", "300"])
def test_the_parameters_of_keywords_cost_no_more_than_is_asked_for(epsilon: str) -> None:
    number = str(float(Fraction(epsilon)))
    found = planned(epsilon=number, asked="5")["dp_ksa"]
    choice, sigma, conversion = (
        Fraction(found[name]) for name in ("epsilon_choice", "sigma", "delta_conversion")
    )
    assert Fraction(found["epsilon"]) == channel_loss(choice, sigma, found["uses"], conversion)
    assert Fraction(found["epsilon"]) <= Fraction(number)
    assert Fraction(found["delta"]) == Fraction(1, 10**6)
    assert conversion + found["uses"] * Fraction(found["delta_test"]) == Fraction(found["delta"])


# What `ragaudit plan generation` advises is what a policy can have (spec 11.8).

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
