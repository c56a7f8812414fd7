"""The attack on gradients: the printed rule, the exact one, and bad input.

Claims are those of docs/notes/risk-audits.md.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.general_bounds import Scenario, trade_off_bound
from ragaudit.lab.risk.optimal_attack import (
    GradientAttack,
    clip,
    isolate,
    printed_rule,
    require_unknown,
)
from ragaudit.lab.risk.threat import FinitePrior, SuccessSets, ThreatModel
from ragaudit.privacy.guarantees import GaussianDp
from scipy import integrate, stats

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in ORACLE["entries"]}


# --- DP-SGD ---


def test_the_oracles_dp_sgd_run() -> None:
    entry = ENTRIES["dpsgd.alg2.u"]
    i, expected = entry["inputs"], entry["expected"]
    prior = FinitePrior(i["prior"])
    isolated, candidates = i["isolated_noisy_gradient"], i["clipped_gradients"]
    attack = GradientAttack(ThreatModel.reconstruction(prior), i["C"], i["sigma"])
    found = attack.evidence(isolated, candidates)
    atol = entry["atol"]
    assert found.log_likelihood == pytest.approx(expected["loglik"], abs=atol)
    assert found.posterior == pytest.approx(expected["posterior"], abs=atol)
    assert found.gain == pytest.approx(expected["gain"], abs=atol)
    generator = np.random.default_rng(0)
    assert attack.guess(found, 0, generator) == expected["guess_aux_none"]
    assert attack.members(found).tolist() == expected["member_decision_full_aux"]
    printed = printed_rule(isolated, candidates)
    assert printed == pytest.approx(expected["paper_W"], abs=1e-12)
    assert (printed > 0).tolist() == expected["paper_member_decision"]


def test_the_printed_rule_says_member_where_the_posterior_falls() -> None:
    # Jensen's inequality is one-directional: W > 0 does not imply w > 0.
    candidates = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[-1.0, 0.0]]])
    isolated = np.array([[1.0, 4.0]])
    attack = GradientAttack(ThreatModel.membership(FinitePrior.uniform(3)), 1.0, 1.0)
    found = attack.evidence(isolated, candidates)
    printed = printed_rule(isolated, candidates)
    # Inner products 1, 4, -1, mean 4/3; sharpen the case so that record 0 is above average.
    isolated = np.array([[2.0, 4.0]])
    found, printed = attack.evidence(isolated, candidates), printed_rule(isolated, candidates)
    assert printed[0] == pytest.approx(2 - 4 / 3)
    assert printed[0] > 0 > found.gain[0]


def orthonormal_membership(m: int, ratio: float, runs: int, seed: int) -> tuple[float, float]:
    """Advantage of the exact and of the printed rule, membership, orthonormal gradients."""
    generator = np.random.default_rng(seed)
    sigma = 1 / ratio
    attack = GradientAttack(ThreatModel.membership(FinitePrior.uniform(m)), 1.0, sigma)
    candidates = np.eye(m)[:, None, :]
    exact = printed = 0.0
    for _ in range(runs):
        target = int(generator.integers(m))
        isolated = candidates[target] + sigma * generator.standard_normal((1, m))
        said = attack.members(attack.evidence(isolated, candidates))
        exact += float(said[target]) - float(said.mean())
        wrong = printed_rule(isolated, candidates) > 0
        printed += float(wrong[target]) - float(wrong.mean())
    return exact / runs, printed / runs


def test_claim_1_4_the_printed_rule_loses_to_the_exact_one() -> None:
    # Specification: m = 8, sqrt(T)/sigma = 2: printed .503, exact .662. Standard error of a
    # mean of 4000 samples in [-1, 1] is below .016 for both; six of them is .05 with half the
    # range used.
    exact, printed = orthonormal_membership(8, 2.0, 4000, seed=10)
    assert exact == pytest.approx(0.662, abs=0.05)
    assert printed == pytest.approx(0.503, abs=0.05)


@pytest.mark.parametrize(("records", "optimum"), [(2, 0.17528), (3, 0.16672)])
def test_claim_1_5_the_simplex_exceeds_the_printed_bound(records: int, optimum: float) -> None:
    """T = 100, sigma = 22, all norms C: above Theorem 5.1 at sqrt(T)/sigma, not at twice that."""
    ratio = math.sqrt(100) / 22
    shift = ratio * math.sqrt(records / (records - 1))
    success, _ = integrate.quad(
        lambda x: stats.norm.pdf(x) * stats.norm.cdf(x + shift) ** (records - 1), -12, 12
    )
    advantage = success - 1 / records
    assert advantage == pytest.approx(optimum, abs=1e-5)

    def bound(mu: float) -> float:
        guarantee = GaussianDp.of(mu, NeighboringRelation.REPLACE)
        return trade_off_bound(Scenario.uniform(records), guarantee).value

    assert bound(ratio) < advantage <= bound(2 * ratio) * (1 + 1e-12)
    if records == 2:
        assert advantage == pytest.approx(bound(2 * ratio), rel=1e-9)


@pytest.mark.slow
def test_the_printed_rule_loses_more_among_fifty() -> None:
    exact, printed = orthonormal_membership(50, 4.0, 4000, seed=11)
    assert exact == pytest.approx(0.962, abs=0.03)
    assert printed == pytest.approx(0.521, abs=0.03)


def test_without_gain_the_attack_declines() -> None:
    # One run that says nothing: all gradients equal.
    threat = ThreatModel.membership(FinitePrior.uniform(3))
    attack = GradientAttack(threat, 1.0, 1.0)
    found = attack.evidence(np.ones((2, 2)), np.full((3, 2, 2), 0.5))
    assert not attack.members(found).any()
    generator = np.random.default_rng(12)
    assert {attack.guess(found, 1, generator) for _ in range(50)} == {0, 2}
    alone = GradientAttack(ThreatModel.reconstruction(FinitePrior.uniform(3)), 1.0, 1.0)
    assert alone.guess(found, 0, generator) in range(3)


def test_gradients_are_clipped_and_known_ones_taken_off() -> None:
    clipped = clip([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], 1.0)
    assert clipped == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert isolate([[1.0, 2.0]], [[0.5, 0.5]]).tolist() == [[0.5, 1.5]]


UNIFORM_3 = ThreatModel.reconstruction(FinitePrior.uniform(3))


@for_each(
    ("call", "field"),
    [
        (lambda: GradientAttack(UNIFORM_3, 0.0, 1.0), "clipping_norm"),
        (lambda: GradientAttack(UNIFORM_3, 1.0, 0.0), "noise_multiplier"),
        (lambda: GradientAttack(UNIFORM_3, 1.0, float("nan")), "noise_multiplier"),
        (
            lambda: GradientAttack(
                ThreatModel.reconstruction(
                    FinitePrior.uniform(3), SuccessSets.on_line([0.0, 1.0, 2.0], 1.0)
                ),
                1.0,
                1.0,
            ),
            "success",
        ),
        (
            lambda: GradientAttack(UNIFORM_3, 1.0, 1.0).evidence(
                [[0.0]], [[[2.0]], [[0.0]], [[0.0]]]
            ),
            "candidates",
        ),
        (
            lambda: GradientAttack(UNIFORM_3, 1.0, 1.0).evidence([[np.nan]], np.zeros((3, 1, 1))),
            "isolated",
        ),
        (
            lambda: GradientAttack(UNIFORM_3, 1.0, 1.0).evidence([[0.0]], np.zeros((2, 1, 1))),
            "candidates",
        ),
        (lambda: clip([1.0], 0.0), "clipping_norm"),
        (lambda: clip([np.inf], 1.0), "gradients"),
        (lambda: isolate([[1.0]], [[1.0, 2.0]]), "fixed"),
        (lambda: require_unknown([[1.0], [2.0]], [[2.0]]), "candidates"),
        (lambda: require_unknown([[1.0]], [[2.0, 3.0]]), "known"),
    ],
)
def test_bad_input_of_the_gradient_attack_names_the_field(call: Any, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert caught.value.where == field


def test_an_empty_class_is_refused() -> None:
    attack = GradientAttack(UNIFORM_3, 1.0, 1.0)
    found = attack.evidence([[0.0]], np.zeros((3, 1, 1)))
    with pytest.raises(InvalidArgumentError, match="label"):
        attack.guess(found, 1, np.random.default_rng(0))


def test_candidates_outside_of_the_known_data_pass() -> None:
    require_unknown([[1.0], [2.0]], [[3.0]])
