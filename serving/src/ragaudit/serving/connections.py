"""HTTP/1.1 connections with deadlines: who sends or reads too slowly is cut off.

uvicorn waits without limit for the rest of a head or body, and for a reader. Here every connection
that the service waits for has a deadline, and their number is bounded: a new one displaces the one
that has been waited for longest, so that half-open connections cannot shut others out.
"""

from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["ConnectionLimits", "protocol_factory"]

READ_BYTES = 2**16  # that are taken of a connection at a time


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds on what peers may hold, all in force before a request reaches the application.

    Attributes:
        connections: open at a time; when they are used up, the one that has been waited for longest
            is closed for the next. Lower than half of the file descriptors in any case.
        head_seconds: until the head of a request has arrived, from the connection's opening or the
            first byte on.
        idle_seconds: between two requests of a connection.
        body_seconds: until a body has arrived, and one second more for each ``body_rate`` bytes.
        body_rate: bytes a second that an upload reaches at least.
        write_seconds: without progress of a reply that its reader does not take.
        stop_seconds: for requests that are being answered when the service stops.
    """

    connections: int = 900
    head_seconds: float = 10.0
    idle_seconds: int = 15
    body_seconds: float = 20.0
    body_rate: int = 16_384
    write_seconds: float = 30.0
    stop_seconds: int = 30


def protocol_factory(limits: ConnectionLimits) -> Callable[..., "LimitedConnection"]:
    """Return a factory of one server's connections, which share the bound on their number.

    Args:
        limits: for each connection, and for all of them together.
    """
    waited_for: dict[LimitedConnection, None] = {}

    def make(**parts: Any) -> LimitedConnection:
        return LimitedConnection(limits, waited_for, **parts)

    return make


class LimitedConnection(H11Protocol):
    """One connection. It is in ``waited_for`` while it is the peer's turn to send."""

    def __init__(
        self, limits: ConnectionLimits, waited_for: "dict[LimitedConnection, None]", **parts: Any
    ) -> None:
        super().__init__(**parts)
        self._limits = limits
        self._waited_for = waited_for
        self._deadline: TimerHandle | None = None
        self._phase = ""
        self._since = 0.0
        self._received = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Admit a connection, in the place of the one waited for longest if there are too many."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # asyncio's reads, of which one may wait for each peer
            transport.max_size = READ_BYTES
        if len(self.connections) > self._limits.connections:
            oldest = next(iter(self._waited_for), self)
            oldest._leave()
            oldest.transport.abort()
            if oldest is self:
                return
        self._await_peer("head", self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its deadline."""
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the peer, and set the deadline of the next."""
        self._received += len(data)
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Set the deadline of the next request, or of the close."""
        super().on_response_complete()
        if self.transport.is_closing():
            # A peer that does not read would keep what is left, and the connection, for ever.
            self._abort_in(self._limits.write_seconds)
        else:
            self._watch()

    def pause_writing(self) -> None:
        """Set the deadline of a reader that does not read."""
        super().pause_writing()
        self._abort_in(self._limits.write_seconds)

    def resume_writing(self) -> None:
        """Lift that deadline."""
        super().resume_writing()
        if self.transport.is_closing():
            self._abort_in(self._limits.write_seconds)
            return
        self._cancel()
        self._phase = ""
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, and set the deadline of the close."""
        super().timeout_keep_alive_handler()
        self._abort_in(self._limits.write_seconds)

    def shutdown(self) -> None:
        """Stop; a request that has not arrived in full is aborted."""
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()
            return
        super().shutdown()
        if self.transport.is_closing():
            self._abort_in(self._limits.write_seconds)

    def _watch(self) -> None:
        """Set the deadline for what the peer has to send now."""
        if self.transport.is_closing() or self.flow.write_paused:
            return
        if self.conn.their_state is h11.SEND_BODY:
            self._await_peer("body", self._limits.body_seconds)
        elif self.conn.their_state is h11.IDLE:
            # Between two requests uvicorn's own timer runs, until the first byte of the next.
            begun = bool(self.conn.trailing_data[0]) or self.timeout_keep_alive_task is None
            if begun:
                self._await_peer("head", self._limits.head_seconds)
            else:
                self._cancel()
                self._phase = ""
                self._waited_for[self] = None
        else:
            self._leave()

    def _await_peer(self, phase: str, seconds: float) -> None:
        if phase == self._phase:
            return
        self._cancel()
        # The deadline of a phase runs from its beginning: bytes that trickle in do not renew it.
        self._phase, self._since, self._received = phase, self.loop.time(), 0
        self._waited_for[self] = None
        self._deadline = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        """Cut the peer off, unless its body arrives at the rate that is demanded."""
        self._deadline = None
        if self._phase == "body":
            allowed = self._limits.body_seconds + self._received / self._limits.body_rate
            remaining = self._since + allowed - self.loop.time()
            if self.flow.read_paused:  # the delay is ours, not the peer's
                remaining = self._limits.body_seconds
            if remaining > 0:
                self._deadline = self.loop.call_later(remaining, self._late)
                return
        self.transport.abort()

    def _abort_in(self, seconds: float) -> None:
        self._cancel()
        self._phase = "leaving"
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _leave(self) -> None:
        self._cancel()
        self._phase = ""
        self._waited_for.pop(self, None)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
