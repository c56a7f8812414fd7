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
from ragaudit.ledger.messages.challenge import (
    MAX_PROOF_BYTES,
    Response,
    receipts_digest,
)
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.ledger.messages.handover import (
    Entry,
    read_handover,
    write_handover,
)
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.requests import MAX_QUESTION_BYTES


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
        {"responses": {"01": 1}, "claims": {}, "close": 1, "records": 1},
        {"responses": {"x": 1}, "claims": {}, "close": 1, "records": 1},
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
