"""Coalition estimates: docs/spec/07-coalition.md §7.1 and §7.2, by direction §7.5."""

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from ragaudit import core
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.coalition import (
    Estimate,
    Link,
    Record,
    estimate,
    estimate_direction,
    hamming_threshold,
    join_links,
    link_accounts,
    parts_of,
)

LINKS = pytest.mark.parametrize("link", [link_accounts, core.link_accounts], ids=["numpy", "core"])
"""Both, the reference and the compiled core, are held to the definition."""

KNOWN_THRESHOLDS = [
    ("0.8", 64, 13),
    ("0.8", 128, 26),
    ("0.8", 256, 52),
    ("0.8", 512, 104),
    ("0.5", 96, 32),  # exactly a third of pi: equality counts
    ("0.500000000001", 96, 31),
    ("0.499999999999", 96, 32),
    ("0.5", 64, 21),
    ("0.999999999999", 512, 0),
    ("0.000000000001", 64, 31),
    ("0.95", 128, 12),
    ("0.70", 256, 64),
]


@for_each(("theta", "bits", "expected"), KNOWN_THRESHOLDS)
def test_known_thresholds(theta: str, bits: int, expected: int) -> None:
    assert hamming_threshold(theta, bits) == expected


@given(st.integers(1, 999_999), st.integers(8, 64))
def test_threshold_is_the_floor(millionths: int, octets: int) -> None:
    theta, bits = f"0.{millionths:06d}", 8 * octets
    with mp.workdps(60):
        exact = bits * mp.acos(mpf(theta)) / mp.pi
        found = hamming_threshold(theta, bits)
        if millionths != 500_000:
            assert found == int(mp.floor(exact))
        else:
            assert found == bits // 3


@for_each(
    ("theta", "bits"),
    [("0", 64), ("1", 64), ("1.5", 64), ("0.8", 63), ("0.8", 56), ("0.8", 520), ("x", 64)],
)
def test_threshold_refusals(theta: str, bits: int) -> None:
    with pytest.raises(MalformedError):
        hamming_threshold(theta, bits)


