"""Receipts that are put together of bytes are those that the messages would be encoded to."""

from __future__ import annotations

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

import integrity_scene
import numpy as np
import pytest
import receipt_scene
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    TiesOpening,
    UnservedRow,
    WithdrawnRow,
    answer_digest,
)
from ragaudit.prover.answering.receipts import answer_of, receipt_file, scores_of
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.index import committed
from ragaudit.prover.index.committed import CommittedIndex, Recent, part
from ragaudit.prover.window.records import Delivery, LoggedRecord, RecordOpenings, SelectedRow
from receipt_scene import PROVIDER, scene

TEXTS = ('"quotes", \\ and "rows":[]', "a\nbreak \x01\x1f\x7f", "ä€\U0001f600", "", "%s %(id)b")
ROWS, DIMENSION, TIES = 13, 4, b"t" * 64


def index_of(policy: Policy, *, columns: bool, owned: bool, seed: int) -> CommittedIndex:
    random = np.random.default_rng(seed)
    bound, entries = policy.norm_bound, np.int8 if policy.norm_bound == 127 else np.int16
    rows = random.integers(-bound, bound + 1, (ROWS, DIMENSION + 4)).astype(entries)
    rows[:, DIMENSION:] = np.abs(rows[:, DIMENSION:])
    return CommittedIndex(
        tenant="acme",
        ids=tuple(f"doc {n} {TEXTS[n % 3]}" for n in range(ROWS)),
        rows=rows,
        blindings=random.integers(0, 256, (ROWS, 32)).astype(np.uint8),
        content_digests=random.bytes(32 * ROWS),
        salts=random.bytes(32 * ROWS),
        commitments=random.bytes(32 * ROWS),
        root=bytes(32),
        proof=b"",
        columns=tuple(f'{{"lang":"%{n}"}}' for n in range(ROWS)) if columns else (),
        document_secret=b"k" * 32 if owned else b"",
        id_keys=random.bytes(32 * ROWS) if owned else b"",
    )


def other_text(row: SelectedRow) -> SelectedRow:
    return replace(row, document=replace(row.document, content="another", attributes=""))


def by_messages(
    policy: Policy, index: CommittedIndex, record: LoggedRecord, delivery: Delivery, *, tied: bool
) -> ReceiptFile:
    """The same receipt, by one message for each part and the encoder of all messages."""
    stored, served = record.openings, [row.position for row in delivery.rows]
    rows = tuple(
        ServedRow(
            position=row.position,
            id=row.document.id,
            content=row.document.content,
            salt=part(index.salts, row.position),
            vector=tuple(index.rows[row.position, :DIMENSION].tolist()),
            squares=tuple(index.rows[row.position, DIMENSION:].tolist()),
            blinding=index.blindings[row.position].tobytes(),
            commitment=part(index.commitments, row.position),
            path=index.tree.path(row.position),
            columns=index.columns_of(row.position),
            attributes=row.document.attributes,
            id_key=index.id_key_of(row.position) if policy.noised else None,
        )
        for row in delivery.rows
    )
    unserved = tuple(
        UnservedRow(
            position=at,
            commitment=part(index.commitments, at),
            columns=index.columns_of(at),
            row_digest=part(index.row_digests, at),
            path=index.tree.path(at),
            id_key=index.id_key_of(at),
        )
        for at in stored.selected
        if at not in served
    )
    exact = scores_of(index, record, delivery.withdrawn) if tied else {}
    private = PrivateReceipt(
        openings=stored.openings,
        selected=stored.selected,
        selection_blinding=stored.selection_blinding,
        salt_r=stored.salt_r,
        rows=rows,
        withdrawn=tuple(
            WithdrawnRow(at, index.ids[at], exact.get(at)) for at in delivery.withdrawn
        ),
        ties=TiesOpening(unserved, TIES) if tied else None,
        document_secret=None if policy.noised else index.document_secret or None,
    )
    answer = answer_of(policy, index, record, delivery.rows)
    public = PublicReceipt(
        origin=policy.origin,
        index=record.position,
        salt=record.salt,
        body=record.body,
        issued=record.issued,
        answer_digest=answer_digest(stored.request, answer, private),
    ).signed(PROVIDER)
    return ReceiptFile(stored.request, answer, public, private)


