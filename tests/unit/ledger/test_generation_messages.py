"""The generation channel's terms, entries and receipts: one form each, everything else refused."""

import hashlib
import hmac
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from generation_messages import (
    ANSWER,
    CHARGE,
    CHARGE_OF_OPENINGS,
    GENERATED,
    GENERATION,
    PRIVATE,
    REQUEST,
    SALT,
    policy_with,
)
from ragaudit.circuits.noise import COIN_TAG, noise_key
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.tagged import enc as pack
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.entries import Charge, Generated, Void, parse_body
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import (
    GeneratedAnswer,
    GeneratedFile,
    GeneratedReceipt,
    GenerationRequest,
    LoggedEntry,
)
from receipt_scene import PROVIDER

D = bytes(range(32))
MODEL = GENERATION["generator"]


def test_terms_are_exact() -> None:
    policy = Policy.from_json(policy_with())
    terms = policy.generation
    assert terms is not None
    assert (terms.mechanism, terms.uses, terms.threshold) == ("murag", 3, 9000)
    assert terms.epsilon == Fraction(3, 2)
    assert (terms.answerer.slots, terms.token_voting.epsilon_token) == (8, Fraction(1, 2))
    assert (terms.charges_rows, terms.replays) == (True, True)
    assert Policy.parse(policy.encode()) == policy
    # The policy holds the manifest whole, so that its digest binds C_gen.
    canonical = canonical_json.dumps(GENERATION["generator"])
    assert (
        terms.generator.digest == hashlib.sha256(pack("ragaudit/v1/generator", canonical)).digest()
    )
    assert terms.vocabulary.size == 3


def test_a_policy_without_the_channel_says_nothing_of_it() -> None:
    value = policy_with()
    del value["generation"]
    policy = Policy.from_json(value)
    assert policy.generation is None
    assert b"generation" not in policy.encode()


def test_naive_has_no_threshold() -> None:
    terms = Policy.from_json(policy_with(mechanism="naive", threshold=None, replay=None)).generation
    assert terms is not None
    assert (terms.threshold, terms.charges_rows) == (None, False)


@for_each(
    "change",
    [
        {"mechanism": "naive"},
        {"mechanism": "naive", "threshold": None},
        {"threshold": None},
        {"epsilon": "1/3"},  # less than a token
        {"answerer": {**GENERATION["answerer"], "epsilon_token": "45"}},  # 4 voters: 180 > 176
        {"answerer": {**GENERATION["answerer"], "slots_per_voter": 2**14 + 1}},
        {"generator": {**MODEL, "prompt": {"template": "{question}", "between": ""}}},
        {"generator": {**MODEL, "vocabulary": {"size": 2, "end": 2, "digest": "00" * 32}}},
        {"generator": {**MODEL, "files": {"a": "00"}}},
        {"generator": {**MODEL, "vocabulary": None, "keywords": MODEL["prompt"]}},
    ],
)  # fmt: skip
def test_terms_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        Policy.from_json(policy_with(**change))


def test_a_weight_at_the_limit_is_taken() -> None:
    answerer = {**GENERATION["answerer"], "epsilon_token": "44"}  # 44 · 4 / 4 = 44
    assert Policy.from_json(policy_with(answerer=answerer, epsilon="44")).generation is not None


