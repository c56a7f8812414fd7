"""MURAG-ADA in a policy: bins without gaps, exact money, and a threshold that sums give."""

from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from generation_messages import KEYWORDS, policy_with
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.ledger.messages.generation_terms import AdaptiveTerms
from ragaudit.ledger.messages.policy import Policy

ADAPTIVE: dict[str, Any] = {"edges": [9000, 6000, 3000], "epsilon": "1/4", "enough": 5}


def adaptive_policy(**changes: Any) -> dict[str, Any]:
    given = {"mechanism": "murag-ada", "threshold": ADAPTIVE, "epsilon": "7/4", **changes}
    return policy_with(**given)


def test_terms_are_exact() -> None:
    policy = Policy.from_json(adaptive_policy())
    terms = policy.generation
    assert terms is not None and terms.adaptive is not None
    assert (terms.threshold, terms.adaptive.edges) == (terms.adaptive, (9000, 6000, 3000))
    # What counting costs is not there for tokens: 3/2 of 7/4 is, in uses of 7/4.
    assert terms.answer_epsilon == Fraction(3, 2)
    assert (terms.charges_rows, terms.replays) == (True, True)
    assert Policy.parse(policy.encode()) == policy


@for_each(
    "change",
    [
        {"replay": None},
        {"threshold": 9000},
        {"threshold": None},
        {"mechanism": "murag"},
        {"epsilon": "5/8"},  # a token is 1/2, a count 1/4
        {"threshold": {**ADAPTIVE, "edges": [3, 3]}},
        {"threshold": {**ADAPTIVE, "edges": [3, 4]}},
        {"threshold": {**ADAPTIVE, "epsilon": "7/4"}},
    ],
)  # fmt: skip
def test_terms_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        Policy.from_json(adaptive_policy(**change))


def test_the_smallest_and_the_largest_are_taken() -> None:
    wide = {"edges": list(range(16129, 16129 - 64, -1)), "epsilon": "1/65536", "enough": 2**32}
    epsilon = str(Fraction(1, 2) + Fraction(1, 65536))
    assert Policy.from_json(adaptive_policy(threshold=wide, epsilon=epsilon)).generation is not None


def test_another_answerer_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="dp-ksa under murag-ada"):
        Policy.from_json(adaptive_policy(**{**KEYWORDS, "epsilon": "2"}))


TERMS = AdaptiveTerms((90, 60, 30), Fraction(1, 4), 5)


@pytest.mark.parametrize(
    ("sums", "threshold"),
    [((6,), 90), ((5, 6), 60), ((-3, 5, 5), 30), ((0, 0, 9), 30)],
)
def test_a_threshold_is_that_of_the_last_bin_read(sums: tuple[int, ...], threshold: int) -> None:
    assert TERMS.threshold_of(sums) == threshold


@for_each("sums", [(), (5,), (5, 5), (6, 7), (6, 2), (0, 6, 7), (0, 0, 0, 0), (0, 0, 0, 9)])
def test_reading_stops_where_the_sums_say(sums: tuple[int, ...]) -> None:
    with pytest.raises(RejectedError, match="bins were read"):
        TERMS.threshold_of(sums)
