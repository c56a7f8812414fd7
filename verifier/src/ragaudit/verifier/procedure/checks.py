"""The numbered list of checks (docs/spec/09-audit.md), and running it: evidence in, outcome out.

No clock, no network, no storage. To disable a check, leave it out of the list.
"""

from collections.abc import Sequence
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.verdict import REFUSED, Status
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import CommittedEmbedder, OwnGenerator
from ragaudit.verifier.procedure import covered, members, opening_checks, owner_checks
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import Interrupted, Part, Pins, Progress
from ragaudit.verifier.procedure.framework import Check, CheckResult, Outcome, claims
from ragaudit.verifier.procedure.generation_checks import (
    check_answers,
    check_budget,
    check_charges,
)
from ragaudit.verifier.procedure.log_checks import (
    check_accounts,
    check_cosigners,
    check_counters,
    check_log,
    check_registrations,
    check_split_view,
    check_time_stamps,
)
from ragaudit.verifier.procedure.opening_checks import (
    check_accounting,
    check_commitments,
    check_index_proof,
    check_policy,
)
from ragaudit.verifier.procedure.owner_checks import check_documents, check_rows, listed_documents
from ragaudit.verifier.procedure.privacy_checks import check_coalition, check_epsilon
from ragaudit.verifier.procedure.record_checks import (
    check_beacon,
    check_containment,
    check_nonces,
    check_schedule,
)
from ragaudit.verifier.procedure.replay_checks import check_generator, check_replay
from ragaudit.verifier.procedure.sample_checks import (
    check_embedding,
    check_sampling,
    check_seed,
    check_selection,
)
from ragaudit.verifier.procedure.statement_checks import (
    check_disputes,
    check_promises,
    check_receipts,
    check_refusals,
)

CHECKS: Final[tuple[Check, ...]] = (
    Check(1, "policy", "The policy, and its countersignature in time", check_policy),
    Check(2, "accounting", "The noise gives the promised epsilon", check_accounting, of_noise=True),
    Check(3, "commitments", "What was committed before the window", check_commitments),
    Check(4, "index-proof", "Every index row is short enough", check_index_proof),
    Check(5, "log", "The log is complete and final", check_log),
    Check(6, "split-view", "Everyone saw the same log", check_split_view),
    Check(7, "registrations", "Accounts and their slots", check_registrations),
    Check(8, "counters", "Every query counted, none beyond the limit", check_counters),
    Check(9, "schedule", "Time, order and activation", check_schedule),
    Check(10, "containment", "Each account stays in its tenant's index", check_containment),
    Check(11, "nonces", "The client's share of the randomness", check_nonces),
    Check(12, "promises", "Promises kept", check_promises, of_noise=True),
    Check(13, "receipts", "Receipts agree with the log", check_receipts),
    Check(14, "refusals", "Refusals agree with the log", check_refusals),
    Check(15, "disputes", "Disputes by accounts", check_disputes),
    Check(16, "sampling", "The sample was fair and answered", check_sampling),
    Check(17, "seed", "Noise keys were fixed in advance", check_seed, of_noise=True),
    Check(18, "embedding", "The query vector is what was asked", check_embedding),
    Check(19, "selection", "Noise first, then selection", check_selection),
    Check(20, "coalition", "Accounts that act together", check_coalition, of_noise=True),
    Check(21, "epsilon", "What the guarantee is worth", check_epsilon, of_noise=True),
    Check(22, "accounts", "Every account's records counted", check_accounts, "account_index"),
    Check(23, "cosigners", "Third parties saw the log", check_cosigners, "cosigners"),
    Check(24, "time-stamps", "When the log existed", check_time_stamps, "time_stamps"),
    Check(25, "beacon", "Nobody chose the randomness", check_beacon, "beacon"),
    Check(26, "budget", "No document paid too often", check_budget, "generation"),
    Check(27, "charges", "Every question charged the due documents", check_charges, "generation"),
    Check(28, "answers", "One answer for every charge", check_answers, "generation"),
    Check(29, "generator", "The committed language model", check_generator, "generation"),
    Check(30, "replay", "Answers computed again", check_replay, "generation"),
    Check(31, "documents", "Every document listed, under one key", check_documents, "owners"),
    Check(32, "rows", "Sampled rows hold their texts", check_rows, "owners.rows"),
)

OPENING_CHECKS: Final[tuple[Check, ...]] = CHECKS[:4]
"""What is checked before the countersignature; a failure is the verdict REFUSED."""


def listed(evidence: Evidence, checks: Sequence[Check] = CHECKS) -> tuple[Check, ...]:
    """Return those checks of a list that the policy asks for, even one that cannot be read.

    Args:
        evidence: with the policy.
        checks: the list, in its order.
    """
    document = _document(evidence)
    asked = {name for name, value in document.items() if _asks(value)}
    owners = document.get("owners")
    if isinstance(owners, dict) and _asks(owners.get("rows")):
        asked.add("owners.rows")
    return tuple(check for check in checks if not check.asked_by or check.asked_by in asked)


