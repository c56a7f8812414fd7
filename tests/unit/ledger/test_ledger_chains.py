"""Activation and nonce chains, against the formulas written out."""

import hashlib
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.errors import ChainRejected, MalformedRecord
from ragaudit.ledger.messages.chains import (
    NonceChain,
    activation_anchor,
    activation_of,
    activation_preimage,
    activation_randomness,
    verify_activation_preimage,
    verify_nonce,
)
from ragaudit.ledger.messages.identifiers import (
    check_document_id,
    check_provider,
    check_tenant,
    check_window,
    log_origin,
    pseudonym,
)

SEED, ANN = b"\x05" * 32, b"\x0a" * 32


def sha(tag: Any, *fields: Any) -> Any:
    return hashlib.sha256(enc(tag, *fields)).digest()


def power(step: Any, value: Any, times: Any) -> Any:
    for _ in range(times):
        value = step(value)
    return value


def activation_step(x: Any) -> Any:
    return sha("ragaudit/v1/activation", "w1", x)


def nonce_step(x: Any) -> Any:
    return sha("ragaudit/v1/nonce", "w1", ANN, x)


def test_activation_chain_is_the_formula() -> None:
    anchor = activation_anchor("w1", SEED, 5)
    assert anchor == power(activation_step, SEED, 5)
    for a in range(1, 6):
        preimage = activation_preimage("w1", SEED, 5, a)
        assert preimage == power(activation_step, SEED, 5 - a)
        verify_activation_preimage("w1", anchor, a, preimage)
    assert activation_preimage("w1", SEED, 5, 5) == SEED
    assert activation_randomness("w1", 2, SEED) == sha("ragaudit/v1/rnd", "w1", 2, SEED, b"")


def test_other_activation_preimages_are_rejected() -> None:
    anchor = activation_anchor("w1", SEED, 5)
    preimage = activation_preimage("w1", SEED, 5, 3)
    for window, a, value in (("w2", 3, preimage), ("w1", 2, preimage), ("w1", 4, preimage),
                             ("w1", 3, bytes(32))):  # fmt: skip
        with pytest.raises(ChainRejected):
            verify_activation_preimage(window, anchor, a, value)
    for a, value in ((0, preimage), (-1, preimage), (3, b"short"), (2**40, preimage)):
        with pytest.raises(MalformedRecord):
            verify_activation_preimage("w1", anchor, a, value)
    for a in (0, 6):
        with pytest.raises(MalformedRecord):
            activation_preimage("w1", SEED, 5, a)


@for_each(
    ("index", "covered", "expected"),
    [
        (0, [], None), (0, [0], None), (0, [1], 1), (4, [4, 4, 5], 3), (3, [4, 4, 5], 1),
        (9, [4, 9], None), (2, [9, 1], 1),
    ],
)  # fmt: skip
def test_an_entry_is_activated_by_the_first_instant_that_covers_it(
    index: Any, covered: Any, expected: Any
) -> None:
    assert activation_of(index, covered) == expected


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 2500), st.data())
def test_nonce_chain_is_the_formula(length: Any, data: Any) -> None:
    chain = NonceChain("w1", ANN, SEED, length)
    assert chain.anchor == power(nonce_step, SEED, length)
    counter = data.draw(st.integers(0, length - 1))
    nonce = chain.nonce(counter)
    assert nonce == power(nonce_step, SEED, length - 1 - counter)
    verify_nonce("w1", ANN, chain.anchor, counter, nonce)
    if counter:
        verify_nonce("w1", ANN, chain.nonce(counter - 1), counter, nonce, after=counter - 1)


def test_other_nonces_are_rejected() -> None:
    chain = NonceChain("w1", ANN, SEED, 10)
    nonce = chain.nonce(4)
    for window, who, counter, value in (
        ("w2", ANN, 4, nonce),
        ("w1", SEED, 4, nonce),
        ("w1", ANN, 3, nonce),
        ("w1", ANN, 5, nonce),
        ("w1", ANN, 4, chain.nonce(5)),
    ):
        with pytest.raises(ChainRejected):
            verify_nonce(window, who, chain.anchor, counter, value)
    with pytest.raises(ChainRejected):
        verify_nonce("w1", ANN, chain.nonce(2), 4, nonce, after=3)
    for counter, after in ((4, 4), (4, 5), (-1, -1), (4, -2), (2_000_000, -1)):
        with pytest.raises(MalformedRecord):
            verify_nonce("w1", ANN, chain.anchor, counter, nonce, after=after)
    with pytest.raises(MalformedRecord):
        verify_nonce("w1", b"short", chain.anchor, 4, nonce)


@pytest.mark.parametrize("length", [0, 1_000_001])
def test_chains_have_a_length_in_range(length: Any) -> None:
    with pytest.raises(MalformedRecord):
        NonceChain("w1", ANN, SEED, length)
    with pytest.raises(MalformedRecord):
        NonceChain("w1", ANN, SEED, 10).nonce(10)
    assert SEED.hex() not in repr(NonceChain("w1", ANN, SEED, 10))


# --- identifiers


@pytest.mark.parametrize("name", ["a", "0", "a-b", "w2026-11", "a" * 64])
def test_names_are_accepted(name: Any) -> None:
    assert check_provider(name) == check_window(name) == check_tenant(name) == name


@for_each(
    "name", ["", "-a", "a-", "A", "a_b", "a b", "a/b", "a\n", "é", "\u0661", "a" * 65, ".a", "a."]
)
def test_other_names_are_refused(name: Any) -> None:
    for check in (check_provider, check_window, check_tenant):
        with pytest.raises(MalformedRecord):
            check(name)


def test_a_provider_may_have_dots_and_a_window_not() -> None:
    assert log_origin("rag.example.com", "w1") == "rag.example.com/ragaudit/w1"
    with pytest.raises(MalformedRecord):
        check_window("w.1")


def test_document_ids() -> None:
    assert check_document_id("é" * 256) == "é" * 256
    for name in ("", "é" * 257, "\ud800"):
        with pytest.raises(MalformedRecord):
            check_document_id(name)


def test_pseudonyms_depend_on_key_window_and_account() -> None:
    made = {pseudonym(k, w, a) for k in (SEED, ANN) for w in ("w1", "w2") for a in ("ann", "bob")}
    assert len(made) == 8
    assert all(len(each) == 32 for each in made)
