"""Signing the tree and fetching its cosignature, behind the back of the queries.

A query never waits for this: its entry is durable before. Whenever a window's tree grew, the log
signs a checkpoint, the verifier cosigns it, and the receipts below it become complete.

An entry's time must not lie further than the policy's skew before the cosignature of a checkpoint
that lacks the entry (check 9). So a request says when its head was read: every entry that is not
in it is later, because times are taken under the same lock. A request that waited longer than the
skew is not cosigned, and is made anew.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.log.cosignatures import cosignature_time
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.log.notes import NoteSignature, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.prover.verifier.client import SizeConflict, VerifierClient


@dataclass
class WindowLog:
    """A window's log, its checkpoints, and the key that signs them.

    Attributes:
        lock: held by the one who signs.
        append_lock: held around an entry's time and the commit of its transaction.
        cosigned_time: Unix milliseconds of the last cosignature that this process has seen, 0
            before the first one.
    """

    entries: LogStore
    checkpoints: CheckpointStore
    key: SigningKey
    lock: threading.Lock = field(default_factory=threading.Lock)
    append_lock: threading.Lock = field(default_factory=threading.Lock)
    cosigned_time: int = 0

    def sign(self) -> SignedCheckpoint:
        """Sign the committed tree; the last checkpoint if it did not grow."""
        return self.checkpoints.sign(self.key)


class Checkpointer:
    """Signs and has cosigned. Safe to use from several threads."""

    def __init__(self, verifier: VerifierClient, clock: Callable[[], int]) -> None:
        self._verifier = verifier
        self._clock = clock

    def step(self, log: WindowLog) -> SignedCheckpoint:
        """Sign the tree as it is and have it cosigned; returns the cosigned checkpoint.

        Raises:
            RestoredBackup: the cosigner has seen a larger tree than ours.
            VerifierUnreachable, VerifierRefused: no cosignature this time.
        """
        with log.lock:
            return self._step(log)

    def _step(self, log: WindowLog) -> SignedCheckpoint:
        own = log.key.verifier_key
        with log.append_lock:
            read = self._clock()
        signed = log.sign()
        cosigned = log.checkpoints.latest(cosignatures=1)
        if cosigned is not None and cosigned.head == signed.head:
            return cosigned
        old_size = cosigned.head.size if cosigned else 0
        answer = self._submit(log, signed, old_size, read)
        if isinstance(answer, SizeConflict):
            if answer.size > signed.head.size:
                raise RestoredBackup(
                    "the cosigner has seen a larger tree",
                    where=log.entries.log_key.name,
                    expected=f"{answer.size} entries",
                )
            # At most one repetition, with the size that the cosigner told.
            answer = self._submit(log, signed, answer.size, read)
            if isinstance(answer, SizeConflict):
                return signed
        cosigned = log.checkpoints.add_cosignatures(signed.head.size, answer)
        # Unknown keys' lines were dropped, known ones verified.
        times = [cosignature_time(each) for each in cosigned.note.signatures if not each.by(own)]
        log.cosigned_time = 1000 * max(times, default=0)
        return cosigned

    def _submit(
        self, log: WindowLog, signed: SignedCheckpoint, old_size: int, read: int
    ) -> tuple[NoteSignature, ...] | SizeConflict:
        proof = log.entries.consistency_proof(old_size, signed.head.size)
        request = AddCheckpointRequest(old_size, proof, signed.encode())
        return self._verifier.add_checkpoint(request, read)
