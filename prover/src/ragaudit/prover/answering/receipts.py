"""Answers and receipts, made of a logged record: the same ones again, whenever they are made."""

import base64
from binascii import hexlify
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from ragaudit import core
from ragaudit.circuits.selection import scores
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    TiesOpening,
    UnservedRow,
    WithdrawnRow,
    digest_of,
)
from ragaudit.ledger.messages.requests import (
    Answer,
    Document,
)
from ragaudit.ledger.messages.ties import TiesStatement
from ragaudit.prover.index.committed import CommittedIndex, part
from ragaudit.prover.sequencer import aside
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.records import (
    Delivery,
    LoggedRecord,
    Place,
    SelectedRow,
    keep_ties,
    ties_of,
)


def receipt_file(
    record: LoggedRecord,
    index: CommittedIndex,
    delivery: Delivery,
    answer: Answer,
    *,
    policy: Policy,
    key: PrivateKey,
    ties: bytes | None = None,
) -> ReceiptFile:
    """Return the answer with its receipt in two halves, the public one signed.

    The public part names request, answer and private part by a digest, so that none of them can
    be exchanged afterwards.

    Args:
        index: the version that the record names.
        delivery: the rows that are served, and those that are withdrawn.
        policy: of the window.
        key: the provider's.
        ties: the proof of the ties opening, see `ties_that_leave`; None where there is none.
    """
    stored = record.openings
    # Rows that were not selected stay hidden: only what T names is opened.
    private = PrivateReceipt(
        openings=stored.openings,
        selected=stored.selected,
        selection_blinding=stored.selection_blinding,
        salt_r=stored.salt_r,
        rows=(),
        withdrawn=_withdrawn(index, record, delivery, scored=ties is not None),
        ties=None if ties is None else TiesOpening(_unserved(index, record, delivery), ties),
        # With noise, whoever held it could test which ids the index has.
        document_secret=None if policy.noised else index.document_secret or None,
    )
    rows = b"[%s]" % b",".join(_served(index, row, keyed=policy.noised) for row in delivery.rows)
    # In a text the quotation marks would be escaped: this is the member, and nothing else.
    opened = private.encode().replace(b'"rows":[]', b'"rows":' + rows, 1)
    halves = (stored.request.encode(), answer.encode(), opened)
    # With the stored time of issue: a repeated answer has the same signature, bit for bit.
    public = PublicReceipt(
        origin=policy.origin,
        index=record.position,
        salt=record.salt,
        body=record.body,
        issued=record.issued,
        answer_digest=digest_of(halves, private.salt_r),
    ).signed(key)
    return ReceiptFile.of_encoded(
        stored.request, answer, public, replace(private, rows=_Rows(rows)), halves
    )


def answer_of(
    policy: Policy, index: CommittedIndex, record: LoggedRecord, rows: Sequence[SelectedRow]
) -> Answer:
    """Return the answer: documents in its order, with scores where there is no noise.

    Args:
        policy: of the window.
        index: the version that the record names.
        rows: that are served, in the order of the answer.
    """
    positions = [row.position for row in rows]
    exact = {} if policy.noised else scores_of(index, record, positions)
    return Answer(
        tuple(
            Document(
                position=row.position,
                id=row.document.id,
                content=row.document.content,
                columns=index.columns_of(row.position),
                attributes=row.document.attributes,
                score=exact.get(row.position),
            )
            for row in rows
        )
    )


def prove_ties(index: CommittedIndex, record: LoggedRecord, delivery: Delivery) -> bytes:
    """Return a proof that the answer holds the first rows of T (spec 4.6.10).

    It is needed where T has more rows than were asked for. Two proofs of one answer differ: the
    one that left is stored.

    Args:
        index: the version that the record names.
        delivery: the rows that are served, and those that are withdrawn.
    """
    logged, stored = record.record, record.openings
    served = [row.position for row in delivery.rows]
    unserved = set(stored.selected).difference(served)
    statement = TiesStatement.of(
        logged,
        body=record.body,
        index_root=index.root,
        query=stored.openings.embedding,
        selected=stored.selected,
        served=scores_of(index, record, served),
        withdrawn=scores_of(index, record, delivery.withdrawn),
        commitments={position: part(index.commitments, position) for position in unserved},
        squared_norm=index.norm_bound**2,
    )
    return core.prove_ties(statement, index.rows, index.blindings)


