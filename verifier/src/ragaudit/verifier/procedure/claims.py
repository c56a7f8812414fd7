"""Claims: promises whose nonce was revealed, as accounts handed them to the verifier.

Anyone may submit anything, so only what the provider's signature binds counts against it; the
rest is dismissed. When a claim was taken is the verifier's clock to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ragaudit.encoding.errors import RagauditError, RejectedError
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.claims import Claim
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.records import Record
from ragaudit.verifier import evidence as items
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput


@dataclass(frozen=True, slots=True)
class ReceivedClaim:
    """A promise that the provider signed for this log; ``received`` in Unix milliseconds."""

    promise: Promise
    record: Record
    nonce: bytes = field(repr=False)
    received: int

    @property
    def query(self) -> tuple[bytes, int]:
        """(pseudonym, counter) of the promised record."""
        return self.record.pseudonym, self.record.counter

    def in_time(self, policy: Policy) -> bool:
        """Return whether the promise still lived when the verifier took the claim."""
        life = policy.promise_life_seconds + policy.clock_skew_seconds
        return self.received <= self.record.time + 1000 * life


def claims(context: Context) -> tuple[ReceivedClaim, ...]:
    """Return the claims whose promise the provider signed, with their times of intake.

    Raises:
        MissingInput: `promises` for the list, `sampling` for the clock or a claim's time in it.
    """
    found = []
    for claim in _signed(context.list(items.CLAIMS, "promises"), context.policy):
        promise = claim.promise
        if promise.identity not in context.clock.claims:
            raise MissingInput("sampling", "the clock has no time of intake for a claim")
        received = context.clock.claims[promise.identity]
        found.append(ReceivedClaim(promise, promise.record, claim.nonce, received))
    return tuple(found)


def claimed_records(context: Context) -> dict[tuple[bytes, int], Record]:
    """Return the promised record of every claim that binds the provider, by (pseudonym, counter).

    The records that keep them are logged when the window ends, at the times of their promises.

    Raises:
        MissingInput: as for :func:`claims`.
    """
    return {
        each.query: each.record
        for each in claims(context)
        if each.in_time(context.policy) and revealed(context, each)
    }


def revealed(context: Context, claim: ReceivedClaim) -> bool:
    """Return whether the claim shows the nonce of the account's chain.

    One of a plain account, or with a counter beyond the limit, cannot.
    """
    pseudonym, counter = claim.query
    if pseudonym not in context.registered or counter >= context.policy.queries_per_account:
        return False
    anchor = context.registration(pseudonym).registration.anchor
    if anchor is None:
        return False
    try:
        verify_nonce(context.policy.window, pseudonym, anchor, counter, claim.nonce)
    except RejectedError:
        return False
    return True


def _signed(listed: list[object], policy: Policy) -> Iterator[Claim]:
    """Claims of promises that the provider signed for this log; any nonce."""
    for value in listed:
        try:
            claim = Claim.from_json(value)
            claim.promise.verify(policy.keys.provider)
        except RagauditError:
            continue
        if claim.promise.origin == policy.origin:
            yield claim
