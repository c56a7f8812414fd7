"""What a request asks: a text, or a vector of the application's own (docs/spec 5.8)."""

import math
from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.tagged import decode, enc, read_text
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.policy import Policy, QueryKind
from ragaudit.ledger.messages.vectors import float32_values

QUESTION_TAG = "ragaudit/v2/query"
FLOAT_BYTES = 4
MAX_QUERY_BYTES = 8192
MAX_QUESTION_BYTES = FLOAT_BYTES * LIMITS.dimension + 64
"""Of `Question.data` in a v2 window."""


def query_members(value: Any) -> str:
    """Return the names of the members that say what was asked, in the form that ``value`` has.

    Args:
        value: a request or openings: in windows of version 2 with ``kind`` among their members.
    """
    match value:
        case {"kind": "vector"}:
            return "kind vector"
        case {"kind": _}:
            return "kind query"
    return "query"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a text, or a vector of the application's own.

    Attributes:
        text: 1..8192 bytes of UTF-8; empty with a vector.
        vector: d IEEE numbers of 32 bits, see `vectors.float32_values`; empty with a text.
        kind: None in windows of a v1 policy, which know texts only and do not say so.
    """

    text: str = field(default="", repr=False)
    vector: bytes = field(default=b"", repr=False)
    kind: QueryKind | None = None

    @property
    def data(self) -> bytes:
        """What query_digest covers: the text alone in v1, kind and q encoded in v2."""
        if self.kind is None:
            return self.text.encode()
        # Under its kind: the bytes of a vector can be those of a text.
        return enc(QUESTION_TAG, self.kind, self.vector or self.text)

    @classmethod
    def parse(cls, data: bytes, policy: Policy) -> "Question":
        """Return the question of `data`, as a sampled record's response opens it.

        Args:
            data: from the provider.
            policy: of the window, whose version says how it is encoded.

        Raises:
            MalformedError: not a question of this window.
        """
        if policy.version == 1:
            return cls(read_text(data))
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
            policy: of the window: form, kinds, and d entries of a vector.

        Raises:
            UnsupportedError: another form or kind.
            MalformedRecord: a vector of another length, or of zeros, or no text.
        """
        if (self.kind is None) != (policy.version == 1):
            form = "no kind" if policy.version == 1 else "a kind"
            raise UnsupportedError("a request of another version", where="query", expected=form)
        if self.kind is not None and self.kind not in policy.retrieval.query_kinds:
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

    def to_json(self) -> dict[str, Any]:
        """Return the question as members of a larger JSON object."""
        if self.kind is None:
            return {"query": self.text}
        if self.kind == "vector":
            return {"kind": self.kind, "vector": b64_encode(self.vector)}
        return {"kind": self.kind, "query": self.text}

    @classmethod
    def read(cls, f: Fields, names: str) -> "Question":
        """Return the question among the members of a larger object.

        Args:
            f: an object that has ``names`` among its members.
            names: see `query_members`.

        Raises:
            MalformedRecord: ill-typed or out of range.
        """
        if names == "query":
            return cls(f.text("query", 1, MAX_QUERY_BYTES))
        if names == "kind vector":
            return cls(vector=f.floats("vector", LIMITS.dimension), kind="vector")
        f.constant("kind", "text")
        return cls(f.text("query", 1, MAX_QUERY_BYTES), kind="text")
