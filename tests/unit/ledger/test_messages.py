"""What crosses between parties: each format is read as it is written, and as nothing else."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.challenge import (
    MAX_PROOF_BYTES,
    Activation,
    Challenge,
    Countersignature,
    ReceiptsList,
    Response,
    Stratum,
    receipts_digest,
)
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.disputes import DisputeStatus
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.ledger.messages.handover import (
    MAX_OPENING_BYTES,
    Entry,
    read_handover,
    write_handover,
)
from ragaudit.ledger.messages.items import Clock, OpeningItem, PreviousWindow
from ragaudit.ledger.messages.promises import Claimed, ClaimsPage
from ragaudit.ledger.messages.requests import MAX_QUESTION_BYTES
from ragaudit.ledger.messages.shown import RegistrationEntry, ShownAccount, ShownKeys
from ragaudit.ledger.messages.signed import VerifierMessage

KEY = PrivateKey.from_seed(b"k" * 32)
OTHER = PrivateKey.from_seed(b"o" * 32)
LISTED = ReceiptsList(window="w", digest=b"d" * 32, count=2, time=5).signed(KEY)
ROUND = BeaconRound(1, bytes.fromhex("80") + bytes(47))
MESSAGES: dict[str, VerifierMessage] = {
    "countersignature": Countersignature(
        window="w", policy_digest=b"p" * 32, opening_digest=b"o" * 32, terms_digest=b"t" * 32,
        activation_anchor=b"a" * 32, time=7,
    ).signed(KEY),
    "activation": Activation(
        window="w", a=1, preimage=b"n" * 32, covered_size=3, time=7
    ).signed(KEY),
    "activation with a round": Activation(
        window="w", a=1, preimage=b"n" * 32, covered_size=3, time=7, round=ROUND
    ).signed(KEY),
    "receipts-list": LISTED,
    "challenge": Challenge(window="w", final_root=b"r" * 32, final_size=9, preimage=b"n" * 32,
        receipts_list=LISTED,
        strata=(Stratum("tenant:t", None, (1, 2)), Stratum("account:00", (1,), (1,))), deadline=99,
    ).signed(KEY),
}  # fmt: skip


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_is_issued_is_read_and_verified(kind: str) -> None:
    issued = MESSAGES[kind]
    message = type(issued).parse(issued.encode())
    assert message == issued
    message.verify(KEY.public)
    with pytest.raises(SignatureRejected):
        message.verify(OTHER.public)


@pytest.mark.parametrize("kind", MESSAGES)
def test_every_member_is_signed_and_none_is_optional(kind: str) -> None:
    data, parse = MESSAGES[kind].encode(), type(MESSAGES[kind]).parse
    value = canonical_json.loads(data)
    for name in value:
        less = {key: each for key, each in value.items() if key != name}
        for changed in (
            less,
            {**less, "other": 1},
            {**value, name: None},
            {**value, name: []},
            {**value, name: "x"},
            {**value, name: -1},
            {**value, name: True},
        ):
            if changed == value:
                continue
            with pytest.raises((MalformedError, SignatureRejected)):
                parse(canonical_json.dumps(changed)).verify(KEY.public)
    with pytest.raises(MalformedError):
        parse(canonical_json.dumps({**value, "more": 1}))
    for other in (b"[]", b"null", b"{}", b"", data + b" "):
        with pytest.raises(MalformedError):
            parse(other)


def test_no_activation_comes_before_the_first() -> None:
    value = canonical_json.loads(MESSAGES["activation"].encode())
    with pytest.raises(MalformedError, match="not such an integer"):
        Activation.parse(canonical_json.dumps({**value, "a": 0}))


@for_each(
    "strata",
    [
        [{}],
        [1],
        [{"id": "a", "population": None}],
        [{"id": "a", "population": None, "sample": [-1]}],
        [{"id": "a", "population": [True], "sample": []}],
        [{"id": 1, "population": None, "sample": []}],
        [{"id": "a", "population": None, "sample": [], "more": 1}],
    ],
)
def test_strata_of_another_form(strata: Any) -> None:
    value = canonical_json.loads(MESSAGES["challenge"].encode())
    with pytest.raises(MalformedError):
        Challenge.parse(canonical_json.dumps({**value, "strata": strata}))


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(min_size=32, max_size=32)), max_size=5))
def test_the_digest_of_receipts_does_not_depend_on_their_order(
    receipts: list[tuple[int, bytes]],
) -> None:
    assert receipts_digest(receipts) == receipts_digest(reversed(receipts))


def test_the_digest_of_receipts_distinguishes_groups() -> None:
    many = [(i, bytes(32)) for i in range(2001)]
    digests = {receipts_digest(many[:n]) for n in (0, 1, 999, 1000, 1001, 2000, 2001)}
    assert len(digests) == 7


@for_each(
    "value",
    [
        {},
        {"responses": {}, "close": 1, "records": 1},
        {"responses": {}, "claims": {}, "close": 1},
        {"responses": {}, "claims": {}, "close": "1", "records": 1},
        {"responses": {"01": 1}, "claims": {}, "close": 1, "records": 1},
        {"responses": {"x": 1}, "claims": {}, "close": 1, "records": 1},
        {"responses": {"1": True}, "claims": {}, "close": 1, "records": 1},
        {"responses": {}, "claims": {"ab": 1}, "close": 1, "records": 1},
        {"responses": {}, "claims": {"ab" * 32: "1"}, "close": 1, "records": 1},
        {"responses": {"1": 1}, "claims": {}, "close": 1, "records": 1, "more": 1},
    ],
)
def test_clocks_of_another_form(value: Any) -> None:
    with pytest.raises(MalformedError):
        Clock.parse(canonical_json.dumps(value))


def test_a_clock() -> None:
    claimed = {"ab" * 32: 7}
    value = {"responses": {"0": 5, "12": 6}, "claims": claimed, "close": None, "records": 4}
    clock = Clock.parse(canonical_json.dumps(value))
    assert dict(clock.responses) == {0: 5, 12: 6}
    assert dict(clock.claims) == {b"\xab" * 32: 7}
    assert (clock.close, clock.records) == (None, 4)
    assert clock.to_json() == value and clock.encode() == canonical_json.dumps(value)


RESPONSE = Response(
    index=4, key=KeyOpening(b"k" * 32, (b"1" * 32, b"2" * 32), (b"3" * 32,)), salt_q=b"q" * 32,
    query=b"what?", salt_e=b"e" * 32, embedding=(1, -2, 32767, -32768), salt_f=b"f" * 32,
    filter=b"", salt_s=b"s" * 32, sketch=b"12345678", proof=b"proof",
)  # fmt: skip


@pytest.mark.parametrize("shown", [True, False])
def test_responses(shown: bool) -> None:
    response = RESPONSE if shown else replace(RESPONSE, salt_q=None, query=None)
    assert Response.parse(response.encode(), 4) == response


@for_each(
    "changes",
    [
        {"embedding": (1, 2, 3)},
        {"salt_e": b"e"},
        {"salt_q": None},
        {"filter": bytes(MAX_FILTER_BYTES + 1)},
        {"query": bytes(MAX_QUESTION_BYTES + 1)},
        {"proof": bytes(MAX_PROOF_BYTES + 1)},
        {"key": KeyOpening(b"k", (), ())},
        {"key": KeyOpening(b"k" * 32, (b"1",), ())},
        {"key": KeyOpening(b"k" * 32, (), (b"1" * 32,) * 64)},
    ],
)
def test_responses_with_a_part_of_another_length(changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        Response.parse(replace(RESPONSE, **changes).encode(), 4)


ENTRIES = (
    Entry(0, "opening", b"0" * 32, b"body"),
    Entry(1, "record", b"1" * 32, b"record", b"s" * 32, b"sketch"),
    Entry(2, "close", b"2" * 32, b""),
)


def test_a_handover() -> None:
    assert tuple(read_handover(BytesIO(write_handover(ENTRIES)))) == ENTRIES


@pytest.mark.parametrize(
    "changes",
    [{"index": 7}, {"kind": "other"}, {"salt": b"1"}, {"kind": "version"}, {"body": bytes(4096)}],
)
def test_a_handover_of_another_form(changes: dict[str, Any]) -> None:
    data = write_handover((ENTRIES[0], replace(ENTRIES[1], **changes)))
    with pytest.raises(MalformedError, match="handover entry 1"):
        list(read_handover(BytesIO(data)))


@pytest.mark.parametrize("changes", [{"salt_s": b""}, {"salt_s": b"s"}, {"sketch": b""}])
def test_a_record_is_handed_over_with_its_sketch(changes: dict[str, Any]) -> None:
    for entry in ENTRIES:
        entry.demand_sketch()
    (read,) = read_handover(BytesIO(replace(ENTRIES[1], index=0, **changes).encode()))
    with pytest.raises(MalformedError, match="handover entry 0"):
        read.demand_sketch()


def test_a_handover_that_is_cut_short() -> None:
    data = write_handover(ENTRIES)
    whole = {0, *(len(write_handover(ENTRIES[:count])) for count in (1, 2, 3))}
    for length in set(range(len(data))) - whole:
        with pytest.raises(MalformedError):
            list(read_handover(BytesIO(data[:length])))


def test_entries_as_json() -> None:
    for entry in (ENTRIES[0], ENTRIES[2]):
        value = entry.to_json()
        assert Entry.from_json(value) == entry
        for changed in (
            {**value, "more": 1},
            {**value, "index": -1},
            {**value, "index": True},
            {**value, "kind": "record"},
            {**value, "kind": "other"},
            {**value, "salt": "00"},
            {**value, "body": "0"},
            {name: each for name, each in value.items() if name != "body"},
            None,
        ):
            with pytest.raises(MalformedError):
                Entry.from_json(changed)


ACCOUNT = ShownAccount(
    tenant="acme", pseudonym=b"p" * 32, slot=3, anchor=None, dispute_key=b"d" * 32, counter=1,
    remaining=2, registration=RegistrationEntry(1, b"s" * 32, b"body", None),
)  # fmt: skip


def test_accounts() -> None:
    unregistered = replace(ACCOUNT, slot=None, dispute_key=None, registration=None)
    for account in (ACCOUNT, unregistered):
        assert ShownAccount.from_json(account.to_json()) == account


@for_each("name", list(ACCOUNT.to_json()))
def test_accounts_of_another_form(name: str) -> None:
    value = ACCOUNT.to_json()
    less = {key: each for key, each in value.items() if key != name}
    for changed in (less, {**value, "more": 1}, {**value, name: -1}, {**value, name: "?" * 65}):
        with pytest.raises(MalformedError, match=r"account|registration"):
            ShownAccount.from_json(changed)


@for_each(
    "changes",
    [{"index": 0}, {"salt": "00"}, {"body": "00" * 4097}, {"proof": ""}, {"proof": 1}, {"more": 1}],
)
def test_registration_entries_of_another_form(changes: dict[str, Any]) -> None:
    entry = RegistrationEntry(1, b"s" * 32, b"body", "proof")
    value = entry.to_json()
    assert RegistrationEntry.from_json(value) == entry
    with pytest.raises(MalformedError):
        RegistrationEntry.from_json({**value, **changes})


LOG = SigningKey("acme/ragaudit/w", ED25519, KEY)
KEYS = ShownKeys(
    arbiter=OTHER.public,
    name="regulator.example/cosigner",
    cosigner=SigningKey("regulator.example/cosigner", COSIGNATURE_V1, KEY).verifier_key,
    verifier=KEY.public,
    verdict=OTHER.public,
    time=7,
)


@pytest.mark.parametrize("keys", [KEYS, replace(KEYS, arbiter=None)])
def test_keys(keys: ShownKeys) -> None:
    assert ShownKeys.from_json(keys.to_json()) == keys


@for_each("name", list(KEYS.to_json()))
def test_keys_of_another_form(name: str) -> None:
    value = KEYS.to_json()
    less = {key: each for key, each in value.items() if key != name}
    wrong: tuple[object, ...] = ("", "?" * 600, -1, True, [], 2**53)
    for changed in (less, {**value, "more": 1}, *({**value, name: each} for each in wrong), []):
        with pytest.raises(MalformedError):
            ShownKeys.from_json(changed)
    if name not in {"name", "cosigner", "time"}:
        for other in ("00" * 31, "00" * 32):
            with pytest.raises(MalformedError, match=f"keys.{name}"):
                ShownKeys.from_json({**value, name: other})


@pytest.mark.parametrize("page", [ClaimsPage((), None), ClaimsPage(({"any": 1}, None), b"n" * 32)])
def test_pages_of_claims(page: ClaimsPage) -> None:
    assert ClaimsPage.from_json(page.to_json()) == page


@for_each(
    "value",
    [
        None, [], {"claims": []}, {"claims": {}, "next": None}, {"claims": [], "next": "00"},
        {"claims": [], "next": 1}, {"claims": [], "next": None, "more": 1},
    ],
)  # fmt: skip
def test_pages_of_claims_of_another_form(value: Any) -> None:
    with pytest.raises(MalformedError, match="claims page"):
        ClaimsPage.from_json(value)


@pytest.mark.parametrize("claimed", [True, False])
def test_whether_a_promise_was_claimed(claimed: bool) -> None:
    assert Claimed.from_json(Claimed(claimed).to_json()).claimed is claimed
    for value in ({}, {"claimed": 1}, {"claimed": None}, {"claimed": True, "more": 1}, True):
        with pytest.raises(MalformedError, match="claimed"):
            Claimed.from_json(value)


@pytest.mark.parametrize("step", [None, 0, 10])
def test_the_status_of_a_dispute(step: int | None) -> None:
    status = DisputeStatus(True, step)
    value = status.to_json()
    assert DisputeStatus.from_json(value) == status
    for changed in (
        {"sampled": True},
        {"step": 1},
        {**value, "more": 1},
        {**value, "sampled": 1},
        {**value, "sampled": None},
        {**value, "step": 11},
        {**value, "step": -1},
        {**value, "step": False},
        None,
    ):
        with pytest.raises(MalformedError, match="dispute status"):
            DisputeStatus.from_json(changed)


OPENING = OpeningItem(b"s" * 32, b"body")
PREVIOUS = PreviousWindow(LOG.verifier_key, KEYS.cosigner, "a note\n")


def test_the_opening_as_evidence() -> None:
    value = OPENING.to_json()
    assert OpeningItem.parse(OPENING.encode()) == OPENING
    others: list[object] = [
        {**value, "more": 1},
        {**value, "salt": "00" * 31},
        {**value, "salt": None},
        {**value, "body": "0"},
        {**value, "body": "00" * (MAX_OPENING_BYTES + 1)},
        {"salt": value["salt"]},
        {"body": value["body"]},
        [],
    ]
    for changed in others:
        with pytest.raises(MalformedError, match="opening"):
            OpeningItem.from_json(changed)
    with pytest.raises(MalformedError):
        OpeningItem.parse(b" " + OPENING.encode())


@pytest.mark.parametrize("final", [None, "a note\n"])
def test_the_window_before_as_evidence(final: str | None) -> None:
    before = replace(PREVIOUS, final_checkpoint=final)
    assert PreviousWindow.from_json(canonical_json.loads(before.encode())) == before


@pytest.mark.parametrize(
    "changes", [{"log": ""}, {"log": None}, {"cosigner": "x"}, {"final_checkpoint": 1}, {"more": 1}]
)
def test_the_window_before_of_another_form(changes: dict[str, Any]) -> None:
    value = PREVIOUS.to_json()
    with pytest.raises(MalformedError):
        PreviousWindow.from_json({**value, **changes})
    for name in changes.keys() & value.keys():
        with pytest.raises(MalformedError, match="missing"):
            PreviousWindow.from_json({key: each for key, each in value.items() if key != name})
