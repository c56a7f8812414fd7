"""Windows of the provider at the same time: what check 1 allows, and what they cost together.

Docs/spec 9.10. The verifier alone knows which windows it countersigned, so they are an item of the
evidence; a name of a tenant is the provider's word, so the cost is stated twice: over the windows
that name a tenant of this one, and over all of them, as if their tenants were these under others.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, parse_decimal
from ragaudit.ledger.messages.overlaps import shared_tenants
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.accounting.accountants import GaussianAccountant
from ragaudit.privacy.accounting.events import Composition, NoisyScores
from ragaudit.privacy.accounting.gaussian import NoFiniteBound
from ragaudit.verifier.channel_costs import loss_under
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.members import known

PLACES: Final = 6


def check_overlaps(context: Context) -> None:
    """Check that no more windows answer for a tenant at once than the terms of each allow.

    Raises:
        RejectedError: more do.
    """
    policy = context.policy
    shared = [each for each in context.overlapping if shared_tenants(policy, each.policy)]
    most = int(context.terms.bounds["most_overlapping_windows"])
    if len(shared) > most:
        first = shared[0].policy
        raise RejectedError(
            f"{len(shared)} windows with a tenant of this one overlap it, the first is "
            f"{first.window} with {shared_tenants(policy, first)[0]}",
            where="most_overlapping_windows",
            expected=f"at most {most}, or another time",
        )
    # What was countersigned before was so under terms of its own, which this window would break.
    for each in shared if context.now is not None else ():
        if each.shared > each.allowed:
            raise RejectedError(
                f"overlaps window {each.policy.window}, whose terms do not allow it",
                where="most_overlapping_windows",
                expected=f"at most {each.allowed} there, or another time",
            )


def overlaps(context: Context) -> dict[str, Any] | None:
    """Return the member ``overlaps`` of a verdict (10.13); None where no window overlaps."""
    policy = known(lambda: context.policy)
    found = () if policy is None else known(lambda: context.overlapping)
    if policy is None or not found:
        return None
    claimed = known(lambda: context.close.coalition_claim) or 0
    sharing = [each.policy for each in found if shared_tenants(policy, each.policy)]
    return {
        "windows": [
            {
                "window": each.policy.window,
                "policy_digest": each.policy.digest.hex(),
                "start": each.policy.start,
                "end": each.policy.end,
                "privacy": "gaussian" if each.policy.noised else "none",
                "shared": list(shared_tenants(policy, each.policy)),
            }
            for each in found
        ],
        "together": composed(policy, claimed, sharing),
        "together_if_renamed": composed(policy, claimed, [each.policy for each in found]),
    }


def composed(policy: Policy, claimed: int, others: Sequence[Policy]) -> dict[str, Any]:
    """Return what windows cost together, both channels of each (docs/spec 9.10).

    Args:
        policy: of the window that is judged.
        claimed: accounts of its close entry, 0 without one.
        others: policies of the other windows.
    """
    every = (policy, *others)
    unnoised = [each.window for each in every if not each.noised]
    if unnoised:
        reason = f"window {unnoised[0]} adds no noise: its answers show what the documents hold"
        return {"epsilon": None, "delta": None, "windows": len(every), "reason": reason}
    # One thing that neighbours differ in, for all: the larger where the policies differ.
    relations = {each.relation for each in every}
    relation = relations.pop() if len(relations) == 1 else str(NeighboringRelation.REPLACE)
    events = []
    for each in every:
        accounts = max(each.coalition_max, min(claimed, each.slots) if each is policy else 0)
        queries = accounts * each.queries_per_account
        event = NoisyScores.of_policy(each.sigma, relation, each.rows_per_document, queries)
        events.append(event)
    losses = [loss_under(each, relation) for each in every]
    delta = parse_decimal(policy.delta_policy)
    try:
        priced = GaussianAccountant().price(Composition(tuple(events)), delta)
    except NoFiniteBound as error:
        return {"epsilon": None, "delta": None, "windows": len(every), "reason": str(error)}
    epsilon = Fraction(priced.epsilon) + sum((loss.epsilon for loss in losses), Fraction(0))
    total = delta + sum((loss.delta for loss in losses), Fraction(0))
    return {
        "epsilon": ceil_decimal(epsilon, PLACES),
        "delta": ceil_decimal(total, 12),
        "windows": len(every),
        "relation": relation,
    }
