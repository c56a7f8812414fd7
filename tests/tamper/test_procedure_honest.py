"""An honest window passes, in both modes, with both engines, with and without the embedder."""

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from procedure_cases import audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.policy import COUNTERSIGNED, START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS, Status, run, run_opening_checks
from ragaudit.verifier.procedure.checks import listed

use_cached_table()


@lru_cache(maxsize=2)
def played(mode: str) -> tuple[Window, dict[str, bytes]]:
    window = Window(mode=mode)
    return window, window.items()


@pytest.mark.parametrize("mode", ["A", "B"])
@pytest.mark.parametrize("name", ["core", "reference"])
def test_passes(mode: str, name: str) -> None:
    window, items = played(mode)
    outcome = audit(items, window, by=engine(name))
    assert outcome.result == "PASS"
    assert [(c.number, c.status) for c in outcome.checks] == [
        (number, Status.PASS) for number in range(1, 22)
    ]
    assert outcome.engine == name
    assert outcome.counts == {
        "versions": 0,
        "records": 8,
        "accounts": 4,
        "anchored": 2,
        "plain": 2,
        "records_anchored": 4,
        "records_plain": 4,
        "receipts": 4,
        "anchored_unshown": 0,
        "disputes": 0,
        "disputes_open": 0,
        "unowned_registrations": 4,
    }
    assert outcome.coalition == {"claimed": 1, "estimated": 1, "max": 2}
    samples = [(s["id"], s["population"], s["sample"]) for s in outcome.sampling["strata"]]
    if mode == "A":
        assert samples[:2] == [("tenant:acme", 5, 5), ("tenant:beta", 3, 3)]
    else:
        assert samples[:2] == [("tenant:acme", 5, 2), ("tenant:beta", 3, 2)]
        assert outcome.sampling["strata"][0]["miss_probability"] == "0.300000000000"
        assert outcome.sampling["strata"][0]["with_replacement"] == "0.640000000000"
    assert not outcome.worthless


def test_a_seeded_window_is_worthless() -> None:
    window = Window(overrides={"experiment_seed": "a published seed"})
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert outcome.worthless


@pytest.mark.parametrize("disclosure", ["sampled", "none"])
def test_without_texts_or_embedder_a1_is_not_established_for_plain_accounts(
    disclosure: str,
) -> None:
    window = Window(disclosure=disclosure)
    outcome = audit(window.items(), window, with_embedder=disclosure == "none")
    assert outcome.result == "PASS"
    check = outcome.check("embedding")
    assert check.status is Status.NOT_ESTABLISHED
    assert "4 sampled records of plain accounts" in check.reason
    assert "4 records of anchored accounts" in check.evidence[0]


def test_another_embedder_establishes_nothing() -> None:
    window, items = played("A")
    other = HashEmbedder(window.dimension, "fake").installed()
    outcome = run(Evidence.of(items), engine=engine("core"), pins=window.pins, embedder=other)
    assert outcome.check("embedding").status is Status.NOT_ESTABLISHED
    assert "not the committed one" in outcome.check("embedding").evidence[0]


def test_the_public_part_says_what_it_can() -> None:
    window, items = played("A")
    evidence = Evidence.of(items)
    outcome = run(evidence.public(), engine=engine("core"), pins=window.pins, part="public")
    assert outcome.result is None
    ran = {c.id for c in outcome.checks if c.status is Status.PASS}
    assert ran == {
        "policy",
        "accounting",
        "commitments",
        "index-proof",
        "log",
        "split-view",
        "registrations",
        "receipts",
        "refusals",
        "epsilon",
    }
    others = [c for c in outcome.checks if c.id not in ran]
    assert {c.status for c in others} == {Status.NOT_RUN}
    assert {c.needs for c in others} == {("confidential part",)}


def test_the_opening_of_an_honest_window_is_not_refused() -> None:
    window = Window()
    window.open()
    evidence = Evidence.of(window.opening_items())
    outcome = run_opening_checks(
        evidence, engine=engine("core"), now=1000 * COUNTERSIGNED, pins=window.pins
    )
    assert outcome.result is None
    assert [c.status for c in outcome.checks] == [Status.PASS] * 4


def test_an_opening_that_comes_late_is_refused() -> None:
    window = Window()
    window.open()
    evidence = Evidence.of(window.opening_items())
    outcome = run_opening_checks(evidence, engine=engine("core"), now=1000 * START)
    assert outcome.result == "REFUSED"
    assert outcome.failed == ("policy",)
    assert "too late" in outcome.check("policy").reason


def test_progress_is_reported_and_what_it_raises_ends_the_run() -> None:
    evidence = Evidence.of(played("A")[1])
    seen: list[str] = []
    run(
        evidence,
        engine=engine("core"),
        progress=lambda step, done, total: seen.append(step),
    )
    assert list(dict.fromkeys(seen)) == [check.id for check in CHECKS if not check.asked_by]

    class Stopped(Exception):
        pass

    def stop(step: str, done: int, total: int) -> None:
        if step == "selection" and done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        run(evidence, engine=engine("core"), progress=stop)


@pytest.mark.slow
def test_no_compiled_code_and_no_prover_is_needed(tmp_path: Path) -> None:
    """The same evidence passes where `ragaudit.core` and `ragaudit.prover` cannot be imported."""
    for name, data in played("B")[1].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    program = f"""
import json, sys
sys.modules["ragaudit.core"] = sys.modules["ragaudit.prover"] = None  # as if not installed
from pathlib import Path
from ragaudit.verifier.engines import fastest_engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import run
outcome = run(Evidence.from_directory(Path({str(tmp_path)!r})), engine=fastest_engine())
print(json.dumps([outcome.result, outcome.engine]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == ["PASS", "reference"]


@for_each(
    ("policy", "more"),
    [
        ({}, []),
        ({"account_index": True}, [22]),
        ({"account_index": 1}, []),
        ({"cosigners": {}}, [23]),
        ({"cosigners": "required"}, []),
        ({"owners": {"rows": None}}, [31]),
        ({"owners": {"rows": {}}}, [31, 32]),
        ({"owners": {"rows": {"beta": 7}}}, [31, 32]),
        ({"owners": None}, []),
        ({"owners": True}, [31]),
    ],
)
def test_the_list_of_checks_follows_a_policy_that_cannot_be_read(
    policy: dict[str, Any], more: list[int]
) -> None:
    found = listed(Evidence.of({names.POLICY: canonical_json.dumps(policy)}))
    assert [check.number for check in found] == [*range(1, 22), *more]