@pytest.mark.parametrize("policy", [receipt_scene.policy(), integrity_scene.policy()])
def test_the_bytes_are_those_of_the_messages(policy: Policy) -> None:
    made = scene(anchored=False)
    for case, (columns, owned, more, served) in enumerate(
        product((False, True), (False, True), (False, True), (0, 1, 5))
    ):
        tied = more and not policy.noised
        index = index_of(policy, columns=columns, owned=owned, seed=case)
        selected = (0, 2, 3, 7, 8, 11, 12)
        opened = RecordOpenings(
            request=made.request, openings=made.private.openings, selected=selected,
            selection_blinding=b"b" * 32, salt_r=b"r" * 32,
        )  # fmt: skip
        record = LoggedRecord(3, b"s" * 32, made.record.encode(), opened, 1_200_500)
        documents = [
            SelectedRow(at, Document(index.ids[at], TEXTS[n], TEXTS[-n - 1] and '{"a":"\\""}'))
            for n, at in enumerate(selected[:served])
        ]
        if not policy.noised:
            exact = scores_of(index, record, selected)
            documents.sort(key=lambda row: (-exact[row.position], row.position))
        delivery = Delivery(tuple(documents), () if served == 1 else selected[5:])
        arguments: dict[str, Any] = {
            "policy": policy, "key": PROVIDER, "ties": TIES if tied else None,
        }  # fmt: skip
        answer = answer_of(policy, index, record, delivery.rows)
        file = receipt_file(record, index, delivery, answer, **arguments)
        slow = by_messages(policy, index, record, delivery, tied=tied)
        assert file.encode() == slow.encode(), case
        # Whoever looks into it finds the same messages.
        file.verify_answer_digest()
        assert file == slow == ReceiptFile.parse(file.encode())
        assert hash(file.private) == hash(slow.private)
        assert (len(file.private.rows), file.to_json()) == (served, slow.to_json())
        # What is kept of a row is nothing of its document: it may be another one at any time.
        if policy.noised:
            edited = replace(delivery, rows=tuple(map(other_text, delivery.rows)))
            answer = answer_of(policy, index, record, edited.rows)
            file = receipt_file(record, index, edited, answer, **arguments)
            assert file == by_messages(policy, index, record, edited, tied=tied)


def test_a_row_beyond_the_index_has_no_path() -> None:
    index = index_of(receipt_scene.policy(), columns=False, owned=False, seed=1)
    for at in (-1, ROWS):
        with pytest.raises(MalformedError, match="no such leaf"):
            index.tree.path(at)


def test_what_was_not_asked_for_the_longest_is_kept_no_more() -> None:
    recent: Recent[str, int] = Recent(5)
    for size, name in enumerate(("a", "b", "c"), 1):
        recent.keep(name, size, size)
        recent.find("a")
    assert [recent.find(name) for name in "abc"] == [1, None, 3]
    recent.keep("a", 9, 5)  # kept already: what is made twice is the same
    recent.keep("long", 6, 6)
    assert [recent.find(name) for name in ("a", "c", "long")] == [None] * 3


def test_all_indexes_keep_their_rows_in_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "_OPENED", Recent(committed._OPENED_BYTES))
    policy = receipt_scene.policy()
    a, b = (index_of(policy, columns=False, owned=False, seed=1) for _ in range(2))
    a.opened.keep(3, [b"of", b"a"])
    assert (a.opened.find(3), b.opened.find(3)) == ([b"of", b"a"], None)
    for position in range(20):
        b.opened.keep(position, [bytes(committed._OPENED_BYTES // 10)])
        assert a.opened.find(3)  # asked for again and again
    assert [b.opened.find(position) is None for position in (0, 11, 19)] == [True, False, False]
    b.opened.keep(20, [bytes(committed._OPENED_BYTES)])
    assert a.opened.find(3) is None
    assert [each.opened._rows.keys() for each in (a, b)] == [set(), {20}]


def test_what_opens_rows_is_not_kept_longer_than_their_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Opened(list[bytes]):
        """What can be watched."""

    monkeypatch.setattr(committed, "_OPENED", Recent(50))
    a, b = (index_of(receipt_scene.policy(), columns=False, owned=False, seed=1) for _ in "ab")
    secret = Opened([bytes(40)])
    watched = weakref.ref(secret)
    a.opened.keep(1, secret)
    del secret
    assert watched()
    del a
    gc.collect()
    assert watched() is None
    b.opened.keep(2, [bytes(30)])  # in the place of what is there no more
    assert b.opened.find(2)


def test_rows_are_kept_and_found_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "_OPENED", Recent(9))
    policy = receipt_scene.policy()
    indexes = [index_of(policy, columns=False, owned=False, seed=1) for _ in range(4)]

    def ask(number: int) -> None:
        for step in range(8000):
            opened = indexes[number].opened.find(step % 3)
            assert opened in (None, [b"%d" % number])
            indexes[number].opened.keep(step % 3, [b"%d" % number])

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(often)
    assert committed._OPENED._room == 9 - len(committed._OPENED._kept) == 0
    counted = {(owner(), position) for owner, position in committed._OPENED._kept}
    assert {(each.opened, at) for each in indexes for at in each.opened._rows} <= counted


def test_another_part_is_encoded_anew() -> None:
    policy, made = receipt_scene.policy(), scene(anchored=False)
    index = index_of(policy, columns=False, owned=False, seed=1)
    opened = RecordOpenings(made.request, made.private.openings, (1,), b"b" * 32, b"r" * 32)
    record = LoggedRecord(3, b"s" * 32, made.record.encode(), opened, 1_200_500)
    delivery = Delivery((SelectedRow(1, Document(index.ids[1], "text")),))
    answer = answer_of(policy, index, record, delivery.rows)
    file = receipt_file(record, index, delivery, answer, policy=policy, key=PROVIDER)
    other = replace(file, request=replace(file.request, top_k=7))
    assert ReceiptFile.parse(other.encode()).request.top_k == 7
