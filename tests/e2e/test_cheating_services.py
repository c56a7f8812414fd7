"""Every cheat that a prover service can stage, against the real verifier and the real client."""

from __future__ import annotations

from pathlib import Path

import pytest
from cheating import assert_caught, assert_complaints, assert_passes_without
from procedure_cases import use_cached_table
from ragaudit.attacks import CATALOGUE, ServiceCheat, stage
from ragaudit.attacks.running import play_honestly
from ragaudit.attacks.stage.play import Play, Prepared
from ragaudit.prover.service import Components
from ragaudit.verifier.procedure import Status

SERVICE = [each for each in CATALOGUE if isinstance(each, ServiceCheat)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """An honest window up to its first query, which the cheats share."""
    use_cached_table()
    return play_honestly(tmp_path_factory.mktemp("prepared"))


def test_an_honest_provider_passes(tmp_path: Path, prepared: Prepared) -> None:
    played = Play(tmp_path, Components(), prepared=prepared, disputes=True).run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS"
    assert [c.id for c in played.outcome.checks if c.status != Status.PASS] == []
    assert played.outcome.counts["records"] == 8
    assert played.outcome.counts["receipts"] == 8
    assert played.outcome.coalition == {"claimed": 2, "estimated": 2, "max": 2}


@pytest.mark.parametrize("cheat", SERVICE, ids=lambda cheat: cheat.name)
def test_a_cheating_service(cheat: ServiceCheat, tmp_path: Path, prepared: Prepared) -> None:
    staged = stage(cheat, tmp_path / "window", prepared=prepared)
    assert_caught(cheat, staged)
    assert_complaints(cheat, staged)
    assert_passes_without(cheat, staged, tmp_path / "again", prepared)
