"""The coalition estimate over the sketches of a window, exact, beside every pair compared.

Four windows: one of a day, in which some ask alike by chance, and three of an instant, so that
every pair is near in time. In these no two are alike, which costs most, accounts are alike two by
two, which joins most often, or all are alike.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.harness import Measurement, Notify, measure_once
from ragaudit.privacy.coalition import Record, estimate, hamming_threshold

ORACLE_RECORDS: Final = 10_000
_TAU: Final = 70_000  # milliseconds: a policy's minute, and what clocks and logging may add
_DAY: Final = 86_400_000
_THETA: Final = "0.8"
_TOPICS: Final = 5000  # of a day's questions
_CHUNK: Final = 2**14


@dataclass(frozen=True)
class CoalitionSizes:
    """How much is estimated with.

    Attributes:
        records: R.
        accounts: A, that ask in turn.
        bits: b, of a sketch.
    """

    records: int
    accounts: int
    bits: int


@dataclass(frozen=True)
class _Asked:
    """Records of a window: int64[n] of accounts and of rising milliseconds, uint8[n, b / 8]."""

    accounts: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    sketches: npt.NDArray[np.uint8]

    def first(self, count: int) -> "_Asked":
        return _Asked(self.accounts[:count], self.times[:count], self.sketches[:count])

    @property
    def near(self) -> int:
        """Pairs of records that are near in time."""
        latest = np.searchsorted(self.times, self.times + _TAU, "right")
        return int(np.sum(latest - np.arange(len(self.times)) - 1))

    def records(self) -> Iterator[Record]:
        """The records as prover and verifier read them from a log."""
        for account, at, sketch in zip(self.accounts, self.times, self.sketches, strict=True):
            yield Record(int(account).to_bytes(32, "big"), int(at), sketch.tobytes())


def coalition(sizes: CoalitionSizes, notify: Notify) -> list[Measurement]:
    """Measure the estimate over each window, and over its first records beside every pair.

    A record of a measurement is a pair that is near in time: the work is quadratic.

    Args:
        sizes: of a window.
        notify: told what is being done.

    Raises:
        InternalError: another component than every pair gives.
    """
    threshold = hamming_threshold(_THETA, sizes.bits)
    found: list[Measurement] = []
    for name in _CENTRES:
        notify(f"{name}: making it", 0, 0)
        asked = _asked(sizes, name, threshold)
        found += _compared(name, asked.first(ORACLE_RECORDS), threshold, notify)
        notify(f"{name}: estimate", 0, 0)
        found.append(_whole(name, asked, threshold).beside(found[-2]))
    return found


def _compared(name: str, asked: _Asked, threshold: int, notify: Notify) -> list[Measurement]:
    """Every pair, and what is compiled; InternalError unless they give the same components."""
    labels: list[npt.NDArray[np.int64]] = []
    count = len(asked.times)

    def run(link: Callable[[_Asked, int], npt.NDArray[np.int64]], said: str) -> Measurement:
        notify(f"{name}: {said}", 0, 0)
        pairs = asked.near if link is _linked else count * (count - 1) // 2
        action = partial(link, asked, threshold)
        return measure_once(
            f"{name}: {said}", lambda: labels.append(action()), records=max(1, pairs)
        )

    every = run(_every_pair, f"every pair of {count}")
    compiled = run(_linked, f"compiled, of {count}")
    if not np.array_equal(labels[0], labels[1]):
        raise InternalError(f"{name}: other components than every pair gives")
    return [every, compiled.beside(every)]


def _whole(name: str, asked: _Asked, threshold: int) -> Measurement:
    """The estimate over all records, from the objects on."""
    sizes: list[int] = []

    def run() -> None:
        records, link = asked.records(), core.link_accounts
        sizes.append(estimate(records, tau=_TAU, threshold=threshold, link=link).k_hat)

    before, near = time.process_time(), asked.near
    found = measure_once(f"{name}: estimate", run, records=max(1, near))
    spent = 1000 * (time.process_time() - before)
    return replace(found, details={"processor ms": spent, "pairs": near, "k-hat": sizes[0]})


def _asked(sizes: CoalitionSizes, name: str, threshold: int) -> _Asked:
    random = np.random.default_rng(7)
    accounts = np.arange(sizes.records, dtype=np.int64) % sizes.accounts
    span = _DAY if name == DAY else _TAU
    times = np.sort(random.integers(0, span, sizes.records, endpoint=name != DAY))
    parts = [
        _sketched(random, accounts[at : at + _CHUNK], name, sizes.bits, threshold)
        for at in range(0, sizes.records, _CHUNK)
    ]
    return _Asked(accounts, times, np.concatenate(parts))


def _linked(asked: _Asked, threshold: int) -> npt.NDArray[np.int64]:
    none = np.zeros(len(asked.times), dtype=np.uint8)
    return core.link_accounts(
        asked.accounts, asked.times, none, asked.sketches, tau=_TAU, life=0, threshold=threshold
    )


def _every_pair(asked: _Asked, threshold: int) -> npt.NDArray[np.int64]:
    """Components as spec 7.2 defines them: the smallest account of each account's, int64[A]."""
    labels = np.arange(asked.accounts.max() + 1)
    words = np.ascontiguousarray(asked.sketches.view(np.uint64).T)
    for at in range(1, len(asked.times)):
        close = asked.times[at] - asked.times[:at] <= _TAU
        distance = np.zeros(at, dtype=np.uint16)
        for word in words:
            distance += np.bitwise_count(word[:at] ^ word[at])
        own = labels[asked.accounts[at]]
        linked = labels[asked.accounts[:at][close & (distance <= threshold)]]
        for other in np.unique(linked[linked != own]):
            joined = (labels == own) | (labels == other)
            own = min(own, other)
            labels[joined] = own
    return labels


