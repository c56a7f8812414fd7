"""Third parties that cosign a window's checkpoints beside the verifier (C2SP tlog-witness).

Nothing waits for them: each is asked in a thread of its own, and what it gives is added to a
checkpoint that the verifier has cosigned. Whatever is not a cosignature that verifies is none, and
what it was instead is told.
"""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Self

import httpx
from ragaudit.encoding.errors import RagauditError
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.ledger.errors import MalformedNote, RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.log.cosigner_protocol import (
    AddCheckpointRequest,
    parse_conflict,
    parse_cosignatures,
)
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES, NoteSignature
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tlog_policy import TrustedCosigner, TrustPolicy
from ragaudit.prover.settings import CosignerSettings, read_trust

_log = logging.getLogger(__name__)


class NoCosignature(Exception):
    """Why a cosigner gave none, in words."""


@dataclass(frozen=True)
class AskedLog:
    """A window's log, as far as cosigners are concerned.

    Attributes:
        entries: for consistency proofs.
        checkpoints: to which cosignatures are added.
    """

    entries: LogStore
    checkpoints: CheckpointStore

    @property
    def origin(self) -> str:
        """The log's name."""
        return self.entries.log_key.name


class Cosigners:
    """The further cosigners. Safe to use from several threads.

    Attributes:
        policy: names them, and the quorum.
        every_seconds: how often they are to be asked.
    """

    def __init__(
        self,
        policy: TrustPolicy,
        settings: CosignerSettings,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            policy: names them; those without a URL are not asked.
            settings: time-outs, authorities, proxy.
            transport: instead of the network, for tests.

        Raises:
            MalformedSettings: the file of certificate authorities holds none.
        """
        self.policy = policy
        self.every_seconds = settings.every_seconds
        authorities = trusted_authorities(settings.ca_file, "cosigners.ca_file")
        self._asked = [
            _Cosigner(
                known,
                HttpClient(
                    known.url,
                    timeout=settings.timeout_seconds,
                    most=MAX_NOTE_BYTES,
                    verify=authorities,
                    transport=transport,
                    proxy=settings.proxy,
                ),
            )
            for known in policy.cosigners
            if known.url is not None
        ]
        # One thread each: one that is slow keeps no other waiting.
        self._pool = ThreadPoolExecutor(max(1, len(self._asked)), "cosigner")
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}
        self._failures: dict[tuple[str, str], str] = {}
        self._restored: dict[str, RestoredBackup] = {}

    @classmethod
    def of(
        cls, settings: CosignerSettings, transport: httpx.BaseTransport | None = None
    ) -> Self | None:
        """Return the cosigners that the settings name, None if they name none.

        Args:
            transport: instead of the network, for tests.

        Raises:
            MalformedSettings: as `read_trust`, or no certificates.
        """
        policy = read_trust(settings)
        return None if policy is None else cls(policy, settings, transport)

    def ask(self, log: AskedLog, checkpoint: SignedCheckpoint) -> None:
        """Begin to ask everybody who is idle and has not cosigned a checkpoint; do not wait.

        Args:
            log: whose checkpoint it is.
            checkpoint: which the verifier has cosigned.

        Raises:
            RestoredBackup: a cosigner showed a checkpoint of this log, signed by its key, that is
                larger than the log.
        """
        if log.origin in self._restored:
            raise self._restored[log.origin]
        for cosigner in self._asked:
            name = cosigner.known.name
            if checkpoint.note.signature_of(cosigner.known.key) is not None:
                continue
            with self._lock:
                if (running := self._running.get(name)) is not None and not running.done():
                    continue
                self._running[name] = self._pool.submit(self._ask_one, cosigner, log, checkpoint)

    def failures(self, origin: str) -> dict[str, str]:
        """Return why cosigners gave no cosignature when they were last asked, by name.

        Args:
            origin: of the log.
        """
        with self._lock:
            return {name: why for (log, name), why in self._failures.items() if log == origin}

    def forget(self, origin: str) -> None:
        """Let go of what was noted of the log of a finished window."""
        with self._lock:
            self._failures = {key: why for key, why in self._failures.items() if key[0] != origin}
            self._restored.pop(origin, None)
        for cosigner in self._asked:
            cosigner.hints.pop(origin, None)

    def wait(self) -> None:
        """Wait until nobody is being asked."""
        with self._lock:
            running = list(self._running.values())
        wait(running)

    def close(self) -> None:
        """Break off what is under way and release the connections."""
        for cosigner in self._asked:
            cosigner.http.close()
        self._pool.shutdown(cancel_futures=True)

    def _ask_one(self, cosigner: "_Cosigner", log: AskedLog, checkpoint: SignedCheckpoint) -> None:
        name = cosigner.known.name
        why: str | None = None
        try:
            lines = cosigner.cosign(log, checkpoint)
            log.checkpoints.add_cosignatures(checkpoint.head.size, lines)
        except RestoredBackup as error:
            why, self._restored[log.origin] = str(error), error
        except (NoCosignature, RagauditError) as error:
            why = str(error)
        except Exception as error:
            why = type(error).__name__
            _log.exception("cosigner %s", name)
        finally:
            self._tell(log.origin, name, why)

    def _tell(self, origin: str, name: str, why: str | None) -> None:
        with self._lock:
            before = self._failures.pop((origin, name), None)
            if why is not None:
                self._failures[origin, name] = why
        if why is not None and why != before:
            _log.warning("cosigner %s gave no cosignature of %s: %s", name, origin, why)
        elif why is None and before is not None:
            _log.info("cosigner %s cosigns %s again", name, origin)


class _Cosigner:
    """One of them, and the size of each log that it has cosigned, as far as we know."""

    def __init__(self, known: TrustedCosigner, http: HttpClient) -> None:
        self.known = known
        self.http = http
        self.hints: dict[str, int] = {}

    def cosign(self, log: AskedLog, checkpoint: SignedCheckpoint) -> tuple[NoteSignature, ...]:
        """Return its lines over a checkpoint that verify, at least one.

        Raises:
            NoCosignature: it gave none, for whatever reason.
            NoteRejected: one that does not verify.
            RestoredBackup: see `Cosigners.ask`.
        """
        size = checkpoint.head.size
        hint = self.hints.get(log.origin, 0)
        # Only a hint: one that is ahead of this checkpoint would ask for no valid request.
        answer = self._submit(log, checkpoint, hint if hint <= size else 0)
        if isinstance(answer, int):
            self._check_behind(log, answer)
            if answer > size:
                self.hints[log.origin] = answer
                raise NoCosignature(f"it has cosigned a later checkpoint, of size {answer}")
            # Once more with its size; a second conflict is left to the next round.
            answer = self._submit(log, checkpoint, answer)
            if isinstance(answer, int):
                raise NoCosignature("another size again after a conflict")
        lines = tuple(line for line in answer if line.by(self.known.key))
        if not lines:
            raise NoCosignature("cosignatures of other keys only")
        self.hints[log.origin] = size
        return lines

    def _submit(
        self, log: AskedLog, checkpoint: SignedCheckpoint, old: int
    ) -> tuple[NoteSignature, ...] | int:
        proof = log.entries.consistency_proof(old, checkpoint.head.size)
        # Without the lines of others: who of them was first is nobody's business.
        plain = log.checkpoints.demanded(checkpoint)
        body = AddCheckpointRequest(old, tuple(proof), plain.encode()).encode()
        answer = self._send("POST", "add-checkpoint", content=body)
        try:
            if answer.status_code == HTTPStatus.OK:
                return parse_cosignatures(answer.content)
            if answer.status_code == HTTPStatus.CONFLICT:
                return parse_conflict(answer.content)
        except MalformedNote as error:
            raise NoCosignature(f"{answer.status_code}, {error}") from None
        raise NoCosignature(f"it answered {answer.status_code}")

    def _check_behind(self, log: AskedLog, size: int) -> None:
        """Raise RestoredBackup if a cosigner's size is above the log's own, and it can show why.

        Its word alone stops nobody's log; a checkpoint that our key signed does.
        """
        if size <= log.entries.head().size:
            return
        digest = sha256(log.origin.encode()).hexdigest()
        answer = self._send("GET", f"{digest}/checkpoint")
        try:
            shown = verify_checkpoint(answer.content, log.entries.log_key).head.size
        except RagauditError:
            raise NoCosignature(f"it claims {size} entries, and shows no such checkpoint") from None
        if shown > log.entries.head().size:
            raise RestoredBackup(
                f"cosigner {self.known.name} has a checkpoint of ours with more entries",
                where=log.origin,
                expected=f"{shown} entries",
            )
        raise NoCosignature(f"it claims {size} entries, and shows {shown}")

    def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        headers = {"Content-Type": "text/plain"} if parts else None
        try:
            return self.http.request(method, path, headers=headers, **parts)
        except OddAnswer:
            raise NoCosignature("an answer that is packed or too long") from None
        except httpx.TimeoutException:
            raise NoCosignature("no answer in time") from None
        except httpx.HTTPError as error:
            raise NoCosignature(f"it cannot be reached: {type(error).__name__}") from None
