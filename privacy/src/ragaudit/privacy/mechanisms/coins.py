"""What a mechanism draws: an interface, and coins that follow from a key.

Mechanisms get their coins from outside. A test scripts them, and a trace on paper replays exactly;
a service takes them from the key of the record, and an auditor who is given the key recomputes
every one.
"""

import hashlib
import hmac
from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from ragaudit.privacy.mechanisms import samplers
from ragaudit.privacy.numbers import count

__all__ = ["Coins", "KeyedCoins"]


class Coins(Protocol):
    """The draws of one question, in the order in which the mechanism asks for them."""

    def laplace(self, scale: Fraction) -> Fraction:
        """Return noise of the discrete Laplace law, ``P[n]`` proportional to ``exp(-|n|/scale)``.

        Args:
            scale: above 0, in the unit of what the noise is added to.
        """

    def gaussian(self, deviation: Fraction) -> Fraction:
        """Return noise of the discrete Gaussian law, ``P[n]`` as ``exp(-n²/(2 deviation²))``.

        Args:
            deviation: above 0, in the unit of what the noise is added to.
        """

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        """Return a candidate of ``range(size)``, with a weight of ``exp(utility/scale)``.

        The same law as that of the largest utility after Gumbel noise of this scale.

        Args:
            utilities: of the candidates whose utility is not 0.
            size: how many candidates there are, >= 1.
            most: the largest utility that any data can give; public.
            scale: above 0.
        """

    def permutation(self, size: int) -> list[int]:
        """Return ``range(size)`` in a uniformly random order."""


class KeyedCoins:
    """Coins that follow from a key: the same key, the same coins, in both languages.

    Draw number n is HMAC-SHA-256(key, "ragaudit/v2/generation-coin" || 0x00 || le(n, 8)), a number
    of 256 bits, little endian; a permutation takes one draw for each place (spec 11.2).
    """

    def __init__(self, key: bytes, drawn: int = 0) -> None:
        """Start where the question stands.

        Args:
            key: 32 secret bytes, of one record and for nothing else.
            drawn: draws that were used before.
        """
        count(len(key), "key", least=32, most=32)
        self._key = key
        self._drawn = count(drawn, "drawn", least=0)

    def __repr__(self) -> str:
        return f"KeyedCoins(drawn={self._drawn})"

    def laplace(self, scale: Fraction) -> Fraction:
        return Fraction(samplers.laplace(self._uniform(), scale))

    def gaussian(self, deviation: Fraction) -> Fraction:
        return Fraction(samplers.gaussian(self._uniform(), deviation))

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        return samplers.exponential(self._uniform(), utilities, size, most=most, scale=scale)

    def permutation(self, size: int) -> list[int]:
        return samplers.permutation([self._uniform() for _ in range(max(0, size - 1))])

    def _uniform(self) -> int:
        message = b"ragaudit/v2/generation-coin\0" + self._drawn.to_bytes(8, "little")
        self._drawn += 1
        return int.from_bytes(hmac.digest(self._key, message, hashlib.sha256), "little")
