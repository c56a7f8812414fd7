"""Entries of tests/vectors/dp_oracle.json about mechanisms that generate answers.

Claims are those of docs/notes/generation.md.
"""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from coins import ScriptedCoins
from ragaudit.privacy.accounting.generation import (
    KeywordSetLoss,
    bounded_range,
    calibrated,
    pass_probability,
    pure_or_bounded_range,
)
from ragaudit.privacy.accounting.renyi import mironov_epsilon
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, gaps, histogram
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.samplers import weights
from ragaudit.privacy.mechanisms.streams import DocumentBudgets, Naive

Inputs = dict[str, Any]

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
TOPICS = {
    "dprag", "ksa.accounting", "ksa.calibration", "ksa.em", "ksa.hist", "ksa.ptr", "murag",
}  # fmt: skip
ENTRIES = {each["id"]: each for each in ORACLE["entries"] if each["topic"] in TOPICS}


def terms(epsilon: str, epsilon_token: object, **others: int) -> DpRag:
    given = {"voters": 1, "slots_per_voter": 1, "vocabulary": 2, "end": 0, "tokens": 1, **others}
    return DpRag(Fraction(epsilon), Fraction(str(epsilon_token)), **given)  # type: ignore[arg-type]


def unanimous(i: Inputs) -> float:
    """The share of the one token that all voters name, over the whole vocabulary."""
    votes = i["unanimous_votes"]
    rag = terms("1", 2 * i["eps_expo"], voters=votes, vocabulary=i["vocab"])
    voted, rest = weights([Fraction(votes), Fraction(0)], most=votes, scale=rag.choice_scale)
    return voted / (voted + rest * (i["vocab"] - 1))


def scales(i: Inputs) -> Inputs:
    rag = terms("1", i["eps_token"])
    return {
        "eps_expo": i["eps_token"] / 2,
        "eps_lap": i["eps_token"] / 2,
        "threshold_noise_scale": float(rag.threshold_scale),
        "query_noise_scale": float(rag.test_scale),
        "em_weight_exponent_per_vote": float(1 / rag.choice_scale),
    }


def sparse_vector(i: Inputs) -> Inputs:
    """Half of a token's epsilon is for the tests, half for the choice; the threshold, once."""
    c, half = i["c"], Fraction(i["eps_token"]) / 2
    rag = terms(str(c * i["eps_token"]), i["eps_token"])
    assert rag.private_tokens == c
    choice = c * half
    return {
        "svt_no_refresh": float(rag.spent(c) - choice),
        "svt_with_refresh": float(c * half),
        "em": float(choice),
        "total_claimed": float(rag.price),
    }


def loss(i: Inputs) -> Inputs:
    choice: Callable[..., Decimal] = pure_or_bounded_range
    if i["em"] == "printed_scale2":

        def choice(order: Any, epsilon: Any) -> Decimal:  # what the printed scale really costs
            return pure_or_bounded_range(order, 2 * epsilon)
    elif "exact bounded-range" in i["em"]:
        choice = bounded_range
    found = KeywordSetLoss(
        Fraction(i["eps_em"]), Fraction(i["sigma"]), i["queries"], choice
    ).epsilon(Fraction(i["delta_conv"]), improved="Canonne" in i["conversion"])
    return {
        "eps": float(found.epsilon),
        "delta": i["delta_conv"] + i["queries"] * i["delta_ptr"],
    }


def accounting(i: Inputs) -> Any:
    if "rho" in i:
        best = 1 + math.sqrt(-math.log(i["delta"]) / i["rho"])
        return float(mironov_epsilon(i["rho"], i["delta"], best))
    if "kind" in i:
        law = bounded_range if "exact" in i["kind"] else pure_or_bounded_range
        return float(law(i["alpha"], i["eps"]))
    return loss(i)


