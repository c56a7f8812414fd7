"""One request and its answer, as metrics, log lines, audit stream and traces tell of it.

Handlers `note` what they know of it, wherever they run: the exchange is found by the context, which
threads of a request share. It holds names and numbers of records, never a query or a document.
"""

import json
import random
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from ragaudit import http

__all__ = [
    "Exchange",
    "Look",
    "Phase",
    "Receipt",
    "Write",
    "begun",
    "current",
    "note",
    "phase",
    "step_aside",
]

Phase = Literal["admit", "embed", "noise", "score", "fetch", "generate", "commit", "sign"]

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_TRACESTATE = re.compile(r"[\x20-\x7e]{1,512}")
_NONE = re.compile(r"0+")
# Ids tell requests apart, and keep no secret: the system is not asked for each.
_IDS = random.Random(secrets.randbits(128))  # noqa: S311


@dataclass(frozen=True)
class Receipt:
    """Where a receipt's record stands: a window's name, and an index of its log."""

    window: str
    index: int

    def __str__(self) -> str:
        return f"{self.window}.{self.index}"


@dataclass(frozen=True)
class Write:
    """What was written to a store, without what it says.

    Attributes:
        operation: ``add``, ``upsert``, ``update`` or ``delete``.
        ids: SHA-256 of each id, hexadecimal.
        where: that of the filter which chose the rows; None where ids did alone.
    """

    operation: str
    ids: tuple[str, ...]
    where: str | None = None

    @classmethod
    def of(cls, operation: str, ids: Sequence[str], *, where: object = None) -> "Write":
        """Return what is told of a write.

        Args:
            operation: that the store is asked for.
            ids: of rows.
            where: JSON of a filter, as it is passed on; None without one.
        """
        return cls(
            operation,
            tuple(map(_digest, ids)),
            None if where is None else _digest(json.dumps(where, sort_keys=True)),
        )


@dataclass(frozen=True)
class Look:
    """At which documents an owner looked, without their ids.

    Attributes:
        window: by name.
        ids: SHA-256 of each id that was asked for, hexadecimal.
        positions: how many rows were asked for by their places.
    """

    window: str
    ids: tuple[str, ...] = ()
    positions: int = 0

    @classmethod
    def of(cls, window: str, ids: Sequence[str] = (), positions: int = 0) -> "Look":
        """Return what is told of a look; arguments as the attributes, ids as they are."""
        return cls(window, tuple(map(_digest, ids)), positions)


@dataclass
class Exchange:
    """What is known of one request.

    Attributes:
        id: 16 hexadecimal digits, of this request alone.
        traceparent, tracestate: W3C Trace Context, as it is passed on; empty if there is none.
        surface: by which API it came, if a handler says so.
        account, tenant: who asked whom, once it is authenticated; an operator's name is its role.
        user: whom the account named; empty if it asked for itself.
        operator: whether an operator or auditor asked.
        owner: whether the owner of the tenant's documents asked.
        receipts: of the answers.
        write: what a store was asked to write, if anything.
        look: at what an owner looked, if one did.
        reason: name of the problem that was answered.
        denied: whether a path was refused that would lead around the receipts.
        seconds: by phase of a retrieval.
        leave_turn: lets the caller's next request begin, while this one goes on.
    """

    id: str = field(default_factory=lambda: f"{_IDS.getrandbits(64):016x}")
    traceparent: str = ""
    tracestate: str = ""
    surface: str = ""
    account: str = ""
    user: str = ""
    tenant: str = ""
    operator: bool = False
    owner: bool = False
    receipts: list[Receipt] = field(default_factory=list)
    write: Write | None = None
    look: Look | None = None
    reason: str = ""
    denied: bool = False
    seconds: dict[Phase, float] = field(default_factory=dict)
    leave_turn: Callable[[], None] = field(default=lambda: None, repr=False)

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Exchange":
        """Return the exchange of a request, with its trace if it has a valid one.

        Args:
            headers: of the request, names in lower case.
        """
        parent = headers.get("traceparent", "")
        found = _TRACEPARENT.fullmatch(parent)
        # Anything else is a new trace (W3C Trace Context §3.2): nobody's text is passed on.
        if found is None or any(_NONE.fullmatch(each) for each in found.groups()):
            return cls()
        state = headers.get("tracestate", "")
        return cls(traceparent=parent, tracestate=state if _TRACESTATE.fullmatch(state) else "")

    @property
    def trace(self) -> str:
        """The trace's id, 32 hexadecimal digits; empty if there is none."""
        return self.traceparent.split("-")[1] if self.traceparent else ""

    def trace_headers(self) -> dict[str, str]:
        """Return the headers that a call made for this request carries on."""
        named = {"traceparent": self.traceparent, "tracestate": self.tracestate}
        return {name: value for name, value in named.items() if value and self.traceparent}


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def begun(exchange: Exchange) -> Iterator[Exchange]:
    """Make an exchange the current one within the block; calls within carry its trace on.

    Args:
        exchange: of a request that arrived.
    """
    token: Token[Exchange | None] = _current.set(exchange)
    before = http.carried.set(exchange.trace_headers)
    try:
        yield exchange
    finally:
        http.carried.reset(before)
        _current.reset(token)


def current() -> Exchange | None:
    """Return the exchange of the request that is being worked on; None outside of one."""
    return _current.get()


def note(
    *,
    surface: str | None = None,
    account: str | None = None,
    user: str | None = None,
    tenant: str | None = None,
    operator: bool | None = None,
    owner: bool | None = None,
    receipt: Receipt | None = None,
    write: Write | None = None,
    look: Look | None = None,
    reason: str | None = None,
    denied: bool | None = None,
) -> None:
    """Add what is known of the current exchange; without one, do nothing.

    Args:
        surface: one of a few names: it becomes a label of metrics.
        account, user, tenant: only once authenticated.
        operator: whether the operator asks.
        owner: whether the owner of the tenant's documents asks.
        receipt: one more.
        write: before it is passed on.
        look: before it is looked up.
        reason: name of a problem; one of a few, as `surface`.
        denied: whether the path is one that leads around the receipts.
    """
    exchange = _current.get()
    if exchange is None:
        return
    given = {
        "surface": surface, "account": account, "user": user, "tenant": tenant, "reason": reason,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            setattr(exchange, name, value)
    for name, flag in (("operator", operator), ("owner", owner), ("denied", denied)):
        if flag is not None:
            setattr(exchange, name, flag)
    exchange.write = write or exchange.write
    exchange.look = look or exchange.look
    if receipt is not None:
        exchange.receipts.append(receipt)


@contextmanager
def phase(name: Phase) -> Iterator[None]:
    """Count the block's time as a phase of the current exchange's retrieval.

    Args:
        name: of the phase.
    """
    exchange, since = _current.get(), time.perf_counter()
    try:
        yield
    finally:
        if exchange is not None:
            spent = time.perf_counter() - since
            exchange.seconds[name] = exchange.seconds.get(name, 0.0) + spent


def step_aside() -> None:
    """Let the caller's next request begin: the current one only waits from now on.

    Call it on the event loop.
    """
    if (exchange := _current.get()) is not None:
        exchange.leave_turn()
