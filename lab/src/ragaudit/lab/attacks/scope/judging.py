"""What an answer gives away, decided by canaries and exact tests alone; the report's format."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from ragaudit.lab.attacks.scope.exchange import Answer, Request, members, mentions, numbers, texts
from ragaudit.lab.attacks.scope.probes import Attempt, Canary

Kind = Literal[
    "integrity", "content", "vector", "metadata", "id", "existence", "collection", "timing"
]
SEVERITY: Final[Mapping[Kind, str]] = {
    "integrity": "critical",
    "content": "critical",
    "vector": "critical",
    "metadata": "high",
    "id": "medium",
    "existence": "medium",
    "collection": "low",
    "timing": "low",
}
_TOLERANCE = 1e-3
"""Of each number of a vector: stores keep halves and floats."""
_NUMBER: Final = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*", re.IGNORECASE)
"""A count, a time or the id of a request."""


@dataclass(frozen=True)
class Leak:
    """A marker of the victim that an answer has, and the request had not.

    Attributes:
        evidence: the marker, or which canary's vector.
    """

    kind: Kind
    evidence: str


def leaks(
    request: Request, answer: Answer, canaries: Sequence[Canary], said: Iterable[str]
) -> list[Leak]:
    """Return what an answer to somebody else shows of canaries.

    Args:
        canaries: of the victim.
        said: what `said_by` returned of requests before: an answer may repeat it.
    """
    known = {*said, *said_by(request, canaries)}
    found = [
        Leak(kind, marker)  # type: ignore[arg-type]
        for canary in canaries for marker, kind in canary.markers().items()
        if marker not in known and mentions(answer.folded, marker)
    ] + _vectors(answer, canaries)  # fmt: skip
    left = [leak for leak in found if leak.evidence not in known]
    return sorted(left, key=lambda leak: list(SEVERITY).index(leak.kind))


def said_by(request: Request, canaries: Sequence[Canary]) -> set[str]:
    """Return the markers and vectors of canaries that a request has, as evidence names them."""
    found = {
        marker for one in canaries for marker in one.markers() if request.holds(marker)
    }  # fmt: skip
    return found | {
        _vector_of(one) for one in canaries if one.spelled and request.holds(one.spelled)
    }


def _vector_of(canary: Canary) -> str:
    return f"vector of {canary.id}"


def named(request: Request, answer: Answer, names: Sequence[str]) -> str | None:
    """Return the name of another's collection that an answer lists, None if it lists none.

    Names may be ordinary words: one counts only as a whole text of a JSON answer, and only if the
    request has none of them.

    Args:
        names: of the collection, its name and its id.
    """
    if any(request.holds(name) for name in names):
        return None
    said = set(texts(members(answer.text)))
    return next((name for name in names if name in said), None)


def _vectors(answer: Answer, canaries: Sequence[Canary]) -> list[Leak]:
    own = [canary for canary in canaries if canary.vector is not None]
    if not own:
        return []
    known = np.asarray([canary.vector for canary in own])
    found = []
    for row in numbers(members(answer.text)):
        if len(row) == known.shape[1]:
            away = np.abs(known - np.asarray(row)).max(axis=1)
            found += [
                Leak("vector", _vector_of(own[place]))
                for place in np.flatnonzero(away < _TOLERANCE)
            ]
    return found


def changed(attempt: Attempt, before: Answer, answer: Answer, after: Answer) -> str | None:
    """Return what a write has changed of the victim's, "" for nothing; None if nobody can tell.

    Args:
        before, after: what the victim reads.
        answer: to the attacker.
    """
    if attempt.proves:
        return "it was done, and taken back" if attempt.proves in answer.text else ""
    # What was made for the test and is not found any more is gone.
    gone = bool(attempt.setup) and after.status in ("404", "410")
    if not (before.succeeded and attempt.loses in before.text and (after.succeeded or gone)):
        return None
    if attempt.shows in after.text and attempt.shows not in before.text:
        return attempt.shows
    if attempt.loses and attempt.loses not in after.text:
        return f"{attempt.read.by} does not find {attempt.loses} any more"
    return ""


@dataclass(frozen=True)
class Separation:
    """Answers that say which values exist.

    Attributes:
        evidence: where they differ, and how.
        p_value: of a store whose answers do not depend on which canaries were planted.
    """

    evidence: str
    p_value: float


def separation(
    answers: Mapping[str, Sequence[Answer]], planted: Sequence[str]
) -> Separation | None:
    """Return how answers tell what exists, None if they do not.

    A part of the answer counts if it is always the same for values that exist, always the same for
    those that do not, and the two differ. Which values were planted was drawn at random: answers
    that do not depend on it split the values so with probability 2 / C(n, n/2) for each way in
    which they split them in halves at all.

    Args:
        answers: to each value, in the order of asking.
        planted: the values that exist.
    """
    parts = {value: [_parts(value, answer) for answer in given] for value, given in answers.items()}
    places = sorted({place for given in parts.values() for answer in given for place in answer})
    halves: dict[frozenset[str], tuple[str, str, str]] = {}
    for place in places:
        said = {value: {one.get(place, "") for one in given} for value, given in parts.items()}
        if any(len(texts) != 1 for texts in said.values()):
            continue
        once = {value: texts.pop() for value, texts in said.items()}
        different = sorted(set(once.values()))
        first = frozenset(value for value in once if once[value] == once[planted[0]])
        if len(different) == 2 and len(first) == len(once) // 2:
            other = next(text for text in different if text != once[planted[0]])
            halves.setdefault(first, (place, once[planted[0]], other))
    if (split := halves.get(frozenset(planted))) is None:
        return None
    place, present, absent = split
    p_value = min(1.0, len(halves) * 2 / comb(len(answers), len(planted)))
    return Separation(f"{place}: {present[:120]!r} if it exists, {absent[:120]!r} if not", p_value)


def _parts(value: str, answer: Answer) -> dict[str, str]:
    """Return an answer by places, without the value that was asked for; texts also without numbers,
    which may be those of the request."""
    found = {"status": answer.status}
    for line in answer.headers.splitlines():
        name, _, said = line.partition(": ")
        found[f"header {name}"] = said.replace(value, "{value}")
    body = members(answer.text)
    waiting: list[tuple[str, Any]] = [("body", answer.text if body is None else body)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, dict):
            found[place] = "{" + ", ".join(sorted(item)).replace(value, "{value}") + "}"
            waiting.extend((f"{place}.{name}", inner) for name, inner in item.items())
        elif isinstance(item, list):
            found[place] = f"{len(item)} items"
            waiting.extend((f"{place}[{number}]", inner) for number, inner in enumerate(item))
        else:
            found[place] = str(item).replace(value, "{value}")
            if isinstance(item, str):
                found[f"{place} but for numbers"] = _NUMBER.sub("#", found[place])
    return found


def timing(answers: Mapping[str, Sequence[Answer]], planted: Sequence[str]) -> Separation | None:
    """Compare how long values that exist take with those that do not; None without all answers.

    An exact permutation test, two-sided, of the difference of the mean of the values' median
    times. The values are the units, not the requests: which were planted was drawn at random, so
    that the p-value is valid whatever the load, its drift and the distribution of times are.

    Args:
        answers: to each value, asked in random order.
        planted: the values that exist.
    """
    if any(not one.status for given in answers.values() for one in given):
        return None
    values = list(answers)
    medians = np.asarray([np.median([one.seconds for one in answers[value]]) for value in values])
    subsets = _subsets(len(values), len(planted))
    means = medians[subsets].mean(axis=1) * 2 - medians.mean() * 2
    chosen = np.isin(values, list(planted))
    seen = float(medians[chosen].mean() - medians[~chosen].mean())
    # A little less than seen, lest rounding leaves the observed choice itself out.
    p_value = float(np.mean(np.abs(means) >= abs(seen) * (1 - 1e-9) - 1e-15))
    return Separation(
        f"what exists takes {abs(seen) * 1000:.3f} ms {'more' if seen > 0 else 'less'} "
        f"(p = {p_value:.2g})",
        p_value,
    )


@cache
def _subsets(count: int, size: int) -> npt.NDArray[np.int8]:
    """Return all choices of ``size`` of ``count``, int8[C(count, size), size]."""
    return np.fromiter(
        (place for chosen in combinations(range(count), size) for place in chosen),
        dtype=np.int8,
        count=comb(count, size) * size,
    ).reshape(-1, size)


FORMAT: Final = "ragaudit/v1/scope-report"


def _object(**members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXTS: Final = {"type": "array", "items": _TEXT}
SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": FORMAT,
    **_object(
        format={"const": FORMAT},
        result={"enum": ["LEAK", "INCOMPLETE", "CLEAN"]},
        store=_TEXT,
        url=_TEXT,
        seed=_COUNT,
        error={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        started=_COUNT,
        requests=_COUNT,
        tenants=_TEXTS,
        controlled=_TEXTS,
        findings={
            "type": "array",
            "items": _object(
                probe=_TEXT,
                family=_TEXT,
                kind={"enum": list(SEVERITY)},
                severity={"enum": list(dict.fromkeys(SEVERITY.values()))},
                title=_TEXT,
                idea=_TEXT,
                attacker=_TEXT,
                victim=_TEXT,
                evidence=_TEXT,
                times={"type": "integer", "minimum": 1},
                p_value={"type": ["number", "null"], "minimum": 0, "maximum": 1},
                request=_object(
                    method=_TEXT,
                    path=_TEXT,
                    headers={"type": "object", "additionalProperties": _TEXT},
                    body=_TEXT,
                ),
                answer=_object(status=_TEXT, text=_TEXT),
                reproduce=_TEXT,
            ),
        },
        tried={
            "type": "array",
            "items": _object(
                probe=_TEXT,
                family=_TEXT,
                idea=_TEXT,
                attacker=_TEXT,
                victim=_TEXT,
                result={"enum": ["FOUND", "NOTHING", "NOT JUDGED", "SKIPPED"]},
                why=_TEXT,
                statuses={"type": "object", "additionalProperties": _COUNT},
            ),
        },
        limits=_TEXTS,
        references=_TEXTS,
    ),
}
"""Of the JSON report, for CI."""
