"""The generation channel in a report: its loss, and that of both channels together."""

from dataclasses import replace
from fractions import Fraction

import pytest
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.generation import (
    ChannelCosts,
    ChannelEpsilon,
    KeywordChannelEpsilon,
)
from ragaudit.verifier.report.view import ChannelView, channel_view
from report_cases import TABLE, outcome

PURE = ChannelEpsilon("murag", 3, Fraction(3, 2), 1, 1000, 3)
KEYWORDS = KeywordChannelEpsilon(
    2, Fraction(1, 2), Fraction(8), Fraction(1, 10**6), Fraction(1, 10**6), 100
)
NULL = NeighboringRelation.NULL_REPLACE


def shown(costs: ChannelCosts, relation: NeighboringRelation) -> ChannelView:
    table = replace(TABLE, parameters=replace(TABLE.parameters, relation=relation))
    predicate = replace(outcome().predicate(time=1), generation=costs.to_json())
    view = channel_view(predicate, table)
    assert view is not None
    return view


@pytest.mark.parametrize("costs", [PURE, KEYWORDS], ids=["pure", "keywords"])
def test_both_channels_together_add_up_epsilon_and_delta_of_one_relation(
    costs: ChannelCosts,
) -> None:
    assert TABLE.parameters.relation is NeighboringRelation.REPLACE
    for relation, loss in (
        (NeighboringRelation.REPLACE, costs.replace_one), (NULL, costs.replace_one_null),
    ):  # fmt: skip
        epsilon, delta = loss if isinstance(loss, tuple) else (loss, Fraction(0))
        both = Fraction(str(TABLE.headline.epsilon)) + epsilon
        said = shown(costs, relation).together
        assert said.startswith(f"Both channels together: epsilon {both} (")
        whole = Fraction(TABLE.parameters.delta_policy) + delta
        assert f" at delta {float(whole):.3g} for 2 accounts under {relation.value}" in said


def test_what_keywords_cost_has_a_delta() -> None:
    said = shown(KEYWORDS, NULL).sentence
    assert "at delta 3e-06 for one document changed to or from a null row" in said
    assert "at delta 5e-06 for one replaced by another" in said
    assert "at delta" not in shown(PURE, NULL).sentence
