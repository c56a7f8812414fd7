"""What a report shows, as text: made once, laid out by the templates.

Every member of the predicate is shown, known or not: what is signed and not shown would mislead.
The exceptions say nothing: `worthless` that is false, empty `terms`. Of the subjects, the digests
of responses are counted and not listed where they are many; the report says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.items import RESPONSES
from ragaudit.ledger.messages.signed_results import ResultReference, references_of
from ragaudit.ledger.messages.verdict import Claims, SignedCheck, Verdict, key_id
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.privacy.guarantees import (
    EMPTY_ADVANTAGE,
    WEAK_ADVANTAGE,
    guarantee_sentence,
    strength,
)
from ragaudit.verifier.procedure.framework import signed_epsilon
from ragaudit.verifier.report import beside, samples, wording
from ragaudit.verifier.report.channel import ChannelView, channel_view
from ragaudit.verifier.report.parts import Row, Table, shown_text

_MAX_DEPTH: Final = 4
_HOLDS: Final = ("PASS", "EXCEEDED", "CONDITIONAL")


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check as the report shows it; ``tone`` selects its colour."""

    number: int
    name: str
    title: str
    status: str
    tone: str
    reason: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What the window guarantees, in words; ``scale`` explains the strength."""

    sentence: str
    numbers: str
    strength: str
    tone: str
    scale: str


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One of the two claims of a verdict, in the words that were signed."""

    name: str
    result: str
    tone: str
    statement: str


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed, and what the reader can do with it."""

    name: str
    key: str
    key_id: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page, in its order.

    Attributes:
        first_line: what stands above everything: that no epsilon is claimed, where none is.
        claims: integrity and privacy.
        history: what happened within the window, a line each, as check 9 found it.
    """

    first_line: str
    claims: tuple[ClaimRow, ...]
    window: str
    provider: str
    result: str
    tone: str
    meaning: str
    guarantee: Guarantee | None
    caveats: tuple[str, ...]
    worthless: str
    time: str
    engine: str
    scope: tuple[Row, ...]
    history: tuple[str, ...]
    checks: tuple[CheckRow, ...]
    ways: Table | None
    channel: ChannelView | None
    generation: tuple[Row, ...]
    epsilon: tuple[Row, ...]
    sampling: tuple[Row, ...]
    sampling_statement: str
    strata: Table | None
    row_samples: Table | None
    coalition: tuple[Row, ...]
    counts: tuple[Row, ...]
    counts_statement: str
    withheld: tuple[Row, ...]
    withheld_statement: str
    attested: tuple[Row, ...]
    test_results: tuple[ResultReference, ...]
    not_covered: tuple[str, ...]
    assumptions: tuple[str, ...]
    signer: Signer
    terms: str
    subjects: tuple[tuple[str, str], ...]
    unlisted: str

    @property
    def stands_out(self) -> tuple[CheckRow, ...]:
        """The checks that did not pass, the worst first."""
        return tuple(
            check
            for check in self.checks
            if check.tone != "good" and not (self.first_line and check.status == "NOT APPLICABLE")
        )


