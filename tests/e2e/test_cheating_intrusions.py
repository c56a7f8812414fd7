"""What a pinned provider does to the verifier's service: repelled for the named reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from procedure_cases import use_cached_table
from ragaudit.lab.attacks import CATALOGUE, Intrusion, intrude
from ragaudit.lab.attacks.running import play_honestly
from ragaudit.lab.attacks.stage.play import Prepared

INTRUSIONS = [each for each in CATALOGUE if isinstance(each, Intrusion)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """An honest window up to its first query, beside which they intrude."""
    use_cached_table()
    return play_honestly(tmp_path_factory.mktemp("prepared"))


@pytest.mark.parametrize("cheat", INTRUSIONS, ids=lambda cheat: cheat.name)
def test_an_intrusion(cheat: Intrusion, tmp_path: Path, prepared: Prepared) -> None:
    """It is repelled, and without its guard gets through."""
    repelled = intrude(cheat, tmp_path / "guarded", prepared=prepared)
    assert cheat.repelled(repelled), repelled
    there = [getattr(guard.owner, guard.name) for guard in cheat.guards]
    through = intrude(cheat, tmp_path / "unguarded", prepared=prepared, guarded=False)
    assert through.through, through
    assert [getattr(guard.owner, guard.name) for guard in cheat.guards] == there
