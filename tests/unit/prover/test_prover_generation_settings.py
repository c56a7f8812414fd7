"""Settings of the generation channel: what a policy gets of them, and what they refuse."""

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.privacy.accounting.generation import channel_loss
from ragaudit.prover.backend_settings import ChannelSettings

KEYWORDS: dict[str, Any] = {
    "epsilon_choice": 1,
    "sigma": 2,
    "delta_test": "1/1000000",
    "delta_conversion": "1/1000000",
    "sizes": [2, 1, 2],
    "stop_words": ["the", "a"],
}
OF_KEYWORDS: dict[str, Any] = {
    "mechanism": "murag", "threshold": 0, "epsilon": None, "epsilon_token": None,
    "keywords": KEYWORDS,
}  # fmt: skip
BINS = {"edges": [3, 1], "epsilon": 1, "enough": 3}


def settings(**changes: Any) -> ChannelSettings:
    given = {"epsilon": "5", "epsilon_token": "2", "voters": 4, "uses": 2, "differing_votes": 0}
    return ChannelSettings(**{**given, "mechanism": "murag-ada", **changes})


def test_bins_stand_where_a_policy_has_its_threshold() -> None:
    assert settings(bins=BINS).member({})["threshold"] == {**BINS, "epsilon": "1"}
    assert settings(mechanism="murag", threshold=7).member({})["threshold"] == 7


def test_keywords_stand_in_the_place_of_votes_on_tokens() -> None:
    member = settings(**OF_KEYWORDS).member({})
    assert member["answerer"] == {
        "kind": "dp-ksa",
        **KEYWORDS,
        "epsilon_choice": "1",
        "sigma": "2",
        "sizes": [1, 2],
        "stop_words": ["a", "the"],
        "final": "model",
        "voters": 4,
        "tokens": 64,
    }
    # As small as it may be, where none is asked for.
    least = channel_loss(Fraction(1), Fraction(2), 2, Fraction(1, 10**6))
    assert member["epsilon"] == str(least)
    assert settings(**{**OF_KEYWORDS, "epsilon": "99"}).member({})["epsilon"] == "99"
    too_small = settings(**{**OF_KEYWORDS, "epsilon": "1"})
    with pytest.raises(MalformedSettings, match=f"2 uses cost.*at least {least}"):
        too_small.member({})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keywords": KEYWORDS}, "epsilon_token or keywords; expected one of them"),
        ({"epsilon_token": None}, "epsilon_token or keywords; expected one of them"),
        ({"epsilon": None}, "no epsilon; expected that of a question"),
        ({**OF_KEYWORDS, "agreement": "2"}, "agreement beside keywords"),
        ({**OF_KEYWORDS, "slots_per_voter": 1}, "slots_per_voter beside keywords"),
        ({**OF_KEYWORDS, "keywords": {**KEYWORDS, "sizes": []}}, "at least 1 item"),
        ({**OF_KEYWORDS, "keywords": {**KEYWORDS, "final": "both"}}, "keywords.final"),
        ({**OF_KEYWORDS, "keywords": {**KEYWORDS, "sigma": 0.5}}, "keywords.sigma"),
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
