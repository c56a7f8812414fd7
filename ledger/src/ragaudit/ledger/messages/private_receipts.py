"""The private half of a receipt (docs/spec/05-records.md §5.8): what opens a record to its account.

An integrity window's half also has what shows that nothing better was kept back: scores are
recomputed from the rows, and the rows of T that were not served are opened together (4.6.10).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.columns import MAX_COLUMNS_BYTES, NO_COLUMNS
from ragaudit.ledger.messages.documents import SECRET_BYTES
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.policy import LARGE_B
from ragaudit.ledger.messages.records import MAX_ROWS
from ragaudit.ledger.messages.requests import Openings, check_rising, read_row, row_members
from ragaudit.ledger.messages.row_openings import MAX_PATH, opening_members, read_opening

MAX_SCORE = LARGE_B * LARGE_B
MAX_TIES_PROOF = 64  # times 32 bytes; 4096 entries of a row take 29
MAX_SELECTED = 2**13
"""Rows of T in a window without noise."""
MAX_UNSERVED_BYTES = 12 * 2**20
"""Of the leaves and paths of those that are not served, see `unserved_bytes`: most of what a
verifier reads of a disputed file. An account could not dispute what it cannot show."""


@dataclass(frozen=True, slots=True)
class ServedRow(JsonMessage):
    """A served row with everything that opens it.

    Attributes:
        position: in the index, from 0.
        id, content: as served.
        salt: of `row_digest`, 32 bytes.
        vector: d integers of norm at most B.
        squares: four integers that complete its squared norm to B².
        blinding: canonical scalar of its commitment, 32 bytes.
        commitment: C_i, 32 bytes.
        path: of the row in C_idx, 32 bytes each.
        columns, attributes: see `Document`.
        id_key: in its leaf, 32 bytes; with noise and ``owners`` alone: elsewhere it follows from
            the document secret, or there is none.
    """

    MEMBERS: ClassVar[str] = (
        "position id content columns attributes salt vector squares blinding commitment path"
    )

    position: int
    id: str = field(repr=False)
    content: str = field(repr=False)
    salt: bytes = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)
    squares: tuple[int, ...] = field(repr=False)
    blinding: bytes = field(repr=False)
    commitment: bytes
    path: tuple[bytes, ...] = field(repr=False)
    columns: str = field(default=NO_COLUMNS, repr=False)
    attributes: str = field(default="", repr=False)
    id_key: bytes | None = None

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of a row's members: with ``id_key`` where owners check under noise."""
        return f"{cls.MEMBERS}{_named_key(value)}" if isinstance(value, dict) else cls.MEMBERS

    def _members(self) -> dict[str, Any]:
        return {
            **row_members(self.position, self.id, self.content, self.columns, self.attributes),
            **opening_members(self),
            **_key_member(self.id_key),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        position, name, content, columns, attributes = read_row(f)
        return cls(
            position=position,
            id=name,
            content=content,
            columns=columns,
            attributes=attributes,
            id_key=_read_key(f),
            # The bound of the window's policy is compared when the row is checked (5.9).
            **read_opening(f, LARGE_B),
        )


_ID_KEY = "id_key"


def _named_key(value: dict[str, Any]) -> str:
    return f" {_ID_KEY}" if _ID_KEY in value else ""


def _key_member(key: bytes | None) -> dict[str, Any]:
    return {} if key is None else {_ID_KEY: key.hex()}


def _read_key(f: Fields) -> bytes | None:
    return f.hex(_ID_KEY, DIGEST_BYTES) if _ID_KEY in f.value else None


@dataclass(frozen=True, slots=True)
class WithdrawnRow(JsonMessage):
    """One of the first K rows of T that was left out: its document changed or went in the window.

    Attributes:
        position: in the index, from 0.
        id: of the document.
        score: <e, X_i>, which the ties opening proves; None where there is no opening.
    """

    MEMBERS: ClassVar[str] = "id position score"

    position: int
    id: str = field(repr=False)
    score: int | None = field(default=None, repr=False)

    def _members(self) -> dict[str, Any]:
        return {"id": self.id, "position": self.position, "score": self.score}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        name = check_document_id(f.text("id", 1, 512))
        score = f.optional(f.integer, "score", -MAX_SCORE, MAX_SCORE)
        return cls(f.integer("position", 0, MAX_ROWS - 1), name, score)


@dataclass(frozen=True, slots=True)
class UnservedRow(JsonMessage):
    """A row of T that was not served, as its leaf in C_idx: no id, no text, no vector.

    Attributes:
        position: in the index, from 0.
        commitment: C_i, 32 bytes.
        columns: canonical text of its public columns, for the filter.
        row_digest: 32 bytes, the last field of its leaf.
        path: of the leaf in C_idx, 32 bytes each.
        id_key: of its document, 32 bytes, which stands in the leaf too; None without ``owners``.
    """

    MEMBERS: ClassVar[str] = "position commitment columns row_digest path"

    position: int
    commitment: bytes
    columns: str = field(repr=False)
    row_digest: bytes
    path: tuple[bytes, ...] = field(repr=False)
    id_key: bytes | None = None

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of a row's members: with ``id_key`` where owners check."""
        return f"{cls.MEMBERS}{_named_key(value)}" if isinstance(value, dict) else cls.MEMBERS

    def _members(self) -> dict[str, Any]:
        return {
            "position": self.position,
            "commitment": self.commitment.hex(),
            "columns": self.columns,
            "row_digest": self.row_digest.hex(),
            "path": [digest.hex() for digest in self.path],
            **_key_member(self.id_key),
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            position=f.integer("position", 0, MAX_ROWS - 1),
            commitment=f.hex("commitment", 32),
            columns=f.text("columns", 2, MAX_COLUMNS_BYTES),
            row_digest=f.hex("row_digest", DIGEST_BYTES),
            path=f.hexes("path", MAX_PATH, DIGEST_BYTES),
            id_key=_read_key(f),
        )


_SECRET = "document_secret"  # noqa: S105  the name of a member
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


@dataclass(frozen=True, slots=True)
class TiesOpening(JsonMessage):
    """Shows that the served and withdrawn rows are the first K of T (spec 4.6.10).

    Attributes:
        rows: all rows of T that were not served, withdrawn ones among them, in rising position.
        proof: that withdrawn rows have their stated scores, and the others that of the last place.
    """

    MEMBERS: ClassVar[str] = "rows proof"

    rows: tuple[UnservedRow, ...] = field(repr=False)
    proof: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_rising([row.position for row in self.rows], "ties")

    @property
    def commitments(self) -> bytes:
        """C_i of the rows, 32 bytes each."""
        return b"".join(row.commitment for row in self.rows)

    def _members(self) -> dict[str, Any]:
        return {"rows": [row.to_json() for row in self.rows], "proof": b64_encode(self.proof)}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        rows = f.messages("rows", UnservedRow, 1, MAX_SELECTED)
        return cls(rows, f.proof("proof", MAX_TIES_PROOF))


@dataclass(frozen=True, slots=True)
class PrivateReceipt(JsonMessage):
    """The half for the account's eyes.

    Attributes:
        selected: T, positions of the rows that the record commits to, rising. In a window without
            noise ties are kept, and T may have more than K.
        selection_blinding: canonical scalar of B_sel, 32 bytes.
        salt_r: hides the answer in `answer_digest`, 32 bytes.
        rows: the served ones, in the order of the answer.
        withdrawn: rows among the first K of T that are not served, rising.
        ties: where T has more than K rows; else None.
        document_secret: k_t of the tenant, 32 bytes; None with noise or without ``owners`` (5.16).
    """

    FORMAT: ClassVar[str] = "ragaudit/v1/receipt/private"
    MEMBERS: ClassVar[str] = (
        f"{Openings.MEMBERS} selected selection_blinding salt_r rows withdrawn ties"
    )
    WHERE: ClassVar[str] = "private"

    openings: Openings
    selected: tuple[int, ...] = field(repr=False)
    selection_blinding: bytes = field(repr=False)
    salt_r: bytes = field(repr=False)
    rows: tuple[ServedRow, ...] = field(repr=False)
    withdrawn: tuple[WithdrawnRow, ...] = field(default=(), repr=False)
    ties: TiesOpening | None = field(default=None, repr=False)
    document_secret: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_rising(list(self.selected), "selected")
        check_rising([row.position for row in self.withdrawn], "withdrawn")

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of the members: with what was asked, and more where owners check."""
        names = cls.MEMBERS.replace(Openings.MEMBERS, Openings.members_of(value))
        return f"{names} {_SECRET}" if isinstance(value, dict) and _SECRET in value else names

    def _members(self) -> dict[str, Any]:
        members = {
            **self.openings.to_json(),
            "selected": list(self.selected),
            "selection_blinding": self.selection_blinding.hex(),
            "salt_r": self.salt_r.hex(),
            "rows": [row.to_json() for row in self.rows],
            "withdrawn": [row.to_json() for row in self.withdrawn],
            "ties": None if self.ties is None else self.ties.to_json(),
        }
        if self.document_secret is not None:
            members[_SECRET] = self.document_secret.hex()
        return members

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            openings=Openings.read(f),
            selected=f.integers("selected", (0, MAX_SELECTED), 0, MAX_ROWS - 1),
            selection_blinding=f.hex("selection_blinding", 32),
            salt_r=f.hex("salt_r", SALT_BYTES),
            rows=f.messages("rows", ServedRow, 0, LIMITS.top_k),
            withdrawn=f.messages("withdrawn", WithdrawnRow, 0, LIMITS.top_k),
            ties=f.optional(f.message, "ties", TiesOpening),
            document_secret=f.hex(_SECRET, SECRET_BYTES) if _SECRET in f.value else None,
        )
