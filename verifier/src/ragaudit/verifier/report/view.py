"""What a report shows, as text: made once, laid out by the templates.

Every member of the predicate is shown, known or not: what is signed and not shown would mislead.
The exceptions say nothing: `worthless` that is false, empty `terms`. Of the subjects, the digests
of responses are counted and not listed where they are many; the report says so.

Beside the claims stand the samples, of records and of the rows of indexes; what k accounts together
learn of a row by the generation channel; other windows, withheld rows and documents.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from types import MappingProxyType
from typing import Any, Final

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.items import RESPONSES
from ragaudit.ledger.messages.signed import key_id
from ragaudit.ledger.messages.signed_results import ResultReference, references_of
from ragaudit.ledger.messages.verdict import Claims, Predicate, SignedCheck, Verdict
from ragaudit.privacy.accounting.generation import (
    ChannelCosts,
    KeywordChannelEpsilon,
    Loss,
    read_channel,
)
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.privacy.guarantees import (
    EMPTY_ADVANTAGE,
    WEAK_ADVANTAGE,
    guarantee_sentence,
    strength,
)
from ragaudit.verifier.procedure.framework import signed_epsilon
from ragaudit.verifier.report import wording


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled value with an explanation; ``level`` is its indentation."""

    label: str
    value: str
    note: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under headings; the first column names the row."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def shown_text(value: object) -> str:
    """Return a JSON value as people read it, on one line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(map(shown_text, value))
    if isinstance(value, Mapping):
        return "; ".join(
            f"{key.replace('_', ' ')}: {shown_text(item)}" for key, item in value.items()
        )
    return str(value)


def sample_statement(sampling: Mapping[str, Any], counts: Mapping[str, Any]) -> str:
    """Return what was looked at of the records, in a sentence.

    Args:
        sampling, counts: members of the predicate.
    """
    drawn = sampling.get("strata")
    if not drawn or not isinstance(drawn, Sequence):
        return wording.NO_SAMPLING
    if sampling.get("mode") != "A":
        return wording.SAMPLED
    tenants = [one for one in drawn if str(_member(one, "id")).startswith("tenant:")]
    whole = all(_member(one, "sample") == _member(one, "population") for one in tenants)
    covered = sum(n for one in tenants if isinstance(n := _member(one, "population"), int))
    # Mode A states no more than it did: strata that leave records of the log out are said to.
    return (
        wording.ALL_CHECKED
        if whole and covered == counts.get("records")
        else wording.STRATA_CHECKED
    )


def rows_table(member: object) -> Table | None:
    """Return the samples of the rows of each index; None where none were sampled.

    Args:
        member: ``rows`` of the predicate's ``sampling``.
    """
    found = _member(member, "strata")
    if not isinstance(found, list):
        return None
    # Each has its beta beside it: another one than that of the records.
    beta = _member(member, "beta")
    listed = [{"beta": beta, **each} for each in found if isinstance(each, Mapping)]
    return strata_table(listed, {"population": "Rows"})


def strata_table(listed: object, called: Mapping[str, str] = MappingProxyType({})) -> Table | None:
    """Return all members of strata as columns, in the order of the labels; None without any.

    Args:
        listed: ``strata`` of the predicate's ``sampling``, as signed.
        called: headings of members that have another one than their label.
    """
    if not isinstance(listed, list) or not listed:
        return None
    rows = [stratum if isinstance(stratum, Mapping) else {"id": stratum} for stratum in listed]
    rows = [{**row, "bad": wording.missed(row)} if "bad" in row else row for row in rows]
    keys = sorted({key for row in rows for key in row}, key=_column)
    labels = {key: wording.LABELS.get(key, (key.replace("_", " "), ""))[0] for key in keys}
    headings = tuple(called.get(key, label) for key, label in labels.items())
    return Table(headings, tuple(tuple(shown_text(row.get(k)) for k in keys) for row in rows))


def _column(name: str) -> tuple[bool, tuple[int, str]]:
    return name != "id", wording.place(name)


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None


MOST: Final = 20
"""Accounts at the right end of the picture."""

WIDTH: Final = 480
HEIGHT: Final = 220
_LEFT, _BOTTOM, _TOP, _RIGHT = 44, 28, 12, 12


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of the picture: points as SVG has them, and where its label stands."""

    label: str
    points: str
    x: int
    y: int
    kind: str


