"""Signing the tree and fetching its cosignature, behind the back of the queries.

A query never waits for this: its entry is durable before. Whenever a window's tree grew, the log
signs a checkpoint, the verifier cosigns it, and the receipts below it become complete.
"""

import threading
from dataclasses import dataclass, field

from ragaudit.ledger.checkpoint_store import CheckpointStore
from ragaudit.ledger.checkpoints import SignedCheckpoint
from ragaudit.ledger.cosigner_protocol import AddCheckpointRequest
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.notes import NoteSignature, SigningKey
from ragaudit.ledger.store import LogStore
from ragaudit.prover.verifier_client import SizeConflict, VerifierClient


@dataclass(frozen=True)
class WindowLog:
    """A window's log, its checkpoints, and the key that signs them."""

    entries: LogStore
    checkpoints: CheckpointStore
    key: SigningKey
    lock: threading.Lock = field(default_factory=threading.Lock)  # one signer at a time

    def sign(self) -> SignedCheckpoint:
        """Sign the committed tree; the last checkpoint if it did not grow."""
        return self.checkpoints.sign(self.key)


class Checkpointer:
    """Signs and has cosigned. Safe to use from several threads."""

    def __init__(self, verifier: VerifierClient) -> None:
        self._verifier = verifier

    def step(self, log: WindowLog) -> SignedCheckpoint:
        """Sign the tree as it is and have it cosigned; returns the cosigned checkpoint.

        Raises:
            RestoredBackup: the cosigner has seen a larger tree than ours.
            VerifierUnreachable, VerifierRefused: no cosignature this time.
        """
        with log.lock:
            return self._step(log)

    def _step(self, log: WindowLog) -> SignedCheckpoint:
        signed = log.sign()
        cosigned = log.checkpoints.latest(cosignatures=1)
        if cosigned is not None and cosigned.head == signed.head:
            return cosigned
        old_size = cosigned.head.size if cosigned else 0
        answer = self._submit(log, signed, old_size)
        if isinstance(answer, SizeConflict):
            if answer.size > signed.head.size:
                raise RestoredBackup(
                    "the cosigner has seen a larger tree",
                    where=log.entries.log_key.name,
                    expected=f"{answer.size} entries",
                )
            # At most one repetition, with the size that the cosigner told.
            answer = self._submit(log, signed, answer.size)
            if isinstance(answer, SizeConflict):
                return signed
        return log.checkpoints.add_cosignatures(signed.head.size, answer)

    def _submit(
        self, log: WindowLog, signed: SignedCheckpoint, old_size: int
    ) -> tuple[NoteSignature, ...] | SizeConflict:
        proof = log.entries.consistency_proof(old_size, signed.head.size)
        request = AddCheckpointRequest(old_size, proof, signed.encode())
        return self._verifier.add_checkpoint(request)
