"""The add-checkpoint call of C2SP tlog-witness v1.0.0: bodies, statuses, the cosigner's checks.

Request: ``old <size>``, consistency proof lines, an empty line, the checkpoint. Answer: cosignature
lines, or, with 409, the size that the cosigner last saw.

A client takes every status but 200 for "no cosignature". It repeats a request at most once, after
a 409 with a well-formed size, and never sends a smaller tree because of one.
"""

from dataclasses import dataclass
from http import HTTPStatus

from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import MalformedNote, MalformedProof, NoteRejected, ProofRejected
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, parse_checkpoint, parse_size
from ragaudit.ledger.log.notes import (
    MAX_NOTE_BYTES,
    NoteSignature,
    VerifierKey,
    decode_base64,
    parse_signature_lines,
    verify_note,
)
from ragaudit.ledger.log.tree import HASH_BYTES, TreeHead, verify_consistency

MAX_PROOF_LINES = 63
MAX_REQUEST_BYTES = MAX_NOTE_BYTES + 4096
TEXT = "text/plain; charset=utf-8"
SIZE_CONTENT_TYPE = "text/x.tlog.size"

COSIGNED = HTTPStatus.OK
BAD_REQUEST = HTTPStatus.BAD_REQUEST  # malformed, or old size above the checkpoint's
UNTRUSTED_LOG = HTTPStatus.FORBIDDEN  # no valid signature of a known log key
UNKNOWN_ORIGIN = HTTPStatus.NOT_FOUND
SIZE_CONFLICT = HTTPStatus.CONFLICT  # old size is not the cosigner's; the body tells which is
INCONSISTENT = HTTPStatus.UNPROCESSABLE_ENTITY  # bad proof, or one size with two roots


@dataclass(frozen=True, slots=True)
class AddCheckpointRequest:
    """The request to cosign a checkpoint.

    Attributes:
        old_size: of the tree that the cosigner has cosigned last.
        proof: consistency proof from there to the checkpoint, hashes of 32 bytes.
        checkpoint: the note's bytes.
    """

    old_size: int
    proof: tuple[bytes, ...]
    checkpoint: bytes

    @property
    def origin(self) -> str:
        """The origin that the checkpoint names; MalformedNote where it is none."""
        return parse_checkpoint(self.checkpoint).checkpoint.origin

    def encode(self) -> bytes:
        """Return the request body."""
        proof = "".join(b64_encode(digest) + "\n" for digest in self.proof)
        return f"old {self.old_size}\n{proof}\n".encode() + self.checkpoint

    @classmethod
    def parse(cls, body: bytes) -> "AddCheckpointRequest":
        """Return the request of a body; the checkpoint stays bytes.

        Args:
            body: as received, from anybody.

        Raises:
            MalformedNote: another form, which is answered with 400.
        """
        if len(body) > MAX_REQUEST_BYTES:
            raise MalformedNote("request too long", expected=f"at most {MAX_REQUEST_BYTES} bytes")
        head, separator, checkpoint = body.partition(b"\n\n")
        if not separator or not head.isascii():
            raise MalformedNote("not an add-checkpoint request", expected="old <size>")
        first, *lines = head.decode("ascii").split("\n")
        if not first.startswith("old "):
            raise MalformedNote("not an add-checkpoint request", expected="old <size>")
        if len(lines) > MAX_PROOF_LINES:
            raise MalformedNote(f"{len(lines)} proof lines", expected=f"at most {MAX_PROOF_LINES}")
        return cls(
            parse_size(first.removeprefix("old ")),
            tuple(parse_hash_line(line) for line in lines),
            checkpoint,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A cosigner's HTTP answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT

    @classmethod
    def refusal(cls, status: HTTPStatus, reason: str) -> "Answer":
        """Return an answer that gives a reason in words."""
        return cls(status, f"{reason}\n".encode())

    @classmethod
    def cosigned(cls, lines: tuple[NoteSignature, ...]) -> "Answer":
        """Return the answer with cosignature lines."""
        return cls(COSIGNED, "".join(map(str, lines)).encode())


def judge(
    request: AddCheckpointRequest, log_keys: dict[str, VerifierKey], stored: dict[str, TreeHead]
) -> SignedCheckpoint | Answer:
    """Return the checkpoint that a request has cosigned, or the answer that refuses it.

    It is decided in the order of tlog-witness.

    The caller reads ``stored``, judges and persists the new head in one atomic step, and only then
    cosigns and answers.

    Args:
        request: parsed.
        log_keys: the keys of the logs that are cosigned, by origin.
        stored: the head last cosigned, by origin; absent for a log that was never cosigned.
    """
    try:
        signed = parse_checkpoint(request.checkpoint)
    except MalformedNote as error:
        return Answer.refusal(BAD_REQUEST, error.what)
    # The log's signature comes before all that costs more: for a stranger no proof is verified.
    origin = signed.checkpoint.origin
    if origin not in log_keys:
        return Answer.refusal(UNKNOWN_ORIGIN, "unknown origin")
    try:
        verify_note(signed.note, log_keys[origin])
    except NoteRejected as error:
        return Answer.refusal(UNTRUSTED_LOG, error.what)
    if request.old_size > signed.head.size:
        return Answer.refusal(BAD_REQUEST, "old size above the checkpoint's size")
    latest = stored.get(origin)
    stored_size = latest.size if latest else 0
    # Compared with what was cosigned last, not with what the request says: a log that went back, or
    # that forked, has no proof from there.
    if request.old_size != stored_size:
        return Answer(SIZE_CONFLICT, f"{stored_size}\n".encode(), SIZE_CONTENT_TYPE)
    try:
        if latest is None or latest.size == 0:
            _check_first(request)
        else:
            verify_consistency(old=latest, new=signed.head, proof=request.proof)
    except (MalformedProof, ProofRejected) as error:
        return Answer.refusal(INCONSISTENT, error.what)
    return signed


def _check_first(request: AddCheckpointRequest) -> None:
    if request.proof:
        raise MalformedProof("a proof from the empty tree", expected="no hashes")


def parse_cosignatures(body: bytes) -> tuple[NoteSignature, ...]:
    """Return the signature lines of a 200 reply, not verified.

    Args:
        body: as a cosigner sent it.

    Raises:
        MalformedNote: anything but 1..48 signature lines.
    """
    if len(body) > MAX_NOTE_BYTES:
        raise MalformedNote("answer too long", expected=f"at most {MAX_NOTE_BYTES} bytes")
    try:
        return parse_signature_lines(body.decode())
    except UnicodeDecodeError:
        raise MalformedNote("answer is not UTF-8") from None


def parse_conflict(body: bytes) -> int:
    """Return the size in the body of a 409 reply.

    Args:
        body: as a cosigner sent it; at most the repeated request depends on it.

    Raises:
        MalformedNote: the body is not a size and a newline (some cosigners answer so to a fork).
    """
    if len(body) > 32 or not body.isascii() or not body.endswith(b"\n"):
        raise MalformedNote("not a tree size", where="409 answer", expected="<size> and a newline")
    return parse_size(body.decode("ascii")[:-1])


def parse_hash_line(line: str) -> bytes:
    """Return one hash of 32 bytes from base64.

    Args:
        line: without its newline.

    Raises:
        MalformedNote: anything else.
    """
    data = decode_base64(line, "proof line")
    if len(data) != HASH_BYTES:
        raise MalformedNote("a hash of the wrong length", expected="32 bytes")
    return data
