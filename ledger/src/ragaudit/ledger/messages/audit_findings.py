"""What a verdict says, one line a finding, for tools that collect lines (docs/spec 10.7)."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.claims import RESULTS
from ragaudit.ledger.messages.verdict import Verdict

FORMAT: Final = "ragaudit/v1/audit-finding"
_KINDS: Final = ("result", "claim", "check", "not-covered", "assumption")
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Audit:
    """What every line repeats: which window, and what its verdict is.

    Attributes:
        result: one of RESULTS.
        worthless: the window's randomness was derived from a published seed.
        time: the verifier's clock, Unix milliseconds.
        verdict: hexadecimal SHA-256 of the verdict's envelope.
    """

    provider: str
    window: str
    result: str
    worthless: bool
    time: int
    verdict: str


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One line.

    Attributes:
        id: names the same thing in every window: "check/selection", "claim/privacy", ...
        number: of the check; None of anything else.
        status: of the result, claim or check; None of a text.
        text, evidence: for people.
    """

    audit: Audit
    id: str
    number: int | None
    status: str | None
    text: str
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(cls, verdict: Verdict) -> tuple[Self, ...]:
        """Return the lines of a verdict whose signature was verified, in their order."""
        predicate = verdict.predicate
        audit = Audit(
            predicate.provider,
            predicate.window,
            predicate.result,
            predicate.worthless,
            predicate.time,
            verdict.digest,
        )
        return tuple(cls._lines(audit, verdict))

    @classmethod
    def _lines(cls, audit: Audit, verdict: Verdict) -> Iterator[Self]:
        predicate = verdict.predicate
        yield cls(audit, "result", None, predicate.result, predicate.warning)
        results = predicate.claims.results.items()
        for (name, result), said in zip(results, predicate.claims.statements, strict=True):
            yield cls(audit, f"claim/{name}", None, result, said)
        for check in predicate.checks:
            yield cls(
                audit,
                f"check/{check.id}",
                check.number,
                str(check.status),
                check.reason,
                check.evidence,
            )
        for kind, texts in (
            ("not-covered", predicate.not_covered),
            ("assumption", predicate.assumptions),
        ):
            for text in texts:
                yield cls(audit, f"{kind}/{_name(text)}", None, None, text)

    def to_json(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        return {
            "evidence": list(self.evidence),
            "format": FORMAT,
            "id": self.id,
            "number": self.number,
            "provider": self.audit.provider,
            "result": self.audit.result,
            "status": self.status,
            "text": self.text,
            "time": self.audit.time,
            "verdict": self.audit.verdict,
            "window": self.audit.window,
            "worthless": self.audit.worthless,
        }

    def encode(self) -> bytes:
        """Return the line, canonical JSON and LF."""
        return canonical_json.dumps(self.to_json()) + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Return the finding of a line, the strict inverse of `encode`.

        Raises:
            MalformedError: anything else.
        """
        if not line.endswith(b"\n"):
            raise MalformedError("a line that does not end", where="audit finding")
        value = canonical_json.loads(line[:-1])
        match value:
            case {
                "provider": str(provider),
                "window": str(window),
                "result": str(result),
                "worthless": bool(worthless),
                "time": int(time),
                "verdict": str(verdict),
                "id": str(name),
                "number": int() | None as number,
                "status": str() | None as status,
                "text": str(text),
                "evidence": list(evidence),
            } if not isinstance(time, bool) and not isinstance(number, bool):
                hex_decode(verdict, 32)
                audit = Audit(provider, window, result, worthless, time, verdict)
                found = cls(audit, name, number, status, text, tuple(evidence))
                found._check()
                if found.to_json() == value:
                    return found
        raise MalformedError("not an audit finding", expected=FORMAT)

    def _check(self) -> None:
        kind, _, name = self.id.partition("/")
        wrong = (
            kind not in _KINDS
            or (kind == "result") != (name == "")
            or (kind == "check") != (self.number is not None)
            or (self.status is None) != (kind in ("not-covered", "assumption"))
            or (self.status is None and name != _name(self.text))
            or (kind == "result" and self.status != self.audit.result)
            or self.audit.result not in RESULTS
            or not all(isinstance(each, str) for each in self.evidence)
        )
        if wrong:
            raise MalformedError("members that contradict each other", where=f"finding {self.id!r}")


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
