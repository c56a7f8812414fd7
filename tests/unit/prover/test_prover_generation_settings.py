"""Settings of the generation channel: what a policy gets of them, and what they refuse."""

from typing import Any

import pytest
from pydantic import ValidationError
from ragaudit.prover.generation_settings import ChannelSettings

BINS = {"edges": [3, 1], "epsilon": 1, "enough": 3}


def settings(**changes: Any) -> ChannelSettings:
    given = {"epsilon": "5", "epsilon_token": "2", "voters": 4, "uses": 2, "differing_votes": 0}
    return ChannelSettings(**{**given, "mechanism": "murag-ada", **changes})


def test_bins_stand_where_a_policy_has_its_threshold() -> None:
    assert settings(bins=BINS).member({})["threshold"] == {**BINS, "epsilon": "1"}
    assert settings(mechanism="murag", threshold=7).member({})["threshold"] == 7


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bins": BINS, "threshold": 3}, "threshold and bins; expected one of them"),
        ({"bins": {**BINS, "edges": []}}, "at least 1 item"),
        ({"bins": {**BINS, "epsilon": 0.5}}, "bins.epsilon"),
        ({"bins": {**BINS, "enough": -1}}, "bins.enough"),
    ],
)
def test_settings_that_say_nothing_or_two_things_are_refused(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        settings(**changes)
