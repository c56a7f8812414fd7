"""docs/spec/07-coalition.md §7.5."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.coalition import Estimate, Record, estimate_direction

Vector = list[int]


def signs(sketch: bytes) -> Vector:
    return [1 if sketch[k >> 3] >> (k & 7) & 1 else -1 for k in range(8 * len(sketch))]


def dot(a: Vector, b: Vector) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def scale(u: Vector, largest: int) -> Vector:
    top = max(1, *map(abs, u))
    return [(abs(x) * largest // top) * (1 if x > 0 else -1) for x in u]


def times(records: list[Record], w: Vector) -> Vector:
    """The sum of (w·s) s over records."""
    total = [0] * len(w)
    for record in records:
        s = signs(record.sketch)
        product = dot(w, s)
        total = [t + product * x for t, x in zip(total, s, strict=True)]
    return total


def by_definition(records: list[Record], limit: int) -> int:
    """The section read aloud, in Python's integers."""
    if not records:
        return 0
    bits = 8 * len(records[0].sketch)
    found: list[Vector] = []

    def without(u: Vector) -> Vector:
        u = scale(u, 2**18)
        for w in found:
            if length := dot(w, w):
                product = dot(w, u)
                u = [x - product * y // length for x, y in zip(u, w, strict=True)]
        return u

    for j in range(min(32, bits)):
        row = times(records, [1 if k == j else 0 for k in range(bits)])
        w = scale(without(row), 1023)
        for _ in range(24):
            w = scale(without(times(records, w)), 1023)
        found.append(w)
    best, directions = 1, found
    for _ in range(8):
        following = []
        for w in directions:
            full = limit * bits * dot(w, w)
            energy: dict[bytes, int] = {}
            for each in records:
                more = dot(w, signs(each.sketch)) ** 2
                energy[each.account] = energy.get(each.account, 0) + more
            counted = {a: x for a, x in energy.items() if 3550 * x > 226 * full}
            total = sum(min(full, 355 * x // 226) for x in counted.values())
            best = max(best, -(-total // full) if full else 0)
            following.append(scale(times([r for r in records if r.account in counted], w), 1023))
        directions = following
    return best


def asked(account: int, sketch: bytes, time: int = 0) -> Record:
    return Record(bytes([account]) * 32, time, sketch)


few = st.lists(
    st.builds(asked, st.integers(0, 4), st.binary(min_size=1, max_size=1), st.integers(0, 9)),
    max_size=9,
)


@given(few, st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_the_estimate_is_the_definition(records: list[Record], limit: int) -> None:
    assert estimate_direction(records, limit=limit).k_hat == by_definition(records, limit)


def test_the_estimate_is_the_definition_on_longer_sketches() -> None:
    draw = random.Random(3)
    same = draw.randbytes(8)
    records = [asked(a, same if q < 3 and a < 4 else draw.randbytes(8))
               for a in range(7) for q in range(4)]  # fmt: skip
    found = estimate_direction(records, limit=4)
    assert found.k_hat == by_definition(records, 4) >= 4
    assert set(found.clusters[0]) >= {bytes([a]) * 32 for a in range(4)}


def test_neither_order_nor_time_matters() -> None:
    draw = random.Random(4)
    records = [asked(draw.randrange(9), draw.randbytes(16), n) for n in range(60)]
    found = estimate_direction(records, limit=5)
    draw.shuffle(records)
    later = [Record(each.account, 10**6 - each.time, each.sketch) for each in records]
    assert estimate_direction(later, limit=5) == found


def test_what_a_coalition_is_worth() -> None:
    """Sixteen accounts ask other things; of what twelve ask, a part goes one way."""
    draw = np.random.default_rng(5)
    target = draw.integers(0, 256, 32, dtype=np.uint8).tobytes()
    opposite = bytes(255 - each for each in target)

    def population(aimed: int, probes: tuple[bytes, ...]) -> list[Record]:
        records = []
        for account in range(28):
            for question in range(40):
                own = account < 12 and question < aimed
                sketch = probes[question % len(probes)] if own else draw.bytes(32)
                records.append(asked(account, sketch))
        return records

    assert estimate_direction(population(0, (target,)), limit=40) == Estimate(1, ())
    assert estimate_direction(population(40, (target,)), limit=40).k_hat == 12
    # Turned about, a probe tells as much: scores only change their sign.
    assert estimate_direction(population(40, (target, opposite)), limit=40).k_hat == 12
    # Half of the questions: six accounts' worth, and at most pi/2 of it by the sketches' constant.
    half = estimate_direction(population(20, (target,)), limit=40)
    assert 6 <= half.k_hat <= 10
    assert len(half.clusters[0]) == 12
    # Under the allowance, as sketches see it.
    assert estimate_direction(population(2, (target,)), limit=40).k_hat == 1
    # Against a rate limit that nobody used up, the same questions are worth less.
    assert estimate_direction(population(40, (target,)), limit=400).k_hat <= 2


def test_nothing_asked_and_what_is_refused() -> None:
    assert estimate_direction([], limit=1) == Estimate(0, ())
    assert estimate_direction([asked(1, bytes(8))], limit=1).k_hat == 1
    with pytest.raises(MalformedError, match="limit"):
        estimate_direction([], limit=0)
    with pytest.raises(MalformedError, match="sketch"):
        estimate_direction([asked(1, bytes(8)), asked(2, bytes(9))], limit=1)


def test_progress_ends_at_one() -> None:
    shares: list[float] = []
    estimate_direction([asked(1, bytes(8))], limit=1, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1