def differing(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


def by_definition(records: list[Record], tau: int, threshold: int, life: int = 0) -> Estimate:
    """Breadth-first search over the account graph, pair by pair."""
    accounts = sorted({r.account for r in records})
    near: dict[bytes, set[bytes]] = {a: set() for a in accounts}
    for x, y in combinations(records, 2):
        if (
            x.account != y.account
            and abs(x.time - y.time) <= tau + (life if x.anchored or y.anchored else 0)
            and differing(x.sketch, y.sketch) <= threshold
        ):
            near[x.account].add(y.account)
            near[y.account].add(x.account)
    groups, seen = [], set[bytes]()
    for account in accounts:
        if account in seen:
            continue
        group, queue = {account}, [account]
        while queue:
            for other in near[queue.pop()] - group:
                group.add(other)
                queue.append(other)
        seen |= group
        groups.append(tuple(sorted(group)))
    large = sorted((g for g in groups if len(g) > 1), key=lambda g: (-len(g), g))
    return Estimate(max((len(g) for g in groups), default=0), tuple(large))


records = st.lists(
    st.builds(
        Record,
        st.sampled_from([bytes([a]) * 32 for a in range(7)]),
        st.integers(0, 40),
        st.sampled_from(
            [bytes(8), b"\x01" + bytes(7), b"\x03" + bytes(7), b"\x0f" + bytes(7), b"\xff" * 8]
        ),
        st.booleans(),
    ),
    max_size=30,
)


@LINKS
@given(records, st.integers(0, 20), st.integers(0, 5), st.integers(0, 20))
@settings(max_examples=300)
def test_estimate_is_the_definition(
    link: Link, found: list[Record], tau: int, threshold: int, life: int
) -> None:
    expected = by_definition(found, tau, threshold, life)
    assert estimate(found, tau=tau, threshold=threshold, life=life, link=link) == expected


@LINKS
@pytest.mark.parametrize("anchored", [(True, False), (False, True), (True, True)])
def test_a_promise_may_be_answered_as_long_as_it_lives(
    link: Link, anchored: tuple[bool, bool]
) -> None:
    first, second = anchored
    pair = [Record(b"a", 0, bytes(8), first), Record(b"b", 30, bytes(8), second)]
    assert estimate(pair, tau=10, life=20, threshold=0, link=link).k_hat == 2
    assert estimate(pair, tau=10, life=19, threshold=0, link=link).k_hat == 1
    plain = [Record(each.account, each.time, each.sketch) for each in pair]
    assert estimate(plain, tau=10, life=20, threshold=0, link=link).k_hat == 1


@given(records, st.randoms())
def test_order_of_records_does_not_matter(found: list[Record], rng: random.Random) -> None:
    shuffled = found.copy()
    rng.shuffle(shuffled)
    assert estimate(found, tau=5, threshold=1) == estimate(shuffled, tau=5, threshold=1)


@LINKS
@pytest.mark.parametrize("octets", [1, 8, 9, 16, 32, 33, 41, 56, 64])
def test_every_sketch_length(link: Link, octets: int) -> None:
    """Also lengths that are no multiple of the word, and sums beyond eight bits."""
    rng = random.Random(octets)
    found = [
        Record(bytes([i % 40]), rng.randrange(1000), rng.randbytes(octets)) for i in range(300)
    ]
    for threshold in (2 * octets, max(4 * octets - 6, 0), 8 * octets - 1):
        expected = by_definition(found, 100, threshold)
        assert estimate(found, tau=100, threshold=threshold, link=link) == expected


@LINKS
def test_complementary_sketches_of_256_bits_are_far_apart(link: Link) -> None:
    """256 differing bits must not wrap around to 0 in eight-bit sums."""
    pair = [Record(b"a", 0, bytes(32)), Record(b"b", 0, b"\xff" * 32)]
    assert estimate(pair, tau=0, threshold=255, link=link).k_hat == 1
    assert estimate(pair, tau=0, threshold=256, link=link).k_hat == 2


@LINKS
def test_across_block_borders(link: Link) -> None:
    """A chain through records that lie in different blocks, sorted by time."""
    far = [Record(bytes([1, i // 256, i % 256]), i, b"\xff" * 16) for i in range(1, 9000, 3)]
    chain = [Record(bytes([0, i]), 900 * i, bytes(16)) for i in range(10)]
    spread = [Record(r.account, r.time, bytes([i % 251, i // 251] * 8)) for i, r in enumerate(far)]
    found = estimate(chain + spread, tau=900, threshold=0, link=link)
    assert found.k_hat >= 10
    assert any({r.account for r in chain} <= set(c) for c in found.clusters)
    assert estimate(chain, tau=899, threshold=0, link=link).k_hat == 1


def test_one_account_alone_is_no_coalition() -> None:
    same = [Record(b"a", t, bytes(8)) for t in range(100)]
    assert estimate(same, tau=1000, threshold=64) == Estimate(1, ())
    assert estimate([], tau=1, threshold=1) == Estimate(0, ())


@LINKS
def test_the_largest_times_and_bounds_do_not_overflow(link: Link) -> None:
    late, most = 2**62 - 1, 10**15
    for first, last in ((late - 2 * most, late), (-late, 2 * most - late)):
        ends = [Record(b"a", first, bytes(8)), Record(b"b", last, bytes(8), True)]
        assert estimate(ends, tau=most, life=most, threshold=most, link=link).k_hat == 2
        assert estimate(ends, tau=most, life=most - 1, threshold=most, link=link).k_hat == 1


def test_large_times_do_not_overflow() -> None:
    late = 4 * 10**15
    pair = [Record(b"a", late, bytes(8)), Record(b"b", late + 10**10, bytes(8))]
    assert estimate(pair, tau=10**10, threshold=0).k_hat == 2
    assert estimate(pair, tau=10**10 - 1, threshold=0).k_hat == 1


@LINKS
def test_progress_ends_at_one(link: Link) -> None:
    seen: list[float] = []
    estimate(
        [Record(bytes([i % 9]), i, bytes(8)) for i in range(100)],
        tau=1,
        threshold=0,
        progress=seen.append,
        link=link,
    )
    assert seen == sorted(seen) and seen[-1] == 1.0


@pytest.mark.parametrize(
    ("sketches", "tau", "threshold"),
    [
        ((bytes(8), bytes(9)), 1, 1),
        ((b"", b""), 1, 1),
        ((bytes(65),) * 2, 1, 1),
        ((bytes(8),) * 2, -1, 1),
        ((bytes(8),) * 2, 1, -1),
    ],
)
def test_estimate_refusals(sketches: tuple[bytes, bytes], tau: int, threshold: int) -> None:
    pair = [Record(bytes([i]), 0, sketch) for i, sketch in enumerate(sketches)]
    with pytest.raises(MalformedError):
        estimate(pair, tau=tau, threshold=threshold)


def asked(count: int, bits: int, seed: int) -> list[Record]:
    """Records around few centres and at the threshold of them, on few accounts, near in time."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2, (40, bits), dtype=np.uint8)
    sketches = centres[rng.integers(0, 40, count)]
    # Two of one centre differ in up to twice as many bits: below, at and above the threshold.
    sketches ^= (
        rng.random((count, bits)) < rng.choice([0.05, 0.1, 0.15, 0.5], count)[:, None]
    ).astype(np.uint8)
    packed = np.packbits(sketches, axis=1)
    return [
        Record(
            int(account).to_bytes(4, "big"), int(time), sketch.tobytes(), bool(anchored)
        )
        for account, time, sketch, anchored in zip(
            rng.integers(0, 3000, count), rng.integers(0, 10**6, count), packed,
            rng.integers(0, 2, count), strict=True,
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "tau", "life"),
    [
        (1500, 10**6, 0),
        (1500, 1000, 3000),
        pytest.param(10_000, 20_000, 50_000, marks=pytest.mark.slow),
    ],
)
def test_the_core_and_the_reference_find_the_same(count: int, tau: int, life: int) -> None:
    found = asked(count, 256, seed=count)
    bounds: dict[str, Any] = {"tau": tau, "life": life, "threshold": 52}
    expected = estimate(found, **bounds)
    assert 1 < expected.k_hat < 3000
    assert estimate(found, **bounds, link=core.link_accounts) == expected


def arrays(records: list[Record]) -> tuple[dict[str, Any], int]:
    """What a link gets of records, and how many accounts there are."""
    ordered = sorted(records, key=lambda record: record.time)
    _, accounts = np.unique([record.account for record in ordered], return_inverse=True)
    found = {
        "accounts": accounts.astype(np.int64),
        "times": np.array([record.time for record in ordered]),
        "anchored": np.array([record.anchored for record in ordered], dtype=np.uint8),
        "sketches": np.stack([np.frombuffer(record.sketch, np.uint8) for record in ordered]),
    }
    return found, int(accounts.max()) + 1


@LINKS
@pytest.mark.parametrize(("tau", "life", "pairs"), [(10**6, 0, 20_000), (1000, 3000, 250)])
def test_parts_of_the_pairs_join_what_all_of_them_do(
    link: Link, tau: int, life: int, pairs: int
) -> None:
    given, accounts = arrays(asked(600, 128, seed=9))
    near: dict[str, Any] = {"tau": tau, "life": life, "threshold": 26}
    parts = parts_of(given["times"], tau + life, pairs)
    assert len(parts) > 4
    assert [start for start, _ in parts[1:]] == [end for _, end in parts[:-1]]
    assert (parts[0][0], parts[-1][1]) == (0, 600) and all(start < end for start, end in parts)
    found = [link(**given, **near, part=part) for part in parts]
    joined = join_links(accounts, [(np.arange(accounts), labels) for labels in found])
    assert joined.tolist() == core.link_accounts(**given, **near).tolist()
    # With one part left out there are joins that nobody finds.
    for left_out in (0, len(found) // 2):
        others = found[:left_out] + found[left_out + 1 :]
        less = join_links(accounts, [(np.arange(accounts), labels) for labels in others])
        assert less.tolist() != joined.tolist()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40), st.integers(0, 40))
def test_links_are_joined_whoever_found_them(links: list[tuple[int, int]], cut: int) -> None:
    labels = list(range(31))
    for a, b in links:
        low, high = sorted((labels[a], labels[b]))
        labels = [low if label == high else label for label in labels]
    parts = [np.array(part, dtype=np.int64).reshape(-1, 2) for part in (links[:cut], links[cut:])]
    found = join_links(31, [(part[:, 0], part[:, 1]) for part in parts])
    assert found.tolist() == labels


def test_parts_of_few_or_distant_records() -> None:
    assert parts_of(np.array([5]), 10, 1) == [(0, 1)]
    assert parts_of(np.array([0, 100, 200]), 10, 1) == [(0, 3)]
    assert parts_of(np.zeros(4, np.int64), 2**63, 1) == [(0, 1), (1, 2), (2, 4)]


@for_each(
    ("change", "match"),
    [
        ({"part": (1, 3)}, "part: 1..3 of 2 records"),
        ({"part": (2, 1)}, "part: 2..1 of 2 records"),
        ({"part": (-1, 1)}, "part: -1"),
        ({"times": np.array([1, 0])}, "times: not rising"),
        ({"times": np.array([0])}, "different numbers"),
        ({"accounts": np.array([0, -1])}, "accounts: not a number of 32 bits"),
        ({"accounts": np.array([0, 2**32])}, "accounts: 4294967297"),
        ({"anchored": np.array([0, 1])}, "anchored: dtype int64"),
        ({"sketches": np.zeros((2, 65), np.uint8)}, "width: 65 bytes"),
        ({"sketches": np.zeros((2, 0), np.uint8)}, "width: 0 bytes"),
        ({"tau": -1}, "tau: -1"),
        ({"life": 2**63}, "life: "),
        ({"threshold": 2**32}, "threshold: "),
    ],
)
def test_what_the_core_refuses(change: dict[str, Any], match: str) -> None:
    good: dict[str, Any] = {
        "accounts": np.array([0, 1]),
        "times": np.array([0, 1]),
        "anchored": np.zeros(2, np.uint8),
        "sketches": np.zeros((2, 8), np.uint8),
        "tau": 1,
        "life": 0,
        "threshold": 0,
    }
    assert core.link_accounts(**good).tolist() == [0, 0]
    with pytest.raises(core.MalformedInput, match=match):
        core.link_accounts(**good | change)


def test_the_core_stops_when_it_is_told_to() -> None:
    with pytest.raises(core.Cancelled):
        estimate(
            asked(10, 64, 1), tau=1, threshold=1, link=core.link_accounts,
            progress=lambda _: False,  # type: ignore[arg-type]
        )  # fmt: skip


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


def direction_by_definition(records: list[Record], limit: int) -> int:
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


def asked_along(account: int, sketch: bytes, time: int = 0) -> Record:
    return Record(bytes([account]) * 32, time, sketch)


few = st.lists(
    st.builds(asked_along, st.integers(0, 4), st.binary(min_size=1, max_size=1), st.integers(0, 9)),
    max_size=9,
)


@given(few, st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_the_estimate_is_the_definition(records: list[Record], limit: int) -> None:
    assert estimate_direction(records, limit=limit).k_hat == direction_by_definition(records, limit)


def test_the_estimate_is_the_definition_on_longer_sketches() -> None:
    draw = random.Random(3)
    same = draw.randbytes(8)
    records = [asked_along(a, same if q < 3 and a < 4 else draw.randbytes(8))
               for a in range(7) for q in range(4)]  # fmt: skip
    found = estimate_direction(records, limit=4)
    assert found.k_hat == direction_by_definition(records, 4) >= 4
    assert set(found.clusters[0]) >= {bytes([a]) * 32 for a in range(4)}


def test_neither_order_nor_time_matters() -> None:
    draw = random.Random(4)
    records = [asked_along(draw.randrange(9), draw.randbytes(16), n) for n in range(60)]
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
                records.append(asked_along(account, sketch))
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
    assert estimate_direction([asked_along(1, bytes(8))], limit=1).k_hat == 1
    with pytest.raises(MalformedError, match="limit"):
        estimate_direction([], limit=0)
    with pytest.raises(MalformedError, match="sketch"):
        estimate_direction([asked_along(1, bytes(8)), asked_along(2, bytes(9))], limit=1)


def test_progress_by_direction_ends_at_one() -> None:
    shares: list[float] = []
    estimate_direction([asked_along(1, bytes(8))], limit=1, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1
