"""Revealed promises that were not answered, on their way to provider and audit.

docs/spec/08-services.md §8.3: accounts hand claims to the verifier, the provider fetches them from
it by the page, and the evidence holds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import DIGEST_BYTES
from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.chains import NONCE_BYTES
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.signed import MAX_TIME

MAX_CLAIM_BYTES: Final = 2**15
"""A longer claim is not taken, so that each account has room for one; of its canonical JSON."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A promise, and what is said to be its nonce, 32 bytes; nothing has been verified."""

    promise: Promise
    nonce: bytes = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the claim as a JSON object."""
        return {"promise": self.promise.to_json(), "nonce": self.nonce.hex()}

    def encode(self) -> bytes:
        """Return the claim in canonical JSON, as it is kept.

        Raises:
            RefusedError: it has more than MAX_CLAIM_BYTES, and no verifier takes it.
        """
        data = canonical_json.dumps(self.to_json())
        if len(data) > MAX_CLAIM_BYTES:
            raise RefusedError(
                f"a claim of {len(data)} bytes", where="query", expected=f"{MAX_CLAIM_BYTES}"
            )
        return data

    @classmethod
    def from_json(cls, value: Any, where: str = "claim") -> Self:
        """Return the claim of a JSON value, the strict inverse of `to_json`.

        Args:
            where: the value's place, for errors.

        Raises:
            MalformedRecord: not a claim.
            UnsupportedError: the request has a filter.
        """
        f = Fields(value, "promise nonce", MalformedRecord, where)
        promise = Promise.from_json(f.raw("promise"), f.path("promise"))
        return cls(promise, f.hex("nonce", NONCE_BYTES))


@dataclass(frozen=True, slots=True)
class ClaimsPage:
    """The reply of the verifier's `GET /v1/windows/{w}/claims`.

    Attributes:
        claims: JSON values, to be read one by one: one that is no claim costs no other.
        next: what to ask after for more, 32 bytes; None: there are no more.
    """

    claims: Sequence[Any]
    next: bytes | None

    def to_json(self) -> dict[str, Any]:
        """Return the page as a JSON object."""
        following = None if self.next is None else self.next.hex()
        return {"claims": list(self.claims), "next": following}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the page of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedRecord: not a page. The claims are not looked at.
        """
        f = Fields(value, "claims next", MalformedRecord, "claims page")
        claims = tuple(item for _, item in f.objects("claims", 0, MAX_TIME))
        return cls(claims, None if f.raw("next") is None else f.hex("next", DIGEST_BYTES))


@dataclass(frozen=True, slots=True)
class Claimed:
    """The reply of `GET /v1/windows/{w}/claims/{pseudonym}/{counter}`.

    Attributes:
        claimed: whether a promise for the query was claimed.
    """

    claimed: bool

    def to_json(self) -> dict[str, bool]:
        """Return the reply as a JSON object."""
        return {"claimed": self.claimed}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the reply of a JSON value, the strict inverse of `to_json`; MalformedRecord."""
        return cls(Fields(value, "claimed", MalformedRecord, "claimed").boolean("claimed"))
