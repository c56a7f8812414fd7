"""Answers with their receipts in two halves: docs/spec/05-records.md §5.8.

Built from what is stored, so that the same record gives the same answer and receipt again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.requests import Answer
from ragaudit.prover.backends.base import Document
from ragaudit.prover.index.index_commitment import CommittedIndex, part
from ragaudit.prover.window.openings import RecordOpenings


@dataclass(frozen=True)
class LoggedRecord:
    """A durable record: its place, leaf salt and body, and what only the prover knows of it.

    ``issued`` is in milliseconds.
    """

    position: int
    salt: bytes = field(repr=False)
    body: bytes
    openings: RecordOpenings = field(repr=False)
    issued: int


@dataclass(frozen=True)
class SelectedRow:
    """A selected row of the committed index, and the document that is served for it."""

    position: int
    document: Document


def private_half(
    record: LoggedRecord, index: CommittedIndex, rows: Sequence[SelectedRow]
) -> PrivateReceipt:
    """Return the half for the account's eyes."""
    opened = record.openings
    return PrivateReceipt(
        openings=opened.openings,
        selected=opened.selected,
        selection_blinding=opened.selection_blinding,
        salt_r=opened.salt_r,
        rows=tuple(_served(index, row) for row in rows),
    )


def public_half(
    record: LoggedRecord,
    *,
    origin: str,
    answer: Answer,
    private: PrivateReceipt,
    key: PrivateKey,
) -> PublicReceipt:
    """Return the half that may be handed to V, signed by the provider."""
    return PublicReceipt.issue(
        key,
        origin=origin,
        index=record.position,
        salt=record.salt,
        body=record.body,
        issued=record.issued,
        answer_digest=answer_digest(record.openings.request, answer, private),
    )


def _served(index: CommittedIndex, row: SelectedRow) -> ServedRow:
    at = row.position
    completed = index.rows[at].tolist()
    return ServedRow(
        position=at,
        id=row.document.id,
        content=row.document.content,
        salt=part(index.salts, at),
        vector=tuple(completed[: index.dimension]),
        squares=tuple(completed[index.dimension :]),
        blinding=index.blindings[at].tobytes(),
        commitment=part(index.commitments, at),
        path=index.tree.path(at),
    )
