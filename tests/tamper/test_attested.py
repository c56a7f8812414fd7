"""Checks 23 to 25 over whole windows: quorum, time stamps, rounds; what is attested of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.cheats import third_parties as cheats
from ragaudit.lab.attacks.cheats.third_parties import HidesTheEnd, StampsTheEndLate
from ragaudit.lab.scenario.integrity import PrivateWindow
from ragaudit.lab.scenario.third_parties import (
    CHAIN,
    BeaconWindow,
    CosignedWindow,
    StampedWindow,
    authority,
    trust_text,
)
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log import timestamps
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages import beacon
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.evidence import TimeStamp, TimeStamps
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.report import render_html, render_text

use_cached_table()


def test_an_honest_window_says_which_rounds_were_mixed_in() -> None:
    window, _ = played(BeaconWindow)
    outcome = outcome_of(BeaconWindow)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert [check.number for check in outcome.checks] == [*range(1, 22), 25]
    assert outcome.attested is not None
    stated = outcome.attested["beacon"]
    rounds = [CHAIN.chain.first_from(instant + 5) for instant in window.instants]
    assert stated["rounds"] == rounds
    assert stated["chain"] == CHAIN.chain.hash.hex()
    (text,) = (text for text in outcome.assumptions if "beacon" in text)
    assert CHAIN.chain.hash.hex() in text


def test_a_window_without_a_beacon_is_as_before() -> None:
    outcome = outcome_of(PrivateWindow)
    assert [check.number for check in outcome.checks] == [*range(1, 22)]
    assert outcome.attested is None
    assert any("The beacon is none" in text for text in outcome.assumptions)


def test_a_policy_with_other_rounds_is_none() -> None:
    with pytest.raises(MalformedPolicy, match="not those that instants and delay fix"):
        cheats.NamesLaterRounds()


class ShowsARoundUnasked(PrivateWindow):
    """Rounds where the policy names no beacon."""

    def round(self, a: int) -> beacon.BeaconRound | None:
        return CHAIN.round(a)


def test_a_round_that_the_policy_does_not_name() -> None:
    outcome = outcome_of(ShowsARoundUnasked)
    assert outcome.failed == ("sampling",)
    assert "a round of a beacon that the policy does not name" in outcome.check("sampling").reason


def test_rounds_are_checked_again_offline(tmp_path: Path) -> None:
    done = rechecked(tmp_path, *played(BeaconWindow), stated(outcome_of(BeaconWindow)))
    assert done.differences == () and done.complete


def test_without_a_library_for_pairings_the_reference_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise ModuleNotFoundError

    monkeypatch.setattr(beacon, "arkworks_engine", missing)
    monkeypatch.setattr(beacon, "py_ecc_engine", missing)
    assert outcome_of(BeaconWindow).check("beacon").status is Status.PASS
    window, items = played(cheats.ForgesARound)
    assert_caught(window, "beacon", "activation 1: signature does not verify", items)


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


def test_an_honest_window_says_by_when_its_log_existed() -> None:
    window, _ = played(StampedWindow)
    outcome = outcome_of(StampedWindow)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert [check.number for check in outcome.checks] == [*range(1, 22), 24]
    first, last = window.checkpoints[0], window.checkpoints[-1]
    assert outcome.attested is not None
    stated = outcome.attested["time_stamps"]
    assert (stated["opening"]["size"], stated["opening"]["time"]) == (first[0], first[1] + 1)
    assert stated["final"] == {"size": last[0], "time": last[1] + 1, "stamps": 1}


class ReportsStamps(StampsTheEndLate):
    demand = "reported"


def test_where_the_policy_only_reports_a_late_stamp_is_said() -> None:
    outcome = outcome_of(ReportsStamps)
    assert outcome.result == "PASS"
    check = outcome.check("time-stamps")
    assert check.status is Status.NOT_ESTABLISHED
    assert "no time stamp of the final checkpoint" in check.reason
    assert outcome.attested is not None and outcome.attested["time_stamps"]["final"] is None


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"no token", "not a time stamp"),
        (authority().stamp(b"x", 1_900_000_000), "a stamp of another checkpoint"),
    ],
)
def test_what_is_no_stamp_of_this_log(token: bytes, reason: str) -> None:
    window, items = played(StampedWindow)
    *rest, last = TimeStamps.parse(items[names.TIME_STAMPS]).messages
    stamps = TimeStamps((*rest, TimeStamp(last.size, token)))
    assert_caught(window, "time-stamps", reason, {**items, names.TIME_STAMPS: stamps.encode()})


def test_other_roots_vouch_for_nothing() -> None:
    window, items = played(StampedWindow)
    held = {**items, names.STAMP_ROOTS: authority("another root").roots}
    assert_caught(window, "time-stamps", "a trusted root's", held)


def test_stamps_are_checked_again_offline(tmp_path: Path) -> None:
    done = rechecked(tmp_path, *played(StampedWindow), stated(outcome_of(StampedWindow)))
    assert done.differences == () and done.complete


def test_without_the_library_the_check_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicate = stated(outcome_of(StampedWindow))

    def missing() -> Any:
        raise UnsupportedError("the library for time stamps is not installed")

    monkeypatch.setattr(timestamps, "_library", missing)
    done = rechecked(tmp_path, *played(StampedWindow), predicate)
    assert any("24 time-stamps" in text for text in done.not_repeated)
    assert not any("time-stamps:" in text for text in done.differences)
