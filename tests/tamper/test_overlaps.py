"""Windows of one provider at the same time: allowed by terms, named, added up (spec 9.10)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding.text import parse_decimal
from ragaudit.lab.attacks.cheats.policy import ONE_AT_A_TIME, beside
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.evidence import OverlappingWindow, Overlaps
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import run_opening_checks
from ragaudit.verifier.procedure.opening_checks import composed
from ragaudit.verifier.procedure.privacy_checks import table
from ragaudit.verifier.report.view import overlapping

use_cached_table()

RENAMED = [{"id": "other", "owner_key": None}]


@lru_cache(maxsize=1)
def played() -> tuple[Window, dict[str, bytes]]:
    window = Window()
    return window, window.items()


@lru_cache(maxsize=1)
def strict() -> tuple[Window, dict[str, bytes]]:
    window = Window(terms=ONE_AT_A_TIME)
    return window, window.items()


def epsilon(stated: Any) -> Any:
    return None if stated["epsilon"] is None else parse_decimal(stated["epsilon"])


def test_a_verdict_names_the_others_and_says_what_all_cost() -> None:
    window, items = played()
    alone = audit(items, window)
    assert alone.overlaps is None and alone.epsilon is not None
    outcome = audit({**items, names.OVERLAPS: beside(window, window.policy)}, window)
    assert outcome.result == "PASS" and outcome.overlaps is not None
    (named,) = outcome.overlaps["windows"]
    assert (named["window"], named["shared"]) == ("beside", list(window.policy.tenants))
    # Two windows of the same terms cost to the digit what twice the queries cost (claim 17).
    twice = table(window.policy, 2 * window.policy.coalition_max, 0, [])
    together = outcome.overlaps["together"]
    assert together["epsilon"] == twice.headline.to_json()["epsilon"]
    assert epsilon(together) > parse_decimal(alone.epsilon.headline.to_json()["epsilon"])
    assert together == outcome.overlaps["together_if_renamed"]
    (sentence,) = overlapping(outcome.predicate(time=0))
    assert f"epsilon {together['epsilon']} at delta" in sentence


def test_a_tenant_under_another_name_is_reckoned_with() -> None:
    """Names are the provider's word: the verdict says what they would hide."""
    for window, items in (played(), strict()):
        renamed = beside(window, window.policy, tenants=RENAMED)
        outcome = audit({**items, names.OVERLAPS: renamed}, window)
        assert outcome.result == "PASS" and outcome.overlaps is not None
        assert outcome.overlaps["windows"][0]["shared"] == []
        alone = table(window.policy, window.policy.coalition_max, 0, []).headline.to_json()
        assert outcome.overlaps["together"]["epsilon"] == alone["epsilon"]
        assert epsilon(outcome.overlaps["together_if_renamed"]) > parse_decimal(alone["epsilon"])


def test_exact_answers_beside_noise_leave_no_epsilon() -> None:
    window, items = played()
    exact = IntegrityWindow().policy
    outcome = audit({**items, names.OVERLAPS: beside(window, exact)}, window)
    assert outcome.overlaps is not None
    assert outcome.overlaps["together"]["epsilon"] is None
    (sentence,) = overlapping(outcome.predicate(time=0))
    assert "no finite epsilon (window beside adds no noise" in sentence


def test_the_larger_relation_counts_where_policies_differ() -> None:
    window, _ = played()
    null, other = (
        Overlaps.parse(beside(window, window.policy, relation=relation)).messages[0].policy
        for relation in ("null-replace", "replace")
    )
    found = composed(null, 0, [other])
    assert found["relation"] == "replace"
    assert found == {**composed(other, 0, [null]), "delta": found["delta"]}
    assert epsilon(found) > epsilon(composed(null, 0, [null]))
    # No claim of the provider's makes it smaller, or is believed beyond the slots.
    assert epsilon(composed(null, 0, [])) <= epsilon(composed(null, null.slots, []))
    assert composed(null, 10**30, []) == composed(null, null.slots, [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"provider": "another.example"}, "does not overlap"),
        ({"window": "w1"}, "does not overlap"),
    ],
)
def test_only_windows_that_overlap_are_evidence(changes: dict[str, Any], reason: str) -> None:
    window, items = played()
    changes = {**changes, **({"window": window.policy.window} if "window" in changes else {})}
    item = {names.OVERLAPS: beside(window, window.policy, **changes)}
    assert_caught(window, "policy", reason, {**items, **item})
    assert_caught(window, "policy", "not by rising name", {**items, names.OVERLAPS: b"[]"})


def test_no_window_is_countersigned_that_breaks_the_terms_of_another() -> None:
    """Each was countersigned under terms of its own: a later one must keep those, too."""
    window = Window()
    window.open()
    policy = json.loads(beside(window, window.policy))[0]["policy"]
    for allowed, refused in ((0, True), (1, False)):
        read = Overlaps.read({"policy": policy, "allowed": allowed, "shared": 1})
        assert isinstance(read, OverlappingWindow)
        items = {**window.opening_items(), names.OVERLAPS: Overlaps((read,)).encode()}
        outcome = run_opening_checks(
            Evidence.of(items), engine=engine("core"), now=1000 * COUNTERSIGNED
        )
        assert (outcome.result == "REFUSED") == refused
        assert ("whose terms do not allow it" in outcome.check("policy").reason) == refused
