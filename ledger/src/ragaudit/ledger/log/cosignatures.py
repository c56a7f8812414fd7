"""Cosignatures of checkpoints, C2SP tlog-cosignature: Ed25519 (0x04) and ML-DSA-44 (0x06).

The cosigner states: as of this time, this is the largest consistent tree that I have seen under
this origin. The message that an Ed25519 key signs does not contain the cosigner's name, so one key
never serves two names: a quorum that lists a key twice is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ragaudit.encoding.signing import SIGNATURE_BYTES
from ragaudit.ledger.errors import MalformedNote, NoteRejected
from ragaudit.ledger.log.checkpoints import Checkpoint, SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.log.notes import (
    COSIGNATURE_V1,
    MLDSA_COSIGNATURE,
    MLDSA_SIGNATURE_BYTES,
    NoteSignature,
    SigningKey,
    VerifierKey,
    verify_signature,
)

MAX_TIMESTAMP = 2**63 - 1
_TIME_BYTES = 8
_BLOB_BYTES = {
    COSIGNATURE_V1: _TIME_BYTES + SIGNATURE_BYTES,
    MLDSA_COSIGNATURE: _TIME_BYTES + MLDSA_SIGNATURE_BYTES,
}
_SUBTREE = b"subtree/v1\n\0"


@dataclass(frozen=True, slots=True)
class Cosignature:
    """A verified cosignature.

    Attributes:
        key: of the cosigner.
        timestamp: Unix seconds.
    """

    key: VerifierKey
    timestamp: int


@dataclass(frozen=True, slots=True)
class CosignerPolicy:
    """The cosigners that a relying party knows, and how many of them it demands.

    Attributes:
        keys: of type 0x04 or 0x06, each public key once.
        quorum: 0..len(keys).
    """

    keys: tuple[VerifierKey, ...]
    quorum: int

    def __post_init__(self) -> None:
        for key in self.keys:
            _demand_type(key)
        # The signed message names no cosigner, so one signature would count for each of the names.
        if len({key.public.raw for key in self.keys}) < len(self.keys):
            raise MalformedNote("one key under two cosigner names", where="cosigners")
        if not 0 <= self.quorum <= len(self.keys):
            raise MalformedNote(
                f"quorum of {self.quorum}", where="cosigners", expected=f"0..{len(self.keys)}"
            )


@dataclass(frozen=True, slots=True)
class CosignedCheckpoint:
    """A verified checkpoint with its verified cosignatures.

    Attributes:
        signed: the checkpoint.
        cosignatures: of known cosigners, at least ``quorum`` of them.
        quorum: that was demanded.
    """

    signed: SignedCheckpoint
    cosignatures: tuple[Cosignature, ...]
    quorum: int

    @property
    def quorum_time(self) -> int:
        """Return when the quorum was complete: the quorum-th smallest time, Unix seconds.

        Raises:
            NoteRejected: the policy demands no cosigner, so no time is attested.
        """
        if self.quorum == 0:
            raise NoteRejected("no cosigner attests a time", where="cosigners")
        return sorted(line.timestamp for line in self.cosignatures)[self.quorum - 1]


def cosignature_message(text: str, timestamp: int) -> bytes:
    """Return the bytes that an Ed25519 key signs for the note text ``text`` at ``timestamp``.

    Args:
        text: of the note, its final newline included.
        timestamp: Unix seconds.
    """
    return f"cosignature/v1\ntime {timestamp}\n{text}".encode()


def subtree_message(text: str, timestamp: int, name: str) -> bytes:
    """Return the bytes that an ML-DSA-44 key signs for a checkpoint at ``timestamp``.

    Args:
        text: of the checkpoint's note.
        timestamp: Unix seconds, below 2^64.
        name: of the cosigner.

    Raises:
        MalformedNote: the text is not a checkpoint.
    """
    checkpoint = Checkpoint.parse(text)
    origin, cosigner = checkpoint.origin.encode(), name.encode()
    return (
        _SUBTREE
        + bytes([len(cosigner)])
        + cosigner
        + timestamp.to_bytes(_TIME_BYTES, "big")
        + bytes([len(origin)])
        + origin
        + bytes(8)  # the subtree's start: the whole tree is signed
        + checkpoint.head.size.to_bytes(8, "big")
        + checkpoint.head.root_hash
    )


def cosign(text: str, key: SigningKey, timestamp: int) -> NoteSignature:
    """Return a cosignature of a checkpoint; the caller has checked its consistency (tlog-witness).

    Args:
        text: the checkpoint's note text.
        key: of the cosigner, type 0x04 or 0x06.
        timestamp: Unix time in seconds, 1..2^63-1.

    Raises:
        MalformedNote: another type of key, a time out of range, or with 0x06 no checkpoint.
    """
    _demand_type(key.verifier_key)
    if not 0 < timestamp <= MAX_TIMESTAMP:
        raise MalformedNote("cosignature time out of range", expected="Unix seconds above 0")
    signature = key.private.sign_raw(_message(key.verifier_key, text, timestamp))
    blob = timestamp.to_bytes(_TIME_BYTES, "big") + signature
    return NoteSignature(key.name, key.verifier_key.key_id, blob)


def cosignature_time(line: NoteSignature) -> int:
    """Return the Unix seconds that a cosignature line states; the caller has verified it.

    Args:
        line: of a cosigner, at least eight bytes.
    """
    return int.from_bytes(line.blob[:_TIME_BYTES], "big")


def verify_cosignature(text: str, line: NoteSignature, key: VerifierKey) -> Cosignature:
    """Check one cosignature line over the note text ``text``, and return it.

    Args:
        text: of the checkpoint's note.
        line: that claims to be of ``key``.
        key: of the cosigner, type 0x04 or 0x06.

    Raises:
        NoteRejected: another key's line, a wrong length or time, or it does not verify.
        MalformedNote: another type of key, or with 0x06 a text that is no checkpoint.
    """
    _demand_type(key)
    if not line.by(key):
        raise NoteRejected("a cosignature of another key", where="cosignature", expected=str(key))
    expected = _BLOB_BYTES[key.algorithm]
    if len(line.blob) != expected:
        raise NoteRejected(
            "a cosignature of another length", where=key.name, expected=f"{expected} bytes"
        )
    timestamp = cosignature_time(line)
    if not 0 < timestamp <= MAX_TIMESTAMP:
        raise NoteRejected("cosignature time out of range", where=key.name)
    verify_signature(key, line.blob[_TIME_BYTES:], _message(key, text, timestamp))
    return Cosignature(key, timestamp)


def verify_cosigned(
    data: bytes, log_key: VerifierKey, cosigners: CosignerPolicy
) -> CosignedCheckpoint:
    """Return the checkpoint in ``data`` if the log signed it and a quorum cosigned it.

    Args:
        data: the note; lines of unknown keys are ignored, a line of a known key must verify.
        log_key: its name is the origin.
        cosigners: known keys and quorum.

    Raises:
        MalformedNote: not a signed checkpoint.
        NoteRejected: another origin, a bad signature of a known key, or too few cosigners.
    """
    signed = verify_checkpoint(data, log_key)
    # A log that vouches for itself could show each reader another tree.
    if any(key.public == log_key.public for key in cosigners.keys):
        raise NoteRejected("the log's own key among its cosigners", where="cosigners")
    valid = _verify_all(signed, cosigners.keys)
    if len(valid) < cosigners.quorum:
        raise NoteRejected(
            f"cosigned by {len(valid)}", where="checkpoint", expected=f"{cosigners.quorum} or more"
        )
    return CosignedCheckpoint(signed, valid, cosigners.quorum)


def _verify_all(signed: SignedCheckpoint, keys: Sequence[VerifierKey]) -> tuple[Cosignature, ...]:
    lines = [(signed.note.signature_of(key), key) for key in keys]
    # Beyond the quorum too: a false line of a known key is a forgery, not a missing signature.
    return tuple(
        verify_cosignature(signed.note.text, line, key) for line, key in lines if line is not None
    )


def _message(key: VerifierKey, text: str, timestamp: int) -> bytes:
    if key.algorithm == COSIGNATURE_V1:
        return cosignature_message(text, timestamp)
    return subtree_message(text, timestamp, key.name)


def _demand_type(key: VerifierKey) -> None:
    if key.algorithm not in _BLOB_BYTES:
        raise MalformedNote(
            f"key of type {key.algorithm:#04x}", where=key.name, expected="0x04 or 0x06"
        )
