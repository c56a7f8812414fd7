"""Every cheat that a prover service can stage, against the real verifier and the real client."""

from __future__ import annotations

from pathlib import Path

import pytest
from cheating import UNCLAIMED, assert_caught, assert_complaints, assert_passes_without, shown
from procedure_cases import use_cached_table
from ragaudit.client.verifier import VerifierService
from ragaudit.lab.attacks import CATALOGUE, ServiceCheat, find, stage
from ragaudit.lab.scenario.exact import ExactScenario
from ragaudit.lab.scenario.provision import PRIVATE
from ragaudit.lab.scenario.scenario import Prepared, Scenario
from ragaudit.prover.service import Components
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.service import submissions

SERVICE = [each for each in CATALOGUE if isinstance(each, ServiceCheat)]

QUICK = ("row-of-norm-128", "sigma-too-small-for-the-claim")
LET_IN = [
    pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.slow])
    for each in SERVICE
    if each.refused and not each.guard
]


def test_an_honest_provider_passes(tmp_path: Path, prepared: Prepared) -> None:
    played = Scenario(tmp_path, Components(), prepared=prepared, disputes=True).run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS"
    assert [c.id for c in played.outcome.checks if c.status != Status.PASS] == []
    assert played.outcome.counts["records"] == 8
    assert played.outcome.counts["receipts"] == 8
    assert played.outcome.coalition == {"claimed": 2, "estimated": 2, "max": 2}


def test_an_honest_provider_passes_without_noise(tmp_path: Path, prepared_exact: Prepared) -> None:
    """Texts, a filter, a vector and tied rows; every account checks its receipts."""
    played = ExactScenario(tmp_path, Components(), prepared=prepared_exact, disputes=True).run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS", shown(played.outcome)
    left = {c.id: c.status for c in played.outcome.checks if c.status != Status.PASS}
    assert left == dict.fromkeys(UNCLAIMED, Status.NOT_APPLICABLE)
    assert played.outcome.counts["records"] == played.outcome.counts["receipts"] == 8


@pytest.mark.parametrize("cheat", SERVICE, ids=lambda cheat: cheat.name)
def test_a_cheating_service(
    cheat: ServiceCheat, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = "prepared" if cheat.scenario.offer is PRIVATE else "prepared_exact"
    staged = stage(cheat, tmp_path / "window", prepared=request.getfixturevalue(kind))
    assert_caught(cheat, staged)
    assert_complaints(cheat, staged)
    assert_passes_without(cheat, staged)


def test_claims_are_crowded_out_without_the_rule(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promise is broken with PASS if the last query's claim displaces no earlier ones."""
    monkeypatch.setattr(submissions, "make_room", lambda *_: None)
    staged = stage(find("claims-crowded-out"), tmp_path / "window", prepared=prepared)
    assert staged.outcome.result == "PASS", shown(staged.outcome)
    assert any("too many claims" in line for line in staged.complaints)


def test_receipts_are_crowded_out_without_the_rule(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is lost with PASS if what bob signs for takes no room of what he did not."""
    monkeypatch.setattr(submissions, "hold", lambda *_: None)
    staged = stage(find("receipts-crowded-out"), tmp_path / "window", prepared=prepared)
    assert staged.outcome.result == "PASS", shown(staged.outcome)
    assert any("too many receipts" in line for line in staged.complaints)


def test_receipts_are_crowded_out_without_the_account_s_signature(
    tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same if bob signs for nothing."""
    submit = VerifierService._submit
    monkeypatch.setattr(VerifierService, "_submit", lambda *given: submit(*given[:-1]))
    staged = stage(find("receipts-crowded-out"), tmp_path / "window", prepared=prepared)
    assert staged.outcome.result == "PASS", shown(staged.outcome)


@pytest.mark.parametrize("cheat", LET_IN)
def test_a_refused_window_that_is_let_in_passes(cheat: ServiceCheat, tmp_path: Path) -> None:
    """A verifier without the check countersigns, audits the whole window, and finds nothing."""
    use_cached_table()
    staged = stage(cheat, tmp_path, without=cheat.checks)
    assert staged.outcome.result == "PASS", (shown(staged.outcome), staged.complaints)
    assert {each.id for each in staged.outcome.checks}.isdisjoint(cheat.checks)
