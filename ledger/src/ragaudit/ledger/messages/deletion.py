"""That what was confidential of a window was deleted: by V (spec 8.4), or by P (spec 8.12)."""

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
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.items import CONFIDENTIAL, check_name
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.ledger.messages.signed import SignedMessage
from ragaudit.ledger.messages.verdict import Verdict

MAX_ORIGIN_BYTES: Final = 160
_MAX_SIZE: Final = min(MAX_TREE_SIZE, MAX_TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletion(JsonMessage, SignedMessage):
    """When something was deleted, after which verdict, and under which checkpoint.

    Attributes:
        origin: of the window's log.
        checkpoint: head of the final checkpoint; None for a window that never had one, or of a
            provider's statement for one whose provider has it no more.
        time: Unix milliseconds.
    """

    origin: str
    checkpoint: TreeHead | None
    time: int

    def _members(self) -> dict[str, Any]:
        head = self.checkpoint
        return {
            "origin": self.origin,
            "checkpoint": (
                None if head is None else {"size": head.size, "root": head.root_hash.hex()}
            ),
            "time": self.time,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        digest = sha256(canonical_json.dumps(self._members())).digest()
        return (self.origin, digest)

    @staticmethod
    def _common(f: Fields) -> dict[str, Any]:
        return {
            "origin": f.text("origin", 1, MAX_ORIGIN_BYTES),
            "checkpoint": _head(f.raw("checkpoint")),
            "time": f.integer("time", 0, MAX_TIME),
            "signature": f.hex("signature", SIGNATURE_BYTES),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(_Deletion):
    """What a verifier deleted, when, and under which checkpoint it was evidence.

    Attributes:
        verdict: SHA-256 of the verdict's envelope, 32 bytes.
        items: hexadecimal SHA-256 of each item that was deleted, by name; all are confidential.
    """

    KIND: ClassVar[str] = "deletion"
    MEMBERS: ClassVar[str] = "origin verdict items checkpoint time signature"

    verdict: bytes
    items: Mapping[str, str]

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
        ).signed(key)

    def _members(self) -> dict[str, Any]:
        members = {"verdict": self.verdict.hex(), "items": dict(self.items)}
        return {**_Deletion._members(self), **members}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            verdict=f.hex("verdict", DIGEST_BYTES),
            items=_items(f.object("items")),
            **cls._common(f),
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
        self.demand("origin", self.origin, origin)
        self.demand("verdict", self.verdict, bytes.fromhex(verdict.digest))
        self.demand("checkpoint", self.checkpoint, checkpoint)
        subjects = verdict.subjects
        due = {name: subjects[name] for name in subjects if name.startswith(CONFIDENTIAL)}
        if dict(self.items) != due:
            raise RejectedError(
                "not the confidential items of the verdict", where=self.KIND, expected=f"{len(due)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDeletion(_Deletion):
    """What a provider deleted of a finished window: all but its public part (spec 8.12).

    Attributes:
        verdict: SHA-256 of the verdict's envelope, 32 bytes; None for an abandoned window.
        entries: how many entries of the log lost salt, body and openings.
    """

    KIND: ClassVar[str] = "provider-deletion"
    MEMBERS: ClassVar[str] = "origin verdict entries checkpoint time signature"

    verdict: bytes | None
    entries: int

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        verdict: bytes | None,
        entries: int,
        checkpoint: TreeHead | None,
        time: int,
    ) -> Self:
        """State a deletion, before it begins; it is shown once it is done.

        Args:
            key: `keys.provider`.
            origin, verdict, entries, checkpoint, time: the attributes.
        """
        return cls(
            origin=origin, verdict=verdict, entries=entries, checkpoint=checkpoint, time=time
        ).signed(key)

    def _members(self) -> dict[str, Any]:
        verdict = None if self.verdict is None else self.verdict.hex()
        return {**_Deletion._members(self), "verdict": verdict, "entries": self.entries}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(
            verdict=f.optional(f.hex, "verdict", DIGEST_BYTES),
            entries=f.integer("entries", 0, _MAX_SIZE),
            **cls._common(f),
        )

    def authenticate(
        self,
        key: PublicKey,
        verdict: Verdict,
        *,
        origin: str,
        checkpoint: TreeHead | None,
        public: int,
    ) -> None:
        """Check that this deletes all that the provider had of a window beyond its public part.

        Args:
            key: `keys.provider`.
            verdict: of the window, with its signature verified.
            origin: of the window's log.
            checkpoint: head of the final checkpoint that is evidence; None if there is none.
            public: how many entries of the log are in the public part of the evidence.

        Raises:
            RejectedError: of another window, verdict or checkpoint, or of another number of
                entries.
            SignatureRejected: not signed with ``key``.
        """
        self.verify(key)
        self.demand("origin", self.origin, origin)
        self.demand("verdict", self.verdict, bytes.fromhex(verdict.digest))
        # Without a final checkpoint nobody else knows how many there were.
        held = None if checkpoint is None else max(0, checkpoint.size - public)
        if self.checkpoint is not None:
            self.demand("checkpoint", self.checkpoint, checkpoint)
            self.demand("number of entries", self.entries, held)
        # A provider that lost the end of its log cannot have more of it than there was.
        elif held is not None and self.entries > held:
            self.demand("number of entries", self.entries, f"at most {held}")


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
    return TreeHead(f.integer("size", 0, _MAX_SIZE), f.hex("root", DIGEST_BYTES))
