"""Judging a window: exactly the owner of a broken rule fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from procedure_cases import Items
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.verifier.bundle import Part, write_bundle
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS, Outcome, Status, run
from ragaudit.verifier.recheck import Recheck, recheck

TIME = 1_900_000_500_000
"""When the verdicts of these tests are given, in milliseconds."""


def judged(window: Window, items: Items | None = None, **given: Any) -> Outcome:
    evidence = Evidence.of(window.items() if items is None else items)
    arguments: dict[str, Any] = {
        "engine": engine("core"),
        "embedder": window.embedder,
        "generator": window.generator,
    }
    arguments |= given
    return run(evidence, pins=window.pins, **arguments)


_PLAYED: dict[type[Window], tuple[Window, dict[str, bytes]]] = {}


def played(kind: type[Window]) -> tuple[Window, dict[str, bytes]]:
    """A window of this kind and its evidence, made once: nobody changes them."""
    if kind not in _PLAYED:
        window = kind()
        _PLAYED[kind] = window, window.items()
    return _PLAYED[kind]


def outcome_of(kind: type[Window], **given: Any) -> Outcome:
    """The outcome over such a window as it was played."""
    return judged(*played(kind), **given)


def assert_caught(window: Window, owner: str, reason: str, items: Items | None = None) -> Outcome:
    """The owner fails and says why, nothing else fails, and what lacks its fact names it."""
    held = window.items() if items is None else items
    outcome = judged(window, held)
    shown = [(c.id, str(c.status), c.reason) for c in outcome.checks]
    assert outcome.failed == (owner,), shown
    assert outcome.result == "FAIL"
    said = outcome.check(owner)
    assert any(reason in text for text in (said.reason, *said.evidence)), said
    for check in outcome.checks:
        assert set(check.needs) <= {owner}, shown
    without = tuple(check for check in CHECKS if check.id != owner)
    assert judged(window, held, checks=without).result == "PASS"
    return outcome


def open_checks(outcome: Outcome) -> dict[str, str]:
    """The checks that are no PASS, with their status."""
    return {c.id: str(c.status) for c in outcome.checks if c.status is not Status.PASS}


def said(outcome: Outcome, check: str) -> str:
    """The reason and the evidence of a check, in one text."""
    found = outcome.check(check)
    return " ".join((found.reason, *found.evidence))


def public(items: Items) -> Items:
    """The public part of evidence."""
    return {name: data for name, data in items.items() if name.startswith(names.PUBLIC)}


def stated(outcome: Outcome) -> dict[str, Any]:
    """A copy of what a verdict with this outcome states, which a test may change."""
    copy: dict[str, Any] = json.loads(json.dumps(outcome.predicate(time=TIME).to_json()))
    return copy


def signed(predicate: dict[str, Any]) -> verdicts.Verdict:
    """A verdict that states this, without evidence, under a key of its own."""
    key = PrivateKey.from_seed(b"k" * 32)
    envelope = verdicts.sign_statement(verdicts.statement({}, predicate), key)
    return verdicts.Verdict.verify(envelope, key.public)


def bundled(
    folder: Path, window: Window, items: Items, predicate: dict[str, Any], part: Part = "all"
) -> Path:
    """A bundle of this evidence with a verdict that states the predicate."""
    evidence = Evidence.of(items)
    statement = verdicts.statement(evidence.digests(), predicate)
    path = folder / f"{part}.zip"
    envelope = verdicts.sign_statement(statement, window.verdict_key)
    write_bundle(path, evidence, envelope, part=part)
    return path


def rechecked(
    folder: Path,
    window: Window,
    items: Items,
    predicate: dict[str, Any],
    part: Part = "all",
    **given: Any,
) -> Recheck:
    """What a repetition of the procedure over such a bundle finds."""
    arguments: dict[str, Any] = {"engine": engine("core"), "embedder": window.embedder, **given}
    key = window.verdict_key.public
    path = bundled(folder, window, items, predicate, part)
    return recheck(path, verdict_key=key, pins=window.pins, **arguments)
