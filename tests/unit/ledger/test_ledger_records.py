"""Bodies of log entries: round trips, one encoding, ranges."""

from dataclasses import fields, replace
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.bodies import LONGEST, OpeningBody
from ragaudit.ledger.messages.entries import (
    Close,
    Epoch,
    Opening,
    Record,
    Registration,
    TenantOpening,
    Version,
    entry_leaf_data,
    parse_body,
)
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES, Entry

D = [bytes([i]) * 32 for i in range(10)]
DISPUTE_KEY = PrivateKey.from_seed(D[9]).public.raw
TENANTS = (TenantOpening("alpha", 100, D[3], D[4]), TenantOpening("beta", 7, D[5], D[6]))
RECORD = Record(
    policy_digest=D[0], window="w1", tenant="alpha", version=1, rows=100, top_k=5,
    filter_digest=D[1], pseudonym=D[2], epoch=1, slot=3, counter=4, activation=1,
    time=1_800_000_000_123, nonce=D[3], query_digest=D[4], embedding_digest=D[5],
    sketch_digest=D[6], selection_commitment=D[7],
)  # fmt: skip
BODIES: list[Any] = [
    Opening(D[0], D[1], D[2], TENANTS),
    Registration("w1", D[2], "alpha", 3, D[3], DISPUTE_KEY, 1_800_000_000_000),
    Registration("w1", D[2], "alpha", 3, None, DISPUTE_KEY, 1_800_000_000_000),
    Registration("w1", D[2], "alpha", 3, D[3], None, 1_800_000_000_000),
    Registration("w1", D[2], "alpha", 3, None, None, 0),
    RECORD,
    replace(RECORD, nonce=None),
    Close("w1", 12, 2, 1_800_000_000_000),
    Version("w1", "alpha", 2, 100, D[3], D[4], 5),
    Epoch("w1", 2, "restore", D[3], D[4], 7, D[5], 5),
]


@for_each("body", BODIES)
def test_bodies_round_trip(body: Any) -> None:
    assert parse_body(body.KIND, body.encode()) == body
    assert entry_leaf_data(D[9], body) == leaf_data(D[9], body.KIND, body.encode())


@for_each("body", BODIES)
def test_there_is_one_encoding(body: Any) -> None:
    data = body.encode()
    for wrong in (b"", data[:-1], data + b"\0", data[:40]):
        with pytest.raises(MalformedRecord):
            parse_body(body.KIND, wrong)
    for kind in {each.KIND for each in BODIES} - {body.KIND}:
        with pytest.raises(MalformedRecord):
            parse_body(kind, data)