def _asks(member: object) -> bool:
    """Whether a member asks for its check: the beacon "none" is an object, and asks nothing."""
    return member is True or (isinstance(member, dict) and member.get("kind") != "none")


def run(
    evidence: Evidence,
    *,
    engine: Engine,
    checks: Sequence[Check] = CHECKS,
    pins: Pins | None = None,
    embedder: CommittedEmbedder | None = None,
    generator: OwnGenerator | None = None,
    part: Part = "all",
    only: frozenset[int] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run the procedure over the evidence of a window that was countersigned.

    Args:
        checks: the list, in its order; a check that is left out is not applied, and what others
            lack because of it does not count against the window. One that the policy does not ask
            for (`listed`) is left out too.
        pins: keys known from elsewhere.
        embedder: the committed embedder, where it is at hand.
        generator: the committed generator, likewise.
        part: "public" to run what the public items allow; the outcome has no result then.
        only: leaf indices of the sampled records whose responses are looked at; None for all.
        progress: called with (check id, done, total); what it raises ends the run.

    Returns:
        The outcome; its result is None unless all evidence was looked at.

    Raises:
        InternalError: a fault of this software. There is no verdict then.
    """
    context = Context(
        evidence,
        engine=engine,
        pins=pins or Pins(),
        embedder=embedder,
        generator=generator,
        part=part,
        only=only,
        progress=progress,
    )
    results = _apply(context, listed(evidence, checks))
    # A part of the evidence concludes nothing: PASS is said of all of it only.
    whole = part == "all" and only is None
    removed = frozenset(check.id for check in CHECKS) - {check.id for check in checks}
    result = claims(results, removed).result if whole else None
    return _outcome(context, results, result)


def run_opening_checks(
    evidence: Evidence,
    *,
    engine: Engine,
    now: int,
    checks: Sequence[Check] = OPENING_CHECKS,
    pins: Pins | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run the checks that come before the countersignature.

    Args:
        evidence: policy, embedder, opening, empty checkpoint and index commitments.
        now: the verifier's clock, Unix milliseconds.
        checks: the list, in its order.
        pins: keys known from elsewhere.
        progress: called with (check id, done, total); what it raises ends the run.

    Returns:
        An outcome whose result is REFUSED, or None where there is nothing to refuse.
    """
    context = Context(evidence, engine=engine, pins=pins or Pins(), now=now, progress=progress)
    results = _apply(context, checks)
    refused = any(result.status not in {Status.PASS, Status.NOT_APPLICABLE} for result in results)
    return _outcome(context, results, REFUSED if refused else None)


def _apply(context: Context, checks: Sequence[Check]) -> tuple[CheckResult, ...]:
    results = []
    try:
        for check in checks:
            context.progress(check.id, 0, 0)
            results.append(check.apply(context))
    except Interrupted as interrupted:
        raise interrupted.cause from None
    return tuple(results)


def _outcome(context: Context, results: tuple[CheckResult, ...], result: str | None) -> Outcome:
    # After the checks: those that counted something left it in ``context.stated``.
    provider, window, seeded = _identity(context.evidence)
    terms = members.known(lambda: context.terms)
    policy = members.known(lambda: context.policy)
    counts = members.counts(context)
    return Outcome(
        window=window,
        provider=provider,
        engine=context.engine.name,
        result=result,
        worthless=seeded,
        terms="" if terms is None else terms.digest.hex(),
        checks=results,
        epsilon=context.stated.epsilon,
        sampling=members.known(lambda: members.sampling(context)) or members.unsampled(context),
        counts=counts,
        coalition=members.coalition(context),
        scope=members.scope(context),
        not_covered=covered.reach(policy, counts),
        assumptions=covered.assumptions(policy, members.known_models(context)),
        attested=members.attested(context),
        generation=context.stated.generation,
        test_results=members.test_results(context),
        withheld=owner_checks.withheld(context),
        overlaps=opening_checks.overlaps(context),
        documents=listed_documents(context),
    )


def _identity(evidence: Evidence) -> tuple[str, str, bool]:
    """(provider, window, whether it is seeded), as far as the policy can be read at all.

    A refusal names the window of a policy that check 1 could not parse, so this reads leniently.
    """
    value = _document(evidence)
    names = (value.get("provider"), value.get("window"))
    provider, window = (name if isinstance(name, str) else "" for name in names)
    return provider, window, value.get("experiment_seed") is not None


def _document(evidence: Evidence) -> dict[str, Any]:
    """The policy as JSON, whatever it says; empty where it is no object."""
    try:
        value = canonical_json.loads(evidence.get(items.POLICY, b""))
    except MalformedError:
        return {}
    return value if isinstance(value, dict) else {}
