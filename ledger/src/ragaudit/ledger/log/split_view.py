"""Evidence that a log signed two inconsistent checkpoints.

A tree's root determines the roots of all its prefixes. So two signed checkpoints of sizes m <= n
are inconsistent when a valid consistency proof leads to the second one from *another* root of
size m. For m = n the two roots alone are the evidence and the proof is empty.
"""

from dataclasses import dataclass

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.errors import MalformedProof, ProofRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tree import (
    HASH_BYTES,
    HashSource,
    TreeHead,
    consistency_proof,
    root_hash,
    verify_consistency,
)

TAG = "ragaudit/v1/split-view"
MAX_PATH = 64


@dataclass(frozen=True, slots=True)
class SplitView:
    """Two checkpoints of one log, and the root of the first one's size inside the second.

    Attributes:
        older, newer: signed checkpoints, as notes.
        prefix_root: of the newer tree's first leaves, as many as the older tree has.
        proof: the consistency proof from there to the newer checkpoint, hashes of 32 bytes.
    """

    older: bytes
    newer: bytes
    prefix_root: bytes
    proof: tuple[bytes, ...]

    def encode(self) -> bytes:
        """Return the evidence as tagged bytes."""
        return enc(TAG, self.older, self.newer, self.prefix_root, b"".join(self.proof))

    @classmethod
    def parse(cls, data: bytes) -> "SplitView":
        """Return the evidence of bytes; the strict inverse of `encode`.

        Args:
            data: as received.

        Raises:
            MalformedProof: anything else.
        """
        try:
            older, newer, prefix_root, proof = decode(TAG, data, 4)
        except MalformedError as error:
            raise MalformedProof(error.what, where="split view") from error
        if len(proof) % HASH_BYTES or len(proof) > MAX_PATH * HASH_BYTES:
            raise MalformedProof("not a list of hashes", where="split view")
        hashes = tuple(proof[i : i + HASH_BYTES] for i in range(0, len(proof), HASH_BYTES))
        return cls(older, newer, prefix_root, hashes)


def find_split_view(
    signed: SignedCheckpoint, newer: SignedCheckpoint, source: HashSource
) -> SplitView | None:
    """Return the evidence that ``newer`` does not continue ``signed``; None if it does.

    Args:
        signed: an earlier checkpoint, verified.
        newer: a verified checkpoint, whose tree is ``source``'s.
        source: hashes of that tree.

    Raises:
        MalformedProof: ``signed`` is the larger one.
    """
    if signed.head.size > newer.head.size:
        raise MalformedProof("the older checkpoint is the larger one", where="split view")
    prefix_root = root_hash(source, signed.head.size)
    if prefix_root == signed.head.root_hash:
        return None
    proof = consistency_proof(source, signed.head.size, newer.head.size)
    return SplitView(signed.encode(), newer.encode(), prefix_root, proof)


def verify_split_view(evidence: SplitView, log_key: VerifierKey) -> None:
    """Check that the log of ``log_key`` signed two inconsistent checkpoints.

    Args:
        evidence: as received.
        log_key: of the log that is accused.

    Raises:
        MalformedNote, NoteRejected: a checkpoint is not the log's.
        MalformedProof, ProofRejected: the proof is wrong, or there is no contradiction.
    """
    older = verify_checkpoint(evidence.older, log_key).head
    newer = verify_checkpoint(evidence.newer, log_key).head
    # Both signatures were verified above: what anybody can make up accuses no log.
    if evidence.prefix_root == older.root_hash:
        raise ProofRejected("the two checkpoints agree", where="split view")
    verify_consistency(
        old=TreeHead(older.size, evidence.prefix_root), new=newer, proof=evidence.proof
    )