@pytest.mark.parametrize("change", [{"versions": True}, {"query_kinds": ["vector"]}], ids=str)
def test_windows_that_have_no_such_channel(change: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        Policy.from_json({**policy_with(), **change})


def test_entries_as_they_are_logged() -> None:
    # Written from the table of the specification, not by the class.
    fields = (
        D, "w", "acme", 1, 100, D, D, 1, 2, 3, 1, 4000, D, D, D, 0, 9000, D, None,
    )  # fmt: skip
    assert CHARGE.encode() == pack("ragaudit/v1/entry/charge", *fields)
    free = replace(CHARGE, threshold=None, charge=None)
    empty = (*fields[:-3], None, None, None)
    assert free.encode() == pack("ragaudit/v1/entry/charge", *empty)
    summed = replace(CHARGE, sums=(3, -2))
    sums = bytes([3, *[0] * 7, 254, *[255] * 7])
    assert summed.encode() == pack("ragaudit/v1/entry/charge", *fields[:-1], sums)
    assert GENERATED.encode() == pack(
        "ragaudit/v1/entry/answer", "w", "acme", 7, 4001, None, ANSWER.digest(SALT)
    )
    void = Void("w", "acme", 7, 4001)
    assert void.encode() == pack("ragaudit/v1/entry/void", "w", "acme", 7, 4001)
    for body in (CHARGE, free, summed, GENERATED, replace(GENERATED, nonce=D), void):
        assert parse_body(body.KIND, body.encode()) == body


@for_each(
    "change",
    [
        {"threshold": None},
        {"charge": None},
        {"charge": b"x"},
        {"threshold": 127 * 127 + 1},
        {"number": -1},
        {"number": 2**32 - 1},
        {"counter": 10**6},
        {"activation": 0},
        {"epoch": 0},
        {"rows": 0},
        {"tenant": "Acme"},
        {"query_digest": b""},
        {"sums": (0,) * 65},
        {"sums": (2**48 + 1,)},
        {"sums": (1,), "threshold": None, "charge": None},
    ],
)
def test_charges_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        replace(CHARGE, **change)


def test_sums_are_whole() -> None:
    fields = (D, "w", "acme", 1, 100, D, D, 1, 2, 3, 1, 4000, D, D, D, 0, 9000, D)
    with pytest.raises(MalformedRecord, match="whole sums"):
        Charge.parse(pack("ragaudit/v1/entry/charge", *fields, b"1234567"))


def test_no_body_is_read_as_another_kind() -> None:
    for reader, body in ((Charge, GENERATED), (Generated, CHARGE), (Void, GENERATED)):
        with pytest.raises(MalformedRecord):
            reader.parse(body.encode())
    with pytest.raises(MalformedRecord, match="charge 0"):
        replace(GENERATED, charge=0)
    with pytest.raises(MalformedRecord):
        replace(GENERATED, generated_digest=b"")


def test_the_key_of_coins_is_none_of_noise() -> None:
    place: dict[str, Any] = {
        "window": "w",
        "tenant": "acme",
        "version": 1,
        "pseudonym": D,
        "epoch": 1,
        "slot": 2,
    }
    rest: dict[str, Any] = {"counter": 3, "activation_randomness": D, "nonce": b""}
    message = pack("ragaudit/v1/generation", "w", "acme", 1, D, 1, 2, 3, D, None)
    coins = noise_key(D, **place, **rest, tag=COIN_TAG)
    assert coins == hmac.digest(D, message, "sha256")
    assert coins != noise_key(D, **place, **rest)


def receipt(**changes: Any) -> GeneratedReceipt:
    parts: dict[str, Any] = {
        "origin": "provider.example/ragaudit/w",
        "charge": LoggedEntry(7, SALT, CHARGE_OF_OPENINGS.encode()),
        "answer": LoggedEntry(9, SALT, GENERATED.encode()),
        "issued": 5000,
        "answer_digest": PARTS_DIGEST,
    }
    return GeneratedReceipt(**{**parts, **changes}).signed(PROVIDER)


def file(**changes: Any) -> GeneratedFile:
    parts = {"request": REQUEST, "answer": ANSWER, "public": receipt(), "private": PRIVATE}
    return GeneratedFile(**{**parts, **changes})


# Written from 5.8 and 11.10, not by the class.
PARTS_DIGEST = hashlib.sha256(
    pack(
        "ragaudit/v1/answer", SALT,
        *(canonical_json.dumps(each.to_json()) for each in (REQUEST, ANSWER, PRIVATE)),
    )
).digest()  # fmt: skip


def test_a_receipt_file() -> None:
    kept = file()
    assert GeneratedFile.parse(kept.encode()) == kept
    kept.public.verify(PROVIDER.public)
    kept.verify_openings()
    kept.verify_answer_digest()
    entries: dict[str, Any] = {"charge": kept.public.charge, "answered": kept.public.answer}
    place: dict[str, Any] = {"origin": kept.public.origin, "issued": kept.public.issued}
    parts: dict[str, Any] = {"request": REQUEST, "answer": ANSWER, "private": PRIVATE}
    assert GeneratedFile.issue(PROVIDER, **place, **entries, **parts) == kept
    assert GenerationRequest.from_json(kept.request.to_json()) == REQUEST
    # What is private of a charge stands nowhere in it.
    names = set(kept.private.to_json()) | set(kept.answer.to_json())
    assert not names & {"rows", "charged", "used", "blinding", "positions", "key"}
    with pytest.raises(ReceiptRejected, match="outstanding"):
        kept.public.charge.verify_inclusion("charge", None, None)  # type: ignore[arg-type]


def test_what_was_not_honoured_has_one_spelling() -> None:
    for names in (("a",), ("max_tokens", "seed"), tuple(f"n{each:02}" for each in range(16))):
        asked = replace(REQUEST, ignored=names)
        assert GenerationRequest.parse(asked.encode()) == asked
        assert asked.to_json()["ignored"] == list(names)
        assert asked.retrieval == REQUEST.retrieval, "the digests of the question changed"
    assert "ignored" not in REQUEST.to_json()
    # The provider signed what it did not honour: nobody adds to it.
    with pytest.raises(ReceiptRejected):
        replace(file(), request=replace(REQUEST, ignored=("a",))).verify_answer_digest()
    others: list[Any] = [
        [], ["seed", "max_tokens"], ["seed", "seed"], [""], ["Seed"], ["a b"], ["a\n"], [1], "seed",
        None, ["a" * 65], [f"n{each:02}" for each in range(17)],
    ]  # fmt: skip
    for wrong in others:
        with pytest.raises(MalformedError, match="ignored"):
            GenerationRequest.from_json({**REQUEST.to_json(), "ignored": wrong})


@for_each(
    "change",
    [
        {"request": GenerationRequest("another question")},
        {"answer": replace(ANSWER, text="b")},
        {"answer": replace(ANSWER, private=0)},
        {"private": replace(PRIVATE, salt_a=D)},
        {"private": replace(PRIVATE, openings=replace(PRIVATE.openings, sketch=b"s" * 8))},
        {"private": replace(PRIVATE, openings=replace(PRIVATE.openings, embedding=(1, 2)))},
        {"private": replace(PRIVATE, openings=replace(PRIVATE.openings, salt_q=D))},
        {"private": replace(PRIVATE, openings=replace(PRIVATE.openings, salt_f=D))},
    ],
)
def test_another_question_or_answer_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ReceiptRejected):
        file(**change).verify_openings()
    # Each part is the provider's word: none can be exchanged under its signature.
    with pytest.raises(ReceiptRejected, match="another answer was signed"):
        file(**change).verify_answer_digest()


@pytest.mark.parametrize(
    "change",
    [
        {"answer": LoggedEntry(9, SALT, CHARGE.encode())},
        {"charge": LoggedEntry(7, SALT, GENERATED.encode())},
    ],
    ids=str,
)
def test_a_half_of_other_entries(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        GeneratedReceipt.from_json(receipt(**change).to_json())


def test_a_signature_covers_both_entries() -> None:
    signed = receipt()
    for change in (
        {"charge": replace(signed.charge, salt=D)},
        {"answer": replace(signed.answer, index=10)},
        {"issued": 5001},
        {"answer_digest": D},
        {"origin": "provider.example/ragaudit/v"},
    ):
        with pytest.raises(ReceiptRejected):
            replace(signed, **change).verify(PROVIDER.public)
    # A proof proves itself, and comes later.
    replace(signed, charge=replace(signed.charge, proof="p")).verify(PROVIDER.public)


def test_answers_have_no_more_private_tokens_than_tokens() -> None:
    with pytest.raises(MalformedError):
        GeneratedAnswer("a", (1,), 2)
