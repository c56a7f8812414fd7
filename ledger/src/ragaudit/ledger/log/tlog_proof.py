"""Offline inclusion proofs, C2SP tlog-proof@v1 (``.tlog-proof`` files).

    c2sp.org/tlog-proof@v1
    index <decimal>
    <base64 hash> ...        RFC 6962 path, sibling of the leaf first
    <empty line>
    <checkpoint note with the log's signature and cosignatures>

Our restriction: no ``extra`` line, which nothing would authenticate.
"""

from dataclasses import dataclass

from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.checkpoints import parse_size
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import parse_hash_line
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES, VerifierKey
from ragaudit.ledger.log.tree import verify_inclusion

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PATH = 63  # of the largest tree, 2^63 - 1 leaves
MAX_PROOF_BYTES = MAX_NOTE_BYTES + 4096


@dataclass(frozen=True, slots=True)
class TlogProof:
    """Leaf index, inclusion path, and the bytes of a cosigned checkpoint.

    Attributes:
        index: of the leaf, from 0.
        path: sibling hashes of 32 bytes, that of the leaf first.
        checkpoint: the note's bytes.
    """

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes

    def encode(self) -> bytes:
        """Return the file's bytes."""
        path = "".join(b64_encode(sibling) + "\n" for sibling in self.path)
        return f"{HEADER}\nindex {self.index}\n{path}\n".encode() + self.checkpoint

    @classmethod
    def parse(cls, data: bytes) -> "TlogProof":
        """Return the proof in a file's bytes; nothing is verified and the checkpoint stays bytes.

        Args:
            data: a `.tlog-proof` file, as received.

        Raises:
            MalformedNote: another header, an ``extra`` line, a bad index or hash line.
        """
        if len(data) > MAX_PROOF_BYTES:
            raise MalformedNote("proof too long", expected=f"at most {MAX_PROOF_BYTES} bytes")
        # The first empty line ends the path; the note after it has empty lines of its own.
        head, separator, checkpoint = data.partition(b"\n\n")
        if not separator or not head.isascii():
            raise MalformedNote("not a tlog-proof", expected=HEADER)
        header, *lines = head.decode("ascii").split("\n")
        if header != HEADER or not lines or not lines[0].startswith("index "):
            raise MalformedNote("not a tlog-proof", expected=f"{HEADER}, index <decimal>")
        if len(lines) - 1 > MAX_PATH:
            raise MalformedNote(f"{len(lines) - 1} hashes", expected=f"at most {MAX_PATH}")
        return cls(
            parse_size(lines[0].removeprefix("index ")),
            tuple(parse_hash_line(line) for line in lines[1:]),
            checkpoint,
        )


def verify_tlog_proof(
    proof: TlogProof, *, leaf: bytes, log_key: VerifierKey, cosigners: CosignerPolicy
) -> CosignedCheckpoint:
    """Check that the leaf hash ``leaf`` is leaf ``proof.index`` of a cosigned tree of the log.

    Args:
        proof: its index is not compared: a caller that expects one compares it.
        leaf: 32 bytes.
        log_key: of the log whose tree it must be.
        cosigners: of whom a quorum must have cosigned.

    Returns:
        The checkpoint.

    Raises:
        MalformedNote, NoteRejected: the checkpoint (`cosignatures.verify_cosigned`).
        MalformedProof, ProofRejected: the path (`tree.verify_inclusion`).
    """
    cosigned = verify_cosigned(proof.checkpoint, log_key, cosigners)
    # Size and root come from the checkpoint, which is signed, and from nowhere in the proof.
    verify_inclusion(leaf=leaf, index=proof.index, head=cosigned.signed.head, proof=proof.path)
    return cosigned
