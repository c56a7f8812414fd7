"""A query: request, answer, and what opens its record (docs/spec/05-records.md §5.7, §5.8)."""

from dataclasses import field
from typing import Annotated, TypeAlias

from ragaudit.encoding.digests import salted
from ragaudit.encoding.parameters import LIMITS
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.columns import MAX_COLUMNS_BYTES, NO_COLUMNS
from ragaudit.ledger.messages.encoded import check_range
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.kernel import Digest, DocumentId, Hex, Integer, Items, Message, Text
from ragaudit.ledger.messages.policy import LARGE_B, Policy, QueryKind
from ragaudit.ledger.messages.questions import (
    MAX_QUERY_BYTES,
    QueryText,
    QueryVector,
    Question,
    check_asked,
)
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_ROWS, QueryEntry
from ragaudit.ledger.messages.vectors import int16_bytes, int16s

__all__ = [
    "MAX_CONTENT_BYTES",
    "MAX_QUERY_BYTES",
    "Answer",
    "Document",
    "Openings",
    "Question",
    "Request",
    "Salted",
    "check_rising",
    "embedding_digest",
]

MAX_SKETCH_BYTES = 64  # 512 bits
MAX_CONTENT_BYTES = 2**20  # of a row; an answer of K rows is held in memory


FilterText: TypeAlias = Annotated[str, Text(0, MAX_FILTER_BYTES)]
Counter: TypeAlias = Annotated[int, Integer(0, MAX_QUERIES - 1)]
Position: TypeAlias = Annotated[int, Integer(0, MAX_ROWS - 1)]
Content: TypeAlias = Annotated[str, Text(0, MAX_CONTENT_BYTES)]
Columns: TypeAlias = Annotated[str, Text(2, MAX_COLUMNS_BYTES)]
Score: TypeAlias = Annotated[int, Integer(-(LARGE_B**2), LARGE_B**2)]


class Request(Message, where="request"):
    """What an account asks.

    Attributes:
        query: the text that is asked; without one, a vector is.
        top_k: K.
        counter: of the query, an anchored client's; None for a plain one.
        filter: canonical text (5.12); empty: none.
        vector: d numbers of 32 bits, finite and not all zero.
        kind: which of the two.
    """

    query: QueryText = field(repr=False)
    top_k: Annotated[int, Integer(1, LIMITS.top_k)]
    counter: Counter | None = None
    filter: FilterText = field(default="", repr=False)
    vector: QueryVector = field(default=b"", repr=False)
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

    def _check(self) -> None:
        check_asked(self.kind, self.query, self.vector)


class Document(Message):
    """A row as it was served.

    Attributes:
        position: in the index, from 0.
        content: its text.
        columns: canonical text of its public columns (5.11).
        attributes: canonical JSON text of all metadata that the store returned, "" if none.
        score: `<e, X_i>` in an integrity window; None where none is served.
    """

    position: Position
    id: DocumentId = field(repr=False)
    content: Content = field(repr=False)
    columns: Columns = field(default=NO_COLUMNS, repr=False)
    attributes: Content = field(default="", repr=False)
    score: Score | None = field(default=None, repr=False)


class Answer(Message, where="answer"):
    """The documents of an answer.

    Attributes:
        documents: with scores (all of them or none), by falling score and then rising position;
            without, in rising position: an order by score would reveal more than the selection,
            which alone the noise protects.
    """

    documents: Annotated[tuple[Document, ...], Items(0, LIMITS.top_k)]

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


class Salted(Message):
    """What a record's digests hide beside question and filter, and their salts.

    Attributes:
        embedding: d integers of norm at most B, which the policy says (5.9).
        sketch: of the embedding.
        salt_q, salt_e, salt_f, salt_s: of the digests of query, embedding, filter and sketch.
    """

    salt_q: Digest = field(repr=False)
    embedding: Annotated[tuple[int, ...], int16s(LIMITS.dimension, LARGE_B)] = field(repr=False)
    salt_e: Digest = field(repr=False)
    salt_f: Digest = field(repr=False)
    sketch: Annotated[bytes, Hex(limit=MAX_SKETCH_BYTES)] = field(repr=False)
    salt_s: Digest = field(repr=False)


class Openings(Salted):
    """What a record's digests hide of its query: values and salts, for account and verifier only.

    Attributes:
        query, filter, vector, kind: of the request.
    """

    query: QueryText = field(repr=False)
    filter: FilterText = field(repr=False)
    vector: QueryVector = field(default=b"", repr=False)
    kind: QueryKind = "text"

    def _check(self) -> None:
        check_asked(self.kind, self.query, self.vector)

    @property
    def salted(self) -> Salted:
        """What is not the request's: the rest beside one says nothing more."""
        return Salted(**{name: getattr(self, name) for name in Salted.FORMS})

    @property
    def question(self) -> Question:
        """What was asked."""
        return Question(self.query, self.vector, self.kind)

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
