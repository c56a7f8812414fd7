"""Check 11: whose randomness is in the noise (docs/spec 9)."""

from ragaudit.encoding.errors import RejectedError
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.logged_records import RecordSummary


def check_nonces(context: Context, found: Findings) -> None:
    """11: anchored accounts' records carry the nonces of their chain, plain ones none."""
    if context.unnoised:
        _check_no_chains(context, found)
        return
    anchored = 0
    for pseudonym in context.askers:
        with found.attempt(f"account {pseudonym.hex()}"):
            registered = context.registration(pseudonym)
            if registered.anchored:
                anchored += 1
                _check_chain(context, pseudonym, registered.rank)
            # A nonce that no chain binds is the provider's own, and a choice of noise.
            elif any(logged.anchored for logged in context.by_account.get(pseudonym, ())):
                raise RejectedError("a nonce in a record of a plain account")
    _check_share(context, found)
    found.summary = (
        f"nonces of {anchored} anchored accounts lie on their chains; "
        f"those of {len(context.anchored)} of them were shown by who holds their dispute key"
    )


def _check_no_chains(context: Context, found: Findings) -> None:
    """Without noise there is nothing that a nonce could fix, and no promise it would be for."""
    _ = context.anchored  # of no account; the item of statements is this check's
    for logged in context.registrations.summaries():
        if logged.anchored:
            found.fault("an anchor in a window without noise", logged.name)
    for record in context.records.summaries():
        if record.anchored:
            found.fault("a nonce in a window without noise", record.name)
    found.summary = "no account has a chain of nonces, as there is no noise that they would fix"


def _check_share(context: Context, found: Findings) -> None:
    """The verifier's terms may demand a share of queries whose account showed its chain.

    It is a claimed one: a provider may register accounts of its own, and hold all their keys.
    """
    total = len(context.records) + len(context.charges)
    least = context.terms.bounds["least_claimed_anchored_share"]
    count = sum(len(context.queries_of(pseudonym)) for pseudonym in context.anchored)
    # Of queries, not of accounts: accounts that ask nothing cost a provider nothing.
    if count < least * total:
        what = "records and charge entries" if len(context.charges) else "records"
        found.fault(
            f"{count} of {total} {what} are of accounts whose chain was shown, and the verifier's "
            f"terms demand a claimed anchored share of {least}"
        )


def _check_chain(context: Context, pseudonym: bytes, rank: int) -> None:
    """Each nonce hashes to that of the counter before it, the first one to the anchor."""
    anchor = context.registrations[rank].registration.anchor
    assert anchor is not None
    window, limit = context.policy.window, context.policy.queries_per_account
    previous, after = anchor, -1
    for counter, logged in enumerate(context.queries_of(pseudonym)):
        if logged.counter != counter or counter >= limit:
            raise MissingInput(
                "counters", f"{logged.name}: counter {logged.counter} is out of order"
            )
        if isinstance(logged, RecordSummary):
            nonce = context.records[logged.position].record.nonce if logged.anchored else None
            if nonce is None:
                what = "an anchored account's record without a nonce"
                raise RejectedError(what, where=logged.name)
        else:
            answer = context.answer_of(logged.entry)
            nonce = None if answer is None else answer.nonce
            if nonce is None:  # void, or check 28's
                continue
        verify_nonce(window, pseudonym, previous, counter, nonce, after=after)
        previous, after = nonce, counter
