"""Running the procedure: evidence in, outcome out; no clock, no network, no storage."""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.decimals import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.accounting import bad_records, detection, miss_probability
from ragaudit.verifier import evidence as items
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import limits
from ragaudit.verifier.procedure.checks import CHECKS, OPENING_CHECKS
from ragaudit.verifier.procedure.context import (
    CommittedEmbedder,
    Context,
    Interrupted,
    Part,
    Pins,
    Progress,
)
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Check, CheckResult, Status
from ragaudit.verifier.procedure.outcome import REFUSED, Outcome, conclude
from ragaudit.verifier.procedure.scope import scope

PLACES = 12
EXACT_SAMPLE = 4096

T = TypeVar("T")


def run(
    evidence: Evidence,
    *,
    engine: Engine,
    checks: Sequence[Check] = CHECKS,
    pins: Pins | None = None,
    embedder: CommittedEmbedder | None = None,
    part: Part = "all",
    only: frozenset[int] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run the procedure over the evidence of a window that was countersigned.

    Args:
        checks: the list, in its order; a check that is left out is not applied, and what others
            lack because of it does not count against the window.
        pins: keys known from elsewhere.
        embedder: the committed embedder, where it is at hand.
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
        part=part,
        only=only,
        progress=progress,
    )
    results = _apply(context, checks)
    whole = part == "all" and only is None
    removed = {each.id for each in CHECKS} - {each.id for each in checks}
    result = conclude(results, removed) if whole else None
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

    Returns:
        An outcome whose result is REFUSED, or None where there is nothing to refuse.
    """
    context = Context(evidence, engine=engine, pins=pins or Pins(), now=now, progress=progress)
    results = _apply(context, checks)
    refused = any(each.status is not Status.PASS for each in results)
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
    provider, window, seeded = _identity(context.evidence)
    counts = _counts(context)
    return Outcome(
        window=window,
        provider=provider,
        engine=context.engine.name,
        result=result,
        worthless=seeded,
        terms=_terms_digest(context),
        checks=results,
        epsilon=context.stated.epsilon,
        sampling=_known(lambda: _sampling(context)) or {"mode": "", "beta": "", "strata": []},
        counts=counts,
        coalition=_coalition(context),
        scope=scope(context),
        not_covered=limits.not_covered(_known(lambda: context.policy.audit.mode), counts),
        assumptions=limits.ASSUMPTIONS,
    )


def _identity(evidence: Evidence) -> tuple[str, str, bool]:
    """(provider, window, whether it is seeded), as far as the policy can be read at all."""
    try:
        value = canonical_json.loads(evidence.get(items.POLICY, b""))
    except MalformedError:
        return "", "", False
    if not isinstance(value, dict):
        return "", "", False
    names = (value.get("provider"), value.get("window"))
    provider, window = (name if isinstance(name, str) else "" for name in names)
    return provider, window, value.get("experiment_seed") is not None


def _terms_digest(context: Context) -> str:
    terms = _known(lambda: context.terms)
    return "" if terms is None else terms.digest.hex()


def _sampling(context: Context) -> dict[str, Any]:
    """Sizes of the challenged strata, and what a sample of that size says."""
    audit = context.policy.audit
    beta = parse_decimal(audit.beta)
    of_tenants = Counter(each.record.tenant for each in context.records)
    strata = []
    for stratum in context.challenge.strata:
        if stratum.population is not None:
            population, rule = len(stratum.population), audit.submitters
        else:
            population = of_tenants[stratum.id.removeprefix("tenant:")]
            rule = audit.tenants
        sizes = stratum_sizes(population, len(stratum.sample), beta)
        strata.append({"id": stratum.id, "eta": rule.eta, **sizes})
    return {"mode": audit.mode, "beta": audit.beta, "strata": strata}


def stratum_sizes(population: int, sample: int, beta: Fraction) -> dict[str, Any]:
    """Return what a verdict says of a stratum: sizes, bad records, chances (spec 9.2).

    Args:
        population, sample: records of the stratum and of its sample, at least 0.
        beta: share of bad records that the sample is to find, in (0, 1).
    """
    drawn = min(sample, population)
    bad = bad_records(population, beta) if population else 0
    # An empty stratum has no bad record to miss.
    missed = miss_probability(population, bad, drawn) if population else Fraction(0)
    return {
        "population": population,
        "bad": bad,
        "sample": sample,
        "miss_probability": ceil_decimal(missed, PLACES),
        "with_replacement": floor_decimal(_with_replacement(beta, drawn), PLACES),
    }


def _with_replacement(beta: Fraction, sample: int) -> Fraction:
    """1 - (1 - beta)^s, exactly where that is cheap."""
    return 1 - (1 - beta) ** sample if sample <= EXACT_SAMPLE else detection(beta, sample)


def _counts(context: Context) -> dict[str, int | None]:
    """What was counted; null for what is not at hand."""
    registrations = _known(lambda: context.registrations)
    records = _known(lambda: context.records)
    accounts = len(registrations) if registrations is not None else None
    shown = _known(lambda: context.shown)
    anchored = None if registrations is None or shown is None else len(shown)
    with_nonce = (
        sum(each.record.pseudonym in shown for each in records)
        if records is not None and shown is not None
        else None
    )
    receipts = _known(lambda: context.receipts)
    return {
        "records": _known(lambda: context.record_count),
        "accounts": accounts,
        "anchored": anchored,
        "plain": None if accounts is None or anchored is None else accounts - anchored,
        "anchored_unshown": (
            sum(each.registration.anchor is not None for each in registrations) - anchored
            if registrations is not None and anchored is not None
            else None
        ),
        "records_anchored": with_nonce,
        "records_plain": (
            None if records is None or with_nonce is None else len(records) - with_nonce
        ),
        "receipts": None if receipts is None else len(receipts),
        "disputes": _known(lambda: len(context.disputes)),
        "disputes_open": context.stated.disputes_open,
        "unowned_registrations": accounts,
    }


def _coalition(context: Context) -> dict[str, int | None]:
    return {
        "claimed": _known(lambda: context.close.coalition_claim),
        "estimated": context.stated.estimated,
        "max": _known(lambda: context.policy.coalition_max),
    }


def _known(read: Callable[[], T]) -> T | None:
    """A fact for the verdict's descriptive part, or None where a check says what is wrong."""
    try:
        return read()
    except MissingInput:
        return None