@dataclass(frozen=True, slots=True)
class ChannelView:
    """What the report says of the channel.

    Attributes:
        sentence: what holds for any number of accounts.
        curves: none where the retrieval channel states no epsilon to compare with.
        top: epsilon at the upper edge of the picture.
    """

    sentence: str
    together: str
    curves: tuple[Curve, ...]
    top: str
    width: int = WIDTH
    height: int = HEIGHT
    most: int = MOST


def channel_view(predicate: Predicate, table: EpsilonTable | None) -> ChannelView | None:
    """Return the view of a predicate's channel; None where it states none that can be read.

    Args:
        table: of the retrieval channel.
    """
    try:
        costs = read_channel(predicate.generation)
    except MalformedError:
        return None
    null, replaced = _losses(costs)
    if isinstance(costs, KeywordChannelEpsilon):
        price = f"{costs.uses} times, which are composed"
    else:
        price = f"{costs.uses} times at {_text(costs.question)}"
    sentence = (
        f"Generated answers: epsilon {_said(null)} for one document changed to or from a null row, "
        f"{_said(replaced)} for one replaced by another, of all answers of the window together and "
        f"for any number of accounts: each row may pay {price}. Over w windows with the same "
        "documents it is w times that."
    )
    if predicate.claims.conditional:
        sentence += " Conditional on the provider's word, as said above."
    own = None if table is None else Fraction(table.per_account.epsilon_acc)
    together = ""
    if table is not None and table.headline.epsilon:
        terms = table.parameters
        # What neighbours differ in is one thing for both, or the sum would be of neither.
        other = replaced if terms.relation is NeighboringRelation.REPLACE else null
        both = Loss(
            Fraction(table.headline.epsilon) + other.epsilon,
            Fraction(terms.delta_policy) + other.delta,
        )
        together = (
            f"Both channels together: epsilon {_said(both)} for {terms.coalition:,} accounts under "
            f"{terms.relation.value}, the sums of the two."
        )
    curves: tuple[Curve, ...] = ()
    top = 0.0
    if own is not None:
        curves, top = _curves(float(own), float(null.epsilon), float(replaced.epsilon))
    return ChannelView(sentence, together, curves, f"{top:.3g}")


def _losses(costs: ChannelCosts) -> tuple[Loss, Loss]:
    """Return what one document costs that is changed to or from null rows, and one replaced."""
    if isinstance(costs, KeywordChannelEpsilon):
        return costs.replace_one_null, costs.replace_one
    pure = Fraction(0)
    return Loss(costs.replace_one_null, pure), Loss(costs.replace_one, pure)


def _said(loss: Loss) -> str:
    delta = f" at delta {float(loss.delta):.3g}" if loss.delta else ""
    return f"{_text(loss.epsilon)}{delta}"


def _curves(own: float, null: float, replaced: float) -> tuple[tuple[Curve, ...], float]:
    top = 1.05 * max(own * sqrt(MOST), replaced)
    grown = [(k, own * sqrt(k)) for k in range(1, MOST + 1)]
    lines = (
        ("retrieval: grows with the square root of k", grown, "grows"),
        ("generation, one document to a null row", [(1, null), (MOST, null)], "flat"),
        ("generation, one document replaced", [(1, replaced), (MOST, replaced)], "flat dashed"),
    )
    curves = []
    for label, values, kind in lines:
        places = [_place(k, epsilon, top) for k, epsilon in values]
        points = " ".join(f"{x},{y}" for x, y in places)
        middle = places[len(places) // 2] if len(places) > 2 else places[0]
        curves.append(Curve(label, points, middle[0] + 4, middle[1] - 5, kind))
    return tuple(curves), top


def _place(k: int, epsilon: float, top: float) -> tuple[int, int]:
    across = (WIDTH - _LEFT - _RIGHT) * (k - 1) / (MOST - 1)
    up = (HEIGHT - _TOP - _BOTTOM) * epsilon / top
    return round(_LEFT + across), round(HEIGHT - _BOTTOM - up)


def _text(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.4g})"


