"""Counts of bins and their noisy running sums: as the specification has them, coin by coin."""

import hashlib
import hmac
from fractions import Fraction

import numpy as np
import pytest
from coins import ScriptedCoins
from ragaudit.privacy.mechanisms import samplers
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.mechanisms.streams import bin_counts, running_sums

KEY = bytes(range(32))


def test_bins_are_half_open_and_the_first_has_no_upper_edge() -> None:
    scores = np.array([100, 10, 9, 9, 8, 5, 4, 4, 0, -7])
    assert bin_counts(scores, [9, 4]) == [2, 4]
    assert bin_counts(scores, [0]) == [8]
    assert bin_counts(np.array([], dtype=np.int64), [9, 4]) == [0, 0]


def test_reading_stops_above_enough_and_not_at_it() -> None:
    coins = ScriptedCoins(noises=["1", "-2", "0"])
    assert list(running_sums([2, 4, 9], Fraction(1, 2), 4, coins)) == [3, 5]
    assert coins.scales == [2, 2]
    coins = ScriptedCoins(noises=["0", "0", "0"])
    assert list(running_sums([2, 2, 0], Fraction(1, 2), 4, coins)) == [2, 4, 4]


def draw(n: int) -> int:
    """U_n of spec 11.2, written from its text."""
    message = b"ragaudit/v2/generation-coin\0" + n.to_bytes(8, "little")
    return int.from_bytes(hmac.digest(KEY, message, hashlib.sha256), "little")


def test_each_sum_has_one_draw_and_the_answer_the_ones_after() -> None:
    coins = KeyedCoins(KEY)
    sums = running_sums([3, 1, 4], Fraction(1, 3), 10**6, coins)
    noises = [samplers.laplace(draw(n), Fraction(3)) for n in range(3)]
    assert list(sums) == [3 + noises[0], 4 + sum(noises[:2]), 8 + sum(noises)]
    # What was computed once: a change of the sampler or the coins changes this.
    assert [int(total) for total in sums] == [8, 5, 5]
    rest = KeyedCoins(KEY, drawn=len(sums))
    assert rest.permutation(9) == coins.permutation(9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**16), Fraction(44)], ids=str)
def test_any_epsilon_of_a_policy_can_be_drawn(epsilon: Fraction) -> None:
    (total,) = running_sums([7], epsilon, 10**9, KeyedCoins(KEY))
    assert total.denominator == 1 and abs(total - 7) < 91 / epsilon + 2
