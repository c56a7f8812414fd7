"""A query: request, answer, and what opens its record (docs/spec/05-records.md §5.7, §5.8)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.fields import Fields, JsonMessage, int16_bytes, vector_text
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_ROWS, Record

MAX_QUERY_BYTES = 8192
MAX_FILTER_BYTES = 8192
MAX_SKETCH_BYTES = 64  # 512 bits
MAX_CONTENT_BYTES = 2**20  # of a row; an answer of K rows is held in memory


@dataclass(frozen=True, slots=True)
class Request(JsonMessage):
    """What an account asks.

    Attributes:
        query: 1..8192 bytes of UTF-8.
        top_k: K, 1..1000.
        counter: of the query, an anchored client's; None for a plain one.
        filter: empty in version 1.
    """

    MEMBERS: ClassVar[str] = "counter filter query top_k"
    WHERE: ClassVar[str] = "request"

    query: str = field(repr=False)
    top_k: int
    counter: int | None = None
    filter: str = ""

    def _members(self) -> dict[str, Any]:
        return {
            "counter": self.counter,
            "filter": self.filter,
            "query": self.query,
            "top_k": self.top_k,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        text = f.text("filter", 0, MAX_FILTER_BYTES)
        if text:
            # Refused and not passed over: the answer would be one to another question.
            raise UnsupportedError("filters", where=f.where, expected="empty text in version 1")
        # A plain account gives none: the provider takes the next one.
        counter = f.optional(f.integer, "counter", 0, MAX_QUERIES - 1)
        return cls(
            f.text("query", 1, MAX_QUERY_BYTES), f.integer("top_k", 1, LIMITS.top_k), counter
        )


@dataclass(frozen=True, slots=True)
class Document(JsonMessage):
    """A row as it was served; its public columns are empty in version 1.

    Attributes:
        position: in the index, from 0.
        id: 1..512 bytes of UTF-8.
        content: at most 2^20 bytes of UTF-8.
    """

    MEMBERS: ClassVar[str] = "columns content id position"

    position: int
    id: str = field(repr=False)
    content: str = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {
            "columns": {},
            "content": self.content,
            "id": self.id,
            "position": self.position,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(*read_row(f))


@dataclass(frozen=True, slots=True)
class Answer(JsonMessage):
    """The documents of an answer.

    Attributes:
        documents: in rising position: an order by score would reveal more than the selection,
            which alone the noise protects.
    """

    MEMBERS: ClassVar[str] = "documents"
    WHERE: ClassVar[str] = "answer"

    documents: tuple[Document, ...]

    def __post_init__(self) -> None:
        check_rising([document.position for document in self.documents], "answer")

    def _members(self) -> dict[str, Any]:
        return {"documents": [document.to_json() for document in self.documents]}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(f.messages("documents", Document, 0, LIMITS.top_k))


def read_row(f: Fields) -> tuple[int, str, str]:
    """Return position, id and content of a row, members of ``f``.

    Args:
        f: an object that has position, id, content and columns among its members.

    Raises:
        MalformedRecord: one of them out of range.
        UnsupportedError: public columns, which version 1 has not.
    """
    if f.raw("columns") != {}:
        raise UnsupportedError("public columns", where=f.path("columns"), expected="{}")
    identifier = check_document_id(f.text("id", 1, 512))
    position = f.integer("position", 0, MAX_ROWS - 1)
    return position, identifier, f.text("content", 0, MAX_CONTENT_BYTES)


def check_rising(positions: list[int], where: str) -> None:
    """Check that positions rise strictly: a set has one encoding, and no row counts twice.

    Args:
        positions: of rows.
        where: their place, for the error.

    Raises:
        MalformedRecord: they do not.
    """
    if positions != sorted(set(positions)):
        raise MalformedRecord("positions not rising and distinct", where=where)


@dataclass(frozen=True, slots=True)
class Openings:
    """What a record's digests hide of its query: values and salts, for account and verifier only.

    Attributes:
        query: text of the query.
        embedding: d integers of norm at most 127.
        filter: empty in version 1.
        sketch: of the embedding, at most 64 bytes.
        salt_q, salt_e, salt_f, salt_s: of the digests of these four, 32 bytes each.
    """

    query: str = field(repr=False)
    salt_q: bytes = field(repr=False)
    embedding: tuple[int, ...] = field(repr=False)
    salt_e: bytes = field(repr=False)
    filter: str = field(repr=False)
    salt_f: bytes = field(repr=False)
    sketch: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)

    MEMBERS = "query salt_q embedding salt_e filter salt_f sketch salt_s"

    def to_json(self) -> dict[str, Any]:
        """Return the openings as members of a larger JSON object."""
        return {
            "query": self.query,
            "salt_q": self.salt_q.hex(),
            "embedding": vector_text(self.embedding),
            "salt_e": self.salt_e.hex(),
            "filter": self.filter,
            "salt_f": self.salt_f.hex(),
            "sketch": self.sketch.hex(),
            "salt_s": self.salt_s.hex(),
        }

    @classmethod
    def read(cls, f: Fields) -> "Openings":
        """Return the openings among the members of a larger object.

        Args:
            f: an object that has `MEMBERS` among its own.

        Raises:
            MalformedRecord: one of them ill-typed or out of range.
        """
        return cls(
            query=f.text("query", 1, MAX_QUERY_BYTES),
            salt_q=f.hex("salt_q", SALT_BYTES),
            embedding=f.vector("embedding", LIMITS.dimension, B),
            salt_e=f.hex("salt_e", SALT_BYTES),
            filter=f.text("filter", 0, MAX_FILTER_BYTES),
            salt_f=f.hex("salt_f", SALT_BYTES),
            sketch=f.hex("sketch", limit=MAX_SKETCH_BYTES),
            salt_s=f.hex("salt_s", SALT_BYTES),
        )

    def verify(self, record: Record, request: Request) -> None:
        """Check that they open ``record``, and are what ``request`` asked.

        Norm of the embedding and recomputation of the sketch are the caller's.

        Args:
            record: promised or logged.
            request: the account's own copy: the provider could have answered another query.

        Raises:
            ReceiptRejected: an opening that does not open, or another query or filter.
        """
        if (self.query, self.filter) != (request.query, request.filter):
            raise ReceiptRejected("another query or filter than asked", where="openings")
        # All four: the embedding decides the scores and the sketch the coalition estimate, and the
        # verifier must not be shown others than the account.
        for name, digest, expected in (
            ("filter", salted(self.salt_f, self.filter), record.filter_digest),
            ("query", salted(self.salt_q, self.query), record.query_digest),
            ("embedding", embedding_digest(self.salt_e, self.embedding), record.embedding_digest),
            ("sketch", salted(self.salt_s, self.sketch), record.sketch_digest),
        ):
            if digest != expected:
                raise ReceiptRejected("does not open its digest", where=name)


def embedding_digest(salt: bytes, embedding: tuple[int, ...]) -> bytes:
    """Return H(salt_e, e), 32 bytes (docs/spec/05-records.md §5.7).

    Args:
        salt: 32 bytes.
        embedding: d integers, digested as 16 bits each, see `int16_bytes`.
    """
    return salted(salt, int16_bytes(embedding))
