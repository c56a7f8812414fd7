"""The one kind of query, filter and answer that all surfaces translate from and to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.prover.store.accounts import Account

Condition = Mapping[str, Any]
"""A filter in the grammar of docs/spec (§15), as JSON value, before it is checked."""

PRIVATE_SIMILARITY = 1.0
# Not 0: clients divide by it. Not small enough to vanish in 1 - distance either.
PRIVATE_DISTANCE = 2.0**-10


@dataclass(frozen=True, slots=True)
class Query:
    """One question: a text or a vector.

    Attributes:
        question: text, or the vector as d little-endian float32.
        top_k: K on the wire: what is charged and proven, whatever the application uses of it.
        condition: the filter; None for all rows.
    """

    question: str | bytes = field(repr=False)
    top_k: int
    condition: Condition | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that was served.

    Attributes:
        metadata: as the store returned it.
        score: s / B^2 in an integrity window; None where only the selection may be known.
        vector: X / B as floats, the row's committed embedding.
    """

    id: str = field(repr=False)
    content: str = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    vector: tuple[float, ...] = field(repr=False)
    score: float | None = field(default=None, repr=False)

    @property
    def similarity(self) -> float:
        """The score that leaves: the true one, or the constant of private windows."""
        return PRIVATE_SIMILARITY if self.score is None else self.score

    @property
    def distance(self) -> float:
        """The same as a distance."""
        return PRIVATE_DISTANCE if self.score is None else 1.0 - self.score


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: its rows in their order, and the id of its receipt."""

    receipt: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """A generated answer, and the id of its receipt.

    Attributes:
        tokens: how many it has; 0 of a whole answer, whose tokens nobody counted.
        ended: whether the model ended it, and not the policy's limit; of a whole answer that is
            not known, and True.
        time: when it left, Unix milliseconds.
    """

    receipt: str
    text: str = field(repr=False)
    tokens: int
    ended: bool
    time: int


@dataclass(frozen=True, slots=True)
class Index:
    """What everybody may know of a tenant's index: the policy says it.

    Attributes:
        columns: type of each public column, by name.
    """

    rows: int
    dimension: int
    metric: Literal["cosine", "inner-product", "l2"]
    top_k_max: int
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What the store answered to a write that was passed on."""

    status: int
    body: bytes = field(repr=False)


class Port(Protocol):
    """What the surfaces ask of the prover; they hold no rule of the protocol themselves."""

    def account(self, key: str) -> Account:
        """Return the account of an API key; NotAuthenticated if there is none."""

    def end_user(self, account: Account, *, register: bool) -> Account:
        """Return an end user, made now if ``register`` allows it; else NotServed."""

    def index(self, account: Account) -> Index:
        """Return what is known of the index that answers this account."""

    def ask(
        self, account: Account, queries: Sequence[Query], idempotency_key: str | None
    ) -> list[Answer]:
        """Answer, record and charge each query; nothing is charged if one cannot be asked."""

    async def complete(self, account: Account, question: str, ignored: Sequence[str]) -> Completion:
        """Generate an answer; rows pay for it before anything is generated."""

    def fetch(self, account: Account, ids: Sequence[str]) -> list[Hit]:
        """Return those of the rows that this account was served in this window."""

    def forward(self, tenant: str, operation: str, body: bytes) -> Forwarded:
        """Pass a write on to the store, and mark the index stale."""


def leaf(op: str, key: str, value: Any) -> Condition:
    """Return the condition on one public column.

    Args:
        op: eq, ne, in, nin, lt, le, gt or ge.
        key: name of the column.
        value: a scalar, or a list of them for in and nin.

    Raises:
        MalformedRequest: a value of another kind.
    """
    values = value if op in ("in", "nin") else [value]
    if not isinstance(values, list) or not all(map(_possible, values)):
        expected = "a list of texts, numbers or booleans" if op in ("in", "nin") else "a scalar"
        raise MalformedRequest("not a value", where="filter", expected=expected)
    plain = [_plain(one) for one in values]
    return {"op": op, "key": key, "value": plain if op in ("in", "nin") else plain[0]}


def _plain(value: Any) -> Any:
    """Return a whole number as an integer: clients send 10.0 to a column of integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _possible(value: Any) -> bool:
    # A text such as "nan" becomes a number in some interfaces.
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that all of these hold, of which there is one at least."""
    return _joined("and", conditions)


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that any of these holds, of which there is one at least."""
    return _joined("or", conditions)


def negated(condition: Condition) -> Condition:
    """Return the condition that this one does not hold."""
    return {"op": "not", "of": [condition]}


def _joined(op: str, conditions: Sequence[Condition]) -> Condition:
    if not conditions:
        raise MalformedRequest("an empty list", where="filter", expected="one condition at least")
    return conditions[0] if len(conditions) == 1 else {"op": op, "of": list(conditions)}


def check_threshold(threshold: float | None) -> None:
    """Check that a row can pass a threshold.

    Args:
        threshold: a similarity; None for none.

    Raises:
        UnsupportedError: above what any row has.
    """
    if threshold is not None and not threshold <= PRIVATE_SIMILARITY:
        raise UnsupportedError("nothing can pass", where="score_threshold", expected="at most 1.0")


def passing(hits: Sequence[Hit], threshold: float | None) -> list[Hit]:
    """Return the rows from a threshold on, in their order; all of them if it is None."""
    return [hit for hit in hits if threshold is None or hit.similarity >= threshold]
