"""What a report shows, as text: made once, laid out by the templates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ragaudit.verifier.report import wording
from ragaudit.verifier.verdict import Verdict

_MAX_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled value with an explanation; ``level`` is its indentation."""

    label: str
    value: str
    note: str = ""
    level: int = 0


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
class Report:
    """Everything on the page, in its order."""

    window: str
    provider: str
    result: str
    tone: str
    meaning: str
    caveats: tuple[str, ...]
    worthless: str
    time: str
    engine: str
    checks: tuple[CheckRow, ...]
    epsilon: tuple[Row, ...]
    sampling_mode: str
    sampling_statement: str
    strata: tuple[tuple[str, ...], ...]
    coalition: tuple[Row, ...]
    counts: tuple[Row, ...]
    counts_statement: str
    not_covered: tuple[str, ...]
    assumptions: tuple[str, ...]
    subjects: tuple[tuple[str, str], ...]


def report_of(verdict: Verdict) -> Report:
    """The report of a verdict whose signature has been verified."""
    predicate = verdict.predicate
    mode, statement = _sampling(predicate["sampling"])
    return Report(
        window=str(predicate["window"]),
        provider=str(predicate["provider"]),
        result=verdict.result,
        tone=wording.TONES.get(verdict.result, "neutral"),
        meaning=wording.MEANINGS[verdict.result],
        caveats=tuple(
            f"{wording.NOT_ESTABLISHED} {each['reason']}."
            for each in predicate["checks"]
            if each["status"] == "NOT ESTABLISHED"
        ),
        worthless=wording.WORTHLESS if predicate["worthless"] else "",
        time=_time(predicate["time"]),
        engine=str(predicate["engine"]),
        checks=tuple(_check(each) for each in predicate["checks"]),
        epsilon=tuple(_rows(predicate["epsilon"])),
        sampling_mode=mode,
        sampling_statement=statement,
        strata=tuple(_stratum(each) for each in predicate["sampling"].get("strata", ())),
        coalition=tuple(_rows(predicate["coalition"])),
        counts=tuple(_rows(predicate["counts"])),
        counts_statement=_counts_statement(predicate["counts"]),
        not_covered=tuple(predicate["not_covered"]),
        assumptions=tuple(predicate["assumptions"]),
        subjects=tuple(sorted(verdict.subjects.items())),
    )


def _check(check: Mapping[str, Any]) -> CheckRow:
    status = str(check["status"])
    return CheckRow(
        number=check["number"],
        name=check["id"],
        title=wording.CHECK_TITLES.get(check["id"], check["id"]),
        status=status,
        tone=wording.TONES.get(status, "neutral"),
        reason=check["reason"],
        evidence=tuple(check["evidence"]),
    )


def _rows(value: Mapping[str, Any], level: int = 0) -> Iterator[Row]:
    """Rows of a JSON object in the order of the labels, nested objects indented below theirs.

    Lists of texts (assumptions and the like) have sections of their own.
    """
    for key, item in sorted(value.items(), key=lambda each: wording.place(each[0])):
        if level == 0 and key in wording.ELSEWHERE:
            continue
        label, note = wording.LABELS.get(key, (key.replace("_", " "), ""))
        if isinstance(item, Mapping) and level < _MAX_DEPTH:
            yield Row(label, "", note, level)
            yield from _rows(item, level + 1)
        elif key in wording.CASES and isinstance(item, Sequence):
            yield Row(label, "", note, level)
            yield from _cases(item, wording.CASES[key], level + 1)
        else:
            yield Row(label, _text(item), note, level)


def _cases(items: Sequence[Any], named_by: str, level: int) -> Iterator[Row]:
    """One row for each object of a list, named by one of its members."""
    for item in items:
        others = {name: each for name, each in item.items() if name != named_by}
        yield Row(f"{_text(item.get(named_by))} {named_by}", _text(others), "", level)


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(_text(each) for each in value)
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_text(each)}" for key, each in value.items())
    return str(value)


def _sampling(sampling: Mapping[str, Any]) -> tuple[str, str]:
    mode = str(sampling.get("mode", ""))
    return mode, wording.SAMPLING.get(mode, wording.NO_SAMPLING)


def _stratum(stratum: Mapping[str, Any]) -> tuple[str, ...]:
    keys = ("id", "population", "sample", "miss_probability", "with_replacement")
    return tuple(_text(stratum.get(key)) for key in keys)


def _counts_statement(counts: Mapping[str, Any]) -> str:
    plain = counts.get("records_plain")
    return wording.PLAIN_ACCOUNTS if isinstance(plain, int) and plain else ""


def _time(milliseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
