"""Coalition estimate by direction: how many accounts' worth of questions went one way.

    estimate_direction([Record(pseudonym, time_ms, sketch), ...], limit=r).k_hat

What a coalition learns about a row is the sum, over its questions, of their squared cosines with
it: accounts that hide from this estimate have asked less about the row. No two questions have to
be alike, or near in time. All numbers are integers, so that both sides find the same.
Specification: docs/spec/07-coalition.md §7.5; what evading costs: docs/notes/attacks.md §7.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from ragaudit.privacy.coalition import Columns, Estimate, Record, read_records
from ragaudit.privacy.numbers import count

__all__ = ["ALLOWANCE", "Direction", "estimate_direction", "strongest"]

ALLOWANCE = Fraction(1, 10)
"""Share of its rate limit that an account may spend along one direction and not count."""
_HALF_PI = Fraction(355, 226)
"""Just above pi/2: sketches see a squared cosine at least 2/pi as large as it is."""
_STARTS, _POWERS, _ROUNDS = 32, 24, 8
_SCALE = 1023
"""Largest entry of a direction: products with sketches of 512 bits are exact in 32-bit floats."""
_WIDE = 1 << 18
_CHUNK = 1 << 13

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Direction:
    """The direction that most accounts' worth of questions went.

    Attributes:
        k_hat: accounts' worth, rounded up; at least 1 where there are records.
        counted: numbers of the accounts that count.
    """

    k_hat: int
    counted: Integers


def estimate_direction(
    records: Iterable[Record],
    *,
    limit: int,
    progress: Callable[[float], None] | None = None,
) -> Estimate:
    """Return how many accounts' worth of questions went one way, and whose.

    Time: some 600 multiplications for each bit of all records' sketches.

    Args:
        records: of a window, in any order; times are not read.
        limit: r, the questions that the policy allows an account.
        progress: called with the share done, in [0, 1].

    Raises:
        InvalidArgumentError: a limit below 1, or sketches of different or other lengths.
    """
    count(limit, "limit", least=1)
    columns = read_records(records)
    if not len(columns.times):
        return Estimate(0, ())
    found = strongest(columns, limit, progress)
    names = tuple(columns.names[account] for account in found.counted)
    return Estimate(found.k_hat, (names,) if len(names) > 1 else ())


def strongest(
    columns: Columns, limit: int, progress: Callable[[float], None] | None = None
) -> Direction:
    """Return the strongest direction that is found from the principal ones of all records.

    Args:
        columns: of at least one record.
        limit: r.
        progress: as of `estimate_direction`.
    """
    order = np.argsort(columns.accounts, kind="stable")
    asked = _Asked(columns.sketches[order], columns.accounts[order])
    directions = _principal(asked.moment())
    best = Direction(1, np.zeros(0, dtype=np.int64))
    for step in range(_ROUNDS):
        energies = asked.energies(directions)
        # An account counts iff (355/226) X > allowance · r · b · |w|^2.
        whole = [limit * asked.bits * int(direction @ direction) for direction in directions]
        least = np.array([int(ALLOWANCE * each / _HALF_PI) for each in whole])
        counted = energies > least
        for number, full in enumerate(whole):
            members = np.flatnonzero(counted[:, number])
            # Nobody asks more than an account's worth, however the sketch has rounded.
            shares = (min(full, int(_HALF_PI * int(each))) for each in energies[members, number])
            worth = -(-sum(shares) // full) if full else 0
            if worth > best.k_hat:
                best = Direction(worth, members)
        if progress is not None:
            progress((step + 1) / _ROUNDS)
        directions = _scaled(asked.pulled(directions, counted))
    return best


@dataclass(frozen=True, slots=True)
class _Asked:
    """Sketches of all records, by account: uint8[n, bytes], and int64[n] that rises."""

    sketches: npt.NDArray[np.uint8]
    accounts: Integers

    @property
    def bits(self) -> int:
        return 8 * int(self.sketches.shape[1])

    def _parts(self) -> Iterator[tuple[slice, npt.NDArray[np.float32]]]:
        """Parts of the records and their sketches as -1 and +1: all of them do not fit."""
        for start in range(0, len(self.accounts), _CHUNK):
            part = slice(start, start + _CHUNK)
            bits = np.unpackbits(self.sketches[part], axis=1, bitorder="little")
            yield part, 2 * bits.astype(np.float32) - 1

    def moment(self) -> Integers:
        """Sum over records of the sketch's products with itself, int64[b, b]."""
        total = np.zeros((self.bits, self.bits), dtype=np.int64)
        for _, signs in self._parts():
            total += (signs.T @ signs).astype(np.int64)
        return total

    def energies(self, directions: Integers) -> Integers:
        """Of each account along each direction, sums of squared products, int64[A, J]."""
        total = np.zeros((int(self.accounts[-1]) + 1, len(directions)), dtype=np.int64)
        across = directions.T.astype(np.float32)
        for part, signs in self._parts():
            squares = (signs @ across).astype(np.int64) ** 2
            own = self.accounts[part]
            first = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
            total[own[first]] += np.add.reduceat(squares, first, axis=0)
        return total

    def pulled(self, directions: Integers, counted: npt.NDArray[np.bool_]) -> Integers:
        """Each direction times the moment of the accounts that count for it, int64[J, b]."""
        total = np.zeros_like(directions)
        across = directions.T.astype(np.float32)
        for part, signs in self._parts():
            products = (signs @ across) * counted[self.accounts[part]]
            # Sums of 2^13 products below 2^19 and more: exact in doubles only.
            total += (products.T.astype(np.float64) @ signs).astype(np.int64)
        return total


def _principal(moment: Integers) -> Integers:
    """The first principal directions, int64[J, b], by power iteration and deflation."""
    found: list[Integers] = []
    for start in range(min(_STARTS, len(moment))):
        direction = _scaled(_without(moment[start], found))
        for _ in range(_POWERS):
            direction = _scaled(_without(moment @ direction, found))
        found.append(direction)
    return np.array(found)


def _without(vector: Integers, found: list[Integers]) -> Integers:
    """A vector of entries up to 2^18 without its parts along directions, rounded down."""
    left = _scaled(vector, _WIDE)
    for each in found:
        if length := int(each @ each):
            left = left - int(each @ left) * each // length
    return left


def _scaled(vectors: Integers, scale: int = _SCALE) -> Integers:
    """Vectors whose largest entry is the scale, rounded toward zero; zeros stay."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    found: Integers = np.sign(vectors) * (np.abs(vectors) * scale // np.maximum(largest, 1))
    return found
