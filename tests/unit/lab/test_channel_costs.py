"""What a verdict says that a generation channel costs is read in one spelling, and quickly."""

from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import parse_ratio
from ragaudit.privacy.accounting.generation import (
    ChannelEpsilon,
    KeywordChannelEpsilon,
    read_channel,
)

TOKENS = ChannelEpsilon("murag", 3, Fraction(1, 10), 1, 7, 4)
KEYWORDS = KeywordChannelEpsilon(
    uses=2,
    epsilon_choice=Fraction(1, 2),
    sigma=Fraction(8),
    delta_test=Fraction(1, 10**6),
    delta_conversion=Fraction(1, 10**6),
    draws=9,
)
# A few characters that Python reads as a number of a gigabyte.
HUGE = "1e999999999"


@pytest.mark.parametrize("costs", [TOKENS, KEYWORDS], ids=["tokens", "keywords"])
def test_what_is_written_is_read_again(costs: ChannelEpsilon | KeywordChannelEpsilon) -> None:
    assert read_channel(costs.to_json()) == costs


@pytest.mark.parametrize(
    "change",
    [
        *({name: other} for name in KEYWORDS.to_json() for other in (None, HUGE, "2/4", -1)),
        {"replace_one": KEYWORDS.to_json()["replace_one_null"]},
        {"more": 1},
    ],
    ids=str,
)
def test_changed_costs_by_keywords_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        read_channel({**KEYWORDS.to_json(), **change})


@for_each("name", sorted(TOKENS.to_json()))
def test_changed_costs_of_tokens_are_refused(name: str) -> None:
    for other in (None, HUGE, "2/4", -1):
        with pytest.raises(MalformedError):
            read_channel({**TOKENS.to_json(), name: other})


@for_each("text", ["", "1/0", "2/4", "3/1", "01", "-1", "0.5", "1" * 13, HUGE, "١"])
def test_other_spellings_of_a_fraction_are_refused(text: str) -> None:
    with pytest.raises(MalformedError, match="not a fraction"):
        parse_ratio(text)
