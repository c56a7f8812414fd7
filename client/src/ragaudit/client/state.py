"""What a client must not forget: its nonce chain, its revealed promise, its receipts.

    <directory>/registration.json     seed and anchor of the chain, durable before it is sent
    <directory>/promise.json          the promise, durable before its nonce is revealed
    <directory>/progress.json         the next counter
    <directory>/receipts/<counter>.json
    <directory>/rejected/<counter>-<random>.json     answers that a check refused: evidence
    <directory>/lock                  held while a client uses the directory

Every file is written beside its name, flushed to the disk and renamed, and the folder is
flushed: a crash leaves the old content or the new one. Files are readable by their owner only.
"""

import fcntl
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.client.errors import StateConflict
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import hex_decode

__all__ = ["Chain", "PendingPromise", "StateDirectory", "write_durably"]

REGISTRATION_FORMAT = "ragaudit/v1/client/registration"
PENDING_FORMAT = "ragaudit/v1/client/promise"
PROGRESS_FORMAT = "ragaudit/v1/client/progress"
SEED_BYTES = 32


@dataclass(frozen=True)
class Chain:
    """The seed of a nonce chain and the registration it belongs to."""

    origin: str
    pseudonym: bytes
    length: int
    seed: bytes = field(repr=False)


@dataclass(frozen=True)
class PendingPromise:
    """A promise whose nonce may have been revealed, with the request it answers."""

    counter: int
    request: dict[str, Any] = field(repr=False)
    promise: dict[str, Any] = field(repr=False)


class StateDirectory:
    """The durable state of one registration; one process at a time."""

    def __init__(self, directory: Path) -> None:
        """Open or create the directory.

        Raises:
            StateConflict: another client uses it at this moment.
        """
        self.directory = directory
        self._receipts = directory / "receipts"
        self._rejected = directory / "rejected"
        for each in (directory, self._receipts, self._rejected):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StateConflict(
                "another client uses this state directory",
                where=str(directory),
                expected="one client at a time: two would promise one nonce twice",
            ) from error

    def close(self) -> None:
        """Release the directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def chain(self) -> Chain | None:
        """Return the chain, or None before the first registration."""
        value = self._read("registration.json", REGISTRATION_FORMAT)
        if value is None:
            return None
        return Chain(
            origin=value["origin"],
            pseudonym=hex_decode(value["pseudonym"], 32),
            length=value["length"],
            seed=hex_decode(value["seed"], SEED_BYTES),
        )

    def start_chain(self, origin: str, pseudonym: bytes, length: int) -> Chain:
        """Draw a fresh seed and keep it; StateConflict if there is a chain already."""
        if self.chain() is not None:
            raise StateConflict("a nonce chain exists already", where=str(self.directory))
        chain = Chain(origin, pseudonym, length, secrets.token_bytes(SEED_BYTES))
        value = {
            "format": REGISTRATION_FORMAT,
            "origin": origin,
            "pseudonym": pseudonym.hex(),
            "length": length,
            "seed": chain.seed.hex(),
        }
        self._write("registration.json", value)
        return chain

    def next_counter(self) -> int:
        """Return the counter of the next query, 0 at first."""
        value = self._read("progress.json", PROGRESS_FORMAT)
        return 0 if value is None else int(value["next"])

    def pending(self) -> PendingPromise | None:
        """Return the promise that awaits its answer, or None."""
        value = self._read("promise.json", PENDING_FORMAT)
        if value is None or value["counter"] < self.next_counter():
            return None  # answered; a crash came before the file was removed
        return PendingPromise(value["counter"], value["request"], value["promise"])

    def keep_promise(self, pending: PendingPromise) -> None:
        """Make the promise durable; only afterwards may its nonce be revealed.

        Raises:
            StateConflict: another promise awaits its answer.
        """
        if (earlier := self.pending()) is not None and earlier != pending:
            raise StateConflict(
                "another promise awaits its answer",
                where=f"counter {earlier.counter}",
                expected="at most one revealed, unanswered promise",
            )
        value = {
            "format": PENDING_FORMAT,
            "counter": pending.counter,
            "request": pending.request,
            "promise": pending.promise,
        }
        self._write("promise.json", value)

    def keep_answer(self, counter: int, receipt_file: dict[str, Any]) -> Path:
        """Make the receipt durable, advance the counter, forget the promise."""
        path = self._receipts / f"{counter}.json"
        write_durably(path, dumps(receipt_file))
        self._write("progress.json", {"format": PROGRESS_FORMAT, "next": counter + 1})
        (self.directory / "promise.json").unlink(missing_ok=True)
        return path

    def replace_receipt(self, counter: int, receipt_file: dict[str, Any]) -> Path:
        """Write the completed receipt over the one that was kept."""
        path = self._receipts / f"{counter}.json"
        write_durably(path, dumps(receipt_file))
        return path

    def keep_rejected(self, counter: int, evidence: bytes) -> Path:
        """Keep what a check refused, as received; the counter does not advance."""
        path = self._rejected / f"{counter}-{secrets.token_hex(4)}.json"
        write_durably(path, evidence)
        return path

    def receipts(self) -> dict[int, Path]:
        """Return the receipts that were kept, by counter."""
        found = {int(path.stem): path for path in self._receipts.glob("*.json")}
        return dict(sorted(found.items()))

    def _read(self, name: str, form: str) -> dict[str, Any] | None:
        path = self.directory / name
        try:
            value = loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except MalformedError as error:
            raise StateConflict("the state file is damaged", where=str(path)) from error
        if not isinstance(value, dict) or value.get("format") != form:
            raise StateConflict("not a state file of this client", where=str(path), expected=form)
        return value

    def _write(self, name: str, value: dict[str, Any]) -> None:
        write_durably(self.directory / name, dumps(value))


def write_durably(path: Path, data: bytes) -> None:
    """Replace the file at once: after a crash it holds the old bytes or ``data``, flushed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
