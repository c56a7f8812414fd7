"""A dispute as the verifier's service stores it (docs/spec/08-services.md §8.9)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.ledger.messages.disputes import Dispute, Finding
from ragaudit.ledger.messages.evidence import KeptDispute
from ragaudit.ledger.messages.public_halves import PublicHalf, read_public_half

__all__ = ["StoredDispute", "with_half"]

_HALVES: Final = 2  # that differ prove all there is to prove


@dataclass(frozen=True)
class StoredDispute:
    """A dispute's row.

    Attributes:
        position: leaf index of the record, or of the charge entry.
        document: the dispute as it was signed, canonical JSON.
        public: the file's public half, once it was judged; two, a line each, if two were brought.
        file: of an upheld dispute about a query that was not sampled.
        finding: the arbiter's.
        step: of docs/spec 5.9, or 11.10, that fails; 0 if dismissed, None if not judged.
    """

    identity: bytes
    pseudonym: bytes
    position: int
    answer_digest: bytes
    file_digest: bytes
    received: int
    document: bytes
    public: bytes | None = None
    file: bytes | None = field(default=None, repr=False)
    finding: bytes | None = None
    step: int | None = None

    def halves(self) -> list[bytes]:
        """Return the public halves, canonical JSON."""
        return (self.public or b"").splitlines()  # canonical JSON has no line ends

    def kept(self) -> KeptDispute:
        """Return the dispute as the evidence holds it."""
        finding = _json(self.finding)
        return KeptDispute(
            Dispute.from_json(_json(self.document)),
            self.step,
            _json(self.file),
            None if finding is None else Finding.from_json(finding),
        )


def with_half(rows: Sequence[StoredDispute], public: PublicHalf) -> bytes:
    """Return what is kept of a file's public halves with this one, a line each.

    A finding does not say which half is the file's. Were the last one kept, whoever signed another
    that is in the log could bring it in the place of one that is not.

    Args:
        rows: of the disputes of the file.
        public: without proofs.
    """
    kept = sorted({half for row in rows for half in row.halves()})
    known = {read_public_half(canonical_json.loads(half)).identity for half in kept}
    if public.identity not in known and len(kept) < _HALVES:
        kept.append(public.encode())
    return b"\n".join(kept)


def _json(document: bytes | None) -> Any:
    return None if document is None else canonical_json.loads(document)
