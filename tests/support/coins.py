"""Coins that a test writes down: what comes up, in the order in which it is asked for."""

from collections.abc import Iterable, Mapping
from fractions import Fraction


class ScriptedCoins:
    """Scripted noise; permutations that change nothing.

    ``choose`` adds a noise of the script to the utility of each candidate, in their order, and
    returns the first of the largest sums: the exponential mechanism with its Gumbel draws given.
    """

    def __init__(self, noises: Iterable[object] = (), choices: Iterable[int] = ()) -> None:
        """Write down the noises, and the candidates of choices that need none of them."""
        self._noises = [Fraction(str(each)) for each in noises]
        self._choices = list(choices)
        self.scales: list[Fraction] = []

    def laplace(self, scale: Fraction) -> Fraction:
        self.scales.append(scale)
        return self._noises.pop(0)

    def gaussian(self, deviation: Fraction) -> Fraction:
        self.scales.append(deviation)
        return self._noises.pop(0)

    def choose(
        self, utilities: Mapping[int, Fraction], size: int, *, most: int, scale: Fraction
    ) -> int:
        self.scales.append(scale)
        assert all(0 <= utility <= most for utility in utilities.values())
        if self._choices:
            return self._choices.pop(0)
        noisy = [utilities.get(each, Fraction(0)) + self._noises.pop(0) for each in range(size)]
        return noisy.index(max(noisy))

    def permutation(self, size: int) -> list[int]:
        return list(range(size))

    @property
    def left(self) -> int:
        """What of the script was not asked for."""
        return len(self._noises) + len(self._choices)
