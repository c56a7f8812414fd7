"""Promises and refusals of the provider, and claims that a promise was not kept.

docs/spec/05-records.md §5.8, and docs/spec/08-services.md §8.3 for claims: accounts hand them to
the verifier, the provider fetches them from it by the page, and the evidence holds them.
"""

from dataclasses import field
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.entries import MAX_QUERIES, Charge, QueryEntry, Record
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES
from ragaudit.ledger.messages.kernel import (
    EMBEDDED,
    MAX_TIME,
    UNSIGNED,
    Digest,
    Hex,
    Integer,
    Items,
    Message,
    Milliseconds,
    Nested,
    OneOf,
    Origin,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import Openings, Request, Salted
from ragaudit.ledger.messages.signed import AccountMessage

Reason = Literal["budget", "closed", "unavailable"]

MAX_CLAIM_BYTES: Final = 2**15
"""A longer claim is not taken, so that each account has room for two; of its canonical JSON."""
MAX_SUBMITTED_BYTES: Final = 1600 * 2**20
"""Of each kind of what accounts submit about a window: docs/spec/08-services.md §8.8."""


def least_share(slots: int) -> int:
    """Return the bytes that an account has for each kind of what it submits, at least (8.8).

    Args:
        slots: of the policy; room for two claims, less where there are more than 25,599.
    """
    return min(2 * MAX_CLAIM_BYTES, MAX_SUBMITTED_BYTES // (slots + 1))


def superseded_from(time: int, policy: Policy) -> int:
    """Return the instant from which a promise can be claimed no more, Unix milliseconds (8.7).

    Args:
        time: of what was promised, Unix milliseconds.
        policy: of its window; life and skew are its.
    """
    # The verifier takes a claim up to time + life + skew by its own clock (5.8), which may be
    # behind the provider's by another skew.
    return time + policy.promise_life + 2000 * policy.clock_skew_seconds + 1


def voidable_from(time: int, policy: Policy) -> int:
    """Return the instant from which a promised charge may be void, Unix milliseconds (11.9).

    Args:
        time: of the charge, Unix milliseconds.
        policy: of its window.
    """
    return min(superseded_from(time, policy), 1000 * policy.end)


AnyRequest: TypeAlias = Annotated[
    Request | GenerationRequest,
    # How many rows come back is asked of the retrieval channel alone.
    OneOf(
        lambda asked: isinstance(asked, dict) and "top_k" in asked,
        Nested(Request),
        Nested(GenerationRequest),
    ),
]


class Promise(AccountMessage, kind="promise"):
    """What is logged for an anchored account's request, whatever its nonce will be; signed.

    The record, but for nonce and selection; or, of a question to the generation channel, the charge
    entry, which is in the log before this leaves.

    Attributes:
        origin: of the window's log.
        body: of the promised record or charge entry.
        request: what was asked.
        salted: opens the digests of the body, which alone are signed.
    """

    origin: Origin
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)]
    request: Annotated[AnyRequest, UNSIGNED]
    salted: Annotated[Salted, EMBEDDED, UNSIGNED]

    @classmethod
    def issue(
        cls,
        key: PrivateKey,
        *,
        origin: str,
        body: bytes,
        request: Request | GenerationRequest,
        openings: Openings,
    ) -> Self:
        """Sign a promise; store it durably before it is sent.

        A provider that forgot it could promise the same counter once more, with another record.

        Args:
            key: the provider's.
            origin, body, request, openings: the attributes.
        """
        return cls(origin, body, request, openings.salted).signed(key)

    def superseded_from(self, policy: Policy) -> int:
        """Return the instant from which the provider may make another, Unix milliseconds (8.7).

        By then nobody can claim this one any more, by any clock within the skew.

        Args:
            policy: of the promise's window; life and skew are its.
        """
        return superseded_from(self.promised.time, policy)

    @property
    def identity(self) -> bytes:
        """What makes it one promise, 32 bytes: log and promised body, whatever the signature.

        The body names pseudonym and counter. An Ed25519 signer can sign one message in many ways.
        """
        return structure("promise", self.origin, self.body)

    @property
    def promised(self) -> QueryEntry:
        """What is promised: to a question of the generation channel a charge, else a record.

        Raises:
            MalformedRecord: the body is none.
        """
        kind = Charge if isinstance(self.request, GenerationRequest) else Record
        return kind.parse_promised(self.body)

    @property
    def openings(self) -> Openings:
        """What opens the digests of the body: question and filter stand in the request alone."""
        asked, salted = self.asked, vars(self.salted)
        return Openings(
            query=asked.query, filter=asked.filter, vector=asked.vector, kind=asked.kind, **salted
        )

    @property
    def asked(self) -> Request:
        """The request, as the digests of either kind of entry cover it."""
        request = self.request
        return request.retrieval if isinstance(request, GenerationRequest) else request

    def _check(self) -> None:
        _ = self.promised  # refused here, where the message is malformed, and nowhere later

    def verify(self, key: PublicKey) -> None:
        """Check signature, openings, and that the entry is of the request.

        Args:
            key: the policy's `keys.provider`.

        Raises:
            ReceiptRejected: a bad signature, an opening that does not open, another counter or K.
        """
        # The signature first: whatever is found wrong after it accuses the provider.
        AccountMessage.verify(self, key)
        entry = self.promised
        # The counter fixes the noise and K how much is released; the openings cover neither.
        top_k = entry.top_k if isinstance(entry, Record) else self.asked.top_k
        if (entry.counter, top_k) != (self.request.counter, self.asked.top_k):
            raise ReceiptRejected("another counter or K than asked", where="promise")
        self.openings.verify(entry, self.asked)

    def verify_kept(self, entry: QueryEntry) -> None:
        """Check that ``entry`` is the promised one; a record, but for nonce and selection.

        Args:
            entry: of the receipt or the log, at the promise's counter.

        Raises:
            ReceiptRejected: it contradicts the promise.
        """
        # Compared whole: with the nonce the provider can compute the noise, and any field still
        # open (query, K, time) would be a choice of what to answer with it.
        if entry.promised() != self.promised:
            raise ReceiptRejected(f"the {entry.KIND} contradicts the promise", where="promise")


