"""What accounts ask: vectors, questions, requests, and what opens their digests (docs/spec 5.8)."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import decode, enc, read_text
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.columns import MAX_COLUMNS_BYTES, NO_COLUMNS
from ragaudit.ledger.messages.entries import MAX_QUERIES, MAX_ROWS, QueryEntry, check_range
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES, Filter, request_filter
from ragaudit.ledger.messages.kernel import (
    OMITTED,
    Converted,
    Digest,
    DocumentId,
    Form,
    Hex,
    Integer,
    Items,
    Message,
    OrNull,
    Text,
)
from ragaudit.ledger.messages.policy import LARGE_B, Policy, QueryKind


class Packed(Form):
    """Base64 of 1..``longest`` times ``size`` bytes, which are not looked into."""

    def __init__(self, longest: int, size: int, what: str) -> None:
        # The length is bounded before anything is decoded: it is the sender's choice.
        self._characters = 4 * -(-size * longest // 3)
        self._longest, self._size, self._what = longest, size, what
        described = f"base64 of 1..{longest} {what}"
        bounds = {"minLength": 1, "maxLength": self._characters}
        super().__init__("string", b64_encode, **bounds, description=described)

    def read(self, value: Any) -> bytes:
        if not isinstance(value, str) or not 0 < len(value) <= self._characters:
            raise MalformedError("not such a text", expected=str(self.schema["description"]))
        data = b64_decode(value)
        if len(data) % self._size or len(data) > self._size * self._longest:
            expected = f"1..{self._longest} times {self._what}"
            raise MalformedError(f"{len(data)} bytes", expected=expected)
        return data


def int16s(longest: int, bound: int) -> Form:
    """Return the form of 1..``longest`` integers of absolute value at most ``bound`` < 2^15."""

    def read(data: bytes) -> tuple[int, ...]:
        entries = struct.unpack(f"<{len(data) // 2}h", data)
        if not -bound <= min(entries) <= max(entries) <= bound:
            raise MalformedError("an entry out of range", expected=f"-{bound}..{bound}")
        return entries

    return Converted(Packed(longest, 2, "i16"), read, vector_text)


def _finite(data: bytes) -> bytes:
    # Neither has an order among other numbers, so none of the scores would have one.
    if not all(map(math.isfinite, float32_values(data))):
        raise MalformedError("an entry that is not finite", expected="numbers")
    return data


def float32s(longest: int) -> Form:
    """Return the form of 1..``longest`` finite IEEE numbers of 32 bits, kept as bytes."""
    return Converted(Packed(longest, 4, "f32"), _finite, b64_encode)


def int16_bytes(vector: Sequence[int]) -> bytes:
    """Return integers in -2^15..2^15-1 as 16 bits each, little endian two's complement.

    Args:
        vector: an embedding or a row; these bytes are what its digest covers (spec 5.7, 5.8).
    """
    return struct.pack(f"<{len(vector)}h", *vector)


def vector_text(vector: Sequence[int]) -> str:
    """Return base64 of :func:`int16_bytes`, as JSON carries it; the inverse of `int16s`."""
    return b64_encode(int16_bytes(vector))


def float32_bytes(values: Sequence[float]) -> bytes:
    """Return numbers as IEEE numbers of 32 bits, little endian: q of a request with a vector.

    Args:
        values: d numbers that 32 bits can hold; others are rounded to the nearest.

    Raises:
        OverflowError: one above the largest of 32 bits.
    """
    return struct.pack(f"<{len(values)}f", *values)


def float32_values(data: bytes) -> tuple[float, ...]:
    """Return the numbers of :func:`float32_bytes`, exactly.

    Args:
        data: 4 bytes for each.
    """
    return struct.unpack(f"<{len(data) // 4}f", data)


QUESTION_TAG = "ragaudit/v1/query"
FLOAT_BYTES = 4
MAX_QUERY_BYTES = 8192
MAX_QUESTION_BYTES = FLOAT_BYTES * LIMITS.dimension + 64
"""Of `Question.data`."""


def _or_nothing(form: Form, nothing: str | bytes) -> Form:
    """Return the form of a member that is left out where nothing of its kind was asked."""
    write = form.write or str
    return Converted(
        OrNull(form), lambda found: found or nothing, lambda asked: write(asked) if asked else None
    )


QueryText: TypeAlias = Annotated[str, _or_nothing(Text(1, MAX_QUERY_BYTES), ""), OMITTED]
QueryVector: TypeAlias = Annotated[bytes, _or_nothing(float32s(LIMITS.dimension), b""), OMITTED]


def check_asked(kind: str, text: str, vector: bytes) -> None:
    """Check that members say what their kind says; MalformedError."""
    for name, asked in (("query", text), ("vector", vector)):
        if bool(asked) != (kind == ("vector" if name == "vector" else "text")):
            raise MalformedError("unknown member" if asked else "missing member", where=name)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a text, or a vector of the application's own.

    Attributes:
        text: 1..8192 bytes of UTF-8; empty with a vector.
        vector: d IEEE numbers of 32 bits, see `float32_values`; empty with a text.
        kind: which of the two.
    """

    text: str = field(default="", repr=False)
    vector: bytes = field(default=b"", repr=False)
    kind: QueryKind = "text"

    @property
    def data(self) -> bytes:
        """What query_digest covers."""
        # Under its kind: the bytes of a vector can be those of a text.
        return enc(QUESTION_TAG, self.kind, self.vector or self.text)

    @classmethod
    def parse(cls, data: bytes, policy: Policy) -> "Question":
        """Return the question of `data`, as a sampled record's response opens it.

        Args:
            data: from the provider.
            policy: of the window, which says what may be asked.

        Raises:
            MalformedError: not a question of this window.
        """
        kind, asked = decode(QUESTION_TAG, data, 2)
        match read_text(kind):
            case "text" if len(asked) <= MAX_QUERY_BYTES:
                question = cls(text=read_text(asked), kind="text")
            case "vector" if asked and len(asked) % FLOAT_BYTES == 0:
                question = cls(vector=asked, kind="vector")
            case _:
                raise MalformedRecord("not a question", where="query", expected="text or vector")
        question.check_policy(policy)
        return question

    def check_policy(self, policy: Policy) -> None:
        """Check that the window takes such questions.

        Args:
            policy: of the window: kinds, and d entries of a vector.

        Raises:
            UnsupportedError: another kind.
            MalformedRecord: a vector of another length, or of zeros, or no text.
        """
        if self.kind not in policy.retrieval.query_kinds:
            kinds = " or ".join(policy.retrieval.query_kinds)
            raise UnsupportedError(f"a {self.kind}", where="query", expected=kinds)
        if bool(self.text) == bool(self.vector):
            raise MalformedRecord("not a question", where="query", expected="text or vector")
        if self.vector and len(self.vector) != FLOAT_BYTES * policy.dimension:
            entries = len(self.vector) // FLOAT_BYTES
            expected = f"{policy.dimension}"
            raise MalformedRecord(f"{entries} entries", where="vector", expected=expected)
        values = float32_values(self.vector)
        # All scores would be alike, or have no order: nothing was asked.
        if self.vector and not (any(values) and all(map(math.isfinite, values))):
            raise MalformedRecord("all entries are zero, or one is not finite", where="vector")


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
            asked: a text, or the d numbers of a vector, see `float32_bytes`.
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
        embedding: d integers of norm at most B (5.9).
        sketch: of the embedding.
        salt_q: of ``query_digest``.
        salt_e: of ``embedding_digest``.
        salt_f: of ``filter_digest``.
        salt_s: of ``sketch_digest``.
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
