"""The private part of a receipt (docs/spec/05-records.md §5.8): what opens a record to its account.

An integrity window's half also has what shows that nothing better was kept back: scores are
recomputed from the rows, and the rows of T that were not served are opened together (4.6.10).
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, TypeAlias

from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.messages.columns import NO_COLUMNS
from ragaudit.ledger.messages.commitments import RowOpening, RowPath
from ragaudit.ledger.messages.kernel import EMBEDDED, OMITTED, Digest, DocumentId, Items, Message
from ragaudit.ledger.messages.policy import LARGE_B
from ragaudit.ledger.messages.requests import (
    Columns,
    Content,
    Openings,
    Packed,
    Position,
    Score,
    check_rising,
)

MAX_SCORE = LARGE_B * LARGE_B
MAX_TIES_PROOF = 64  # times 32 bytes; 4096 entries of a row take 29
MAX_SELECTED = 2**13
"""Rows of T in a window without noise."""
MAX_UNSERVED_BYTES = 12 * 2**20
"""Of the leaves and paths of those that are not served, see `unserved_bytes`: most of what a
verifier reads of a disputed file. An account could not dispute what it cannot show."""


IdKey: TypeAlias = Annotated[Digest | None, OMITTED]


class ServedRow(RowOpening):
    """A served row with everything that opens it.

    Attributes:
        id, content: as served.
        columns, attributes: as served.
        id_key: in its leaf; with noise and ``owners`` alone: elsewhere it follows from
            the document secret, or there is none.
    """

    id: DocumentId = field(repr=False)
    content: Content = field(repr=False)
    columns: Columns = field(default=NO_COLUMNS, repr=False)
    attributes: Content = field(default="", repr=False)
    id_key: IdKey = None


class WithdrawnRow(Message):
    """One of the first K rows of T that was left out: its document changed or went in the window.

    Attributes:
        position: in the index, from 0.
        id: of the document.
        score: <e, X_i>, which the ties opening proves; None where there is no opening.
    """

    position: Position
    id: DocumentId = field(repr=False)
    score: Score | None = field(default=None, repr=False)


class UnservedRow(Message):
    """A row of T that was not served, as its leaf in C_idx: no id, no text, no vector.

    Attributes:
        position: in the index, from 0.
        commitment: C_i, 32 bytes.
        columns: canonical text of its public columns, for the filter.
        row_digest: 32 bytes, the last field of its leaf.
        path: of the leaf in C_idx, 32 bytes each.
        id_key: of its document, 32 bytes, which stands in the leaf too; None without ``owners``.
    """

    position: Position
    commitment: Digest
    columns: Columns = field(repr=False)
    row_digest: Digest
    path: RowPath = field(repr=False)
    id_key: IdKey = None


_UNSERVED_BYTES = 220  # of its JSON beside columns and path: names, two digests, the position
_KEY_BYTES = 80  # of its id key
_STEP_BYTES = 67  # of a path: a digest, quotes and a comma


def unserved_bytes(columns: Sequence[str], rows: int, *, owned: bool = False) -> int:
    """Return a bound on what unserved rows take of a receipt file.

    Args:
        columns: canonical texts of their public columns.
        rows: N of the index, which the length of a path follows from.
        owned: whether they have id keys.
    """
    # In JSON text a quote or a backslash becomes two bytes; control characters are escaped already.
    texts = sum(2 * len(text.encode()) for text in columns)
    each = _UNSERVED_BYTES + _STEP_BYTES * rows.bit_length() + (_KEY_BYTES if owned else 0)
    return texts + len(columns) * each


class TiesOpening(Message):
    """Shows that the served and withdrawn rows are the first K of T (spec 4.6.10).

    Attributes:
        rows: all rows of T that were not served, withdrawn ones among them, in rising position.
        proof: that withdrawn rows have their stated scores, and the others that of the last place.
    """

    rows: Annotated[tuple[UnservedRow, ...], Items(1, MAX_SELECTED)] = field(repr=False)
    proof: Annotated[bytes, Packed(MAX_TIES_PROOF, 32, "32 bytes")] = field(repr=False)

    def __post_init__(self) -> None:
        check_rising([row.position for row in self.rows], "ties")

    @property
    def commitments(self) -> bytes:
        """C_i of the rows, 32 bytes each."""
        return b"".join(row.commitment for row in self.rows)


class PrivateReceipt(Message, kind="receipt/private", where="private"):
    """The half for the account's eyes.

    Attributes:
        selected: T, positions of the rows that the record commits to, rising. In a window without
            noise ties are kept, and T may have more than K.
        selection_blinding: canonical scalar rho_sel of B_sel.
        salt_r: hides the answer in `answer_digest`.
        rows: the served ones, in the order of the answer.
        withdrawn: rows among the first K of T that are not served, rising.
        ties: where T has more than K rows; else None.
        document_secret: k_t of the tenant; None with noise or without ``owners`` (5.16).
    """

    openings: Annotated[Openings, EMBEDDED]
    selected: Annotated[tuple[Position, ...], Items(0, MAX_SELECTED)] = field(repr=False)
    selection_blinding: Digest = field(repr=False)
    salt_r: Digest = field(repr=False)
    rows: Annotated[tuple[ServedRow, ...], Items(0, LIMITS.top_k)] = field(repr=False)
    withdrawn: Annotated[tuple[WithdrawnRow, ...], Items(0, LIMITS.top_k)] = field(
        default=(), repr=False
    )
    ties: TiesOpening | None = field(default=None, repr=False)
    document_secret: Annotated[Digest | None, OMITTED] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_rising(list(self.selected), "selected")
        check_rising([row.position for row in self.withdrawn], "withdrawn")
