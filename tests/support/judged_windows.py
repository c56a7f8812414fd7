"""Judging a window: exactly the owner of a broken rule fails."""

from __future__ import annotations

from typing import Any

from procedure_cases import Items
from ragaudit.lab.scenario.window import Window
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS, Outcome, run


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
