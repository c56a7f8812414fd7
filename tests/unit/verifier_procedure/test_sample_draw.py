"""The draw of docs/spec/09-audit.md §9.1."""

import hashlib
import hmac
from fractions import Fraction
from typing import Literal

import pytest
from ragaudit.encoding.tagged import enc
from ragaudit.encoding.text import parse_decimal
from ragaudit.ledger.messages.policy import AuditTerms, StratumTerms, SubmitterTerms
from ragaudit.privacy.sample import (
    LoggedRecord,
    bad_records,
    draw_sample,
    order,
    sampling_seed,
    strata,
    stratum_size,
)

SEED = bytes(range(32))
A, B = b"\xaa" * 32, b"\x0b" * 32


def rule(
    mode: Literal["A", "B"],
    beta: str,
    tenants: StratumTerms,
    submitters: tuple[str, int] = ("0.5", 0),
    by: Literal["account", "tenant"] = "account",
) -> AuditTerms:
    return AuditTerms(mode, beta, tenants, SubmitterTerms(*submitters, by), 60)


RULE_B = rule("B", "0.05", StratumTerms("0.000001", 0))


def records(count: int) -> list[LoggedRecord]:
    return [LoggedRecord(i, "acme" if i % 3 else "beta", A if i % 2 else B) for i in range(count)]


def test_seed_and_order_are_the_specified_hashes() -> None:
    root, last = b"r" * 32, b"n" * 32
    digest = hashlib.sha256(enc("ragaudit/v1/sampling", root, b"", last)).digest()
    assert sampling_seed(root, last) == digest

    def rank(i: int) -> bytes:
        return hmac.new(digest, enc("ragaudit/v1/sample", "tenant:acme", i), "sha256").digest()

    ranked = sorted(range(40), key=rank)
    assert order(digest, "tenant:acme", range(40), 40) == ranked
    assert order(digest, "tenant:acme", range(40), 7) == ranked[:7]


def test_strata_are_tenants_in_policy_order_then_accounts_rising() -> None:
    terms = rule("B", "0.05", StratumTerms("0.01", 5), ("0.5", 2))
    found = strata(
        records(12), tenants=["beta", "acme", "quiet"], receipts={1, 2, 3, 7}, rule=terms
    )
    assert [(s.id, s.population, s.rule) for s in found] == [
        ("tenant:beta", (0, 3, 6, 9), terms.tenants),
        ("tenant:acme", (1, 2, 4, 5, 7, 8, 10, 11), terms.tenants),
        ("tenant:quiet", (), terms.tenants),
        (f"account:{B.hex()}", (2,), terms.submitters),
        (f"account:{A.hex()}", (1, 3, 7), terms.submitters),
    ]


def test_strata_of_submitters_may_be_their_tenants() -> None:
    terms = rule("B", "0.05", StratumTerms("0.01", 5), ("0.5", 2), by="tenant")
    found = strata(records(12), tenants=["beta", "quiet", "acme"], receipts={1, 2, 3}, rule=terms)
    assert [(s.id, s.population) for s in found[3:]] == [
        ("receipts:beta", (3,)),
        ("receipts:acme", (1, 2)),
    ]


def test_mode_a_takes_all_and_mode_b_the_smallest_hashes() -> None:
    everything = draw_sample(
        records(30),
        tenants=["acme", "beta"],
        receipts=set(),
        rule=rule("A", "0.5", StratumTerms("0.5", 0)),
        seed=SEED,
    )
    assert [d.sample for d in everything] == [d.stratum.population for d in everything]
    half = rule("B", "0.5", StratumTerms("0.1", 6))
    drawn = draw_sample(records(30), tenants=["acme", "beta"], receipts=set(), rule=half, seed=SEED)
    for each in drawn:
        population = each.stratum.population
        ranked = order(SEED, each.stratum.id, population, len(population))
        assert each.sample == tuple(sorted(ranked[: len(each.sample)]))
        assert len(each.sample) == 6  # the tenants' minimum exceeds the three that eta asks for


def test_a_small_stratum_is_taken_whole() -> None:
    drawn = draw_sample(
        records(6), tenants=["acme", "beta"], receipts=set(), rule=RULE_B, seed=SEED
    )
    assert [d.sample for d in drawn] == [d.stratum.population for d in drawn]


def test_each_kind_of_stratum_has_its_own_eta() -> None:
    """Submitting every receipt must not turn mode B into mode A."""
    logged = [LoggedRecord(i, "acme", bytes([i // 50]) * 32) for i in range(1000)]
    terms = rule("B", "0.1", StratumTerms("0.0009765625", 10), ("0.5", 1))
    drawn = draw_sample(logged, tenants=["acme"], receipts=set(range(1000)), rule=terms, seed=SEED)
    sizes = [len(each.sample) for each in drawn]
    assert sizes[0] == stratum_size(1000, Fraction(1, 10), terms.tenants) == 64
    assert sizes[1:] == [7] * 20
    assert len({index for each in drawn for index in each.sample}) < 250
    same = rule("B", "0.1", StratumTerms("0.0009765625", 10), ("0.0009765625", 1))
    drawn = draw_sample(logged, tenants=["acme"], receipts=set(range(1000)), rule=same, seed=SEED)
    assert len({index for each in drawn for index in each.sample}) > 700  # what one eta would do


@pytest.mark.parametrize("beta", ["0.999", "0.95", "0.51"])
def test_a_stratum_whose_bad_bound_is_all_of_it_is_taken_whole(beta: str) -> None:
    """With b = n one sample "misses with probability 0", and says nothing of the others."""
    for count in (1, 2, 10, 19):
        size = stratum_size(count, parse_decimal(beta), StratumTerms("0.5", 0))
        bad = bad_records(count, parse_decimal(beta))
        assert (size == count) if bad == count else (1 <= size <= count)
    assert stratum_size(0, parse_decimal(beta), StratumTerms("0.5", 7)) == 0
