"""The members of a verdict beside the results of its checks (docs/spec/10-verdict.md §10.3)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, TypeVar

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import ceil_decimal, floor_decimal, parse_decimal
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.policy import AuditTerms, Policy, StratumTerms
from ragaudit.ledger.messages.signed_results import References
from ragaudit.privacy.sample import (
    CHARGES,
    bad_records,
    charge_stratum_id,
    detection,
    miss_probability,
    row_sample_size,
    row_stratum_id,
    stratum_size,
    tenant_stratum_id,
)
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput

PLACES: Final = 12  # of the probabilities, which are rounded against the claim
EXACT_SAMPLE: Final = 4096  # beyond it a lower bound: the exact power has too many digits

_REPEATED: Final = (
    "privacy",
    "norm_bound",
    "metric",
    "largest_norm",
    "public_columns",
    "filter_grammar",
    "query_kinds",
    "versions",
    "cosigners",
    "time_stamps",
    "generation",
)
"""Members of a policy that its verdict repeats, those that it has."""

T = TypeVar("T")

NO_SAMPLING: Final[Mapping[str, Any]] = {"mode": "", "beta": "", "strata": []}
"""The member ``sampling`` where nothing was sampled that can be read."""


def known(read: Callable[[], T]) -> T | None:
    """Return a fact for a verdict's descriptive part; None where a check says what is wrong.

    Args:
        read: asks the context for it.
    """
    try:
        return read()
    except MissingInput:
        return None


def scope(context: Context) -> Mapping[str, Any]:
    """Return the member ``scope``: digest, period, tenants, limits, sampling and keys of a policy.

    Empty where the policy cannot be read; a tenant's ``rows`` is null where the opening has none.
    """
    policy, opened = known(lambda: context.policy), known(lambda: context.opened) or {}
    if policy is None:
        return {}
    # As they stand in the policy: a reader compares them with the document.
    document = policy.to_json()
    return {
        "policy_digest": policy.digest.hex(),
        "start": policy.start,
        "end": policy.end,
        "sampling_instant": policy.sampling_instant,
        "tenants": [
            {"id": tenant, "rows": opened[tenant].rows if tenant in opened else None}
            for tenant in policy.tenants
        ],
        "top_k_max": policy.top_k_max,
        "queries_per_account": policy.queries_per_account,
        "slots": policy.slots,
        "audit": document["audit"],
        "keys": document["keys"],
    } | {name: document[name] for name in _REPEATED if name in document}


def sampling(context: Context) -> dict[str, Any]:
    """Return the member ``sampling``: sizes of the challenged strata, and what they say.

    Raises:
        MissingInput: the challenge cannot be read, or the records cannot.
    """
    of_tenants = Counter(tenant_stratum_id(logged.tenant) for logged in context.records.summaries())
    if context.policy.generation is not None:
        of_tenants.update(charge_stratum_id(one.tenant) for one in context.charges.summaries())
    audit = context.policy.audit
    strata = []
    for stratum in context.challenge.strata:
        if stratum.rows_of is None:
            records = stratum.population
            population = of_tenants[stratum.id] if records is None else len(records)
            strata.append(_stratum(audit, stratum.id, population, len(stratum.sample)))
    return _sampling(audit, strata) | row_sampling(context)


def unsampled(context: Context) -> Mapping[str, Any]:
    """Return the member ``sampling`` where no challenge can be read, as in the public part."""
    if context.part == "all":
        return NO_SAMPLING
    return {**NO_SAMPLING, **(known(lambda: row_sampling(context)) or {})}


def row_sampling(context: Context) -> dict[str, Any]:
    """Return what ``sampling`` says of rows: sizes, known from the public part too (spec 9.11).

    Check 16 says whether the challenge asked for as many.

    Returns:
        An object with ``rows``; none where the policy has no rows sampled.

    Raises:
        MissingInput: there is no saying which is the last version of an index.
    """
    rule = None if context.policy.owners is None else context.policy.owners.rows
    if rule is None:
        return {}
    strata = []
    for place in context.last_places.items():
        rows, name = context.stated_index(*place).rows, row_stratum_id(place[0])
        sample = row_sample_size(rows, rule)
        strata.append(_numbers(rule.beta, rule.sample.eta, name, rows, sample))
    return {"rows": {"beta": rule.beta, "strata": strata}}


def expected_sampling(policy: Policy, strata: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the member ``sampling`` as it follows from names and populations of signed strata.

    Without the records this is all that can be said: every number follows from the sizes.

    Args:
        strata: of the signed member; a population that is no count is taken as 0, which differs.
    """
    audit = policy.audit
    expected = []
    for signed in strata:
        name, population = signed.get("id"), _count(signed, "population")
        beta, rule = parse_decimal(audit.beta), _rule(audit, name)
        whole = audit.mode == "A" or (_of_charges(name) and _all_charges(policy))
        sample = population if whole else stratum_size(population, beta, rule)
        expected.append(_stratum(audit, name, population, sample))
    return _sampling(audit, expected)


