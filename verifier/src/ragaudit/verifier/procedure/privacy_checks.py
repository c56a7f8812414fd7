"""Checks 20 and 21: how many accounts act together, and what the guarantee is then worth."""

from collections import Counter
from collections.abc import Sequence

from ragaudit.encoding.errors import RejectedError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.verdict import Status
from ragaudit.privacy import coalition
from ragaudit.privacy.accounting.events import GAMMA
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings


def check_coalition(context: Context, found: Findings) -> None:
    """20: the provider's claim is what the sketches give; above k_max it is EXCEEDED."""
    claimed, planned = context.close.coalition_claim, context.policy.coalition_max
    bits = context.policy.estimator.sketch_bits
    for record in context.records.summaries():
        length = 8 * record.sketch_bytes
        if not record.sketched:
            found.fault("another sketch than the committed one", record.name)
        elif length != bits:
            found.fault(f"a sketch of {length} bits, expected {bits}", record.name)
    # Of other sketches than the committed ones nothing follows, not even a number to compare.
    if found.fault_count:
        return
    estimate = _estimate(context)
    context.stated.estimated = estimate.k_hat
    # Too large a claim is a fault too: epsilon is restated for what was claimed.
    if estimate.k_hat != claimed:
        found.fault(f"the provider claims {claimed} accounts, the sketches give {estimate.k_hat}")
    alike = "asked about one direction" if context.policy.by_direction else "look alike"
    for cluster in estimate.clusters:
        found.note(f"{len(cluster)} accounts {alike}, the first is {cluster[0].hex()}")
    # Not FAIL: nothing is false, and many accounts that ask alike can be innocent.
    if estimate.k_hat > planned:
        found.downgrade(
            Status.EXCEEDED,
            f"{estimate.k_hat} accounts look as if they act together, the policy plans for "
            f"{planned}; epsilon is restated for {estimate.k_hat}",
        )
    group = (
        "accounts' worth of questions about one direction"
        if context.policy.by_direction
        else ("largest group of accounts that look alike")
    )
    found.summary = f"{group}: {estimate.k_hat}, of {planned}"


def _estimate(context: Context) -> coalition.Estimate:
    """The estimate over all records of the log; RagauditError if their sketches do not fit."""
    policy, logged = context.policy, context.records
    records = (
        coalition.Record(record.pseudonym, record.time, sketch, record.anchored)
        for record, sketch in zip(logged.summaries(), logged.sketches, strict=True)
    )
    if policy.by_direction:
        return coalition.estimate_direction(
            records,
            limit=policy.queries_per_account,
            progress=lambda share: context.progress("coalition", int(100 * share), 100),
        )
    return coalition.estimate(
        records,
        tau=policy.link_time,
        life=policy.promise_life,
        threshold=policy.estimator.hamming_threshold,
        progress=lambda share: context.progress("coalition", int(100 * share), 100),
        link=context.engine.link_accounts,
    )


def check_epsilon(context: Context, found: Findings) -> None:
    """21: a finite epsilon exists for the coalition that the window showed."""
    total, counts = _counts(context)
    # The provider's larger claim counts; whether it is right is check 20's.
    coalition = max(context.policy.coalition_max, context.close.coalition_claim)
    epsilon = context.stated.epsilon = table(context.policy, coalition, total, counts)
    if not epsilon.finite:
        # Without a larger coalition than planned the policy is at fault, which is check 2's.
        if coalition == context.policy.coalition_max:
            raise MissingInput("accounting", "the policy itself has no finite epsilon")
        raise RejectedError(f"no finite epsilon for {coalition} accounts")
    found.summary = (
        f"epsilon {epsilon.headline.epsilon} at delta {context.policy.delta_policy} for "
        f"{coalition} accounts and {epsilon.headline.queries} queries"
    )


def table(policy: Policy, coalition: int, total: int, counts: Sequence[int]) -> EpsilonTable:
    """Return the epsilon table of a policy (spec 7.4).

    Args:
        policy: states sigma, relation, deltas and queries per account.
        coalition: accounts that pool their answers, at least 1.
        total: records of the tenant that has most, at least 0.
        counts: records of each account, at least 0; only the ``coalition`` largest matter.

    Raises:
        InvalidArgumentError: a number out of its range.
    """
    return epsilon_report(
        sigma=policy.sigma,
        relation=policy.relation,
        group_size=policy.rows_per_document,
        queries_per_account=policy.queries_per_account,
        coalition=coalition,
        delta_policy=policy.delta_policy,
        gamma=GAMMA,
        total_records=total,
        realised_counts=counts,
        epsilon_acc=policy.epsilon_acc,
        delta_acc=policy.delta_acc,
    )


def _counts(context: Context) -> tuple[int, list[int]]:
    """(records of the tenant that has most, records by account); the total when only that is."""
    if context.part == "public":
        # All records as one tenant's; a re-check puts the signed counts in their place (10.5).
        return context.record_count, []
    tenants = Counter(logged.tenant for logged in context.records.summaries())
    by_account = [context.by_account.count(pseudonym) for pseudonym in context.by_account]
    # No tenant's documents were asked about more often than those of the largest.
    return max(tenants.values(), default=0), by_account
