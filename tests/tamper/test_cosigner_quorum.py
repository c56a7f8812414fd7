"""Check 23 over whole windows: whose quorum, what it covers, and what is said where it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_windows import (
    assert_caught,
    judged,
    outcome_of,
    played,
    public,
    rechecked,
    signed,
    stated,
)
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.lab.attacks.cheats.third_parties import HidesTheEnd
from ragaudit.lab.scenario.third_parties import CosignedWindow, trust_text
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages import items as names
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.report import render_html, render_text

use_cached_table()


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
    window, items = played(CosignedWindow)
    outcome = judged(window, public(items), part="public")
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
    verdict = signed(stated(outcome))
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
    predicate = stated(outcome_of(CosignedWindow))
    if edited:
        predicate["attested"]["cosigners"]["known"] = 4
    done = rechecked(tmp_path, *played(CosignedWindow), predicate)
    text = "attested: cosigners: known: signed 4, recomputed 3"
    assert done.differences == ((text,) if edited else ())


def test_notes_that_are_missing_or_come_twice_are_the_checks_own() -> None:
    window, items = played(CosignedWindow)
    held = {name: data for name, data in items.items() if name != names.COSIGNED}
    assert_caught(window, "cosigners", "public/cosigned.json is missing", held)
    notes = canonical_json.loads(items[names.COSIGNED])
    held[names.COSIGNED] = canonical_json.dumps([notes[0], *notes])
    assert_caught(window, "cosigners", "sizes do not rise", held)
