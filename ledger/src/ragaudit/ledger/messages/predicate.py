"""What a verdict states: checks, claims, and the numbers beside them (docs/spec 10.3, 10.6)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.claims import REFUSED, RESULTS, Claims, Status
from ragaudit.ledger.messages.signed_results import References

_T = TypeVar("_T")
Json = Mapping[str, Any]

WORTHLESS: Final = (
    "WORTHLESS: the provider's randomness in this window was derived from a published seed, for an "
    "experiment. Anyone can predict the noise. This verdict proves nothing about privacy."
)
"""Said on top wherever a verdict of a seeded window is shown."""


class MalformedVerdict(MalformedError):
    """Not a verdict envelope in its one accepted form."""


@dataclass(frozen=True, slots=True)
class SignedCheck:
    """What a verdict says of one check.

    Attributes:
        number, id: of the check, as in docs/spec/09-audit.md.
        reason, evidence: for people; only their meaning is specified.
    """

    number: int
    id: str
    status: Status
    reason: str
    evidence: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the check as a JSON object."""
        return {
            "number": self.number,
            "id": self.id,
            "status": str(self.status),
            "reason": self.reason,
            "evidence": list(self.evidence),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the check of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedVerdict: anything else.
        """
        match value:
            case {
                "number": int(number),
                "id": str(name),
                "status": str(status),
                "reason": str(reason),
                "evidence": list(evidence),
                **more,
            } if not more and all(isinstance(text, str) for text in evidence):
                if isinstance(number, bool):  # an int to Python, not to JSON
                    raise MalformedVerdict("not a number", where="check")
                if status not in _STATUSES:
                    raise MalformedVerdict("no such status", where="check")
                return cls(number, name, Status(status), reason, tuple(evidence))
        raise MalformedVerdict("not a check result", where="predicate checks")


_OPTIONAL: Final = {
    "attested": dict,
    "generation": dict,
    "test_results": list,
    "withheld": dict,
    "overlaps": dict,
    "documents": list,
}
_STATUSES: Final = frozenset(str(status) for status in Status)


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a verdict states (docs/spec/10-verdict.md §10.3).

    Attributes:
        result: one of RESULTS.
        worthless: the window's randomness was derived from a published seed.
        terms: digest of the verifier's terms, hexadecimal; empty where there are none.
        time: the verifier's clock, Unix milliseconds.
        engine: who checked the arguments, for people.
        epsilon: the table of docs/spec/07-privacy.md §7.4, which the accounting reads; empty where
            nothing is stated.
        sampling, counts, coalition, scope: JSON objects, shown whole by every report.
        claims: integrity and privacy, of which the result follows.
        attested: what third parties say of the log (10.3), a JSON object; None where the policy
            asks none.
        generation: what the generation channel costs (10.10), a JSON object; None without it.
        test_results: signed results that others brought (10.11); None where nobody did. They are
            no part of what is stated here.
        withheld: rows that answers withheld, by account (10.12), a JSON object; None with noise.
        overlaps: windows at the same time (10.13), a JSON object; None where there are none.
        documents: how many rows and documents there are, by tenant (10.14), JSON objects; None
            where owners of documents check nothing.
    """

    window: str
    provider: str
    result: str
    worthless: bool
    terms: str
    time: int
    engine: str
    checks: tuple[SignedCheck, ...]
    epsilon: Json
    sampling: Json
    counts: Json
    coalition: Json
    scope: Json
    not_covered: tuple[str, ...]
    assumptions: tuple[str, ...]
    claims: Claims
    attested: Json | None = None
    generation: Json | None = None
    test_results: References | None = None
    withheld: Json | None = None
    overlaps: Json | None = None
    documents: Sequence[Json] | None = None

    @property
    def warning(self) -> str:
        """What stands on top wherever the verdict is shown: of a seeded window; else empty."""
        return WORTHLESS if self.worthless else ""

    def to_json(self) -> dict[str, Any]:
        """Return the predicate as a JSON object."""
        members = {name: getattr(self, name) for name in _PREDICATE}
        for name in ("attested", "generation", "withheld", "overlaps", "documents"):
            if (member := getattr(self, name)) is not None:
                members[name] = member
        if self.test_results is not None:
            members["test_results"] = self.test_results.to_json()
        return members | {
            "claims": self.claims.to_json(),
            "checks": [check.to_json() for check in self.checks],
            "not_covered": list(self.not_covered),
            "assumptions": list(self.assumptions),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the predicate of a JSON value, the strict inverse of `to_json`.

        Args:
            value: from anywhere.

        Raises:
            MalformedVerdict: other members, another type, result or status; claims that do not
                follow from the checks.
        """
        names = {**_PREDICATE}
        if isinstance(value, dict):
            names |= {name: kind for name, kind in _OPTIONAL.items() if name in value}
        if not isinstance(value, dict) or value.keys() != names.keys():
            raise MalformedVerdict("predicate with other members", expected=", ".join(_PREDICATE))
        for name, kind in names.items():
            # true is an int to Python, not to JSON.
            if not isinstance(value[name], kind) or (kind is int and isinstance(value[name], bool)):
                raise MalformedVerdict("wrong type", where=f"predicate {name}")
        # A result that nobody knows must not be read as one that somebody hopes for.
        if value["result"] not in RESULTS:
            raise MalformedVerdict("no such result", expected=", ".join(RESULTS))
        checks = tuple(map(SignedCheck.from_json, value["checks"]))
        for name in ("not_covered", "assumptions"):
            if not all(isinstance(text, str) for text in value[name]):
                raise MalformedVerdict("wrong type", where=f"predicate {name}")
        texts = {name: tuple(value[name]) for name in ("not_covered", "assumptions")}
        claims = decoded(lambda: Claims.from_json(value["claims"]), "predicate claims")
        read = {"claims": claims, "test_results": _test_results(value)}
        found = cls(**value | texts | {"checks": checks} | read)
        _check_claims(found)
        return found


def _test_results(value: dict[str, Any]) -> References | None:
    if "test_results" not in value:
        return None
    # A refusal is signed before anybody could bring one.
    if value["result"] == REFUSED:
        raise MalformedVerdict("test results of a refused window", where="predicate test_results")
    read = References.from_json
    return decoded(lambda: read(value["test_results"]), "predicate test_results")


def _check_claims(predicate: Predicate) -> None:
    """MalformedVerdict for claims or a result that the checks do not give."""
    statuses = {check.id: check.status for check in predicate.checks}
    # Whoever shows a verdict shows its claims: none may promise what the checks do not.
    refused, voids = predicate.result == REFUSED, predicate.counts.get("voids")
    expected = Claims.of(statuses, refused=refused, voids=voids)
    if predicate.claims != expected or len(statuses) < len(predicate.checks):
        raise MalformedVerdict("claims that do not follow from the checks", where="predicate")
    if predicate.result != expected.result:
        raise MalformedVerdict("a result that does not follow from the claims", where="predicate")


_PREDICATE: Final[Mapping[str, type]] = {
    "window": str,
    "provider": str,
    "result": str,
    "worthless": bool,
    "terms": str,
    "time": int,
    "engine": str,
    "checks": list,
    "epsilon": dict,
    "sampling": dict,
    "counts": dict,
    "coalition": dict,
    "scope": dict,
    "not_covered": list,
    "assumptions": list,
    "claims": dict,
}


def decoded(read: Callable[[], _T], where: str) -> _T:
    """Return what ``read`` gives; what it finds malformed is a malformed verdict.

    Raises:
        MalformedVerdict: naming ``where``.
    """
    try:
        return read()
    except MalformedError as error:
        raise MalformedVerdict(error.what, where=where, expected=error.expected) from error
