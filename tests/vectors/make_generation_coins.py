"""Print generation_coins.json: coins of mechanisms that generate answers (docs/spec/11).

Independent of ragaudit: HMAC of the standard library, 200-digit floating point (mpmath), laws
summed term by term and searched in order.

    python tests/vectors/make_generation_coins.py > tests/vectors/generation_coins.json
"""

import hashlib
import hmac
import json
import random
from fractions import Fraction

from mpmath import exp, floor, fsum, mp, mpf

mp.dps = 200
KEY = bytes(range(32))


class Draws:
    def __init__(self) -> None:
        self.number = 0

    def next(self) -> int:
        message = b"ragaudit/v1/generation-coin" + bytes(1) + self.number.to_bytes(8, "little")
        self.number += 1
        return int.from_bytes(hmac.new(KEY, message, hashlib.sha256).digest(), "little")


def real(text: str) -> mpf:
    fraction = Fraction(text)
    return mpf(fraction.numerator) / fraction.denominator


def by_search(weights: dict[int, mpf], total: mpf, uniform: int) -> int:
    """Return the first value whose floored share of all up to it is above the upper 128 bits."""
    upto = mpf(0)
    for value, weight in weights.items():
        upto += weight
        if uniform >> 128 < int(floor(mpf(2) ** 128 * upto / total)):
            return value
    return max(weights)


def laplace(parameter: str, uniform: int) -> int:
    scale = real(parameter)
    width = int(90 * Fraction(parameter)) + 1
    far = 20 * width  # beyond it nothing shows in 200 digits
    weights = {n: exp(-abs(n) / scale) for n in range(-far, far + 1)}
    first = fsum(weights[n] for n in range(-far, -width + 1))
    cut = {-width: first, **{n: weights[n] for n in range(-width + 1, width)}}
    found = by_search({**cut, width: mpf(1)}, fsum(weights.values()), uniform)
    return min(found, width)


def gaussian(parameter: str, uniform: int) -> int:
    deviation = real(parameter)
    width = int(14 * Fraction(parameter)) + 2
    weights = {n: exp(-(n * n) / (2 * deviation**2)) for n in range(-width, width + 1)}
    return by_search(weights, fsum(weights.values()), uniform)


def choose(given: dict[str, object], uniform: int) -> int:
    utilities, size, most, scale = (given[x] for x in ("utilities", "size", "most", "scale"))
    weights = []
    for candidate in range(size):  # type: ignore[call-overload]
        utility = real(utilities.get(str(candidate), "0"))  # type: ignore[attr-defined]
        weights.append(int(floor(mpf(2) ** 128 * exp((utility - most) / real(str(scale))))))
    point = uniform * sum(weights) >> 256
    for candidate, weight in enumerate(weights):
        if point < weight:
            return candidate
        point -= weight
    raise AssertionError


def permutation(size: int, draws: Draws) -> list[int]:
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        other = draws.next() * (last + 1) >> 256
        order[last], order[other] = order[other], order[last]
    return order


def main() -> None:
    draws, made = Draws(), []
    inputs = random.Random(1)
    for kind, parameters in (("laplace", ["8", "2/5", "4"]), ("gaussian", ["13/2", "1/2", "20"])):
        law = laplace if kind == "laplace" else gaussian
        for parameter in parameters:
            made += [
                {
                    "kind": kind,
                    "inputs": {"parameter": parameter},
                    "expected": law(parameter, draws.next()),
                }
                for _ in range(4)
            ]
    for size, most, scale in ((1000, 4, "1/2"), (5, 30, "4"), (300, 40, "1")):
        for _ in range(4):
            utilities = {
                str(inputs.randrange(size)): str(inputs.randint(1, most)) for _ in range(3)
            }
            given = {"utilities": utilities, "size": size, "most": most, "scale": scale}
            made.append(
                {"kind": "choose", "inputs": given, "expected": choose(given, draws.next())}
            )
    for size in (1, 2, 8, 40):
        expected = permutation(size, draws)
        made.append({"kind": "permutation", "inputs": {"size": size}, "expected": expected})
    found = {"key": KEY.hex(), "draws": made, "drawn": draws.number}
    print(json.dumps(found, indent=1))


main()
