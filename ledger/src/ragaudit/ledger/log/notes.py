"""Signed notes, C2SP signed-note v1.0.0: text, signature lines, keys (Ed25519, ML-DSA-44).

    <text, ending in a newline>
    <empty line>
    — <key name> base64(key id[4] || signature)     one or more

Our restriction of the format: a note has at most one line per (key name, key id).
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey, PublicKey, SeededKey, SignatureRejected
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.errors import MalformedNote, NoteRejected

PUBLIC_BYTES = 1312
MLDSA_SIGNATURE_BYTES = 2420


@dataclass(frozen=True)
class MlDsaPublicKey:
    """A public key of ML-DSA-44.

    Attributes:
        raw: 1312 bytes, `pk` of FIPS 204; every such string is the encoding of one key.

    Raises:
        MalformedError: another length.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != PUBLIC_BYTES:
            raise MalformedError("public key has a wrong length", expected=f"{PUBLIC_BYTES} bytes")

    def verify_raw(self, signature: bytes, message: bytes) -> None:
        """Check ``signature`` over bytes that have their own framing.

        Args:
            signature: 2420 bytes.
            message: whole, with its framing.

        Raises:
            SignatureRejected: wrong length or not a signature of ``message``.
            UnsupportedError: this build of the cryptography library lacks ML-DSA.
        """
        if len(signature) != MLDSA_SIGNATURE_BYTES:
            raise SignatureRejected(
                "signature has a wrong length", expected=f"{MLDSA_SIGNATURE_BYTES} bytes"
            )
        try:
            MLDSA44PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError) as error:
            raise SignatureRejected("signature does not verify under this key") from error
        except UnsupportedAlgorithm:
            raise _unsupported() from None


@dataclass(frozen=True)
class MlDsaPrivateKey(SeededKey):
    """A private key of ML-DSA-44; its representation shows the public key only.

    Attributes:
        public: the public key.
    """

    public: MlDsaPublicKey = field(init=False)
    _key: MLDSA44PrivateKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            key = MLDSA44PrivateKey.from_seed_bytes(self._seed)
        except UnsupportedAlgorithm:
            raise _unsupported() from None
        object.__setattr__(self, "public", MlDsaPublicKey(key.public_key().public_bytes_raw()))
        object.__setattr__(self, "_key", key)

    def sign_raw(self, message: bytes) -> bytes:
        """Return a signature of 2420 bytes; it is hedged, so no two are alike.

        Args:
            message: whole, with its framing.
        """
        return self._key.sign(message)


def _unsupported() -> UnsupportedError:
    return UnsupportedError(
        "ML-DSA-44 is not in this build of the cryptography library",
        where="key",
        expected="cryptography 48 or later, as its wheels are built",
    )


ED25519 = 0x01
COSIGNATURE_V1 = 0x04
MLDSA_COSIGNATURE = 0x06

KEY_ID_BYTES = 4
MAX_NOTE_BYTES = 2**18  # C2SP asks for 16 signatures; the largest known kind has nearly 5 kB
MAX_SIGNATURES = 48
MAX_NAME_BYTES = 255
MAX_VKEY_CHARS = MAX_NAME_BYTES + 2048  # the longest key, ML-DSA-44, has 1752 in base64

