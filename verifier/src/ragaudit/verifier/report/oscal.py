"""A verdict as OSCAL assessment results, for tools of assessors (docs/spec 10.7)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.verdict import (
    EXCEEDED,
    FAIL,
    PASS,
    PRIVACY_CHECKS,
    REFUSED,
    SignedCheck,
    Status,
    Verdict,
)
from ragaudit.verifier.report import wording

OSCAL_VERSION: Final = "1.2.1"
NS: Final = "https://ragaudit.dev/ns/oscal"
_NAMESPACE: Final = uuid5(NAMESPACE_URL, NS)

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#~^|$&!\"'])")
_ID: Final = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)
_PROCEDURE: Final = (
    "The numbered checks of ragaudit, docs/spec/09-audit.md; each is named by its id there."
)
_LIMITS: Final = (
    "This document is made from the verdict in the back matter and says no more than it does. "
    "The verdict is signed, this document is not. No control catalogue is claimed to be met."
)

Json = dict[str, Any]


def assessment_results(verdict: Verdict) -> bytes:
    """Return the OSCAL document of a verdict whose signature was verified, canonical JSON.

    Raises:
        MalformedError: there are no checks, or two of one id, or one whose id is no name; a time
            of the verdict is in no year that a timestamp can write.
    """
    ids = [check.id for check in verdict.predicate.checks]
    if not ids or len({*ids}) < len(ids) or not all(map(_ID.fullmatch, ids)):
        raise MalformedError("checks that OSCAL cannot name", where="verdict")
    return canonical_json.dumps({"assessment-results": _Document(verdict).root()})


@dataclass(frozen=True, slots=True)
class _Document:
    verdict: Verdict

    def root(self) -> Json:
        predicate = self.verdict.predicate
        title = f"Audit of window {predicate.window} of {predicate.provider}: {predicate.result}"
        return {
            "uuid": self._uuid("document"),
            "metadata": {
                "title": _line(title),
                "last-modified": self._time,
                "version": self.verdict.digest,
                "oscal-version": OSCAL_VERSION,
                "roles": [{"id": "assessor", "title": "Verifier"}],
                "parties": [self._verifier()],
                "responsible-parties": [
                    {"role-id": "assessor", "party-uuids": [self._uuid("verifier")]}
                ],
            },
            "import-ap": {"href": f"#{self._uuid('plan')}"},
            "results": [self._result(title)],
            "back-matter": {"resources": self._resources()},
        }

    def _result(self, title: str) -> Json:
        predicate = self.verdict.predicate
        said = {
            "uuid": self._uuid("result"),
            "title": _line(title),
            "description": self._paragraph_of_result(),
            "start": self._start(),
            "end": self._time,
            "props": [
                _property("result", predicate.result),
                _property("worthless", "yes" if predicate.worthless else "no"),
            ],
            "reviewed-controls": {
                "description": _text(_PROCEDURE),
                "control-selections": [self._controls()],
            },
            "observations": [self._observation(check) for check in predicate.checks],
            "risks": self._risks(),
            "findings": self._findings(),
            "remarks": _text(_LIMITS) + _paragraphs(predicate.assumptions),
        }
        return {name: value for name, value in said.items() if value != []}

    def _controls(self) -> Json:
        checks = self.verdict.predicate.checks
        return {"include-controls": [{"control-id": check.id} for check in checks]}

    def _observation(self, check: SignedCheck) -> Json:
        return {
            "uuid": self._uuid(f"observation/{check.id}"),
            "title": _line(f"Check {check.number}: {wording.CHECK_TITLES.get(check.id, check.id)}"),
            "description": _text(check.reason) + _paragraphs(check.evidence),
            "props": [
                _property("check-number", str(check.number)),
                _property("check-status", str(check.status)),
            ],
            "methods": ["TEST"],
            "collected": self._time,
        }

    def _findings(self) -> list[Json]:
        predicate = self.verdict.predicate
        ids = [check.id for check in predicate.checks]
        names = zip(
            wording.CLAIM_NAMES,
            predicate.claims.results.items(),
            predicate.claims.statements,
            strict=True,
        )
        found = [
            self._finding(f"claim.{name}", title, result, said, _checks_of(name, ids))
            for title, (name, result), said in names
        ]
        return found + [
            self._finding(
                f"check.{check.id}",
                wording.CHECK_TITLES.get(check.id, check.id),
                str(check.status),
                check.reason,
                [check.id],
            )
            for check in predicate.checks
            if check.status is not Status.NOT_APPLICABLE
        ]

    def _finding(self, target: str, title: str, status: str, said: str, ids: list[str]) -> Json:
        satisfied = status == PASS and not self.verdict.predicate.worthless
        failed = status in (FAIL, EXCEEDED, REFUSED)
        found: Json = {
            "uuid": self._uuid(f"finding/{target}"),
            "title": _line(f"{title}: {status}"),
            "description": _text(said or self._meaning()),
            "props": [_property("status", status)],
            "target": {
                "type": "objective-id",
                "target-id": target,
                "status": {
                    "state": "satisfied" if satisfied else "not-satisfied",
                    "reason": "pass" if satisfied else "fail" if failed else "other",
                },
            },
        }
        if self.verdict.predicate.worthless:
            found["remarks"] = _text(self.verdict.predicate.warning)
        if ids:
            found["related-observations"] = [
                {"observation-uuid": self._uuid(f"observation/{name}")} for name in ids
            ]
        return found

    def _risks(self) -> list[Json]:
        predicate = self.verdict.predicate
        warned = [("Worthless", "risk/worthless", predicate.warning)] if predicate.worthless else []
        texts = [
            (f"Not covered, {place}", f"risk/{place}", text)
            for place, text in enumerate(predicate.not_covered, start=1)
        ]
        return [
            {
                "uuid": self._uuid(place),
                "title": title,
                "description": _text(text),
                "statement": _text(text),
                "status": "open",
            }
            for title, place, text in warned + texts
        ]

    def _verifier(self) -> Json:
        return {
            "uuid": self._uuid("verifier"),
            "type": "organization",
            "name": f"verifier with the verdict key {self.verdict.key.raw.hex()}",
        }

    def _resources(self) -> list[Json]:
        subjects = self.verdict.subjects
        planned = {name: subjects[name] for name in (items.POLICY, items.TERMS) if name in subjects}
        signed = {"verdict.json": self.verdict.digest}
        found = [
            self._resource("plan", "Assessment plan: the policy and the verifier's terms", planned),
            self._resource("verdict", "The signed verdict", signed),
            self._resource("evidence", "Everything that the procedure saw", subjects),
        ]
        return [{name: value for name, value in one.items() if value != []} for one in found]

    def _resource(self, place: str, title: str, digests: Mapping[str, str]) -> Json:
        return {
            "uuid": self._uuid(place),
            "title": title,
            "description": _text(_PROCEDURE if place == "plan" else title),
            "rlinks": [
                {"href": name, "hashes": [{"algorithm": "SHA-256", "value": digests[name]}]}
                for name in sorted(digests)
            ],
        }

    def _start(self) -> str:
        """Beginning of the window; a refused one may not have begun."""
        start = self.verdict.predicate.scope.get("start")
        if isinstance(start, int) and 1000 * start <= self.verdict.predicate.time:
            return _timestamp(1000 * start)
        return self._time

    def _meaning(self) -> str:
        return wording.meaning(self.verdict.result, self.verdict.predicate.claims)

    def _paragraph_of_result(self) -> str:
        # The warning first: what follows it must not be read without it.
        warning = self.verdict.predicate.warning
        return "\n\n".join(_text(text) for text in (warning, self._meaning()) if text)

    @property
    def _time(self) -> str:
        return _timestamp(self.verdict.predicate.time)

    def _uuid(self, place: str) -> str:
        return str(uuid_of(self.verdict.digest, place))


def uuid_of(verdict: str, place: str) -> UUID:
    """Return the identifier of a place in the document of a verdict.

    Args:
        verdict: hexadecimal SHA-256 of its envelope.
        place: as "finding/claim.privacy".
    """
    return uuid5(_NAMESPACE, f"{verdict}/{place}")


def _checks_of(claim: str, ids: Iterable[str]) -> list[str]:
    return [name for name in ids if (name in PRIVACY_CHECKS) == (claim == "privacy")]


def _property(name: str, value: str) -> Json:
    return {"name": name, "ns": NS, "value": value}


def _line(text: str) -> str:
    """One line, in which nothing is markup."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _text(text: str) -> str:
    # A reason may hold text of the provider's: it must not look like a heading of ours.
    return _line(text) or "none"


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"\n\n{_text(text)}" for text in texts)


def _timestamp(milliseconds: int) -> str:
    text = rfc3339(milliseconds)
    if not text.endswith("Z"):
        raise MalformedError("a time in no year of a calendar", where="verdict", expected="1..9999")
    return text
