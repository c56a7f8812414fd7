"""Checkpoints: tree heads as signed notes, C2SP tlog-checkpoint v1.0.0; and split views.

    <origin>
    <size>
    <base64 root>

Our restrictions: no extension lines; the origin is a key name, and the log signs with an
Ed25519 key (type 0x01) whose name is the origin.
"""

import re
from dataclasses import dataclass

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import decode, enc
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import MalformedNote, MalformedProof, NoteRejected, ProofRejected
from ragaudit.ledger.log.notes import (
    Note,
    SigningKey,
    VerifierKey,
    check_name,
    decode_base64,
    parse_note,
    sign_note,
    verify_note,
)
from ragaudit.ledger.log.tree import (
    HASH_BYTES,
    MAX_TREE_SIZE,
    HashSource,
    TreeHead,
    consistency_proof,
    root_hash,
    verify_consistency,
)

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree head with the origin of its log: what the log signs.

    Attributes:
        origin: name of the log, a key name.
        head: of its tree.
        text: of the note: origin, size and root, a line each.
    """

    origin: str
    head: TreeHead

    def __post_init__(self) -> None:
        check_name(self.origin)

    @property
    def text(self) -> str:
        """Return the note text."""
        return f"{self.origin}\n{self.head.size}\n{b64_encode(self.head.root_hash)}\n"

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Return the checkpoint of a note text.

        Args:
            text: of a note, its final newline included.

        Raises:
            MalformedNote: not exactly three lines, a size with leading zeros, a root that is not 32
                bytes, an empty tree with another root than SHA-256("").
        """
        lines = text.split("\n")
        # Extension lines are refused: they would be signed with no meaning that all readers share.
        if len(lines) != 4 or lines[3]:
            raise MalformedNote("not a checkpoint", expected="origin, size and root, a line each")
        root = decode_base64(lines[2], "checkpoint root")
        try:
            return cls(lines[0], TreeHead(parse_size(lines[1]), root))
        except MalformedProof as error:
            raise MalformedNote(error.what, where="checkpoint", expected=error.expected) from error


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint and the note that carries its signatures; see `verify_checkpoint`.

    Attributes:
        checkpoint: read from the note's text.
        note: that text and its signature lines.
        head: of the checkpoint's tree.
    """

    checkpoint: Checkpoint
    note: Note

    def __post_init__(self) -> None:
        # Signatures are over the text: a head from elsewhere beside it would pass for a signed one.
        if self.note.text != self.checkpoint.text:
            raise MalformedNote("note and checkpoint differ", expected=self.checkpoint.text)

    @property
    def head(self) -> TreeHead:
        """Return the head of the checkpoint's tree."""
        return self.checkpoint.head

    def encode(self) -> bytes:
        """Return the note's bytes."""
        return self.note.encode()


def parse_size(text: str) -> int:
    """Return a tree size or index: ASCII decimal, no sign, no leading zero, at most 2^63 - 1.

    Args:
        text: of a checkpoint, a proof or a request, as received.

    Raises:
        MalformedNote: any other text.
    """
    size = int(text) if _DECIMAL.fullmatch(text) else -1
    if not 0 <= size <= MAX_TREE_SIZE:
        raise MalformedNote("not a tree size", expected=f"decimal, 0..{MAX_TREE_SIZE}")
    return size


def sign_checkpoint(checkpoint: Checkpoint, key: SigningKey) -> SignedCheckpoint:
    """Return the checkpoint, signed by the log.

    The caller must never have two inconsistent ones signed: `checkpoint_store` sees to that.

    Args:
        checkpoint: of a head that was read back and is consistent with the last signed one.
        key: of the log, type 0x01.

    Raises:
        MalformedNote: the key's name is not the origin, or it is not of type 0x01.
    """
    if key.name != checkpoint.origin:
        raise MalformedNote("the log's key has another name", expected=checkpoint.origin)
    return SignedCheckpoint(checkpoint, Note(checkpoint.text, (sign_note(checkpoint.text, key),)))


def parse_checkpoint(data: bytes) -> SignedCheckpoint:
    """Return a signed checkpoint *without verifying it*.

    Args:
        data: the note, as received.

    Raises:
        MalformedNote: not a note, or its text is not a checkpoint.
    """
    note = parse_note(data)
    return SignedCheckpoint(Checkpoint.parse(note.text), note)


def verify_checkpoint(data: bytes, log_key: VerifierKey) -> SignedCheckpoint:
    """Return the checkpoint in ``data`` if the log, whose origin is the key's name, has signed it.

    Args:
        data: the note, as received.
        log_key: of type 0x01; its name is the origin.

    Raises:
        MalformedNote: not a signed checkpoint.
        NoteRejected: another origin, or no valid signature of ``log_key``.
    """
    signed = parse_checkpoint(data)
    # A key signs one log only, but a note names two things: the key of the line and the origin of
    # the text. Both must be this log's.
    if signed.checkpoint.origin != log_key.name:
        raise NoteRejected("checkpoint of another log", where="origin", expected=log_key.name)
    verify_note(signed.note, log_key)
    return signed


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
