"""Coalition estimates: by like questions at one time, and by direction.

    threshold = hamming_threshold("0.8", 128)
    estimate([Record(pseudonym, time_ms, sketch), ...], tau=tau_ms, threshold=threshold).k_hat
    estimate_direction([Record(pseudonym, time_ms, sketch), ...], limit=r).k_hat

The prover makes its claim with this code, the verifier recomputes it; the result depends on
the set of records alone. Who has the compiled core passes its `ragaudit.core.link_accounts` as
``link``: the same result, some ten times as soon and on all cores. `parts_of` and `join_links` let
several workers share one estimate. Specification: docs/spec/07-coalition.md §7.1 and §7.2.

By direction: what a coalition learns about a row is the sum, over its questions, of their squared
cosines with it; accounts that hide from this estimate have asked less about the row. No two
questions have to be alike, or near in time. All numbers are integers, so that both sides find the
same. Specification: docs/spec/07-coalition.md §7.5; what evading costs: docs/notes/attacks.md §7.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.privacy.numbers import Number, count, exact

_DIGITS = 60
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
# Closer than this is equality, which Niven's theorem confines to cos = 1/2 at a third of pi.
_DECIDED = Decimal("1e-50")


def hamming_threshold(theta: Number, bits: int) -> int:
    """Return ``floor(b · arccos(theta) / pi)``: the greatest h with ``cos(pi h/b) >= theta``.

    The comparison is exact, so both sides get the same integer on every machine: for a
    rational theta in (0, 1) and integers h, b, equality holds only for theta = 1/2, 3h = b.

    Args:
        theta: in (0, 1).
        bits: sketch length b, a multiple of 8 from 64 to 512.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    cosine = exact(theta, "theta", above=0, below=1)
    count(bits, "bits", least=64, most=512)
    if bits % 8:
        raise InvalidArgumentError(
            f"{bits} sketch bits", where="bits", expected="a multiple of 8 from 64 to 512"
        )
    low, high = 0, bits // 2  # cos(0) = 1 >= theta, cos(pi/2) = 0 < theta
    while high - low > 1:
        middle = (low + high) // 2
        if _reaches(cosine, middle, bits):
            low = middle
        else:
            high = middle
    return low


def _reaches(cosine: Fraction, distance: int, bits: int) -> bool:
    """Return whether ``cos(pi·distance/bits) >= cosine``."""
    if cosine == Fraction(1, 2) and 3 * distance == bits:
        return True
    # In a context of its own: a caller's must not change what is settled (spec 7.1).
    with localcontext(prec=_DIGITS):
        difference = _cos(_PI * distance / bits) - Decimal(cosine.numerator) / cosine.denominator
        if abs(difference) < _DECIDED:
            raise InvalidArgumentError(
                "cannot be decided", where="theta", expected="fewer decimal places"
            )
        return difference > 0


def _cos(x: Decimal) -> Decimal:
    """Return the cosine of 0 <= x <= pi/2 by its series, to the digits of the context."""
    total = term = Decimal(1)
    order = 0
    while abs(term) > Decimal("1e-60"):
        order += 2
        term = -term * x * x / (order * (order - 1))
        total += term
    return total


# Pairs compared at a time: their 64-bit words (512 KiB) stay in the second-level cache.
_LEFT = 16
_RIGHT = 4096
# Differences of times have to fit 64 bits.
_LATEST = 2**62 - 1
_LONGEST = 64  # bytes of a sketch


@dataclass(frozen=True, slots=True)
class Record:
    """What the estimator reads of a logged query.

    Attributes:
        account: pseudonym.
        time: Unix milliseconds.
        sketch: bits / 8 bytes, 1 to 64, the same length for all records.
        anchored: whether its time is that of a promise, which may be answered much later.
    """

    account: bytes
    time: int
    sketch: bytes
    anchored: bool = False


@dataclass(frozen=True)
class Estimate:
    """The estimated size of the largest coalition, with its evidence.

    Attributes:
        k_hat: accounts in the largest connected component; 0 without records.
        clusters: all components of two or more accounts, each sorted; larger ones first,
            equal sizes by their first account.
    """

    k_hat: int
    clusters: tuple[tuple[bytes, ...], ...]


