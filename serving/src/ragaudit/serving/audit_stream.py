"""The audit stream: who asked which tenant when, one JSON object a line, for a SIEM.

Names are those of the Elastic Common Schema; ours, which it has no names for, stand under
``ragaudit``. No line holds a query, a document, a path or an address of a document; of written
ones, and of those that an owner looked at, it has the SHA-256 of their ids.
"""

import json
import logging
import os
import stat
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from ragaudit.encoding.errors import UnavailableError
from ragaudit.serving.exchange import Exchange
from ragaudit.serving.settings import STANDARD_OUTPUT

__all__ = ["ECS_VERSION", "AuditStream", "change_event", "events"]

ECS_VERSION = "8.17.0"
_WRITES = {"add": "creation", "delete": "deletion"}


class AuditStream:
    """Appends to one file, or writes to standard output. Safe to use from several threads.

    A file that was renamed is made anew, so that it can be rotated. A line is written whole, or
    counts as lost; what is left of one that is torn is ended before the next line.
    """

    def __init__(self, path: Path) -> None:
        """Open the stream.

        Args:
            path: of the file, mode 600 if it is made; ``-`` for standard output.

        Raises:
            UnavailableError: the file cannot be written.
        """
        self._path = path
        self._lock = threading.Lock()
        self._failed = False
        try:
            self._lines = _Standard() if path == STANDARD_OUTPUT else _File(path)
        except OSError as error:
            raise self._unavailable(error) from None

    def write(self, event: dict[str, Any]) -> None:
        """Append an event; one that could not be written makes `check` raise.

        Args:
            event: of `events`.

        Raises:
            UnavailableError: the file cannot be written now, or took a part of the line.
        """
        line = json.dumps(event, separators=(",", ":"))
        with self._lock:
            try:
                torn = self._torn()
                self._lines.handle(logging.makeLogRecord({"msg": f"\n{line}" if torn else line}))
            except OSError as error:
                self._failed = True
                raise self._unavailable(error) from None
            self._failed = False

    def check(self) -> None:
        """Check that the last event was written.

        Raises:
            UnavailableError: it was not.
        """
        if self._failed:
            raise UnavailableError(
                "the last event was not written", where=str(self._path), expected="a disk with room"
            )

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _torn(self) -> bool:
        """Return whether what was written before may end within a line, whoever wrote it."""
        if self._path == STANDARD_OUTPUT:
            return self._failed
        try:
            if not stat.S_ISREG(self._path.stat().st_mode):
                return self._failed
            with self._path.open("rb") as file:
                return file.seek(0, os.SEEK_END) > 0 and _last_byte(file) != b"\n"
        except FileNotFoundError:
            return False

    def _unavailable(self, error: OSError) -> UnavailableError:
        reason = (error.strerror or type(error).__name__).lower()
        return UnavailableError(
            f"the audit stream cannot be written: {reason}",
            where=str(self._path),
            expected="a file in a writable folder",
        )


class _Whole(logging.FileHandler):
    """Raises what the library prints, and keeps nothing back of a line that failed.

    The library's stream goes on after a short write, and leaves with one call: lines of several
    processes are not mixed.
    """

    def handleError(self, record: logging.LogRecord) -> NoReturn:
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()
            self.stream = None  # opened again for the next line
        error = sys.exception()
        assert error is not None  # called where it is handled
        raise error


class _File(_Whole, WatchedFileHandler):
    """Lines of a file of its owner's."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="ascii", opener=_private)


class _Standard(_Whole):
    """Lines of standard output."""

    def __init__(self) -> None:
        super().__init__(str(STANDARD_OUTPUT))

    def _open(self) -> TextIOWrapper:
        return os.fdopen(os.dup(sys.stdout.fileno()), "a", encoding="ascii")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def events(
    exchange: Exchange,
    *,
    service: str,
    name: str,
    action: str,
    method: str,
    peer: str,
    status: int,
    seconds: float,
    ended: float,
) -> list[dict[str, Any]]:
    """Return the events of an exchange: one for each receipt, or one without.

    None if nobody was authenticated: strangers could fill the disk. None of what an operator only
    looks at: whoever watches a service looks many times a second.

    Args:
        service: ``ragaudit-prover`` or ``ragaudit-verifier``.
        name: of this service, such as the provider's.
        action: what was asked, as OpenAPI calls the operation.
        method: of the request.
        peer: address of the caller.
        status: of the answer; 0 if there was none.
        seconds: that it took.
        ended: Unix seconds.
    """
    looked = exchange.operator and method == "GET"
    if looked or not (exchange.account or exchange.operator or exchange.owner):
        return []
    write = exchange.write
    kind = "access" if write is None else _WRITES.get(write.operation, "change")
    # An interface may answer 200 and tell of an error in the body.
    good = 200 <= status < 400 and not exchange.reason
    role = "owner" if exchange.owner else "operator"
    user: dict[str, Any] = {"name": exchange.account or role}
    if exchange.user:
        user["effective"] = {"name": exchange.user}
    if exchange.operator or exchange.owner:
        user["roles"] = [role]
    event: dict[str, Any] = {
        "@timestamp": _time(ended),
        "ecs": {"version": ECS_VERSION},
        "event": {
            "kind": "event",
            "category": ["api"],
            "type": [kind, "allowed" if good else "denied"],
            "action": "retrieval" if exchange.receipts else action,
            "outcome": "success" if good else "failure",
            "id": exchange.id,
            "duration": round(1e9 * seconds),
        },
        "service": {"name": name, "type": service},
        "user": user,
        "source": {"ip": peer},
        "http": {"request": {"method": method}, "response": {"status_code": status}},
        "ragaudit": {"surface": exchange.surface},
    }
    if exchange.reason:
        event["event"]["reason"] = exchange.reason
    if exchange.tenant:
        event["organization"] = {"name": exchange.tenant}
    if exchange.trace:
        event["trace"] = {"id": exchange.trace}
    if write is not None:
        event["ragaudit"]["write"] = {"operation": write.operation, "ids": list(write.ids)}
        if write.where is not None:
            event["ragaudit"]["write"]["where"] = write.where
    if (look := exchange.look) is not None:
        event["ragaudit"]["window"] = look.window
        event["ragaudit"]["look"] = {"ids": list(look.ids), "positions": look.positions}
    return [
        {
            **event,
            "ragaudit": {
                **event["ragaudit"],
                "window": receipt.window,
                "receipt": {"index": receipt.index},
            },
        }
        for receipt in exchange.receipts
    ] or [event]


def change_event(
    *, service: str, name: str, window: str, tenant: str, noticed: float
) -> dict[str, Any]:
    """Return the event of documents that were changed in their store, not through this service.

    Args:
        service, name: as of `events`.
        window: that has committed to the documents.
        tenant: whose they are.
        noticed: Unix seconds.
    """
    return {
        "@timestamp": _time(noticed),
        "ecs": {"version": ECS_VERSION},
        "event": {
            "kind": "event",
            "category": ["database"],
            "type": ["change"],
            "action": "index-stale",
            "outcome": "unknown",
        },
        "service": {"name": name, "type": service},
        "organization": {"name": tenant},
        "ragaudit": {"window": window},
    }


def _time(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