def _sketched(
    random: np.random.Generator, accounts: npt.NDArray[np.int64], name: str, bits: int,
    threshold: int,
) -> npt.NDArray[np.uint8]:  # fmt: skip
    """The sketches of a window's records, uint8[n, b / 8]; of a day's, a sixth is flipped."""
    centred = _CENTRES[name]
    if centred is None:
        return random.integers(0, 256, (len(accounts), bits // 8), dtype=np.uint8)
    most = bits // 6 if name == DAY else threshold // 2
    return _near(random, centred(random, accounts), bits, most)


def _near(
    random: np.random.Generator, centres: npt.NDArray[np.int64], bits: int, most: int
) -> npt.NDArray[np.uint8]:
    """Sketches that differ in at most so many bits from the random one of their centre."""
    chosen, of = np.unique(centres, return_inverse=True)
    drawn = [
        np.random.default_rng([11, int(each)]).integers(0, 256, bits // 8, dtype=np.uint8)
        for each in chosen
    ]
    found: npt.NDArray[np.uint8] = np.stack(drawn)[of]
    rows = np.repeat(np.arange(len(centres)), most)
    places = random.integers(0, bits, len(rows))
    flips = (1 << (places % 8)).astype(np.uint8)
    np.bitwise_xor.at(found, (rows, places // 8), flips)
    return found


DAY: Final = "a day"
_Centred = Callable[[np.random.Generator, npt.NDArray[np.int64]], npt.NDArray[np.int64]]
_CENTRES: Final[Mapping[str, _Centred | None]] = {
    # Questions about topics, few of which are asked often.
    DAY: lambda random, accounts: np.minimum(random.zipf(1.3, len(accounts)), _TOPICS),
    "an instant, none alike": None,
    "an instant, two by two": lambda _, accounts: accounts // 2,
    "an instant, all alike": lambda _, accounts: np.zeros_like(accounts),
}
"""What the sketches of accounts are near to, by the window's name; None: to nothing."""