_DASH = "— "
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_VKEY = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", re.ASCII)
_KINDS: dict[int, type[PublicKey] | type[MlDsaPublicKey]] = {
    ED25519: PublicKey,
    COSIGNATURE_V1: PublicKey,
    MLDSA_COSIGNATURE: MlDsaPublicKey,
}


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key under which notes are verified.

    Attributes:
        name: 1..255 bytes of UTF-8, see `check_name`.
        algorithm: signature type, 0x01 (Ed25519), 0x04 (cosignature/v1) or 0x06 (ML-DSA-44
            cosignature).
        public: an Ed25519 key, or with 0x06 one of ML-DSA-44.
    """

    name: str
    algorithm: int
    public: PublicKey | MlDsaPublicKey

    def __post_init__(self) -> None:
        check_name(self.name)
        kind = _kind(self.algorithm)
        if not isinstance(self.public, kind):
            raise MalformedNote(
                "a key of another algorithm", where=self.name, expected=kind.__name__
            )

    @property
    def key_id(self) -> bytes:
        """Return SHA-256(name || newline || type || public key)[:4], which proves nothing."""
        tagged = self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public.raw
        return hashlib.sha256(tagged).digest()[:KEY_ID_BYTES]

    def __str__(self) -> str:
        """Return the vkey: ``<name>+<hex key id>+<base64(type || public key)>``."""
        encoded = b64_encode(bytes([self.algorithm]) + self.public.raw)
        return f"{self.name}+{self.key_id.hex()}+{encoded}"

    @classmethod
    def parse(cls, vkey: str) -> "VerifierKey":
        """Return the key of a vkey string.

        Args:
            vkey: ``<name>+<hex key id>+<base64(type || public key)>``.

        Raises:
            MalformedNote: another form, an unknown type, or a key id that is not this key's.
        """
        match = _VKEY.fullmatch(vkey) if len(vkey) <= MAX_VKEY_CHARS else None
        if match is None:
            raise MalformedNote("not a verifier key", expected="<name>+<key id>+<base64>")
        name, key_id, encoded = match.groups()
        data = decode_base64(encoded, "verifier key")
        try:
            key = cls(name, data[0], _kind(data[0])(data[1:]))
        except MalformedNote:
            raise
        except MalformedError as error:
            raise MalformedNote(error.what, where="verifier key") from error
        # A vkey that was mistyped, or put together of two, would otherwise match no line of any
        # note and look like a missing signature.
        if key.key_id.hex() != key_id:
            raise MalformedNote("verifier key with another key's id", expected=key.key_id.hex())
        return key


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A named private key of one signature type.

    Attributes:
        name, algorithm: as of `VerifierKey`.
        private: an Ed25519 key, or with type 0x06 one of ML-DSA-44.
    """

    name: str
    algorithm: int
    private: PrivateKey | MlDsaPrivateKey = field(repr=False)

    def __post_init__(self) -> None:
        _ = self.verifier_key  # checks the name and the type

    @property
    def verifier_key(self) -> VerifierKey:
        """Return the public key."""
        return VerifierKey(self.name, self.algorithm, self.private.public)


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line.

    Attributes:
        name, key_id: of the key that the line claims to be of.
        blob: defined by the signature type.
    """

    name: str
    key_id: bytes
    blob: bytes

    def __str__(self) -> str:
        """Return the line, with its newline."""
        return f"{_DASH}{self.name} {b64_encode(self.key_id + self.blob)}\n"

    def by(self, key: VerifierKey) -> bool:
        """Return whether the line claims to be of ``key``.

        Args:
            key: compared by name and key id, which anybody can write: only verifying proves it.
        """
        return self.name == key.name and self.key_id == key.key_id


@dataclass(frozen=True, slots=True)
class Note:
    """A text and its signature lines; parsing verified none of them.

    Attributes:
        text: ends in a newline.
        signatures: 1..48, at most one per key.
    """

    text: str
    signatures: tuple[NoteSignature, ...]

    def __post_init__(self) -> None:
        _check_text(self.text)
        if not 1 <= len(self.signatures) <= MAX_SIGNATURES:
            raise MalformedNote(
                f"{len(self.signatures)} signatures", where="note", expected=f"1..{MAX_SIGNATURES}"
            )
        # With two lines of one key, one reader could verify the first and another the second, and
        # they would disagree about the note.
        if len({(line.name, line.key_id) for line in self.signatures}) < len(self.signatures):
            raise MalformedNote("two signatures of one key", where="note")

    def encode(self) -> bytes:
        """Return the note's bytes."""
        return (self.text + "\n" + "".join(map(str, self.signatures))).encode()

    def signature_of(self, key: VerifierKey) -> NoteSignature | None:
        """Return the line that claims to be of ``key``, or None."""
        return next((line for line in self.signatures if line.by(key)), None)

    def with_signatures(self, more: Iterable[NoteSignature]) -> "Note":
        """Return this note with those lines of ``more`` whose keys it did not have yet.

        Args:
            more: lines over the same text, verified by the caller.
        """
        have = {(line.name, line.key_id): line for line in self.signatures}
        for line in more:
            # The line that is there stays: it may have been served, and one size has one cosigned
            # note.
            have.setdefault((line.name, line.key_id), line)
        return Note(self.text, tuple(have.values()))


def check_name(name: str) -> None:
    """Check that a key name has 1..255 bytes of UTF-8 without Unicode spaces, controls or plus.

    Args:
        name: of a key; for a log, its origin.

    Raises:
        MalformedNote: any other name.
    """
    if not name or "+" in name or any(c.isspace() for c in name) or _CONTROL.search(name):
        raise MalformedNote("not a key name", expected="no space, no plus, not empty")
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise MalformedNote("not a key name", expected="UTF-8") from None
    if len(encoded) > MAX_NAME_BYTES:
        raise MalformedNote("key name too long", expected=f"at most {MAX_NAME_BYTES} bytes")


