"""The draw of docs/spec/09-audit.md §1."""

import hashlib
import hmac

import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import enc
from ragaudit.privacy.sample import (
    LoggedRecord,
    SamplingRule,
    draw_sample,
    order,
    sampling_seed,
    strata,
)

SEED = bytes(range(32))
A, B = b"\xaa" * 32, b"\x0b" * 32
RULE_B = SamplingRule("B", "0.05", "0.000001", 0)


def records(count: int) -> list[LoggedRecord]:
    return [LoggedRecord(i, "acme" if i % 3 else "beta", A if i % 2 else B) for i in range(count)]


def test_seed_and_order_are_the_specified_hashes() -> None:
    root, last = b"r" * 32, b"n" * 32
    digest = hashlib.sha256(enc("ragaudit/v1/sampling", root, b"", last)).digest()
    assert sampling_seed(root, last) == digest

    def rank(i: int) -> bytes:
        return hmac.new(digest, enc("ragaudit/v1/sample", "tenant:acme", i), "sha256").digest()

    assert order(digest, "tenant:acme", range(40)) == sorted(range(40), key=rank)


def test_strata_are_tenants_in_policy_order_then_accounts_rising() -> None:
    found = strata(
        records(12),
        tenants=["beta", "acme", "quiet"],
        receipts={1, 2, 3, 7},
        disputed={7, 3},
        minimum_per_tenant=5,
    )
    assert [(s.id, s.population, s.minimum) for s in found] == [
        ("tenant:beta", (0, 6, 9), 5),
        ("tenant:acme", (1, 2, 4, 5, 8, 10, 11), 5),
        ("tenant:quiet", (), 5),
        (f"account:{B.hex()}", (2,), 0),
        (f"account:{A.hex()}", (1,), 0),
    ]


def test_mode_a_takes_all_and_mode_b_the_smallest_hashes() -> None:
    everything = draw_sample(
        records(30),
        tenants=["acme", "beta"],
        receipts=set(),
        disputed={4},
        rule=SamplingRule("A", "0.5", "0.5", 0),
        seed=SEED,
    )
    assert [d.sample for d in everything] == [d.stratum.population for d in everything]
    half = SamplingRule("B", "0.5", "0.1", 6)
    drawn = draw_sample(
        records(30), tenants=["acme", "beta"], receipts=set(), disputed=set(), rule=half, seed=SEED
    )
    for each in drawn:
        ranked = order(SEED, each.stratum.id, each.stratum.population)
        assert each.sample == tuple(sorted(ranked[: len(each.sample)]))
        assert len(each.sample) == 6  # the tenants' minimum exceeds the three that eta asks for


def test_a_small_stratum_is_taken_whole() -> None:
    drawn = draw_sample(
        records(6), tenants=["acme", "beta"], receipts=set(), disputed=set(), rule=RULE_B, seed=SEED
    )
    assert [d.sample for d in drawn] == [d.stratum.population for d in drawn]


def test_another_mode_is_refused() -> None:
    with pytest.raises(MalformedError, match="A or B"):
        SamplingRule("C", "0.1", "0.1", 0)
