"""What goes to dp-accounting and what comes from there agrees with our own accountants."""

from fractions import Fraction
from typing import Any

import pytest
from dp_accounting import NeighboringRelation as LibraryRelation
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.lab.bridges import approximate_of, dp_event, loss_distribution, profile_of
from ragaudit.lab.risk import Scenario, best_bound
from ragaudit.privacy import (
    Coalition,
    Composition,
    GaussianAccountant,
    NeighboringRelation,
    NoisyScores,
)

ACCOUNT = NoisyScores.of_policy(30, "replace", 1, 20)
OTHER = NoisyScores.of_policy(20, "replace", 1, 5)
EVENTS = (ACCOUNT, Coalition(ACCOUNT, accounts=2), Composition((ACCOUNT, OTHER)))
DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize("event", EVENTS, ids=["account", "coalition", "composition"])
def test_an_event_costs_there_what_it_costs_here(event: Any) -> None:
    ours = float(GaussianAccountant().price(event, DELTA).epsilon)
    loss = PLDAccountant(LibraryRelation.ADD_OR_REMOVE_ONE).compose(dp_event(event))
    assert loss.get_epsilon(float(DELTA)) == pytest.approx(ours, rel=2e-3, abs=1e-3)
    orders = RdpAccountant(neighboring_relation=LibraryRelation.ADD_OR_REMOVE_ONE)
    # Rényi accounting is valid and looser.
    assert ours * 0.999 < orders.compose(dp_event(event)).get_epsilon(float(DELTA)) < 1.3 * ours
    found = approximate_of(loss_distribution(event), DELTA, NeighboringRelation.REPLACE)
    assert float(found.epsilon) == pytest.approx(ours, rel=2e-3, abs=1e-3)
    assert found.relation is NeighboringRelation.REPLACE


def test_a_foreign_distribution_bounds_risk_under_the_relation_that_is_named() -> None:
    pure = privacy_loss_distribution.from_laplace_mechanism(2.0)  # 0.5-DP, add or remove one
    profile = profile_of(pure, NeighboringRelation.REPLACE, ["0.5", 1])
    assert profile.pairs[0] == (0.5, pytest.approx(0, abs=1e-6))  # type: ignore[comparison-overlap]
    bound = best_bound(Scenario.uniform(10), [profile])
    exact = 0.9 * (2.718281828**0.5 - 1) / (2.718281828**0.5 + 9)
    assert bound.value == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize(
    ("where", "call"),
    [
        ("distribution", lambda: profile_of(3, NeighboringRelation.REPLACE)),
        ("distribution", lambda: approximate_of(object(), "1e-6", NeighboringRelation.REPLACE)),
        ("pairs", lambda: profile_of(loss_distribution(ACCOUNT), NeighboringRelation.REPLACE, ())),
        ("relation", lambda: profile_of(loss_distribution(ACCOUNT), "anything")),  # type: ignore[arg-type]
        ("delta", lambda: approximate_of(loss_distribution(ACCOUNT), 0, "replace")),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused_by_name(where: str, call: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert caught.value.where == where


def test_what_has_no_distribution_is_refused() -> None:
    with pytest.raises(RefusedError):
        loss_distribution(NoisyScores.of_policy(1, "replace", 1, 10**6))
    with pytest.raises(RefusedError):
        loss_distribution(ACCOUNT.with_queries(0))
    with pytest.raises(RefusedError):
        dp_event(ACCOUNT.with_queries(0))
