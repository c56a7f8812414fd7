"""That confidential evidence was opened: by whom, why, and when (docs/spec/08-services.md §8.4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import SIGNATURE_BYTES, PrivateKey, PublicKey
from ragaudit.encoding.tagged import Field
from ragaudit.ledger.messages.fields import MAX_TIME, Fields
from ragaudit.ledger.messages.signed import SignedMessage

MAX_READER_BYTES: Final = 200
MAX_REASON_BYTES: Final = 1000
MAX_ORIGIN_BYTES: Final = 160
BUNDLE: Final = "bundle"
FIRST: Final = bytes(DIGEST_BYTES)
"""What the first access of a window names as the one before it."""

_WHAT = re.compile(r"bundle|account/[0-9a-f]{64}", re.ASCII)


class AccessesRejected(RejectedError):
    """A list of accesses that is not the one that was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceAccess(SignedMessage):
    """One time that confidential evidence was opened at the verifier, or its like at the provider.

    Attributes:
        origin: of the window's log, which tells windows of one name apart.
        number: from 0, within the window.
        previous: SHA-256 of the access before; FIRST of the first.
        what: BUNDLE, or "account/" and a pseudonym in hexadecimal.
        reader, reason: as whoever opened it said.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "evidence-access"
    MEMBERS: ClassVar[str] = "origin number previous what reader reason time signature"

    origin: str
    number: int
    previous: bytes
    what: str
    reader: str
    reason: str
    time: int

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
        )._signed(key)

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: what the next access names."""
        return sha256(canonical_json.dumps(self.to_json())).digest()

    def _members(self) -> dict[str, Any]:
        return {
            "origin": self.origin,
            "number": self.number,
            "previous": self.previous.hex(),
            "what": self.what,
            "reader": self.reader,
            "reason": self.reason,
            "time": self.time,
        }

    def signed_fields(self) -> tuple[Field, ...]:
        """Return what the signature is over, in order."""
        said = (self.what, self.reader, self.reason)
        return (self.origin, self.number, self.previous, *said, self.time)

    @classmethod
    def _read(cls, f: Fields) -> Self:
        what = f.text("what", 1, 80)
        if _WHAT.fullmatch(what) is None:
            raise f.error("what", "nothing that is opened", "bundle, or account/<pseudonym>")
        return cls(
            origin=f.text("origin", 1, MAX_ORIGIN_BYTES),
            number=f.integer("number", 0, MAX_TIME),
            previous=f.hex("previous", DIGEST_BYTES),
            what=what,
            reader=read_said(f, "reader", MAX_READER_BYTES),
            reason=read_said(f, "reason", MAX_REASON_BYTES),
            time=f.integer("time", 0, MAX_TIME),
            signature=f.hex("signature", SIGNATURE_BYTES),
        )

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
            access._demand("origin", access.origin, origin)
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


def read_said(f: Fields, name: str, most: int) -> str:
    """Return what a person says for the record: a text that is not blank.

    Args:
        f: the object.
        name: of the member.
        most: bytes of UTF-8.

    Raises:
        MalformedError: as the reader of ``f`` calls it; blank, too long, or no text.
    """
    text = f.text(name, 1, most)
    if not text.strip() or not text.isprintable():
        raise f.error(name, "nothing is said", "one line of text")
    return text