def report_of(verdict: Verdict) -> Report:
    """Return the report of a verdict whose signature has been verified."""
    predicate = verdict.predicate
    table = signed_epsilon(predicate)
    guarantee = _guarantee(verdict, table)
    subjects, unlisted = _subjects(verdict)
    sampling = predicate.sampling
    strata = samples.strata(sampling.get("strata"))
    row_samples = samples.of_rows(sampling.get("rows"))
    shown_apart = {n for n, table in (("strata", strata), ("rows", row_samples)) if table}
    rows = (_check(check, history=_tells(check)) for check in predicate.checks)
    checks = sorted(rows, key=lambda row: wording.gravity(row.status))
    claims = predicate.claims
    unclaimed = claims.unclaimed
    return Report(
        first_line=claims.statements[1] if unclaimed else "",
        claims=_claims(claims),
        window=predicate.window,
        provider=predicate.provider,
        result=verdict.result,
        tone=_tone(verdict, guarantee),
        meaning=wording.meaning(verdict.result, claims),
        guarantee=guarantee,
        caveats=beside.overlapping(predicate)
        + tuple(
            f"{wording.NOT_ESTABLISHED} {check.reason}."
            for check in predicate.checks
            if check.status == "NOT ESTABLISHED" and verdict.result in _HOLDS
        ),
        worthless=predicate.warning,
        time=rfc3339(predicate.time),
        engine=predicate.engine,
        scope=tuple(_rows(beside.scope(predicate))),
        history=tuple(line for one in predicate.checks if _tells(one) for line in one.evidence),
        checks=tuple(checks),
        ways=None if table is None else _ways(table),
        channel=channel_view(predicate, table),
        generation=tuple(_rows(predicate.generation or {})),
        epsilon=tuple(_rows(predicate.epsilon)),
        sampling=tuple(_rows({key: sampling[key] for key in sampling if key not in shown_apart})),
        sampling_statement=samples.statement(sampling, predicate.counts),
        strata=strata,
        row_samples=row_samples,
        coalition=() if unclaimed else tuple(_rows(predicate.coalition)),
        counts=tuple(_rows(beside.counts(predicate))),
        counts_statement=wording.ANCHORED if predicate.counts.get("anchored") else "",
        withheld=tuple(_rows(predicate.withheld or {})),
        withheld_statement=beside.withheld(predicate),
        attested=tuple(_rows(predicate.attested or {})),
        test_results=references_of(predicate.test_results),
        not_covered=predicate.not_covered,
        assumptions=predicate.assumptions,
        signer=_signer(verdict),
        terms=predicate.terms,
        subjects=subjects,
        unlisted=unlisted,
    )


def _claims(claims: Claims) -> tuple[ClaimRow, ...]:
    rows = zip(
        wording.CLAIM_NAMES, (claims.integrity, claims.privacy), claims.statements, strict=True
    )
    return tuple(
        ClaimRow(name, result, wording.TONES.get(result, "neutral"), statement)
        for name, result, statement in rows
    )


def _tone(verdict: Verdict, guarantee: Guarantee | None) -> str:
    # A PASS over noise that anyone can predict must not look like a good one.
    if verdict.predicate.worthless:
        return "bad"
    # Where no guarantee of privacy is claimed, a PASS is as good as it says.
    if verdict.result == "PASS" and not verdict.predicate.claims.unclaimed:
        return "hollow" if guarantee is None else guarantee.tone
    return wording.TONES.get(verdict.result, "neutral")


def _guarantee(verdict: Verdict, table: EpsilonTable | None) -> Guarantee | None:
    """The guarantee of a verdict that states one."""
    # What is not established is never put into a sentence, whatever numbers were signed.
    if verdict.result not in _HOLDS or verdict.predicate.worthless:
        return None
    if table is None or table.headline.guarantee is None:
        return None
    terms, advantage = table.parameters, table.risk.membership.value
    accounts, group = terms.coalition, terms.group_size
    unit = "document" if group > 1 else "row"
    sentence = guarantee_sentence(advantage, terms.relation, accounts=accounts, unit=unit)
    found = strength(advantage)
    pooled = "one account" if accounts == 1 else f"{accounts:,} accounts together"
    return Guarantee(
        sentence=sentence,
        numbers=(
            f"epsilon {table.headline.epsilon} at delta {terms.delta_policy} under "
            f"{terms.relation}, for {pooled} and {table.headline.queries:,} queries"
        ),
        strength=str(found),
        tone=wording.STRENGTH_TONES[found],
        scale=(
            f"Membership advantage {table.risk.membership_advantage}: a guarantee is called weak "
            f"from {float(WEAK_ADVANTAGE)} on, empty from {float(EMPTY_ADVANTAGE)} on."
        ),
    )


def _tells(check: SignedCheck) -> bool:
    """Whether a check's lines are the window's history: of check 9, where it found no fault."""
    return check.id == wording.HISTORY_CHECK and check.status == "PASS"