def disorder(policy: Policy, strata: Sequence[Mapping[str, Any]], records: int | None) -> str:
    """Return why these are not the strata of a log with so many records; empty if they may be.

    Args:
        strata: of a signed member ``sampling``.
        records: None where the tenants' strata need not hold all of them.
    """
    names = [stratum.get("id") for stratum in strata]
    tenants = [tenant_stratum_id(tenant) for tenant in policy.tenants]
    if names[: len(tenants)] != tenants:
        return "the strata do not begin with the policy's tenants"
    kind = "account:" if policy.audit.submitters_by == "account" else "receipts:"
    submitted = names[len(tenants) :]
    if policy.generation is not None:
        charged = [charge_stratum_id(tenant) for tenant in policy.tenants]
        if submitted[-len(charged) :] != charged:
            return "the strata do not end with the charges of the policy's tenants"
        submitted = submitted[: -len(charged)]
    if not all(str(name).startswith(kind) for name in submitted) or len({*names}) < len(names):
        return "the strata after the tenants' are not those of submitted records"
    total = sum(_count(stratum, "population") for stratum in strata[: len(tenants)])
    # Tenants' strata hold every record once, so what is missing was never sampled.
    if records is not None and total != records:
        return f"the tenants' strata hold {total} records, the log has {records}"
    return ""


def _sampling(audit: AuditTerms, strata: list[dict[str, Any]]) -> dict[str, Any]:
    return {"mode": audit.mode, "beta": audit.beta, "strata": strata}


def _stratum(audit: AuditTerms, name: object, population: int, sample: int) -> dict[str, Any]:
    return _numbers(audit.beta, _rule(audit, name).eta, name, population, sample)


def _numbers(share: str, eta: str, name: object, population: int, sample: int) -> dict[str, Any]:
    """What a verdict says of a stratum: sizes, bad records or rows, chances (spec 9.2)."""
    beta, size = parse_decimal(share), min(sample, population)
    bad = bad_records(population, beta) if population else 0
    # An empty stratum has no bad record to miss.
    missed = miss_probability(population, bad, size) if population else Fraction(0)
    return {
        "id": name,
        "eta": eta,
        "population": population,
        "bad": bad,
        "sample": sample,
        # Both against the claim: the chance to miss is rounded up, the chance to find down.
        "miss_probability": ceil_decimal(missed, PLACES),
        "with_replacement": floor_decimal(_with_replacement(beta, size), PLACES),
    }


def _rule(audit: AuditTerms, name: object) -> StratumTerms:
    of_tenant = str(name).startswith("tenant:") or _of_charges(name)
    return audit.tenants if of_tenant else audit.submitters


def _of_charges(name: object) -> bool:
    return str(name).startswith(CHARGES)


def _all_charges(policy: Policy) -> bool:
    return policy.generation is not None and policy.generation.charges.prove == "all"


def _with_replacement(beta: Fraction, sample: int) -> Fraction:
    """1 - (1 - beta)^s, exactly where that is cheap."""
    return 1 - (1 - beta) ** sample if sample <= EXACT_SAMPLE else detection(beta, sample)


def _count(signed: Mapping[str, Any], name: str) -> int:
    """A signed number of records; 0 for what is none, which then differs."""
    number = signed.get(name)
    # A stranger signed it: with no bound, exact arithmetic on it would not end.
    return number if type(number) is int and 0 <= number < 2**40 else 0


