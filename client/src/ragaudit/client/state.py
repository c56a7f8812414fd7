"""What a client must not forget: its keys, its revealed promise, its receipts.

    <directory>/registration.json     dispute key and seed of the chain, durable before their
                                      public parts are sent
    <directory>/account.json          the registration as the provider shows it, for receipt check
    <directory>/promise.json          the promise, durable before its nonce is revealed
    <directory>/progress.json         the next counter
    <directory>/receipts/<counter>.json
    <directory>/answers/<counter>.json               generated answers, with their receipts
    <directory>/promises/<counter>.json              what each of them was promised to be
    <directory>/rejected/<counter>-<random>.json     answers that a check refused: evidence
    <directory>/lock                  held while a client uses the directory

Every file is written beside its name, flushed to the disk and renamed, and the folder is
flushed: a crash leaves the old content or the new one. Files are readable by their owner only.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.client.errors import StateConflict
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.shown import RegistrationEntry, ShownAccount

__all__ = [
    "AccountKeys",
    "PendingPromise",
    "StateDirectory",
    "key_of",
    "read_bytes",
    "read_key",
    "write_durably",
]

REGISTRATION_FORMAT = "ragaudit/v1/client/registration"
PENDING_FORMAT = "ragaudit/v1/client/promise"
PROGRESS_FORMAT = "ragaudit/v1/client/progress"
SEED_BYTES = 32
# Far above any receipt: a path to something endless must not fill the memory.
MAX_FILE_BYTES = 2**28


@dataclass(frozen=True)
class AccountKeys:
    """The secrets of one registration.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account in it.
        dispute_key: signs what only the account can say.
        length: of the nonce chain, r; 0 without one.
        seed: of the nonce chain, 32 bytes; None for a plain account.
    """

    origin: str
    pseudonym: bytes
    dispute_key: PrivateKey
    length: int = 0
    seed: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class PendingPromise:
    """A promise whose nonce may have been revealed, with the request it answers.

    Attributes:
        counter: of the query.
        request, promise: JSON, as sent and received.
        sent: False only if it is known that the nonce has not left.
        claimed: whether the verifier has the claim.
    """

    counter: int
    request: dict[str, Any] = field(repr=False)
    promise: dict[str, Any] = field(repr=False)
    sent: bool = True
    claimed: bool = False


class StateDirectory:
    """The durable state of one registration; one process at a time.

    Every method raises UnavailableError if the disk does not serve it, and StateConflict for a file
    that is damaged or of another program.

    Attributes:
        directory: where it is.
    """

    def __init__(self, directory: Path) -> None:
        """Open or create the directory.

        Args:
            directory: of one account in one window; made with mode 700.

        Raises:
            StateConflict: another client uses it at this moment.
            UnavailableError: it cannot be made.
        """
        self.directory = directory
        self._receipts = directory / "receipts"
        self._promises = directory / "promises"
        self._rejected = directory / "rejected"
        with _using(directory):
            folders = (self._receipts, directory / "answers", self._promises, self._rejected)
            for folder in (directory, *folders):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Held by the process, not by the file's existence: after a crash it is free.
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

    def keys(self) -> AccountKeys | None:
        """Return the keys, or None before the first registration."""
        value = self._read("registration.json", REGISTRATION_FORMAT)
        if value is None:
            return None
        seed = value["seed"]
        return AccountKeys(
            origin=value["origin"],
            pseudonym=hex_decode(value["pseudonym"], 32),
            dispute_key=PrivateKey.from_seed(hex_decode(value["dispute_seed"], SEED_BYTES)),
            length=value["length"],
            seed=None if seed is None else hex_decode(seed, SEED_BYTES),
        )

    def make_keys(
        self, origin: str, pseudonym: bytes, length: int, dispute_key: PrivateKey | None = None
    ) -> AccountKeys:
        """Draw fresh keys, keep them and return them.

        Args:
            origin: of the window's log.
            pseudonym: of the account, 32 bytes.
            length: of the nonce chain; 0 for none.
            dispute_key: one that there is already, None to draw it.

        Raises:
            StateConflict: there are keys already.
        """
        # Another seed would orphan the registered anchor: no query could be asked any more.
        if self.keys() is not None:
            raise StateConflict("the account has keys already", where=str(self.directory))
        # Drawn here and sent nowhere: whoever has the seed knows every nonce before its query.
        seed = secrets.token_bytes(SEED_BYTES) if length else None
        keys = AccountKeys(origin, pseudonym, dispute_key or PrivateKey.generate(), length, seed)
        value = {
            "format": REGISTRATION_FORMAT,
            "origin": origin,
            "pseudonym": pseudonym.hex(),
            "length": length,
            "seed": None if seed is None else seed.hex(),
            "dispute_seed": keys.dispute_key.seed().hex(),
        }
        self._write("registration.json", value)
        return keys

    def keep_account(self, account: ShownAccount) -> None:
        """Keep the account as the provider shows it, for later checks of its receipts elsewhere.

        Args:
            account: with the inclusion proof of its registration, checked.
        """
        self._write("account.json", account.to_json())

    def registration(self) -> RegistrationEntry | None:
        """Return the log entry of the registration with its proof, or None if none was checked.

        Raises:
            StateConflict: the file is damaged.
        """
        path = self.directory / "account.json"
        try:
            with _using(path):
                return ShownAccount.from_json(loads(path.read_bytes())).registration
        except FileNotFoundError:
            return None
        except MalformedError as error:
            raise StateConflict("the state file is damaged", where=str(path)) from error

    def next_counter(self) -> int:
        """Return the counter of the next query, 0 at first."""
        value = self._read("progress.json", PROGRESS_FORMAT)
        return 0 if value is None else int(value["next"])

    def pending(self) -> PendingPromise | None:
        """Return the promise that awaits its answer, or None."""
        value = self._read("promise.json", PENDING_FORMAT)
        if value is None or value["counter"] < self.next_counter():
            return None  # answered; a crash came before the file was removed
        return PendingPromise(
            value["counter"], value["request"], value["promise"], value["sent"], value["claimed"]
        )

    def keep_promise(self, pending: PendingPromise) -> None:
        """Make the promise durable, or its changed state; only then may its nonce be revealed.

        Args:
            pending: new, or the kept one with another ``sent`` or ``claimed``.

        Raises:
            StateConflict: another promise awaits its answer.
        """
        earlier = self.pending()
        # Two revealed nonces with one answer: the provider could choose between two draws of noise.
        if earlier is not None and earlier.promise != pending.promise:
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
            "sent": pending.sent,
            "claimed": pending.claimed,
        }
        self._write("promise.json", value)

    def drop_promise(self) -> None:
        """Forget a promise that was answered, or whose nonce is known not to have left."""
        with _using(self.directory):
            (self.directory / "promise.json").unlink(missing_ok=True)

    def skip(self, counter: int) -> None:
        """Go on behind a counter whose charge was voided before its nonce left.

        Args:
            counter: the next one so far.

        Raises:
            StateConflict: a promise is pending.
        """
        if self.pending() is not None:
            raise StateConflict("a promise awaits its answer", where=f"counter {counter}")
        self._write("progress.json", {"format": PROGRESS_FORMAT, "next": counter + 1})

    def keep_answer(self, counter: int, receipt_file: bytes, *, folder: str = "receipts") -> Path:
        """Make the receipt durable, advance the counter, put the promise beside the receipt.

        Args:
            counter: of the query, from 0.
            receipt_file: canonical JSON, both parts.
            folder: of its channel.

        Returns:
            Where the receipt is.
        """
        # Kept beside its receipt: step 10 of a later check compares the record with it (spec 5.9).
        if (pending := self.pending()) is not None:
            write_durably(self._promises / f"{counter}.json", dumps(pending.promise))
        # In this order a crash makes the client reveal again; it never skips or repeats a counter.
        path = self.keep_receipt(counter, receipt_file, folder=folder)
        self._write("progress.json", {"format": PROGRESS_FORMAT, "next": counter + 1})
        self.drop_promise()
        return path

    def keep_receipt(self, counter: int, receipt_file: bytes, *, folder: str = "receipts") -> Path:
        """Make a receipt durable, a plain account's or a completed one; return where it is.

        Args:
            counter: of the query; an earlier file of it is replaced.
            receipt_file: canonical JSON, both parts.
            folder: of its channel.
        """
        path = self.path_of(counter, folder)
        write_durably(path, receipt_file)
        return path

    def path_of(self, counter: int, folder: str) -> Path:
        """Return where a receipt is kept, or would be; arguments as of `keep_receipt`."""
        return self.directory / folder / f"{counter}.json"

    def keep_rejected(self, counter: int, evidence: bytes) -> Path:
        """Keep evidence that a check refused; return where. No counter advances.

        Args:
            counter: expected one; -1 where there was none.
            evidence: what was received, in the form in which a dispute needs it.
        """
        # A random name: a second false answer must not replace the first.
        path = self._rejected / f"{counter}-{secrets.token_hex(4)}.json"
        write_durably(path, evidence)
        return path

    def receipts(self) -> dict[int, Path]:
        """Return the paths of the receipts by counter, in rising order."""
        # By number: as names, 10 would come before 2.
        paths = {int(path.stem): path for path in self._receipts.glob("*.json")}
        return dict(sorted(paths.items()))

    def _read(self, name: str, form: str) -> dict[str, Any] | None:
        path = self.directory / name
        try:
            with _using(path):
                value = loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except MalformedError as error:
            raise StateConflict("the state file is damaged", where=str(path)) from error
        # A file of a later version may mean something else by the same members.
        if not isinstance(value, dict) or value.get("format") != form:
            raise StateConflict("not a state file of this client", where=str(path), expected=form)
        return value

    def _write(self, name: str, value: dict[str, Any]) -> None:
        write_durably(self.directory / name, dumps(value))


def read_key(path: Path) -> PrivateKey:
    """Return the private key in a file that `ragaudit key make` wrote.

    Args:
        path: of 64 hexadecimal digits.

    Raises:
        MalformedError: there is none in it.
        UnavailableError: it cannot be read.
    """
    return key_of(read_bytes(path).decode("ascii", "replace").strip(), path)


def key_of(text: str, path: Path) -> PrivateKey:
    """Return the private key of 64 hexadecimal digits in a file; raises as `read_key`."""
    try:
        return PrivateKey.from_seed(hex_decode(text, 32))
    except MalformedError:
        # What the file holds is not repeated: it may be a secret.
        raise MalformedError("no key in it", where=str(path), expected="64 digits 0-9a-f") from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Args:
        path: of a file of at most 2^28 bytes.

    Raises:
        MalformedError: there is none, or it is too long.
        UnavailableError: it cannot be read.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise MalformedError("file too long", where=str(path))
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise MalformedError("no such file", where=str(path)) from error
    except OSError as error:
        raise UnavailableError(f"cannot be read: {error.strerror}", where=str(path)) from error


def write_durably(path: Path, data: bytes) -> None:
    """Replace the file at once: after a crash it holds the old bytes or ``data``, flushed.

    Args:
        path: in a folder that exists; the file gets mode 600.
        data: the whole content.

    Raises:
        UnavailableError: the disk is full, or the folder cannot be written.
        FileNotFoundError: there is no such folder.
    """
    with _using(path):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        # Exclusive, and mode 600 from its first byte: keys are among what is written.
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
        # A rename is durable only when its folder is.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _using(path: Path) -> Iterator[None]:
    """Raise errors of the file system as UnavailableError, but for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnavailableError(f"cannot be used: {error.strerror}", where=str(path)) from error
