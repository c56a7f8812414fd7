"""A verdict for others' tools: in-toto's simple verification result, and lines (docs/spec 10.7)."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode, rfc3339
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.signed import Envelope, in_toto, key_id
from ragaudit.ledger.messages.verdict import (
    PASS,
    RESULTS,
    Predicate,
    Status,
    Verdict,
    read_subjects,
)
from ragaudit.ledger.messages.verdict import PREDICATE_TYPE as VERDICT_TYPE

PREDICATE_TYPE: Final = "https://in-toto.io/attestation/svr/v0.2"
DIGEST_MEMBER: Final = "https://ragaudit.dev/verdict-digest"
"""An extension, named by a URI as in-toto's parsing rules want it."""

POLICY_ITEMS: Final = (items.POLICY, items.TERMS)
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", re.ASCII)
SAMPLED_CHECKS: Final = frozenset({"seed", "embedding", "selection", "charges", "replay"})
ALWAYS_SAMPLED: Final = frozenset({"rows"})


class NothingPassed(RefusedError):
    """The verdict has nothing that a list of what passed could say without misleading."""


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """What passed, as a list of names.

    Attributes:
        subjects: hexadecimal SHA-256 of each evidence item, by name.
        verifier: type of the verdict, "#", and the id of the key that signed it.
        created: time of the verdict, RFC 3339.
        properties: what passed, never empty, and then what the verdict leaves open.
        verdict: hexadecimal SHA-256 of the verdict's envelope.
    """

    subjects: Mapping[str, str]
    verifier: str
    created: str
    properties: tuple[str, ...]
    verdict: str

    def __post_init__(self) -> None:
        if _TIMESTAMP.fullmatch(self.created) is None:
            raise MalformedError("no time of RFC 3339", where="timeCreated")

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """Return the result of a verdict whose signature was verified.

        Raises:
            NothingPassed: the verdict is worthless, or none of its claims is PASS.
            MalformedError: its time is in no year that RFC 3339 can write.
        """
        predicate = verdict.predicate
        if predicate.worthless:
            raise NothingPassed("a worthless verdict", expected="randomness that nobody knows")
        claimed = tuple(_claimed(predicate))
        if not claimed:
            raise NothingPassed(
                f"the verdict is {verdict.result} and none of its claims passed",
                expected="a verdict that claims something",
            )
        return cls(
            subjects=verdict.subjects,
            verifier=f"{VERDICT_TYPE}#{key_id(verdict.key)}",
            created=rfc3339(predicate.time),
            properties=claimed + tuple(_checked(predicate)) + tuple(_left_open(predicate)),
            verdict=verdict.digest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the in-toto Statement, a JSON object."""
        policies = [
            {"name": name, "digest": {"sha256": self.subjects[name]}}
            for name in POLICY_ITEMS
            if name in self.subjects
        ]
        return in_toto(
            PREDICATE_TYPE,
            self.subjects,
            {
                DIGEST_MEMBER: {"sha256": self.verdict},
                "properties": list(self.properties),
                "timeCreated": self.created,
                "verifier": {"id": self.verifier, "policies": policies},
            },
        )

    def encode(self) -> bytes:
        """Return the statement without a signature, canonical JSON."""
        return canonical_json.dumps(self.to_json())

    def issue(self, key: PrivateKey) -> bytes:
        """Return the statement in a DSSE envelope.

        Args:
            key: the one that signed the verdict.

        Raises:
            RefusedError: another key: whoever signs this answers for the verdict.
        """
        if not self._is_of(key.public):
            raise RefusedError("not the key that signed the verdict", expected=self.verifier)
        return Envelope.seal(self.encode(), key)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the result in ``data``, the strict inverse of `encode`.

        Raises:
            MalformedError: anything else.
        """
        value = canonical_json.loads(data)
        match value:
            case {
                "subject": list(subjects),
                "predicate": {
                    "properties": list(properties),
                    "timeCreated": str(created),
                    "verifier": {"id": str(verifier)},
                    **others,
                },
            }:
                found = cls(
                    read_subjects(subjects),
                    verifier,
                    created,
                    tuple(properties),
                    _digest(others.get(DIGEST_MEMBER)),
                )
                # What is written again and is the same has no other member, type or policy.
                texts = all(isinstance(each, str) for each in properties)
                if properties and texts and found.to_json() == value:
                    return found
        raise MalformedError("not a simple verification result", expected=PREDICATE_TYPE)

    @classmethod
    def verify(cls, envelope: bytes, public: PublicKey) -> Self:
        """Return the result in ``envelope``, signed by ``public``.

        Args:
            envelope: bytes from anywhere.
            public: the verifier's verdict key, from the caller.

        Raises:
            MalformedError: not an envelope or a result in its one accepted form.
            RejectedError: signed by another key, or not at all, or about a verdict by another key.
        """
        opened = Envelope.parse(envelope)
        opened.verify(public)
        found = cls.parse(opened.body)
        if not found._is_of(public):
            raise RejectedError("made from a verdict by another key", where="verifier id")
        return found

    def _is_of(self, public: PublicKey) -> bool:
        return self.verifier.partition("#")[2] == key_id(public)


def _claimed(predicate: Predicate) -> Iterator[str]:
    for name, result in {"verdict": predicate.result, **predicate.claims.results}.items():
        if result == PASS:
            yield _property(name, sampled=_sampled(predicate))


def _checked(predicate: Predicate) -> Iterator[str]:
    for check in predicate.checks:
        if check.status is Status.PASS:
            sampled = check.id in ALWAYS_SAMPLED or (
                check.id in SAMPLED_CHECKS and _sampled(predicate)
            )
            yield _property(f"check_{check.id}", sampled=sampled)


def _left_open(predicate: Predicate) -> Iterator[str]:
    """What must not be overlooked beside that: one grave status hides no other."""
    for check in predicate.checks:
        if check.status in (Status.EXCEEDED, Status.NOT_ESTABLISHED):
            yield _name(f"check_{check.id}_{check.status}")


def _sampled(predicate: Predicate) -> bool:
    # Whatever is not known to be the whole is said to be a sample.
    return predicate.sampling.get("mode") != "A"


def _property(name: str, *, sampled: bool) -> str:
    return _name(f"{name}_{PASS}") + ("_OF_SAMPLE" if sampled else "")


def _name(text: str) -> str:
    return f"RAGAUDIT_{text.upper().replace('-', '_').replace(' ', '_')}"


def _digest(value: object) -> str:
    match value:
        case {"sha256": str(digest)}:
            hex_decode(digest, 32)
            return digest
    raise MalformedError("no digest of the verdict", where=DIGEST_MEMBER)


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
                yield cls(audit, f"{kind}/{_short(text)}", None, None, text)

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
            or (self.status is None and name != _short(self.text))
            or (kind == "result" and self.status != self.audit.result)
            or self.audit.result not in RESULTS
            or not all(isinstance(each, str) for each in self.evidence)
        )
        if wrong:
            raise MalformedError("members that contradict each other", where=f"finding {self.id!r}")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