class Link(Protocol):
    """Joins accounts: `link_accounts`, or the compiled one."""

    def __call__(
        self,
        accounts: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        anchored: npt.NDArray[np.uint8],
        sketches: npt.NDArray[np.uint8],
        *,
        tau: int,
        life: int,
        threshold: int,
        progress: Callable[[float], bool | None] | None = None,
        part: tuple[int, int] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return int64[accounts]: equal numbers for the accounts of one component."""


def estimate(
    records: Iterable[Record],
    *,
    tau: int,
    threshold: int,
    life: int = 0,
    progress: Callable[[float], None] | None = None,
    link: Link | None = None,
) -> Estimate:
    """Return the components of accounts that asked near-identical things near in time.

    Vertices are accounts. Two accounts are joined iff some record of one and some record of the
    other have times at most ``tau`` apart, ``tau + life`` where one of them is anchored, and
    sketches at most ``threshold`` bits apart.

    Time: quadratic in the records within tau of each other, in word operations.

    Args:
        records: in any order.
        tau: milliseconds, >= 0; what the clocks may differ by is part of it (spec 7.2).
        life: milliseconds for which promises may be kept, >= 0.
        threshold: bits, >= 0; see :func:`~ragaudit.privacy.coalition.hamming_threshold`.
        progress: called with the share done, in [0, 1].
        link: who joins the accounts; `link_accounts` if not said.

    Raises:
        InvalidArgumentError: sketches of different or other lengths, a time that is no whole
            number, or negative tau, life or threshold.
    """
    count(tau, "tau", least=0)
    count(life, "life", least=0)
    count(threshold, "threshold", least=0)
    queries = read_records(records)
    if not len(queries.times):
        return Estimate(0, ())
    order = np.argsort(queries.times, kind="stable")
    labels = (link or link_accounts)(
        queries.accounts[order],
        queries.times[order],
        queries.anchored[order],
        queries.sketches[order],
        tau=tau,
        life=life,
        threshold=min(threshold, 8 * _LONGEST),  # 32 bits hold it
        progress=progress,
    )
    return _summary(queries.names, labels)


@dataclass(frozen=True)
class Columns:
    """What is kept of records, some 60 bytes of each: there may be a million.

    Attributes:
        names: of the accounts, sorted.
        accounts: int64[n], positions in ``names``.
        times: int64[n].
        anchored: uint8[n].
        sketches: uint8[n, bytes].
    """

    names: list[bytes]
    accounts: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    anchored: npt.NDArray[np.uint8]
    sketches: npt.NDArray[np.uint8]


def read_records(records: Iterable[Record]) -> Columns:
    numbers: dict[bytes, int] = {}
    accounts, times = array("q"), array("q")
    anchored, sketches = bytearray(), bytearray()
    length = None
    for record in records:
        count(record.time, "time", least=-_LATEST, most=_LATEST)
        length = len(record.sketch) if length is None else length
        if not 1 <= length <= _LONGEST or len(record.sketch) != length:
            raise InvalidArgumentError(
                "of different, zero or greater lengths",
                where="sketch",
                expected=f"1 to {_LONGEST} bytes, as many in each",
            )
        accounts.append(numbers.setdefault(record.account, len(numbers)))
        times.append(record.time)
        anchored.append(record.anchored)
        sketches += record.sketch
    names = sorted(numbers)
    place = np.empty(len(names), dtype=np.int64)
    place[[numbers[name] for name in names]] = np.arange(len(names))
    return Columns(
        names,
        place[np.frombuffer(accounts, dtype=np.int64)],
        np.frombuffer(times, dtype=np.int64),
        np.frombuffer(anchored, dtype=np.uint8),
        np.frombuffer(sketches, dtype=np.uint8).reshape(len(times), length or 1),
    )


def link_accounts(
    accounts: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    anchored: npt.NDArray[np.uint8],
    sketches: npt.NDArray[np.uint8],
    *,
    tau: int,
    life: int,
    threshold: int,
    progress: Callable[[float], bool | None] | None = None,
    part: tuple[int, int] | None = None,
) -> npt.NDArray[np.int64]:
    """Return int64[accounts]: equal numbers for the accounts of one component.

    Args:
        accounts: int64[n], numbers from 0 on.
        times: int64[n], milliseconds, rising.
        anchored: uint8[n], 0 or 1: whether the time is that of a promise.
        sketches: uint8[n, bytes].
        tau, life: milliseconds, together below 2^63.
        threshold: bits.
        progress: as of `estimate`.
        part: where the records begin and end whose pairs with later ones are compared; all of them
            if not said.
    """
    components = _Components(int(accounts.max()) + 1)
    slack = life * anchored.astype(np.int64)
    queries = _Queries(accounts, times, slack, _words(sketches))
    _link(queries, tau, threshold, components, progress, part or (0, len(times)))
    return components.label


@dataclass(frozen=True)
class _Queries:
    """All records by rising time: int64[n] three times, and sketches as uint64[words, n]."""

    accounts: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    slack: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint64]


class _Components:
    """Union-find over accounts; ``label`` is kept flat, so that whole blocks can be compared."""

    def __init__(self, count: int) -> None:
        self.label = np.arange(count)
        self.members: list[list[int]] = [[index] for index in range(count)]

    def join(self, a: int, b: int) -> None:
        keep, gone = int(self.label[a]), int(self.label[b])
        if keep == gone:
            return
        # The smaller group is relabelled: an account at most log2 n times.
        if len(self.members[keep]) < len(self.members[gone]):
            keep, gone = gone, keep
        self.label[self.members[gone]] = keep
        self.members[keep] += self.members[gone]
        self.members[gone] = []


def _words(sketches: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Sketches as uint64[words, n], padded with zero bits, one contiguous row per word."""
    # Zeros in both sketches do not differ: the distance stays that of the bits.
    padded = np.pad(sketches, ((0, 0), (0, -sketches.shape[1] % 8)))
    return np.ascontiguousarray(padded.view("<u8").T, dtype=np.uint64)


def _link(
    queries: _Queries,
    tau: int,
    threshold: int,
    components: _Components,
    progress: Callable[[float], bool | None] | None,
    part: tuple[int, int],
) -> None:
    first, last = part
    # The widest reach of any pair; each pair's own is compared in the block.
    furthest = tau + int(queries.slack.max())
    for start in range(first, last, _LEFT):
        end = min(start + _LEFT, last)
        # Later records are too late for the whole block; earlier ones were compared before.
        reach = int(np.searchsorted(queries.times, queries.times[end - 1] + furthest, "right"))
        for right in range(start, reach, _RIGHT):
            stop = min(right + _RIGHT, reach)
            _link_block(slice(start, end), slice(right, stop), queries, tau, threshold, components)
        if progress is not None:
            progress((end - first) / (last - first))


def _link_block(
    left: slice, right: slice, queries: _Queries, tau: int, threshold: int, components: _Components
) -> None:
    """Join all linked accounts of two blocks; links within one component are skipped."""
    words, times, slack = queries.words, queries.times, queries.slack
    difference = words[0][left, np.newaxis] ^ words[0][np.newaxis, right]
    count = np.bitwise_count(difference)
    # Eight-bit sums suffice below 256 bits; they are several times faster.
    distance = count.astype(np.uint8 if 64 * len(words) < 256 else np.uint16)
    for word in words[1:]:
        np.bitwise_xor(word[left, np.newaxis], word[np.newaxis, right], out=difference)
        distance += np.bitwise_count(difference, out=count)
    close = distance <= threshold
    if not close.any():
        return
    rows, columns = np.nonzero(close)
    apart_in_time = np.abs(times[left][rows] - times[right][columns])
    # The life counts where at least one of the two is anchored (spec 7.2).
    near = apart_in_time <= tau + np.maximum(slack[left][rows], slack[right][columns])
    a, b = queries.accounts[left][rows[near]], queries.accounts[right][columns[near]]
    # A join makes whole stretches agree: a few rounds settle millions of links.
    while True:
        apart = components.label[a] != components.label[b]
        if not np.any(apart):
            return
        a, b = a[apart], b[apart]
        components.join(int(a[0]), int(b[0]))


def _summary(names: Sequence[bytes], labels: npt.NDArray[np.int64]) -> Estimate:
    sizes = np.bincount(labels)
    groups: dict[int, list[bytes]] = {}
    for index in np.flatnonzero(sizes[labels] > 1).tolist():
        groups.setdefault(int(labels[index]), []).append(names[index])
    clusters = sorted((tuple(group) for group in groups.values()), key=lambda g: (-len(g), g))
    return Estimate(int(sizes.max()), tuple(clusters))


# A sum with any time that is estimated with fits 64 bits.
_FURTHEST = 2**62 - 1


def parts_of(times: npt.NDArray[np.int64], reach: int, pairs: int) -> list[tuple[int, int]]:
    """Return parts of records, none of them empty, for about as many comparisons each.

    Args:
        times: int64[n], milliseconds, rising.
        reach: the most that two records are apart that are compared, milliseconds.
        pairs: of a part, at least 1; a single record may have more.
    """
    count = len(times)
    latest = np.searchsorted(times, times + min(reach, _FURTHEST), "right")
    compared = np.cumsum(latest - np.arange(count) - 1)
    total = int(compared[-1]) if count else 0
    ends = np.searchsorted(compared, np.arange(pairs, total, pairs)) + 1
    edges = np.unique(np.concatenate([[0], ends, [count]])).tolist()
    return list(pairwise(edges))


def join_links(
    count: int, links: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
) -> npt.NDArray[np.int64]:
    """Return int64[count]: for each account the smallest one of its component.

    Args:
        count: of accounts, which are numbered from 0 on.
        links: accounts that are of one component, pair by pair.
    """
    labels = np.arange(count)
    for pairs in links:
        ends = np.stack(pairs)
        while True:
            found = labels[ends]
            apart = found[0] != found[1]
            if not apart.any():
                break
            ends, found = ends[:, apart], found[:, apart]
            # Each component goes under the smallest that it is linked with, all at once.
            parents = np.arange(count)
            np.minimum.at(parents, found.max(axis=0), found.min(axis=0))
            while not np.array_equal(above := parents[parents], parents):
                parents = above
            labels = parents[labels]
    return labels


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
