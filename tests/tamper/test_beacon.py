"""Check 25 over whole windows: whose rounds are mixed in, which, when; repeated offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judged_windows import assert_caught, outcome_of, played, rechecked, stated
from procedure_cases import use_cached_table
from ragaudit.lab.attacks.cheats import third_parties as cheats
from ragaudit.lab.scenario.private import PrivateWindow
from ragaudit.lab.scenario.third_parties import CHAIN, BeaconWindow
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages import beacon
from ragaudit.verifier.procedure import Status

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
