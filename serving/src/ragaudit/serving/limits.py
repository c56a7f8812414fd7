"""Limits on the connections that peers hold."""

from dataclasses import dataclass


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
