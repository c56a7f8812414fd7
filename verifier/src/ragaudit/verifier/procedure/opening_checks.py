"""Checks 1 to 4: what was fixed before the window. They run before the countersignature too.

Check 1 also asks which windows of the provider stand at the same time, and what they cost together
(docs/spec 9.10). The verifier alone knows which windows it countersigned, so they are an item of
the evidence; a name of a tenant is the provider's word, so the cost is stated twice: over the
windows that name a tenant of this one, and over all of them, as if their tenants were these under
others.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import ceil_decimal, parse_decimal, rfc3339
from ragaudit.ledger.log.checkpoints import verify_checkpoint
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.evidence import shared_tenants
from ragaudit.ledger.messages.generation_terms import KeywordVoting
from ragaudit.ledger.messages.items import OpeningItem
from ragaudit.ledger.messages.manifests import DETERMINISTIC
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.accounting.accountants import GaussianAccountant
from ragaudit.privacy.accounting.events import Composition, NoisyScores
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, epsilon, gives
from ragaudit.privacy.accounting.generation import PLACES, channel_loss
from ragaudit.privacy.coalition import hamming_threshold
from ragaudit.privacy.sample import MOST_SAMPLED, largest_sample
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.indexes import check_norm
from ragaudit.verifier.procedure.members import known
from ragaudit.verifier.terms import loss_under

COST_PLACES: Final = 6


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
        "epsilon": ceil_decimal(epsilon, COST_PLACES),
        "delta": ceil_decimal(total, 12),
        "windows": len(every),
        "relation": relation,
    }


def check_policy(context: Context, found: Findings) -> None:
    """1: the policy's form and ranges, its keys, and the countersignature in time."""
    policy = context.policy
    with found.attempt("estimator"):
        _check_threshold(policy)
    with found.attempt("keys"):
        _check_keys(context, policy)
    with found.attempt("the verifier's terms"):
        context.terms.check(policy)
    with found.attempt("generation"):
        _check_keywords(policy)
    with found.attempt("owners"):
        _check_rows(policy)
    with found.attempt("countersignature"):
        _check_time(context, policy)
    with found.attempt("overlaps"):
        check_overlaps(context)
    with found.attempt("previous_checkpoint"):
        _check_previous(context, policy)
    for tenant in policy.tenants:
        with found.attempt(f"tenant {tenant}"):
            rows = context.index(tenant).rows
            # An answer that may hold every document hides nothing, whatever the noise was.
            if policy.top_k_max >= rows:
                raise RejectedError(
                    f"top_k_max is {policy.top_k_max}", expected=f"below the {rows} rows"
                )
    found.summary = f"policy of {policy.provider} for {policy.window}, fixed in time"


def _check_threshold(policy: Policy) -> None:
    estimator = policy.estimator
    threshold = hamming_threshold(estimator.theta, estimator.sketch_bits)
    # A smaller one would link fewer accounts than the theta that the policy shows.
    if estimator.hamming_threshold != threshold:
        raise RejectedError(
            f"hamming_threshold is {estimator.hamming_threshold}", expected=str(threshold)
        )


def _check_keywords(policy: Policy) -> None:
    """The stated epsilon covers what all uses of a document cost, where DP-KSA answers."""
    terms = policy.generation
    if terms is None or not isinstance(terms.answerer, KeywordVoting):
        return
    each = terms.answerer
    due = channel_loss(each.epsilon_choice, each.sigma, terms.uses, each.delta_conversion)
    if terms.epsilon < due:
        raise RejectedError(
            f"epsilon is {terms.epsilon} for {terms.uses} uses of a document",
            expected=f"at least {ceil_decimal(due, PLACES)}",
        )


def _check_rows(policy: Policy) -> None:
    """No sample of rows can be larger than a response holds (9.11)."""
    rows = None if policy.owners is None else policy.owners.rows
    if rows is not None and (most := largest_sample(rows)) > MOST_SAMPLED:
        raise RejectedError(
            f"a sample of rows may have {most} of a tenant's", expected=f"at most {MOST_SAMPLED}"
        )


def _check_keys(context: Context, policy: Policy) -> None:
    pins, keys = context.pins, policy.keys
    for role, pin, key in (
        ("provider", pins.provider, keys.provider),
        ("cosigner", pins.cosigner, keys.cosigner),
        ("verifier", pins.verifier, keys.verifier),
        ("verdict", pins.verdict, keys.verdict),
    ):
        # A provider that names a cosigner or verifier of its own would vouch for itself.
        if pin is not None and pin != key:
            raise RejectedError(f"another {role} key than the one pinned")


def _check_previous(context: Context, policy: Policy) -> None:
    """The checkpoint names the end of a log that this verifier saw, under a key of its own."""
    if policy.previous_checkpoint is None:
        return
    before = context.previous
    # Under one key a checkpoint of the old log could be shown as one of the new.
    if before.log.public == policy.keys.log.public:
        raise RejectedError("the log key of the window before", expected="a key for each window")
    end = before.final_checkpoint
    if end is None:
        raise RejectedError("of a window that is not closed")
    if before.head(policy.previous_checkpoint.encode()) != before.head(end.encode()):
        raise RejectedError("not the final checkpoint of that window")