def _charge_counts(context: Context, anchored: frozenset[bytes] | None) -> dict[str, int | None]:
    """How many charge entries there are, how many of them void, and whose."""
    charges, voids = known(lambda: context.charges), known(lambda: context.voids)
    shown = void_shown = None
    if charges is not None and anchored is not None:
        shown = sum(logged.pseudonym in anchored for logged in charges.summaries())
    if voids is not None and anchored is not None:
        void_shown = sum(voids[pseudonym] for pseudonym in anchored)
    total = None if charges is None else len(charges)
    void = None if voids is None else voids.total()
    return {
        "charges": total,
        "charges_anchored": shown,
        "charges_plain": _difference(total, shown),
        "voids": void,
        "voids_anchored": void_shown,
        "voids_plain": _difference(void, void_shown),
        "accounts_with_voids": None if voids is None else len(voids),
    }


def counts(context: Context) -> dict[str, int | None]:
    """Return the member ``counts``; null for what is not at hand.

    Where the policy allows later seed epochs it counts those, with a generation channel the charge
    entries, and without noise the rows that the last versions mark as null rows.
    """
    registrations, records = known(lambda: context.registrations), known(lambda: context.records)
    anchored = known(lambda: context.anchored)
    accounts = None if registrations is None else len(registrations)
    owners = None if registrations is None or anchored is None else len(anchored)
    with_anchor = 0 if registrations is None else registrations.anchored
    of_anchored = None
    if records is not None and anchored is not None:
        of_anchored = sum(context.by_account.count(pseudonym) for pseudonym in anchored)
    policy, versions = known(lambda: context.policy), {}
    if policy is not None:
        versions["versions"] = known(lambda: context.version_count)
    if policy is not None and policy.epochs:
        versions["epochs"] = known(lambda: context.epoch_count)
    if policy is not None and policy.generation is not None:
        versions |= _charge_counts(context, anchored)
    if policy is not None and policy.marks_null_rows:
        versions["null_rows"] = known(lambda: context.null_row_count)
    return versions | {
        "records": known(lambda: context.record_count),
        "accounts": accounts,
        "anchored": owners,
        "plain": _difference(accounts, owners),
        "anchored_unshown": _difference(with_anchor, owners),
        "records_anchored": of_anchored,
        "records_plain": _difference(None if records is None else len(records), of_anchored),
        "receipts": known(lambda: len(context.receipts)),
        "disputes": known(lambda: len(context.disputes)),
        "disputes_open": context.stated.disputes_open,
        "unowned_registrations": accounts,
    }


def known_models(context: Context) -> tuple[str, ...]:
    """Return which of the committed models the verifier's terms list, in words."""
    terms, policy = known(lambda: context.terms), known(lambda: context.policy)
    listed = () if terms is None else terms.known["known_models"]
    digests = {"the embedder": known(lambda: context.embedder_digest)}
    if policy is not None and policy.generation is not None:
        digests["the generator"] = policy.generation.generator.digest
    return tuple(name for name, one in digests.items() if one is not None and one.hex() in listed)


def coalition(context: Context) -> dict[str, int | None]:
    """Return the member ``coalition``: accounts claimed, estimated and planned for.

    All null without noise, where nobody estimates.
    """
    if context.unnoised:
        return dict.fromkeys(("claimed", "estimated", "max"))
    return {
        "claimed": known(lambda: context.close.coalition_claim),
        "estimated": context.stated.estimated,
        "max": known(lambda: context.policy.coalition_max),
    }


def attested(context: Context) -> dict[str, Any] | None:
    """Return the member ``attested``: what third parties say of the log.

    Null for what was not looked at, or could not be read; None where the policy asks nobody.
    """
    policy = known(lambda: context.policy)
    if policy is None:
        return None
    stated = {
        "cosigners": (policy.cosigners is not None, context.stated.quorum),
        "time_stamps": (policy.time_stamps is not None, context.stated.time_stamps),
        "beacon": (policy.beacon is not None, context.stated.beacon),
    }
    return {name: value for name, (asked, value) in stated.items() if asked} or None


def test_results(context: Context) -> References | None:
    """Return the member ``test_results``: what the evidence lists, where it is a list of them.

    No check reads them: whether one stands, whoever has its file checks (10.11).
    """
    listed = context.evidence.get(items.TEST_RESULTS)
    if listed is None:
        return None
    try:
        return References.parse(listed)
    except MalformedError:
        # Only a bundle that somebody changed has such a list, and no verdict was signed over it.
        return None


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part
