"""Check 24 over whole windows: what is stamped, when, by whom; repeated offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judged_windows import assert_caught, outcome_of, played, rechecked, stated
from procedure_cases import use_cached_table
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.cheats.third_parties import StampsTheEndLate
from ragaudit.lab.scenario.third_parties import StampedWindow, authority
from ragaudit.ledger.log import timestamps
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.evidence import TimeStamp, TimeStamps
from ragaudit.verifier.procedure import Status

use_cached_table()


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


class Reported(StampsTheEndLate):
    demand = "reported"


def test_where_the_policy_only_reports_a_late_stamp_is_said() -> None:
    outcome = outcome_of(Reported)
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