def _check_time(context: Context, policy: Policy) -> None:
    # Before both: from the first activation on, randomness could be chosen with n_1 in hand.
    limit = 1000 * min(policy.start, policy.activation_instants[0])
    if context.now is not None:
        time = context.now
    else:
        signed = context.countersignature
        if (signed.window, signed.policy_digest) != (policy.window, policy.digest):
            raise RejectedError("names another window or policy")
        time = signed.time
    if time >= limit:
        raise RejectedError(f"at {rfc3339(time)}, too late", expected=f"before {rfc3339(limit)}")


def check_accounting(context: Context, found: Findings) -> None:
    """2: the noise gives what is promised to one account, and something to a coalition."""
    policy = context.policy
    event = NoisyScores.of_policy(
        policy.sigma, policy.relation, policy.rows_per_document, policy.queries_per_account
    )
    loss, delta = parse_decimal(policy.epsilon_acc), parse_decimal(policy.delta_acc)
    # Recomputed: what the policy says of its own noise is a claim.
    if not gives(event, loss, delta):
        found.fault(
            f"sigma {policy.sigma} does not give epsilon {policy.epsilon_acc} at delta "
            f"{policy.delta_acc} for {event.queries} queries of one account"
        )
    # Any finite epsilon passes here: how small it must be is for the terms, in check 1.
    queries = policy.coalition_max * policy.queries_per_account
    try:
        epsilon(event.with_queries(queries), parse_decimal(policy.delta_policy))
    except NoFiniteBound as error:
        found.fault(f"for a coalition of {policy.coalition_max} accounts: {error}")
    found.summary = (
        f"sigma {policy.sigma} gives epsilon {policy.epsilon_acc} at delta {policy.delta_acc} "
        f"for {event.queries} queries"
    )


def check_commitments(context: Context, found: Findings) -> None:
    """3: the opening is the countersigned one and names what was uploaded."""
    policy, opening = context.policy, context.opening
    if opening.policy_digest != policy.digest:
        found.fault("the opening names another policy")
    with found.attempt("embedder"):
        if opening.embedder_digest != context.embedder_digest:
            found.fault("the opening names another embedder manifest")
        name, tolerance = context.embedder_manifest.name, policy.embedder_tolerance
        # What it gives is known to the last digit: every other vector was chosen.
        if name in DETERMINISTIC and tolerance:
            found.fault(f"embedder_tolerance is {tolerance} for {name}, which needs none")
    # Without noise a commitment to keys would be to nothing; with it, noise could be chosen.
    if bool(opening.seed_root) != policy.noised:
        found.fault("noise keys are committed to if, and only if, the window has noise")
    owned = policy.owners is not None
    if any((opened.id_commitment is not None) != owned for opened in opening.tenants):
        found.fault("document secrets are committed to if, and only if, the policy has owners")
    if [opened.tenant for opened in opening.tenants] != list(policy.tenants):
        found.fault("the opening's tenants are not the policy's")
    _check_indexes(context, found)
    with found.attempt("empty checkpoint"):
        signed = verify_checkpoint(
            context.item(items.EMPTY_CHECKPOINT, found.owner), policy.keys.log
        )
        # The log begins empty: nothing can have stood in it before the verifier signed.
        if signed.head.size != 0:
            found.fault(f"of a log of {signed.head.size} entries", "empty checkpoint")
    if context.now is None:
        _check_countersigned(context, found)
    seed = "seed" if policy.noised else "no seed"
    count = len(opening.tenants)
    found.summary = f"{count} index commitments, {seed} and embedder as countersigned"


def _check_indexes(context: Context, found: Findings) -> None:
    """Every index that opening or log name was uploaded as they name it, and no other."""
    stated: Sequence[tuple[str, int]] | None = None
    with found.attempt():
        stated = context.index_places
    places = [(tenant, 1) for tenant in context.policy.tenants] if stated is None else stated
    for place in places:
        with found.attempt():
            context.index(*place)
            # Deleted is what the provider says: who reads the evidence may know how many were.
            if null := context.column_arrays(*place).null_rows:
                found.note(f"version {place[1]} of {place[0]} marks {null} rows as deleted")
    # One that neither names is evidence that no check looks at; which they are, may be unknown.
    for name in () if stated is None else context.evidence:
        held = items.index_place(name)
        if held is not None and held[1] != 1 and held not in places:
            found.fault("of a version that the log does not have", name)


def _check_countersigned(context: Context, found: Findings) -> None:
    with found.attempt("countersignature"):
        if context.countersignature.opening_digest != context.opening_digest:
            found.fault("names another opening", "countersignature")
    # Entry 0 stands in the log with its salt: were it another than was countersigned, index and
    # noise keys would have been chosen again after the verifier had signed.
    with found.attempt("entry 0"):
        log = context.log
        if not log.size:
            raise MissingInput("log", "the log is empty")
        first = log.first
        opening = None if first is None else (first.kind, OpeningItem(first.salt, first.body))
        if opening != ("opening", context.opening_item):
            found.fault("is not the countersigned opening", "entry 0")


def check_index_proof(context: Context, found: Findings) -> None:
    """4: every row of every index is an integer vector of the right norm."""
    places = context.index_places
    for done, place in enumerate(places):
        context.progress(found.owner, done, len(places))
        with found.attempt():
            # A row longer than B has a larger sensitivity than the noise is for, and beats every
            # row that is in order where there is none.
            index = context.accepted_index(*place)
            # At too small a scale rows are rounded to nothing, and all of them tie.
            check_norm(index, context.policy, context.terms.bounds["most_norm_ratio"])
    context.progress(found.owner, len(places), len(places))
    found.summary = f"{len(places)} index arguments verified"