def _check(check: SignedCheck, *, history: bool) -> CheckRow:
    return CheckRow(
        number=check.number,
        name=check.id,
        title=wording.CHECK_TITLES.get(check.id, check.id),
        status=str(check.status),
        tone=wording.TONES.get(str(check.status), "neutral"),
        reason=check.reason,
        evidence=() if history else check.evidence,
    )


def _ways(table: EpsilonTable) -> Table:
    """The members of the epsilon table that state an epsilon, side by side."""
    promise = table.per_account
    notes = {name: note for name, _, note in wording.WAYS}
    notes["per_account"] = f"promised: {promise.epsilon_acc} at delta {promise.delta_acc}"
    ways = {way.name: way for way in table.ways}
    rows = []
    for name, label, _ in wording.WAYS:
        way = ways[name]
        text = way.epsilon or ": ".join(filter(None, ("none", way.reason)))
        queries = "" if way.queries is None else shown_text(way.queries)
        rows.append((label, text, queries, notes[name] or way.label))
    return Table(("Counted", "epsilon", "Queries", "What it is"), tuple(rows))


def _rows(value: Mapping[str, Any], level: int = 0) -> Iterator[Row]:
    """Rows of a JSON object in the order of the labels, nested objects indented below theirs."""
    for key, item in sorted(value.items(), key=lambda member: wording.place(member[0])):
        label, note = wording.LABELS.get(key, (key.replace("_", " "), ""))
        # Bounded: a signed object may be nested deeper than a page can show.
        if isinstance(item, Mapping) and level < _MAX_DEPTH:
            yield Row(label, "", note, level)
            yield from _rows(item, level + 1)
        elif key in wording.CASES and isinstance(item, list):
            yield Row(label, "", note, level)
            yield from _cases(item, wording.CASES[key], level + 1)
        elif key in wording.SECONDS and isinstance(item, int):
            yield Row(label, rfc3339(1000 * item), note, level)
        else:
            yield Row(label, shown_text(item), note, level)


def _cases(items: Sequence[Any], named_by: str, level: int) -> Iterator[Row]:
    """One row for each object of a list, named by one of its members."""
    for item in items:
        if not isinstance(item, Mapping):
            yield Row("", shown_text(item), "", level)
            continue
        others = {name: value for name, value in item.items() if name != named_by}
        name = shown_text(item.get(named_by))
        label = name if named_by in ("id", "name") else f"{name} {named_by}"
        yield Row(label, shown_text(others), "", level)


def _signer(verdict: Verdict) -> Signer:
    key = verdict.key.raw.hex()
    commands = [wording.RECHECK.format(key=key)]
    claims = verdict.predicate.claims
    bound = not (claims.unclaimed or claims.conditional)
    # Risk is translated from a guarantee, and there is one only then.
    if verdict.result in _HOLDS and bound and not verdict.predicate.worthless:
        commands.append(wording.TRANSLATE.format(key=key))
    return Signer(_signer_name(verdict), key, key_id(verdict.key), tuple(commands))


def _signer_name(verdict: Verdict) -> str:
    """The verifier's name, as its cosigner key in the policy has it."""
    match verdict.predicate.scope:
        case {"keys": {"cosigner": str(cosigner)}}:
            try:
                return VerifierKey.parse(cosigner).name
            except MalformedError:
                return ""
    return ""


def _subjects(verdict: Verdict) -> tuple[tuple[tuple[str, str], ...], str]:
    """Items with digests, and a line about those that are too many to list."""
    items = sorted(verdict.subjects.items())
    responses = sum(name.startswith(RESPONSES) for name, _ in items)
    # A sample may have thousands: their digests would bury the rest of the page.
    if responses <= wording.MOST_RESPONSES:
        return tuple(items), ""
    others = tuple(item for item in items if not item[0].startswith(RESPONSES))
    return others, wording.RESPONSES.format(count=f"{responses:,}")