class Refusal(AccountMessage, kind="refusal"):
    """A signed no.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account.
        counter: how many records the account has, so that the log can contradict it.
        reason: the budget is spent, the window is closed, or the service cannot answer now.
    """

    origin: Origin
    pseudonym: Digest
    # r itself included: after the last query the account has r records.
    counter: Annotated[int, Integer(0, MAX_QUERIES)]
    reason: Reason
    time: Milliseconds

    @property
    def identity(self) -> bytes:
        """What makes it one refusal, 32 bytes: all that can contradict a log, not its time."""
        return structure("refusal", self.origin, self.pseudonym, self.counter, self.reason)

    def verify_budget(self, queries: int) -> None:
        """Check that a refusal for the budget came at its end.

        Args:
            queries: r, queries per account of the policy.

        Raises:
            ReceiptRejected: the account had records left; this contradicts the policy.
        """
        # No count is wrong by itself for the other reasons; one above the log's is for check 14.
        if self.reason == "budget" and self.counter < queries:
            raise ReceiptRejected(
                f"refused after {self.counter} records", where="budget", expected=f"{queries}"
            )


class Claim(Message, where="claim"):
    """A promise, and what is said to be its nonce, 32 bytes; nothing has been verified."""

    promise: Promise
    nonce: Digest = field(repr=False)

    def encode_within(self, slots: int) -> bytes:
        """Return the claim in canonical JSON, as it is kept.

        Args:
            slots: of the window's policy: two claims fit into the least share of an account.

        Raises:
            RefusedError: it is longer, and no verifier takes it.
        """
        # Found out only after the reveal, it would be too late: the provider would have the nonce,
        # and no verifier would take the claim.
        data, most = self.encode(), least_share(slots) // 2
        if len(data) > most:
            raise RefusedError(
                f"a claim of {len(data)} bytes", where="query", expected=f"at most {most}"
            )
        return data


class ClaimsPage(Message, where="claims page"):
    """The reply of the verifier's `GET /v1/windows/{w}/claims`.

    Attributes:
        claims: JSON values, to be read one by one: one that is no claim costs no other.
        next: what to ask after for more, 32 bytes; None: there are no more.
    """

    # A page is bounded in bytes (8.3), and so by what the caller reads.
    claims: Annotated[tuple[Any, ...], Items(0, MAX_TIME)]
    next: Digest | None


class Claimed(Message, where="claimed"):
    """The reply of `GET /v1/windows/{w}/claims/{pseudonym}/{counter}`.

    Attributes:
        claimed: whether a promise for the query was claimed.
    """

    claimed: bool
