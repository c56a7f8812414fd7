"""Integer samplers of mechanisms that generate answers: thresholds, distances, known answers."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.mechanisms import samplers
from ragaudit.privacy.mechanisms.samplers import KeyedCoins

TOP = 2**256 - 1
VECTORS = Path(__file__).parents[2] / "vectors"


def law(sampler: Any, parameter: Fraction, width: int) -> dict[int, Fraction]:
    """The law of what a sampler returns, by bisection for its thresholds."""
    found, below = {}, 0
    for n in range(-width, width + 1):
        low, high = below, 2**128
        while low < high:
            middle = (low + high) // 2
            if sampler(middle << 128, parameter) <= n:
                low = middle + 1
            else:
                high = middle
        found[n] = Fraction(low - below, 2**128)
        below = low
    assert below == 2**128
    return found


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(1), Fraction(3)])
def test_laplace_is_within_2_to_the_minus_100_of_its_law(scale: Fraction) -> None:
    width = int(90 * scale) + 1
    with mpmath.workdps(100):
        q = mpmath.exp(-1 / (mpmath.mpf(scale.numerator) / scale.denominator))
        distance = q ** (width + 1) * 2 / (1 + q)
        for n, share in law(samplers.laplace, scale, width).items():
            exact = (1 - q) / (1 + q) * q ** abs(n)
            distance += abs(mpmath.mpf(share.numerator) / share.denominator - exact)
        assert distance / 2 < mpmath.mpf(2) ** -100


@pytest.mark.parametrize("deviation", [Fraction(1, 3), Fraction(2), Fraction(13, 2)])
def test_gaussian_is_within_2_to_the_minus_100_of_its_law(deviation: Fraction) -> None:
    width = int(14 * deviation) + 2
    with mpmath.workdps(100):
        squared = 2 * mpmath.mpf(deviation.numerator) ** 2 / deviation.denominator**2
        weights = {n: mpmath.exp(-n * n / squared) for n in range(-2 * width, 2 * width + 1)}
        total = mpmath.fsum(weights.values())
        found = law(samplers.gaussian, deviation, width)
        shares = {n: mpmath.mpf(x.numerator) / x.denominator for n, x in found.items()}
        distance = mpmath.fsum(
            abs(shares.get(n, 0) - weight / total) for n, weight in weights.items()
        )
        assert distance / 2 < mpmath.mpf(2) ** -100


@pytest.mark.parametrize("failure", ["0.5", "0.01", "1e-4", "1e-12"])
def test_the_threshold_of_a_test_is_the_least_that_fails_so_seldom(failure: str) -> None:
    deviation, goal = Fraction(13, 2), Fraction(failure)
    least = samplers.gaussian_threshold(deviation, goal)
    found = law(samplers.gaussian, deviation, int(14 * deviation) + 2)

    def above(c: int) -> Fraction:
        return sum((share for n, share in found.items() if n > c), Fraction(0))

    assert above(least) <= goal < above(least - 1)


@given(
    utilities=st.dictionaries(st.integers(0, 9), st.integers(1, 6), max_size=4),
    scale=st.fractions(Fraction(1, 4), 20),
    point=st.fractions(0, 1).filter(lambda x: x < 1),
)
def test_a_choice_is_that_of_the_whole_list_of_weights(
    utilities: dict[int, int], scale: Fraction, point: Fraction
) -> None:
    given_utilities = {each: Fraction(number) for each, number in utilities.items()}
    weights = samplers.weights(
        [given_utilities.get(each, Fraction(0)) for each in range(10)], most=6, scale=scale
    )
    uniform = int(point * 2**256)
    left = uniform * sum(weights) >> 256
    expected = 0
    while left >= weights[expected]:
        left -= weights[expected]
        expected += 1
    found = samplers.exponential(uniform, given_utilities, 10, most=6, scale=scale)
    assert found == expected


def test_weights_are_floors_of_exponentials() -> None:
    scale = Fraction(3, 2)
    found = samplers.weights([Fraction(n) for n in range(66, -1, -1)], most=66, scale=scale)
    with mpmath.workdps(120):
        assert found == [
            int(mpmath.floor(mpmath.mpf(2) ** 128 * mpmath.exp(-mpmath.mpf(n) * 2 / 3)))
            for n in range(67)
        ]
    assert found[0] == 2**128 and found[-1] > 2**63


def test_permutations_are_uniform_over_equal_parts_of_the_draws() -> None:
    """Six parts of the first draw, two of the second: every order of three comes up once."""
    draws = [[(2 * i + 1) * 2**255 // 3, (2 * j + 1) * 2**254] for i in range(3) for j in range(2)]
    assert len({tuple(samplers.permutation(each)) for each in draws}) == 6
    assert samplers.permutation([]) == [0]


@settings(max_examples=30)
@given(uniform=st.integers(0, TOP), scale=st.fractions(Fraction(1, 50), 60))
def test_larger_draws_never_give_smaller_noise(uniform: int, scale: Fraction) -> None:
    step = samplers.laplace(min(TOP, uniform + 2**250), scale)
    assert samplers.laplace(uniform, scale) <= step
    assert abs(step) <= 90 * scale + 1


@for_each(
    "call",
    [
        lambda: samplers.laplace(-1, Fraction(1)),
        lambda: samplers.laplace(2**256, Fraction(1)),
        lambda: samplers.laplace(0, Fraction(0)),
        lambda: samplers.laplace(0, Fraction(2**16 + 1)),
        lambda: samplers.gaussian(0, Fraction(0)),
        lambda: samplers.gaussian(0, Fraction(2**12 + 1)),
        lambda: samplers.gaussian_threshold(Fraction(1), Fraction(3, 4)),
        lambda: samplers.gaussian_threshold(Fraction(1), Fraction(1, 2**91)),
        lambda: samplers.exponential(0, {}, 0, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {3: Fraction(1)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {-1: Fraction(1)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {1: Fraction(2)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {1: Fraction(-1)}, 3, most=1, scale=Fraction(1)),
        lambda: samplers.exponential(0, {}, 3, most=45, scale=Fraction(1)),
        lambda: samplers.permutation([2**256]),
        lambda: KeyedCoins(bytes(31)),
    ],
)
def test_refusals(call: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        call()


def test_known_answers_of_a_key() -> None:
    """Made by a script that shares no code with this library."""
    vectors = json.loads((VECTORS / "generation_coins.json").read_bytes())
    coins = KeyedCoins(bytes.fromhex(vectors["key"]))
    for draw in vectors["draws"]:
        kind, given, expected = draw["kind"], draw["inputs"], draw["expected"]
        if kind == "permutation":
            found: object = coins.permutation(given["size"])
        elif kind == "choose":
            utilities = {int(key): Fraction(value) for key, value in given["utilities"].items()}
            found = coins.choose(
                utilities, given["size"], most=given["most"], scale=Fraction(given["scale"])
            )
        else:
            found = int(getattr(coins, kind)(Fraction(given["parameter"])))
        assert found == expected, draw
    assert repr(coins) == f"KeyedCoins(drawn={vectors['drawn']})"
