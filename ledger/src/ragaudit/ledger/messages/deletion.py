"""That the confidential evidence of a window was deleted (docs/spec/08-services.md §8.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey
from ragaudit.encoding.tagged import Field
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, TreeHead
from ragaudit.ledger.messages.fields import MAX_TIME, Fields
from ragaudit.ledger.messages.items import CONFIDENTIAL, check_name
from ragaudit.ledger.messages.signed import VerifierMessage
from ragaudit.ledger.messages.verdict import Verdict

MAX_ORIGIN_BYTES: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(VerifierMessage):
    """What was deleted, when, and under which checkpoint it was evidence.

    Attributes:
        origin: of the window's log.
        verdict: SHA-256 of the verdict's envelope, 32 bytes.
        items: hexadecimal SHA-256 of each item that was deleted, by name; all are confidential.
        checkpoint: head of the final checkpoint; None for a window that never had one.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "deletion"
    MEMBERS: ClassVar[str] = "origin verdict items checkpoint time signature"

    origin: str
    verdict: bytes
    items: Mapping[str, str]
    checkpoint: TreeHead | None
    time: int

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        verdict: bytes,
        items: Mapping[str, str],
        checkpoint: TreeHead | None,
        time: int,
    ) -> Self:
        """State a deletion, in the transaction that deletes.

        Args:
            key: `keys.verifier`.
            origin, verdict, items, checkpoint, time: the attributes.
        """
        return cls(
            origin=origin, verdict=verdict, items=items, checkpoint=checkpoint, time=time
        )._signed(key)

    def _members(self) -> dict[str, Any]:
        head = self.checkpoint
        return {
            "origin": self.origin,
            "verdict": self.verdict.hex(),
            "items": dict(self.items),
            "checkpoint": (
                None if head is None else {"size": head.size, "root": head.root_hash.hex()}
            ),
            "time": self.time,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        digest = sha256(canonical_json.dumps(self._members())).digest()
        return (self.origin, digest)

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            origin=f.text("origin", 1, MAX_ORIGIN_BYTES),
            verdict=f.hex("verdict", DIGEST_BYTES),
            items=_items(f.object("items")),
            checkpoint=_head(f.raw("checkpoint")),
            time=f.integer("time", 0, MAX_TIME),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )

    def authenticate(
        self, key: PublicKey, verdict: Verdict, *, origin: str, checkpoint: TreeHead | None
    ) -> None:
        """Check that this deletes what was evidence for a verdict, all that was confidential of it.

        Args:
            key: `keys.verifier`.
            verdict: of the window, with its signature verified.
            origin: of the window's log.
            checkpoint: head of the final checkpoint that is evidence; None if there is none.

        Raises:
            RejectedError: of another window, verdict or checkpoint, or its items are not the
                confidential subjects.
            SignatureRejected: not signed with ``key``.
        """
        self.verify(key)
        self._demand("origin", self.origin, origin)
        self._demand("verdict", self.verdict, bytes.fromhex(verdict.digest))
        self._demand("checkpoint", self.checkpoint, checkpoint)
        subjects = verdict.subjects
        due = {name: subjects[name] for name in subjects if name.startswith(CONFIDENTIAL)}
        if dict(self.items) != due:
            raise RejectedError(
                "not the confidential items of the verdict", where=self.KIND, expected=f"{len(due)}"
            )


def _items(value: dict[str, Any]) -> dict[str, str]:
    for name, digest in value.items():
        check_name(name)
        if not name.startswith(CONFIDENTIAL) or not isinstance(digest, str):
            raise MalformedError("not a confidential item and its digest", where="deletion items")
        hex_decode(digest, DIGEST_BYTES)
    return value


def _head(value: object) -> TreeHead | None:
    if value is None:
        return None
    f = Fields(value, "size root", MalformedError, "deletion checkpoint")
    return TreeHead(f.integer("size", 0, min(MAX_TREE_SIZE, MAX_TIME)), f.hex("root", DIGEST_BYTES))
