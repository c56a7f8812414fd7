"""What opens sampled rows: one encoding, read row by row, and nothing else taken (spec 9.11)."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.messages.commitments import (
    MAX_TEXT_BYTES,
    ROW_TAG,
    ROWS_TAG,
    RowsHead,
    SampledRow,
    content_digest,
    encode_rows,
    longest_row,
    longest_rows,
    read_rows,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "rows.json").read_text()
)
HEAD = RowsHead("acme", 2, b"k" * 32)
D = 3


def row(
    position: int = 0, content: str | None = "text", attributes: str | None = "{}"
) -> SampledRow:
    digest = b"c" * 32 if content is None else content_digest(content, attributes or "")
    return SampledRow(
        position,
        "id-1",
        content,
        attributes,
        digest,
        b"s" * 32,
        (1, -2, 3),
        (4, 5, -6, 7),
        b"b" * 32,
    )


def read(data: bytes, count: int) -> tuple[RowsHead, list[SampledRow]]:
    head, rows = read_rows(io.BytesIO(data), count, D)
    return head, list(rows)


def test_vectors_made_from_the_specification_are_read_and_written() -> None:
    data, count = bytes.fromhex(VECTORS["response"]), len(VECTORS["positions"])
    head, rows = read(data, count)
    assert (head.tenant, head.version) == (VECTORS["tenant"], VECTORS["version"])
    assert head.secret.hex() == VECTORS["secret"]
    assert [each.position for each in rows] == VECTORS["positions"]
    assert [each.content_digest.hex() for each in rows] == VECTORS["content_digests"]
    shown = [None if r.content is None else [r.content, r.attributes] for r in rows]
    assert shown == VECTORS["texts"]
    assert encode_rows(head, rows) == data


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
int16 = st.integers(-(2**15), 2**15 - 1)


@st.composite
def opened(draw: st.DrawFn) -> SampledRow:
    content = draw(st.none() | texts)
    attributes = draw(texts)
    digest = (
        draw(st.binary(min_size=32, max_size=32))
        if content is None
        else content_digest(content, attributes)
    )
    return SampledRow(
        position=draw(st.integers(0, 2**40 - 1)),
        id=draw(texts.filter(bool)),
        content=content,
        attributes=None if content is None else attributes,
        content_digest=digest,
        salt=draw(st.binary(min_size=32, max_size=32)),
        vector=tuple(draw(st.lists(int16, min_size=D, max_size=D))),
        squares=tuple(draw(st.lists(int16, min_size=4, max_size=4))),
        blinding=draw(st.binary(min_size=32, max_size=32)),
    )


@given(rows=st.lists(opened(), max_size=4))
def test_what_is_written_is_read_and_is_not_longer_than_allowed(rows: list[SampledRow]) -> None:
    data = encode_rows(HEAD, rows)
    assert read(data, len(rows)) == (HEAD, rows)
    assert len(data) <= longest_rows(len(rows), D)


@given(rows=st.lists(opened(), min_size=1, max_size=2), cut=st.integers(1, 200))
def test_no_other_encoding_is_read(rows: list[SampledRow], cut: int) -> None:
    data = encode_rows(HEAD, rows)
    for other in (data[: -min(cut, len(data))], data + bytes(cut)):
        with pytest.raises(MalformedError):
            read(other, len(rows))
    for count in (len(rows) - 1, len(rows) + 1):
        with pytest.raises(MalformedError, match="field count"):
            read(data, count)


def test_the_longest_row_fits_and_a_longer_one_is_not_even_read() -> None:
    content = "c" * MAX_TEXT_BYTES
    largest = replace(row(2**40 - 1, content, content), id="i" * 512)
    data = encode_rows(HEAD, [largest] * 3)
    assert read(data, 3)[1] == [largest] * 3
    assert len(data) <= longest_rows(3, D) == 512 + 3 * (131_952 + 2 * D)  # spec 9.11

    class Watched(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1) -> bytes:
            self.largest = max(self.largest, size or 0)
            return super().read(size)

    start = enc(ROWS_TAG, "acme", 2, b"k" * 32, b"")[:-8]
    file = Watched(start + (2**62).to_bytes(8, "little") + b"x" * 100)
    _, rows = read_rows(file, 1, D)
    with pytest.raises(MalformedError, match="field too long"):
        next(rows)
    assert file.largest <= longest_row(D)


def fields(**changed: object) -> bytes:
    """A row with some of its fields changed."""
    values: dict[str, object] = {
        "position": 0, "id": "id-1", "content": "text", "attributes": "{}",
        "content_digest": content_digest("text", "{}"), "salt": bytes(32), "vector": bytes(2 * D),
        "squares": bytes(8), "blinding": bytes(32),
    }  # fmt: skip
    return enc(ROW_TAG, *(values | changed).values())  # type: ignore[arg-type]


@for_each(
    ("changed", "reason"),
    [
        ({"position": -1}, "position out of range"),
        ({"position": 2**40}, "position out of range"),
        ({"position": b"1"}, "integer field"),
        ({"id": ""}, "not a document id"),
        ({"id": "i" * 513}, "not a document id"),
        ({"id": b"\xff"}, "not UTF-8"),
        ({"content": b"\xff"}, "not UTF-8"),
        ({"content": "c" * (MAX_TEXT_BYTES + 1)}, "content too long"),
        ({"attributes": "c" * (MAX_TEXT_BYTES + 1)}, "attributes too long"),
        ({"content_digest": None}, "digest field"),
        ({"salt": bytes(31)}, "another length"),
        ({"vector": bytes(2 * D + 2)}, "another length"),
        ({"squares": bytes(6)}, "another length"),
        ({"blinding": bytes(33)}, "another length"),
    ],
)
def test_a_row_with_a_part_out_of_range_is_refused(changed: dict[str, object], reason: str) -> None:
    data = enc(ROWS_TAG, "acme", 2, b"k" * 32, fields(**changed))
    with pytest.raises(MalformedError, match=reason):
        read(data, 1)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (("acme", 0, b"k" * 32), "version or document secret"),
        (("acme", 1, b"k" * 31), "version or document secret"),
        ((b"\xff", 1, b"k" * 32), "not UTF-8"),
        (("acme", b"1", b"k" * 32), "integer field"),
    ],
)
def test_a_head_out_of_range_is_refused(head: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read(enc(ROWS_TAG, *head), 0)


def test_absent_texts_are_told_from_empty_ones_by_the_digest() -> None:
    empty, gone = row(0, "", ""), row(1, None, None)
    _, (first, second) = read(encode_rows(HEAD, [empty, gone]), 2)
    assert (first.content, first.attributes) == ("", "")
    assert (second.content, second.attributes) == (None, None)
    # One of the two alone is no other encoding of anything.
    assert read(encode_rows(HEAD, [row(0, "", "{}")]), 1)[1][0].content == ""


def test_nothing_of_a_document_and_no_secret_is_in_a_repr() -> None:
    shown = repr(row(0, "hidden text", "hidden attributes")) + repr(HEAD)
    assert "hidden" not in shown and "id-1" not in shown and "kkk" not in shown