def parse_note(data: bytes) -> Note:
    """Return the note in ``data``, without verifying a signature.

    Args:
        data: as received.

    Raises:
        MalformedNote: too long, not UTF-8, control characters, no signature, a line that is not a
            signature line, base64 that is not canonical, two lines of one key.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise MalformedNote("note too long", expected=f"at most {MAX_NOTE_BYTES} bytes")
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise MalformedNote("note is not UTF-8") from None
    # A carriage return or an escape could show a person another text than the one that is signed.
    if _CONTROL.search(whole):
        raise MalformedNote("a control character", where="note", expected="newlines only")
    # The text may hold empty lines itself: the last one separates.
    text, separator, lines = whole.rpartition("\n\n")
    if not separator or not lines:
        raise MalformedNote("no signature", where="note", expected="text, empty line, signatures")
    return Note(text + "\n", parse_signature_lines(lines))


def parse_signature_lines(lines: str) -> tuple[NoteSignature, ...]:
    """Return the signatures of 1..48 lines, each ending in a newline.

    Args:
        lines: what follows the empty line of a note, or a cosigner's reply.

    Raises:
        MalformedNote: anything else.
    """
    if not lines.endswith("\n"):
        raise MalformedNote("last line without a newline", where="note signatures")
    rows = lines.split("\n")[:-1]  # never splitlines(), which splits at U+2028 and others
    if len(rows) > MAX_SIGNATURES:
        raise MalformedNote(f"{len(rows)} signatures", expected=f"1..{MAX_SIGNATURES}")
    return tuple(map(_parse_signature_line, rows))


def _parse_signature_line(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise MalformedNote("not a signature line", expected="— <name> <base64>")
    check_name(name)
    data = decode_base64(encoded, "note signature")
    if len(data) <= KEY_ID_BYTES:
        raise MalformedNote("signature too short", where=name, expected="more than 4 bytes")
    return NoteSignature(name, data[:KEY_ID_BYTES], data[KEY_ID_BYTES:])


def sign_note(text: str, key: SigningKey) -> NoteSignature:
    """Return the signature line of an Ed25519 key of type 0x01 for a note text.

    Args:
        text: with its final newline, which is signed too.
        key: of the log or another signer of notes.

    Raises:
        MalformedNote: a key of another type, or a text that no note can have.
    """
    _check_text(text)
    _demand(key.verifier_key, ED25519)
    return NoteSignature(key.name, key.verifier_key.key_id, key.private.sign_raw(text.encode()))


def verify_note(note: Note, key: VerifierKey) -> None:
    """Check that ``note`` carries a valid signature of ``key``.

    Args:
        note: lines of other keys in it are ignored.
        key: that must have signed it, of type 0x01.

    Raises:
        NoteRejected: the key has no line, or its signature does not verify.
    """
    _demand(key, ED25519)
    line = note.signature_of(key)
    if line is None:
        raise NoteRejected("no signature of this key", where="note", expected=str(key))
    verify_signature(key, line.blob, note.text.encode())


def verify_signature(key: VerifierKey, signature: bytes, message: bytes) -> None:
    """Check a signature of the key's algorithm.

    Args:
        key: whose signature it must be.
        signature: 64 bytes, of ML-DSA-44 2420.
        message: what was signed.

    Raises:
        NoteRejected: it does not verify, or has another length.
    """
    try:
        key.public.verify_raw(signature, message)
    except SignatureRejected as error:
        raise NoteRejected(error.what, where="note", expected=str(key)) from error


def decode_base64(text: str, where: str) -> bytes:
    """Return the bytes of strict base64 (RFC 4648 §4, canonical).

    Args:
        text: the base64.
        where: named in the error.

    Raises:
        MalformedNote: anything else.
    """
    try:
        return b64_decode(text)
    except MalformedError as error:
        raise MalformedNote(error.what, where=where, expected=error.expected) from error


def _kind(algorithm: int) -> type[PublicKey] | type[MlDsaPublicKey]:
    if algorithm not in _KINDS:
        raise MalformedNote(
            f"signature type {algorithm:#04x}", where="key", expected="0x01, 0x04 or 0x06"
        )
    return _KINDS[algorithm]


def _demand(key: VerifierKey, algorithm: int) -> None:
    if key.algorithm != algorithm:
        raise MalformedNote(
            f"key of type {key.algorithm:#04x}", where=key.name, expected=f"{algorithm:#04x}"
        )


def _check_text(text: str) -> None:
    if not text.endswith("\n"):
        raise MalformedNote("note text without a final newline")
    if _CONTROL.search(text):
        raise MalformedNote("a control character", where="note", expected="newlines only")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedNote("note text is not Unicode") from None