def calibration(i: Inputs) -> Inputs:
    found = calibrated(i["eps_total"], i["delta_conv"])
    ksa = keyword_sets(epsilon_choice=Fraction(found.epsilon_choice), sigma=Fraction(found.sigma))
    return {
        "rho": float(found.rho),
        "eps_em": float(found.epsilon_choice),
        "gumbel_scale": float(ksa.choice_scale),
        "sigma": float(found.sigma),
        "noise_sd": float(ksa.deviation),
        "gap_for_half_pass": float(found.even_gap(i["delta_ptr"])),
    }


def keyword_sets(**given: Any) -> DpKsa:
    common = {"delta_test": Fraction(1, 100), "slots": 31, "sizes": (1, 2, 3), "sigma": Fraction(1)}
    return DpKsa(**{"epsilon_choice": Fraction(1), **common, **given})


def choice_of_size(i: Inputs) -> Any:
    if "counts_D" not in i:
        ksa = keyword_sets(sizes=tuple(i["k_candidates"]))
        responses = ENTRIES["ksa.hist"]["inputs"]["responses"]
        coins = ScriptedCoins(noises=i["gumbel_draws"])
        return ksa.choose_size(histogram([frozenset(each) for each in responses]), coins)
    corrected = keyword_sets(epsilon_choice=Fraction(i["eps"]), sizes=tuple(i["candidates"]))
    assert corrected.choice_scale == 2 * Fraction(i["gumbel_scale"])

    def probability(counts: list[int], scale: Fraction) -> float:
        found = gaps(dict(enumerate(counts)), 2)  # type: ignore[arg-type]
        first, second = weights([Fraction(each) for each in found], most=31, scale=scale)
        return second / (first + second)

    def ratio(scale: Fraction) -> float:
        first, second = (probability(i[name], scale) for name in ("counts_D", "counts_D_neighbour"))
        return abs(math.log(first / second))

    assert ratio(corrected.choice_scale) == pytest.approx(0.950861, abs=1e-6)
    return {"log_ratio": ratio(Fraction(i["gumbel_scale"]))}


def words(i: Inputs) -> Inputs:
    counts = histogram([frozenset(each) for each in i["responses"]])
    return {"counts": dict(counts), "gaps_k1_to_k5": gaps(counts, 5)}


def streams(i: Inputs) -> Any:
    if "T" in i:
        naive: Naive[None, None] = Naive(Nobody(), Fraction(i["eps_q"]), i["T"])
        for _ in range(i["T"]):
            naive.ask("", [], None, ScriptedCoins())
        return str(naive.spent)
    counted, answered = Fraction(i["eps_thr"]), Fraction(i["eps_rag"])
    budgets = DocumentBudgets(i["M"] * (counted + answered), counted + answered)
    budgets.charge({1}, counted)
    return budgets.left(1) >= answered


class Nobody:
    slots = 1

    def answer(self, question: str, slots: object, voters: None, coins: object) -> None:
        return None


RECOMPUTE: dict[str, Callable[[Inputs], Any]] = {
    "dprag.c": lambda i: terms(i["eps"], i["eps_token"]).private_tokens,
    "dprag.em": unanimous,
    "dprag.scales": scales,
    "dprag.svt": sparse_vector,
    "ksa.accounting": accounting,
    "ksa.calibration": calibration,
    "ksa.em": choice_of_size,
    "ksa.hist": words,
    "ksa.ptr": lambda i: float(pass_probability(i["gap"], i["sigma"], i["delta_ptr"])),
    "murag": streams,
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entry(name: str) -> None:
    entry = ENTRIES[name]
    family = ".".join(name.split(".")[:2])
    recompute = RECOMPUTE.get(family) or RECOMPUTE[entry["topic"]]
    found, expected = recompute(entry["inputs"]), entry["expected"]
    close = {"abs": entry["atol"], "rel": entry.get("rtol", 0)}
    if isinstance(expected, dict):
        assert found == {
            key: pytest.approx(value, **close) if isinstance(value, float) else value
            for key, value in expected.items()
        }
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, **close)
    else:
        assert found == expected
