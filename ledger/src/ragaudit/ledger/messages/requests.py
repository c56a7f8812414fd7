"""A query: request, answer, and what opens its record (docs/spec/05-records.md §5.7, §5.8)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.columns import MAX_COLUMNS_BYTES, NO_COLUMNS
from ragaudit.ledger.messages.encoded import check_range
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.policy import LARGE_B, Policy, QueryKind
from ragaudit.ledger.messages.questions import MAX_QUERY_BYTES, Question, query_members
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_ROWS, QueryEntry
from ragaudit.ledger.messages.vectors import int16_bytes, vector_text

__all__ = [
    "MAX_CONTENT_BYTES",
    "MAX_QUERY_BYTES",
    "Answer",
    "Document",
    "Openings",
    "Question",
    "Request",
    "check_rising",
    "embedding_digest",
    "read_row",
    "row_members",
]

MAX_SKETCH_BYTES = 64  # 512 bits
MAX_CONTENT_BYTES = 2**20  # of a row; an answer of K rows is held in memory


@dataclass(frozen=True, slots=True)
class Request(JsonMessage):
    """What an account asks.

    Attributes:
        query: 1..8192 bytes of UTF-8; empty where a vector is asked.
        top_k: K, 1..1000.
        counter: of the query, an anchored client's; None for a plain one.
        filter: canonical text (5.12), at most 16 KiB; empty: none.
        vector, kind: see `Question`.
    """

    MEMBERS: ClassVar[str] = "counter filter query top_k"
    WHERE: ClassVar[str] = "request"

    query: str = field(repr=False)
    top_k: int
    counter: int | None = None
    filter: str = field(default="", repr=False)
    vector: bytes = field(default=b"", repr=False)
    kind: QueryKind = "text"

    @classmethod
    def of(
        cls,
        policy: Policy,
        asked: str | bytes,
        top_k: int,
        *,
        filter: str = "",  # noqa: A002 - the member's name
        counter: int | None = None,
    ) -> "Request":
        """Return a request in the form of a window.

        Args:
            policy: of the window.
            asked: a text, or the d numbers of a vector, see `vectors.float32_bytes`.
            top_k, filter, counter: the attributes.

        Raises:
            UnsupportedError, MalformedRecord: the window takes no such request, see `check_policy`.
        """
        kind: QueryKind = "text" if isinstance(asked, str) else "vector"
        text, vector = (asked, b"") if isinstance(asked, str) else ("", asked)
        request = cls(text, top_k, counter, filter, vector, kind)
        request.check_policy(policy)
        return request

    @property
    def question(self) -> Question:
        """What is asked, without K, filter and counter."""
        return Question(self.query, self.vector, self.kind)

    def check_policy(self, policy: Policy) -> Filter:
        """Check that the window takes this request, before anything is charged; return its filter.

        Args:
            policy: of the window.

        Raises:
            UnsupportedError: a kind or filter that the policy does not know.
            MalformedRecord: K above K_max, a vector of another length, a filter that is none.
        """
        self.question.check_policy(policy)
        check_range("top_k", self.top_k, 1, policy.top_k_max)
        return request_filter(self.filter, policy)

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of a request's members: with what it asks."""
        return f"counter filter {query_members(value)} top_k"

    def _members(self) -> dict[str, Any]:
        return {
            "counter": self.counter,
            "filter": self.filter,
            **self.question.to_json(),
            "top_k": self.top_k,
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        text = f.text("filter", 0, MAX_FILTER_BYTES)
        # A plain account gives none: the provider takes the next one.
        counter = f.optional(f.integer, "counter", 0, MAX_QUERIES - 1)
        top_k = f.integer("top_k", 1, LIMITS.top_k)
        question = Question.read(f)
        return cls(question.text, top_k, counter, text, question.vector, question.kind)


@dataclass(frozen=True, slots=True)
class Document(JsonMessage):
    """A row as it was served.

    Attributes:
        position: in the index, from 0.
        id: 1..512 bytes of UTF-8.
        content: at most 2^20 bytes of UTF-8.
        columns: canonical text of its public columns (5.11).
        attributes: canonical JSON text of all metadata that the store returned, "" if none.
        score: <e, X_i>, an integer in -B²..B², in an integrity window; None where none is served.
    """

    MEMBERS: ClassVar[str] = "attributes columns content id position score"

    position: int
    id: str = field(repr=False)
    content: str = field(repr=False)
    columns: str = field(default=NO_COLUMNS, repr=False)
    attributes: str = field(default="", repr=False)
    score: int | None = field(default=None, repr=False)

    def _members(self) -> dict[str, Any]:
        members = row_members(self.position, self.id, self.content, self.columns, self.attributes)
        return {**members, "score": self.score}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        bound = LARGE_B * LARGE_B
        return cls(*read_row(f), f.optional(f.integer, "score", -bound, bound))


@dataclass(frozen=True, slots=True)
class Answer(JsonMessage):
    """The documents of an answer.

    Attributes:
        documents: with scores (all of them or none), by falling score and then rising position;
            without, in rising position: an order by score would reveal more than the selection,
            which alone the noise protects.
    """

    MEMBERS: ClassVar[str] = "documents"
    WHERE: ClassVar[str] = "answer"

    documents: tuple[Document, ...]

    def __post_init__(self) -> None:
        scores = [document.score for document in self.documents if document.score is not None]
        positions = [document.position for document in self.documents]
        if not scores:
            check_rising(positions, "answer")
            return
        if len(scores) < len(positions) or len(set(positions)) < len(positions):
            raise MalformedRecord("a score missing, or a position twice", where="answer")
        order = [(-score, position) for score, position in zip(scores, positions, strict=True)]
        if order != sorted(order):
            raise MalformedRecord("not the best first", where="answer")

    def _members(self) -> dict[str, Any]:
        return {"documents": [document.to_json() for document in self.documents]}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(f.messages("documents", Document, 0, LIMITS.top_k))


def row_members(
    position: int, name: str, content: str, columns: str, attributes: str
) -> dict[str, Any]:
    """Return the JSON members of a row that was served, the inverse of `read_row`.

    Args:
        position, name, content, columns, attributes: see `Document`.
    """
    return {
        "attributes": attributes,
        "columns": columns,
        "content": content,
        "id": name,
        "position": position,
    }


def read_row(f: Fields) -> tuple[int, str, str, str, str]:
    """Return position, id, content, columns and attributes of a row, members of ``f``.

    Args:
        f: an object that has position, id, content, columns and attributes among its members.

    Raises:
        MalformedRecord: one of them out of range. Columns are not read: the policy declares them.
    """
    attributes = f.text("attributes", 0, MAX_CONTENT_BYTES)
    columns = f.text("columns", 2, MAX_COLUMNS_BYTES)
    identifier = check_document_id(f.text("id", 1, 512))
    position = f.integer("position", 0, MAX_ROWS - 1)
    content = f.text("content", 0, MAX_CONTENT_BYTES)
    return position, identifier, content, columns, attributes


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
        query: text of the query; empty where a vector was asked.
        embedding: d integers of norm at most B.
        filter: see `Request`.
        sketch: of the embedding, at most 64 bytes.
        salt_q, salt_e, salt_f, salt_s: of the digests of these four, 32 bytes each.
        vector, kind: see `Question`.
    """

    query: str = field(repr=False)
    salt_q: bytes = field(repr=False)
    embedding: tuple[int, ...] = field(repr=False)
    salt_e: bytes = field(repr=False)
    filter: str = field(repr=False)
    salt_f: bytes = field(repr=False)
    sketch: bytes = field(repr=False)
    salt_s: bytes = field(repr=False)
    vector: bytes = field(default=b"", repr=False)
    kind: QueryKind = "text"

    MEMBERS: ClassVar[str] = "query salt_q embedding salt_e filter salt_f sketch salt_s"
    SALTED: ClassVar[str] = "salt_q embedding salt_e salt_f sketch salt_s"

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of the openings in a larger object: with what was asked."""
        return cls.MEMBERS.replace("query", query_members(value))

    @property
    def question(self) -> Question:
        """What was asked."""
        return Question(self.query, self.vector, self.kind)

    def to_json(self) -> dict[str, Any]:
        """Return the openings as members of a larger JSON object."""
        return {
            **self.question.to_json(),
            "salt_q": self.salt_q.hex(),
            "embedding": vector_text(self.embedding),
            "salt_e": self.salt_e.hex(),
            "filter": self.filter,
            "salt_f": self.salt_f.hex(),
            "sketch": self.sketch.hex(),
            "salt_s": self.salt_s.hex(),
        }

    @classmethod
    def read(cls, f: Fields, request: Request | None = None) -> "Openings":
        """Return the openings among the members of a larger object.

        Args:
            f: an object that has `MEMBERS` among its own, or `SALTED` beside a request.
            request: which says what was asked where the object does not repeat it.

        Raises:
            MalformedRecord: one of them ill-typed or out of range.
        """
        question = request.question if request else Question.read(f)
        return cls(
            query=question.text,
            vector=question.vector,
            kind=question.kind,
            salt_q=f.hex("salt_q", SALT_BYTES),
            # The bound of the window's policy is compared when the openings are checked (5.9).
            embedding=f.vector("embedding", LIMITS.dimension, LARGE_B),
            salt_e=f.hex("salt_e", SALT_BYTES),
            filter=request.filter if request else f.text("filter", 0, MAX_FILTER_BYTES),
            salt_f=f.hex("salt_f", SALT_BYTES),
            sketch=f.hex("sketch", limit=MAX_SKETCH_BYTES),
            salt_s=f.hex("salt_s", SALT_BYTES),
        )

    def verify(self, record: QueryEntry, request: Request) -> None:
        """Check that they open ``record``, and are what ``request`` asked.

        Norm of the embedding and recomputation of the sketch are the caller's.

        Args:
            record: promised or logged; also a charge entry.
            request: the account's own copy: the provider could have answered another query.

        Raises:
            ReceiptRejected: an opening that does not open, or another query or filter.
        """
        if (self.question, self.filter) != (request.question, request.filter):
            raise ReceiptRejected("another query or filter than asked", where="openings")
        # All four: the embedding decides the scores and the sketch the coalition estimate, and the
        # verifier must not be shown others than the account.
        for name, digest, expected in (
            ("filter", salted(self.salt_f, self.filter), record.filter_digest),
            ("query", salted(self.salt_q, self.question.data), record.query_digest),
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
