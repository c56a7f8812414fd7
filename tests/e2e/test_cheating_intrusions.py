"""What a pinned provider does to the verifier's service: repelled for the named reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from ragaudit.lab.attacks import CATALOGUE, Intrusion, intrude
from ragaudit.lab.scenario.scenario import Prepared

INTRUSIONS = [each for each in CATALOGUE if isinstance(each, Intrusion)]


@pytest.mark.parametrize("cheat", INTRUSIONS, ids=lambda cheat: cheat.name)
def test_an_intrusion(cheat: Intrusion, tmp_path: Path, prepared: Prepared) -> None:
    """It is repelled, and without its guard gets through."""
    repelled = intrude(cheat, tmp_path / "guarded", prepared=prepared)
    assert cheat.repelled(repelled), repelled
    there = [getattr(guard.owner, guard.name) for guard in cheat.guards]
    through = intrude(cheat, tmp_path / "unguarded", prepared=prepared, guarded=False)
    assert through.through, through
    assert [getattr(guard.owner, guard.name) for guard in cheat.guards] == there
