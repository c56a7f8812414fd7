"""Check 23 over whole windows: whose quorum, what it covers, and what is said where it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judged_windows import assert_caught, judged, outcome_of, played
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.lab.attacks.cheats.third_parties import CosignsLate, HidesTheEnd
from ragaudit.lab.scenario.third_parties import CosignedWindow, trust_text
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.verifier.bundle import write_bundle
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.procedure.checks import listed
from ragaudit.verifier.recheck import recheck
from ragaudit.verifier.report import render_html, render_text

use_cached_table()
TIME = 1_900_000_500_000


def test_an_honest_window_passes_and_names_the_quorum() -> None:
    outcome = outcome_of(CosignedWindow)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert [check.number for check in outcome.checks] == [*range(1, 22), 23]
    assert outcome.check("cosigners").reason == (
        "quorum them of 3 further cosigners for opening and final checkpoint, "
        "for 9 of 9 records in time"
    )
    window, _ = played(CosignedWindow)
    assert outcome.attested is not None
    stated = outcome.attested["cosigners"]
    assert stated["policy"] == TrustPolicy.parse(trust_text().encode()).digest.hex()
    size, time, _ = window.checkpoints[-1]
    cosigned = {"one": time + 1, "three": time + 2}
    assert stated["final"] == {"size": size, "time": time + 2, "cosigned": cosigned}
    assert (stated["records"], stated["records_in_time"]) == (9, 9)


def test_the_public_part_says_the_same() -> None:
    _, items = played(CosignedWindow)
    public = {name: data for name, data in items.items() if name.startswith(names.PUBLIC)}
    window, _ = played(CosignedWindow)
    outcome = judged(window, public, part="public")
    assert outcome.check("cosigners").status is Status.PASS
    assert outcome.attested == outcome_of(CosignedWindow).attested


class Reported(HidesTheEnd):
    demand = "reported"


class Never(CosignedWindow):
    demand = "reported"

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        return {}


@pytest.mark.parametrize("kind", [Reported, Never])
def test_where_the_policy_only_reports_the_verdict_says_what_lacks(kind: type[Window]) -> None:
    outcome = outcome_of(kind)
    assert outcome.result == "PASS"
    check = outcome.check("cosigners")
    assert check.status is Status.NOT_ESTABLISHED
    assert "no final checkpoint has the quorum them" in check.reason
    assert outcome.attested is not None and outcome.attested["cosigners"]["final"] is None
    window, items = played(kind)
    signed = outcome.sign(window.verdict_key, Evidence.of(items).digests(), time=TIME)
    verdict = verdicts.Verdict.verify(signed, window.verdict_key.public)
    for page in (render_html(verdict), render_text(verdict)):
        assert "This result does not speak of the following" in page
        assert "Final checkpoint" in page


class Slow(CosignedWindow):
    """Third parties cosign in the middle of the window long after the verifier did."""

    def cosigned_by(self, size: int, time: int) -> dict[str, int]:
        found = super().cosigned_by(size, time)
        inside = self.checkpoints[0][0] < size < self.checkpoints[-2][0]
        return {name: at + (1000 if inside else 0) for name, at in found.items()}


def test_records_that_were_covered_late_are_counted() -> None:
    outcome = outcome_of(Slow)
    assert outcome.result == "PASS"
    assert outcome.attested is not None
    stated = outcome.attested["cosigners"]
    assert 0 < stated["records_in_time"] < stated["records"] == 9


@pytest.mark.parametrize("edited", [False, True])
def test_a_recheck_compares_what_third_parties_say(tmp_path: Path, edited: bool) -> None:
    window, items = played(CosignedWindow)
    predicate = outcome_of(CosignedWindow).predicate(time=TIME).to_json()
    if edited:
        predicate["attested"] = {"cosigners": {**predicate["attested"]["cosigners"], "known": 4}}
    evidence = Evidence.of(items)
    statement = verdicts.statement(evidence.digests(), predicate)
    signed = verdicts.sign_statement(statement, window.verdict_key)
    write_bundle(tmp_path / "all.zip", evidence, signed, part="all")
    done = recheck(
        tmp_path / "all.zip",
        engine=engine("core"),
        verdict_key=window.verdict_key.public,
        pins=window.pins,
        embedder=window.embedder,
    )
    text = "attested: cosigners: known: signed 4, recomputed 3"
    assert done.differences == ((text,) if edited else ())


def test_a_missing_item_is_the_checks_own() -> None:
    window, items = played(CosignedWindow)
    held = {name: data for name, data in items.items() if name != names.COSIGNED}
    assert_caught(window, "cosigners", "public/cosigned.json is missing", held)


def test_notes_twice_are_refused() -> None:
    window, items = played(CosignedWindow)
    notes = canonical_json.loads(items[names.COSIGNED])
    held = {**items, names.COSIGNED: canonical_json.dumps([notes[0], *notes])}
    assert_caught(window, "cosigners", "sizes do not rise", held)


def test_the_list_follows_a_policy_that_cannot_be_read() -> None:
    def of(**policy: Any) -> list[int]:
        evidence = Evidence.of({names.POLICY: canonical_json.dumps(policy)})
        return [check.number for check in listed(evidence)][21:]

    assert of(cosigners={}) == [23]
    assert of(cosigners="required") == []


def test_a_late_quorum_is_reported_with_its_time() -> None:
    check = outcome_of(CosignsLate).check("cosigners")
    assert "the final checkpoint has the quorum since 2030-03-17T18:48:43Z" in check.reason