def ties_that_leave(
    store: Store,
    policy: Policy,
    index: CommittedIndex,
    record: LoggedRecord,
    delivery: Delivery,
) -> bytes | None:
    """Return the proof of a record's ties opening, None where none is needed.

    It is stored before it leaves, so that a retry gets the same receipt, byte for byte.

    Args:
        policy: of the window, open or not.
        index: the version that the record names.
        delivery: what leaves.
    """
    if policy.noised or len(record.openings.selected) <= record.record.top_k:
        return None
    place = Place(policy.window, record.position)
    with store.read() as connection:
        stored = ties_of(connection, place)
    if stored is not None:
        return stored
    # Two at once may both prove; the one that is stored first leaves.
    made = aside(prove_ties, index, record, delivery)
    with store.write() as connection:
        return keep_ties(connection, place, made)


def scores_of(
    index: CommittedIndex, record: LoggedRecord, positions: Sequence[int]
) -> dict[int, int]:
    """Return the exact scores of some rows, by position.

    Args:
        index: the version that the record names.
        positions: of rows.
    """
    embedding = np.array(record.openings.openings.embedding, dtype=np.int16)
    rows = index.vectors[np.array(positions, dtype=np.int64)]
    return dict(zip(positions, scores(rows, embedding).tolist(), strict=True))


def _withdrawn(
    index: CommittedIndex, record: LoggedRecord, delivery: Delivery, *, scored: bool
) -> tuple[WithdrawnRow, ...]:
    exact = scores_of(index, record, delivery.withdrawn) if scored else {}
    return tuple(
        WithdrawnRow(position, index.ids[position], exact.get(position))
        for position in delivery.withdrawn
    )


def _unserved(
    index: CommittedIndex, record: LoggedRecord, delivery: Delivery
) -> tuple[UnservedRow, ...]:
    served = {row.position for row in delivery.rows}
    return tuple(
        UnservedRow(
            position=at,
            commitment=part(index.commitments, at),
            columns=index.columns_of(at),
            row_digest=part(index.row_digests, at),
            path=index.tree.path(at),
            id_key=index.id_key_of(at),
        )
        for at in record.openings.selected
        if at not in served
    )


def _served(index: CommittedIndex, row: SelectedRow, *, keyed: bool) -> bytes:
    """Return the canonical JSON of a `ServedRow`.

    They are most of a receipt: put together of bytes they take a fifth of the time that objects do.
    """
    opened = index.opened.find(row.position)
    if opened is None:
        # An index is of one window, whose policy decides on keys.
        opened = _opened(index, row.position, keyed=keyed)
        index.opened.keep(row.position, opened)
    before, attributes, content, name = opened
    text, document = canonical_json.text, row.document
    return b"".join(
        (before, text(document.attributes), attributes, text(document.content), content,
         text(document.id), name)
    )  # fmt: skip


def _opened(index: CommittedIndex, at: int, *, keyed: bool) -> list[bytes]:
    """Return a served row without its document: what stands around attributes, content and id."""
    values = index.rows[at].astype("<i2")
    vector, squares = values[: index.dimension], values[index.dimension :]
    members = {
        b"position": b"%d" % at,
        b"id": _OPEN,
        b"content": _OPEN,
        b"salt": _hex(part(index.salts, at)),
        b"vector": b'"%s"' % base64.b64encode(vector.tobytes()),
        b"squares": b"[%d,%d,%d,%d]" % tuple(squares.tolist()),
        b"blinding": _hex(index.blindings[at].tobytes()),
        b"commitment": _hex(part(index.commitments, at)),
        b"path": b"[%s]" % b",".join(map(_hex, index.tree.path(at))),
        b"columns": canonical_json.text(index.columns_of(at)),
        b"attributes": _OPEN,
        b"id_key": _hex(part(index.id_keys, at)),
    }
    return ((_KEYED if keyed and index.id_keys else _KEYLESS) % members).split(_OPEN)


def _form(names: Iterable[str]) -> bytes:
    """Return the canonical JSON of an object, with a place in it for each member."""
    members = [b'"%s":%%(%s)b' % (name, name) for name in map(str.encode, sorted(names))]
    return b"{%s}" % b",".join(members)


_OPEN = b"\0"  # a byte that no JSON has
_KEYED = _form(ServedRow.FORMS)
_KEYLESS = _form(ServedRow.FORMS.keys() - {"id_key"})


def _hex(data: bytes) -> bytes:
    return b'"%s"' % hexlify(data)


class _Rows(Sequence[ServedRow]):
    """Served rows as they leave; they are read when somebody asks for one."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded

    @cached_property
    def _rows(self) -> tuple[ServedRow, ...]:
        return tuple(map(ServedRow.from_json, canonical_json.loads(self._encoded)))

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return self._rows == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._rows)
