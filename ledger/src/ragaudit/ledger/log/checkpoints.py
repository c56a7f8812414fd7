"""Checkpoints: tree heads as signed notes, C2SP tlog-checkpoint v1.0.0.

    <origin>
    <size>
    <base64 root>

Our restrictions: no extension lines; the origin is a key name, and the log signs with an
Ed25519 key (type 0x01) whose name is the origin.
"""

import re
from dataclasses import dataclass

from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import MalformedNote, MalformedProof, NoteRejected
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
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, TreeHead

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