@given(st.data())
def test_a_flipped_bit_gives_another_body_or_none(data: Any) -> None:
    body = data.draw(st.sampled_from(BODIES))
    encoded = bytearray(body.encode())
    bit = data.draw(st.integers(0, 8 * len(encoded) - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    try:
        other = parse_body(body.KIND, bytes(encoded))
    except MalformedRecord:
        return
    assert other != body
    assert other.encode() == bytes(encoded)


def test_the_fields_of_a_record_stand_in_the_order_of_the_specification() -> None:
    raw = decode("ragaudit/v1/entry/record", RECORD.encode(), 19)
    assert raw[0] == D[0]
    assert raw[1:3] == (b"w1", b"alpha")
    assert raw[6:8] == (D[1], D[2])
    assert raw[12] == (1_800_000_000_123).to_bytes(8, "little")
    assert raw[13:18] == (D[3], D[4], D[5], D[6], D[7])
    assert raw[18] == b""
    names = [each.name for each in fields(Record)]
    assert names.index("nonce") == 13
    assert names.index("selection_commitment") == 17


def test_a_promise_is_the_record_without_nonce_and_selection() -> None:
    promised = RECORD.promised()
    assert promised == replace(RECORD, nonce=None, selection_commitment=None)
    assert Record.parse_promised(promised.encode()) == promised
    with pytest.raises(MalformedRecord, match="without a selection"):
        Record.parse(promised.encode())
    with pytest.raises(MalformedRecord, match="with a selection"):
        Record.parse_promised(RECORD.encode())
    with pytest.raises(MalformedRecord, match="nonce without"):
        replace(RECORD, selection_commitment=None)


def test_a_record_counts_withheld_rows_or_does_not() -> None:
    """None and 0 are two things, and a promise, which is of no answer, has neither."""
    raw = decode("ragaudit/v1/entry/record", RECORD.encode(), 19)
    for withheld in (None, 0, 7, 1000):
        record = replace(RECORD, withheld=withheld)
        assert Record.parse(record.encode()) == record
        assert record.encode() == enc("ragaudit/v1/entry/record", *raw[:18], withheld)
    for field in (1001, b"1", b"d" * 32):
        with pytest.raises(MalformedRecord):
            Record.parse(enc("ragaudit/v1/entry/record", *raw[:18], field))
    promised = replace(RECORD, nonce=None, selection_commitment=None, withheld=0)
    with pytest.raises(MalformedRecord, match="promise"):
        Record.parse_promised(promised.encode())


def test_an_opening_has_its_tenants_in_order() -> None:
    assert BODIES[0].tenant("beta").rows == 7
    with pytest.raises(MalformedRecord, match="no such tenant"):
        BODIES[0].tenant("gamma")
    for tenants in ((), TENANTS[::-1], TENANTS[:1] * 2):
        with pytest.raises(MalformedRecord):
            Opening(D[0], D[1], D[2], tenants)


def test_an_opening_of_the_most_tenants_can_be_handed_over() -> None:
    """With the longest names, and of each a document secret."""
    names = [f"{number:063}" for number in range(10_001)]
    many = tuple(TenantOpening(each, 2**40, D[3], D[4], 1, D[5]) for each in names)
    opening = Opening(D[0], D[1], D[2], many[:-1])
    body = opening.encode()
    assert Opening.parse(body) == opening
    assert len(Entry(0, Opening.KIND, D[6], body).encode()) <= MAX_OPENING_BYTES
    assert 2 * len(body) + 2**14 < LONGEST[OpeningBody]
    with pytest.raises(MalformedRecord, match="number of tenants"):
        Opening(D[0], D[1], D[2], many)
    fields = [D[0], D[1], D[2], *(each.encode() for each in many)]
    with pytest.raises(MalformedRecord, match="number of fields"):
        Opening.parse(enc("ragaudit/v1/entry/opening", *fields))


def test_an_opening_cannot_claim_fields_that_are_not_there() -> None:
    head = len(enc("ragaudit/v1/entry/opening")) - 2
    data = BODIES[0].encode()
    for count in (0, 3, 4, 6, 65_535):
        with pytest.raises(MalformedRecord):
            Opening.parse(data[:head] + count.to_bytes(2, "little") + data[head + 2 :])


@for_each(
    "change",
    [
        {"window": "W"}, {"tenant": ""}, {"policy_digest": b"x"}, {"filter_digest": bytes(31)},
        {"pseudonym": bytes(33)}, {"nonce": b"x"}, {"selection_commitment": bytes(31)},
        {"query_digest": b""}, {"embedding_digest": b""}, {"sketch_digest": b""},
        {"version": 0}, {"rows": 0}, {"rows": 2**40 + 1}, {"top_k": 0}, {"top_k": 1001},
        {"epoch": 0}, {"slot": -1}, {"slot": 1_000_000}, {"counter": -1}, {"counter": 1_000_000},
        {"activation": 0}, {"time": -1}, {"time": 2**53},
    ],
)  # fmt: skip
def test_record_fields_are_in_range(change: Any) -> None:
    with pytest.raises(MalformedRecord):
        replace(RECORD, **change)


@for_each(
    ("body", "change"),
    [
        (1, {"slot": 1_000_000}), (1, {"anchor": b"x"}),
        (1, {"dispute_key": b"x"}), (1, {"dispute_key": D[0]}), (1, {"pseudonym": b"x"}),
        (1, {"time": -1}), (1, {"window": ""}), (1, {"tenant": "A"}),
        (7, {"records": -1}), (7, {"coalition_claim": -1}), (7, {"coalition_claim": 1_000_001}),
        (7, {"window": "."}), (7, {"time": -1}), (8, {"version": 1}), (8, {"index_root": b""}),
        (8, {"rows": 0}), (8, {"time": -1}), (8, {"tenant": ""}), (8, {"window": ""}),
        (9, {"epoch": 1}), (9, {"reason": ""}), (9, {"reason": "schedule"}),
        (9, {"seed_root": b""}), (9, {"previous_root": b""}), (9, {"root": b""}), (9, {"size": -1}),
        (9, {"time": -1}), (9, {"window": ""}), (0, {"seed_root": b"x"}),
    ],
)  # fmt: skip
def test_other_fields_are_in_range(body: Any, change: Any) -> None:
    with pytest.raises(MalformedRecord):
        replace(BODIES[body], **change)


@pytest.mark.parametrize(
    "change", [{"rows": 0}, {"version": -1}, {"version": 0}, {"index_root": b""}, {"tenant": "-"}]
)
def test_tenant_openings_are_in_range(change: Any) -> None:
    with pytest.raises(MalformedRecord):
        replace(TENANTS[0], **change)


def test_unknown_kinds_are_refused() -> None:
    for kind in ("", "Record", "promise"):
        with pytest.raises(MalformedRecord, match="unknown kind"):
            parse_body(kind, RECORD.encode())


def test_text_that_is_not_unicode_is_refused() -> None:
    raw = decode("ragaudit/v1/entry/close", BODIES[7].encode(), 4)
    with pytest.raises(MalformedRecord):
        Close.parse(enc("ragaudit/v1/entry/close", b"\xff", *raw[1:]))
    with pytest.raises(MalformedRecord):
        Close.parse(enc("ragaudit/v1/entry/close", raw[0], raw[1][:7], *raw[2:]))
