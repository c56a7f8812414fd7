"""What a request asks: a text, or a vector of the application's own (docs/spec 5.8)."""

import math
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import decode, enc, read_text
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.kernel import OMITTED, Converted, Form, OrNull, Text
from ragaudit.ledger.messages.policy import Policy, QueryKind
from ragaudit.ledger.messages.vectors import float32_values, float32s

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
        vector: d IEEE numbers of 32 bits, see `vectors.float32_values`; empty with a text.
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
