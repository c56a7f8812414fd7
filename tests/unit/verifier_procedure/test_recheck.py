"""A bundle gives its verdict again, and no other (docs/spec/10-verdict.md)."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.verdict import Claims, MalformedVerdict, VerdictRejected
from ragaudit.verifier.bundle import Part, write_bundle
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, Status, run_opening_checks
from ragaudit.verifier.recheck import RecheckDiffers, recheck

use_cached_table()

PUBLIC_CHECKS = 9
"""1 to 4, split-view, registrations, receipts, refusals, epsilon."""

TIME = 1_900_000_500_000


@lru_cache(maxsize=1)
def played() -> tuple[Window, Evidence, Outcome]:
    window = Window(mode="B")
    items = window.items()
    return window, Evidence.of(items), audit(items, window)


def sampled() -> int:
    """How many records were drawn: strata overlap, and the seed differs from run to run."""
    return sum(name.startswith("confidential/responses/") for name in played()[1])


def bundled(
    tmp_path: Path, part: Part = "all", change: Callable[[dict[str, Any]], None] | None = None
) -> Path:
    """A bundle of the window, its verdict changed before it is signed."""
    window, evidence, outcome = played()
    predicate = json.loads(json.dumps(outcome.predicate(time=TIME).to_json()))
    if change is not None:
        change(predicate)
    statement = verdicts.statement(evidence.digests(), predicate)
    path = tmp_path / f"{part}.zip"
    signed = verdicts.sign_statement(statement, window.verdict_key)
    write_bundle(path, evidence, signed, part=part)
    return path


@pytest.mark.parametrize("name", ["core", "reference"])
@pytest.mark.parametrize("part", ["public", "all"])
def test_the_verdict_is_reproduced(tmp_path: Path, part: Part, name: str) -> None:
    window = played()[0]
    done = recheck(
        bundled(tmp_path, part),
        engine=engine(name),
        verdict_key=window.verdict_key.public,
        pins=window.pins,
        embedder=window.embedder,
    )
    assert done.differences == ()
    done.raise_for_differences()
    assert done.verdict.result == "PASS"
    assert done.outcome.result == ("PASS" if part == "all" else None)
    assert done.proofs == (sampled() if part == "all" else 0, sampled())
    assert done.complete == (part == "all")
    if part == "all":
        assert done.checks == (21, 21)
        whole = f"21 of 21 checks and {sampled()} of {sampled()} proofs repeated"
        assert done.lines()[0] == (
            f"the verdict stands: PASS, integrity PASS, privacy PASS ({whole})"
        )
    else:
        assert done.checks == (PUBLIC_CHECKS, 21)
        assert done.lines()[0] == (
            "nothing differs, but not everything was repeated: "
            f"{PUBLIC_CHECKS} of 21 checks and 0 of {sampled()} proofs repeated"
        )
    assert ("confidential part" in " ".join(done.not_repeated)) == (part == "public")


def test_the_auditors_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[3] / "examples" / "audit_bundle.py"
    key = played()[0].verdict_key.public.raw.hex()
    runpy.run_path(str(example))["main"](str(bundled(tmp_path)), key)
    output = capsys.readouterr().out
    assert "19 selection PASS" in output
    assert re.search(r"PASS epsilon [0-9.]+$", output.strip())


def test_some_records_only(tmp_path: Path) -> None:
    window = played()[0]
    path = bundled(tmp_path)
    done = recheck(
        path, engine=engine("reference"), records=2, verdict_key=window.verdict_key.public
    )
    assert done.differences == ()
    assert done.proofs == (2, sampled())
    assert done.checks == (18, 21)
    assert [each.split(":")[0] for each in done.not_repeated] == [
        "check 17 seed",
        "check 18 embedding",
        "check 19 selection",
    ]
    assert all(f"2 of {sampled()} sampled records" in each for each in done.not_repeated)
    assert done.outcome.check("selection").reason.startswith("2 selection arguments")
    none = recheck(path, engine=engine("core"), records=-1)
    assert none.proofs == (0, sampled())
    assert none.differences == ()


def test_without_a_key_the_policy_is_believed_and_the_report_says_so(tmp_path: Path) -> None:
    done = recheck(bundled(tmp_path, "public"), engine=engine("core"))
    assert "taken from the policy" in done.notes[0]


def test_without_the_embedder_the_texts_are_not_compared(tmp_path: Path) -> None:
    done = recheck(bundled(tmp_path), engine=engine("core"))
    assert done.differences == ()
    assert done.checks == (20, 21)
    assert done.not_repeated == (
        "check 18 embedding: the committed embedder is not at hand to compare texts and vectors",
    )


def test_another_key(tmp_path: Path) -> None:
    other = PrivateKey.from_seed(b"o" * 32).public
    with pytest.raises(VerdictRejected):
        recheck(bundled(tmp_path), engine=engine("core"), verdict_key=other)


def check_named(predicate: dict[str, Any], check_id: str) -> dict[str, Any]:
    return next(check for check in predicate["checks"] if check["id"] == check_id)


def other_result(predicate: dict[str, Any]) -> None:
    predicate["result"] = "FAIL"


def fails(predicate: dict[str, Any], check_id: str) -> None:
    """Let a check fail, with the claims and the result that follow."""
    check_named(predicate, check_id)["status"] = "FAIL"
    statuses = {check["id"]: Status(check["status"]) for check in predicate["checks"]}
    claims = Claims.of(statuses)
    predicate |= {"claims": claims.to_json(), "result": claims.result}


def other_status(predicate: dict[str, Any]) -> None:
    fails(predicate, "registrations")


def fewer_checks(predicate: dict[str, Any]) -> None:
    predicate["checks"].pop(6)


def other_epsilon(predicate: dict[str, Any]) -> None:
    predicate["epsilon"]["headline"]["epsilon"] = "0.100000"


def other_claim(predicate: dict[str, Any]) -> None:
    predicate["coalition"]["max"] = 3


def other_count(predicate: dict[str, Any]) -> None:
    predicate["counts"]["accounts"] = 5


def other_window(predicate: dict[str, Any]) -> None:
    predicate["window"] = "w2"


def worthless(predicate: dict[str, Any]) -> None:
    predicate["worthless"] = True


def other_sample(predicate: dict[str, Any]) -> None:
    predicate["sampling"]["strata"][0]["sample"] += 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_sample, "sampling: strata: 0: sample"),
        (other_status, "registrations: signed FAIL, recomputed PASS"),
        (fewer_checks, "does not list the checks"),
        (other_epsilon, "epsilon: headline"),
        (other_claim, "coalition: max"),
        (other_count, "counts: accounts"),
        (other_window, 'window: signed "w2"'),
        (worthless, "worthless: signed true"),
    ],
)
@pytest.mark.parametrize("part", ["public", "all"])
def test_a_false_verdict_differs(
    tmp_path: Path, part: Part, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    done = recheck(bundled(tmp_path, part, change), engine=engine("core"))
    assert any(said in each for each in done.differences), done.differences
    assert done.lines()[0].startswith(f"THE VERDICT DOES NOT STAND: {done.differences[0]}")
    with pytest.raises(RecheckDiffers):
        done.raise_for_differences()


def test_a_false_result_is_no_verdict(tmp_path: Path) -> None:
    """The checks that it lists give another one: nobody signs or reads such a verdict."""
    with pytest.raises(MalformedVerdict, match="result that does not follow"):
        bundled(tmp_path, "all", other_result)


def other_selection(predicate: dict[str, Any]) -> None:
    fails(predicate, "selection")


def test_what_only_the_confidential_part_shows(tmp_path: Path) -> None:
    whole = recheck(bundled(tmp_path, "all", other_selection), engine=engine("core"))
    assert any("selection: signed FAIL" in each for each in whole.differences)
    public = recheck(bundled(tmp_path, "public", other_selection), engine=engine("core"))
    assert not any("recomputed" in each for each in public.differences)


def test_other_items_than_the_verdict_was_signed_over(tmp_path: Path) -> None:
    window, evidence, outcome = played()
    signed = outcome.sign(window.verdict_key, evidence.digests(), time=TIME)
    items = dict(evidence)
    items[names.CLOCK] = items[names.CLOCK].replace(b'"close"', b'"close"')
    items[names.EMBEDDER] = items[names.EMBEDDER][:-1] + b"}"
    del items[names.REFUSALS]
    path = tmp_path / "b.zip"
    write_bundle(path, Evidence.of(items), signed, part="all")
    done = recheck(path, engine=engine("core"))
    assert "public/refusals.json is not the item" in done.differences[0]


@pytest.mark.parametrize("part", ["public", "all"])
def test_a_refusal_is_reproduced(tmp_path: Path, part: Part) -> None:
    window = Window(overrides={"epsilon_acc": "1"})
    window.open()
    evidence = Evidence.of(window.opening_items())
    now = 1000 * COUNTERSIGNED
    outcome = run_opening_checks(evidence, engine=engine("core"), now=now)
    assert outcome.result == "REFUSED"
    path = tmp_path / "b.zip"
    signed = outcome.sign(window.verdict_key, evidence.digests(), time=now)
    write_bundle(path, evidence, signed, part=part)
    done = recheck(path, engine=engine("reference"))
    assert done.differences == ()
    assert done.outcome.result == "REFUSED"


def test_a_refusal_without_a_reason_differs(tmp_path: Path) -> None:
    window = Window()
    window.open()
    evidence = Evidence.of(window.opening_items())
    now = 1000 * COUNTERSIGNED
    outcome = run_opening_checks(evidence, engine=engine("core"), now=now)
    value = outcome.predicate(time=now).to_json()
    value |= {"result": "REFUSED", "claims": Claims("REFUSED", "REFUSED").to_json()}
    statement = verdicts.statement(evidence.digests(), value)
    path = tmp_path / "b.zip"
    signed = verdicts.sign_statement(statement, window.verdict_key)
    write_bundle(path, evidence, signed, part="all")
    done = recheck(path, engine=engine("core"))
    assert done.differences == (
        "result: signed REFUSED, the signed checks give no refusal",
        "result: signed REFUSED, but nothing is to be refused",
    )


def test_a_verdict_about_no_policy_needs_a_key_from_elsewhere(tmp_path: Path) -> None:
    window = Window()
    evidence = Evidence.of({names.POLICY: canonical_json.dumps({"window": "w1"})})
    outcome = run_opening_checks(evidence, engine=engine("core"), now=1)
    signed = outcome.sign(window.verdict_key, evidence.digests(), time=1)
    path = tmp_path / "b.zip"
    write_bundle(path, evidence, signed, part="all")
    with pytest.raises(MalformedVerdict, match="names no verdict key"):
        recheck(path, engine=engine("core"))
    key = window.verdict_key.public
    assert recheck(path, engine=engine("core"), verdict_key=key).differences == ()
