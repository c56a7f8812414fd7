"""That confidential evidence was opened: by whom, why, and when (docs/spec/08-services.md §8.4)."""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Final, Self, TypeAlias

from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.ledger.messages.kernel import Count, Digest, Milliseconds, Text
from ragaudit.ledger.messages.signed import SignedMessage

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