WITHHELD: Final = (
    "In {answers} of {records} answers the provider withheld {rows} selected rows in all, for "
    "{accounts_concerned} accounts: it says that these were deleted or changed in the store. That "
    "is its word."
)

TOGETHER: Final = (
    "At the same time the provider answered in {count} other windows. With those that name a "
    "tenant of this one, everything that is answered about a document has {together}; if other "
    "tenants are the same under other names, which nobody outside can tell, {renamed}."
)


def scope(predicate: Predicate) -> Mapping[str, Any]:
    """Return what was audited, and which other windows there were at the same time.

    Args:
        predicate: of a verdict.
    """
    beside = {} if predicate.overlaps is None else {"overlaps": predicate.overlaps}
    return {**predicate.scope, **beside}


def counts(predicate: Predicate) -> Mapping[str, Any]:
    """Return what was counted, and where owners check, the documents of each tenant.

    Args:
        predicate: of a verdict.
    """
    if predicate.documents is None:
        return predicate.counts
    documents = [_of_tenant(one) for one in predicate.documents if isinstance(one, Mapping)]
    return {**predicate.counts, "documents": documents}


def _of_tenant(stated: Mapping[str, Any]) -> Mapping[str, Any]:
    versions = stated.get("versions")
    listed = versions if isinstance(versions, list) else []
    rows = [_rows_of(one) for one in listed if isinstance(one, Mapping)]
    return {"id": stated.get("tenant"), "listed": stated.get("listed"), "versions": rows}


def _rows_of(version: Mapping[str, Any]) -> str:
    marked = version.get("marked")
    gone = "" if marked is None else f", {marked} of them marked as deleted"
    return f"{version.get('rows')} rows in version {version.get('version')}{gone}"


def overlapping(predicate: Predicate) -> tuple[str, ...]:
    """Return a sentence about windows at the same time, none where there are none.

    Args:
        predicate: of a verdict.
    """
    match predicate.overlaps:
        case {"windows": list(found), "together": dict(one), "together_if_renamed": dict(other)}:
            text = TOGETHER.format(count=len(found), together=_cost(one), renamed=_cost(other))
            return (text,)
    return ()


def _cost(stated: Mapping[str, Any]) -> str:
    if stated.get("epsilon") is None:
        return f"no finite epsilon ({stated.get('reason')})"
    return f"epsilon {stated['epsilon']} at delta {stated.get('delta')}"


def withheld(predicate: Predicate) -> str:
    """Return how many rows the answers of a window withheld; empty with noise, and where unknown.

    Args:
        predicate: of its verdict.
    """
    stated = predicate.withheld or {}
    counts = {name: stated.get(name) for name in ("answers", "rows", "accounts_concerned")}
    counts["records"] = predicate.counts.get("records")
    # Whoever signed it chose what stands there.
    return WITHHELD.format_map(counts) if all(type(n) is int for n in counts.values()) else ""


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
    strata = strata_table(sampling.get("strata"))
    row_samples = rows_table(sampling.get("rows"))
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
        caveats=overlapping(predicate)
        + tuple(
            f"{wording.NOT_ESTABLISHED} {check.reason}."
            for check in predicate.checks
            if check.status == "NOT ESTABLISHED" and verdict.result in _HOLDS
        ),
        worthless=predicate.warning,
        time=rfc3339(predicate.time),
        engine=predicate.engine,
        scope=tuple(_rows(scope(predicate))),
        history=tuple(line for one in predicate.checks if _tells(one) for line in one.evidence),
        checks=tuple(checks),
        ways=None if table is None else _ways(table),
        channel=channel_view(predicate, table),
        generation=tuple(_rows(predicate.generation or {})),
        epsilon=tuple(_rows(predicate.epsilon)),
        sampling=tuple(_rows({key: sampling[key] for key in sampling if key not in shown_apart})),
        sampling_statement=sample_statement(sampling, predicate.counts),
        strata=strata,
        row_samples=row_samples,
        coalition=() if unclaimed else tuple(_rows(predicate.coalition)),
        counts=tuple(_rows(counts(predicate))),
        counts_statement=wording.ANCHORED if predicate.counts.get("anchored") else "",
        withheld=tuple(_rows(predicate.withheld or {})),
        withheld_statement=withheld(predicate),
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
