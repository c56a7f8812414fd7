"""That confidential evidence was opened, by whom and why, and deleted (docs/spec 8.4, 8.12)."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Final, Self, TypeAlias

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.tagged import Field
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.tree import MAX_TREE_SIZE, TreeHead
from ragaudit.ledger.messages.items import CONFIDENTIAL, check_name
from ragaudit.ledger.messages.kernel import (
    MAX_TIME,
    Converted,
    Count,
    Digest,
    Integer,
    MapOf,
    Message,
    Milliseconds,
    Nested,
    Text,
)
from ragaudit.ledger.messages.signed import SignedMessage
from ragaudit.ledger.messages.verdict import Verdict

MAX_ORIGIN_BYTES: Final = 160
BUNDLE: Final = "bundle"
FIRST: Final = bytes(DIGEST_BYTES)
"""What the first access of a window names as the one before it."""

_WHAT = re.compile(r"bundle|account/[0-9a-f]{64}", re.ASCII)


def _check_what(what: str) -> None:
    if _WHAT.fullmatch(what) is None:
        raise MalformedError("nothing that is opened", expected="bundle, or account/<pseudonym>")


def _check_said(text: str) -> None:
    if not text.strip() or not text.isprintable():
        raise MalformedError("nothing is said", expected="one line of text")


Reader: TypeAlias = Annotated[str, Text(1, 200, _check_said, "one line of 1..200 bytes")]
Reason: TypeAlias = Annotated[str, Text(1, 1000, _check_said, "one line of 1..1000 bytes")]


class AccessesRejected(RejectedError):
    """A list of accesses that is not the one that was kept."""


class EvidenceAccess(SignedMessage, kind="evidence-access"):
    """One time that confidential evidence was opened at the verifier, or its like at the provider.

    Attributes:
        origin: of the window's log, which tells windows of one name apart.
        number: from 0, within the window.
        previous: SHA-256 of the canonical bytes of the access before; of the first 32 zero bytes.
        what: was opened; a pseudonym is hexadecimal.
        reader, reason: as whoever opened it said.
        time: does not fall.
    """

    origin: Annotated[str, Text(1, MAX_ORIGIN_BYTES)]
    number: Count
    previous: Digest
    what: Annotated[str, Text(1, 80, _check_what, '"bundle" or "account/<pseudonym>"')]
    reader: Reader
    reason: Reason
    time: Milliseconds

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        before: "EvidenceAccess | None",
        what: str,
        reader: str,
        reason: str,
        time: int,
    ) -> Self:
        """Record an access.

        Args:
            key: `keys.verifier`, or the provider's.
            before: the access before; None for the first.
            origin, what, reader, reason, time: the attributes.
        """
        return cls(
            origin=origin,
            number=0 if before is None else before.number + 1,
            previous=FIRST if before is None else before.digest,
            what=what,
            reader=reader,
            reason=reason,
            time=time,
        ).signed(key)

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: what the next access names."""
        return sha256(self.encode()).digest()

    @staticmethod
    def verify_all(accesses: Sequence["EvidenceAccess"], key: PublicKey, *, origin: str) -> None:
        """Check that these are the first accesses of a window, all of them and in order.

        Args:
            accesses: as their holder lists them. That none is missing at the end, only the count
                that the window shows can tell.
            key: `keys.verifier`, or of a provider's list `keys.provider`.
            origin: of the log of the window whose they must be.

        Raises:
            AccessesRejected: one is missing, changed, or out of order, or of another window.
            SignatureRejected: one is not signed with ``key``.
        """
        before: EvidenceAccess | None = None
        for number, access in enumerate(accesses):
            access.verify(key)
            access.demand("origin", access.origin, origin)
            expected = FIRST if before is None else before.digest
            if (access.number, access.previous) != (number, expected):
                raise AccessesRejected(
                    "does not follow the access before", where=f"access {access.number}"
                )
            if before is not None and access.time < before.time:
                raise AccessesRejected(
                    "earlier than the access before", where=f"access {access.number}"
                )
            before = access


_MAX_SIZE: Final = min(MAX_TREE_SIZE, MAX_TIME)


class _Head(Message):
    size: Annotated[int, Integer(0, _MAX_SIZE)]
    root: Digest


DeletedHead: TypeAlias = Annotated[
    TreeHead,
    Converted(
        Nested(_Head),
        lambda head: TreeHead(head.size, head.root),
        lambda head: {"size": head.size, "root": head.root_hash.hex()},
    ),
]


def _check_item(name: str) -> None:
    check_name(name)
    if not name.startswith(CONFIDENTIAL):
        raise MalformedError("not a confidential item")


def _check_digest(digits: str) -> None:
    hex_decode(digits, DIGEST_BYTES)


class _Deletion(SignedMessage):
    """When something was deleted, after which verdict, and under which checkpoint.

    Attributes:
        origin: of the window's log.
        checkpoint: head of the final checkpoint; None for a window that never had one, or of a
            provider's statement for one whose provider has it no more.
        time: Unix milliseconds.
    """

    origin: Annotated[str, Text(1, MAX_ORIGIN_BYTES)]
    checkpoint: DeletedHead | None
    time: Milliseconds

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        unsigned = self.to_json()
        del unsigned["format"], unsigned["signature"]
        return (self.origin, sha256(canonical_json.dumps(unsigned)).digest())


class Deletion(_Deletion, kind="deletion"):
    """What a verifier deleted, when, and under which checkpoint it was evidence.

    Attributes:
        verdict: SHA-256 of the verdict's envelope.
        items: SHA-256 of each item that was deleted, by name; all are confidential.
    """

    verdict: Digest
    items: Annotated[
        Mapping[str, str],
        MapOf(Text(1, 200, _check_item, "name"), Text(1, 64, _check_digest, "hex")),
    ]

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


class ProviderDeletion(_Deletion, kind="provider-deletion"):
    """What a provider deleted of a finished window: all but its public part (spec 8.12).

    Attributes:
        verdict: SHA-256 of the verdict's envelope; None for an abandoned window.
        entries: how many entries of the log lost salt, body and openings.
    """

    verdict: Digest | None
    entries: Annotated[int, Integer(0, _MAX_SIZE)]

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
