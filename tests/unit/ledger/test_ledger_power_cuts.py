"""Log and fences as a loss of power leaves them, at each synchronisation of a file."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from disk_trace import SYNCED, SYNCING, DiskTrace
from ledger_logs import KEY
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.store import LogStore
from ragaudit.verifier.history import FencePlace

APPENDS = """
import sys
from pathlib import Path
from ledger_logs import KEY, fill
from ragaudit.ledger.log import database
from ragaudit.ledger.log.fence import Fence
from ragaudit.ledger.log.store import LogStore
{fault}
folder = Path(sys.argv[1])
store = LogStore.create(database.open_engine(f"sqlite:///{{folder}}/log.db"), KEY.verifier_key)
fence = Fence(folder / "fence", KEY.name, log_is_empty=True)
for _ in range(12):
    fill(store, 1)
    fence.advance(store.head())
"""
ATTESTS = """
import sys
from pathlib import Path
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.verifier.history import FencePlace
fence = FencePlace(Path(sys.argv[1]) / "apart/fence", "regulator.example/one").open()
for count in range(1, 9):
    fence.advance(TreeHead(count, bytes(32)))
"""
HONEST = ""
NOT_SYNCHRONOUS = """
from sqlalchemy import event
engine_of = database.open_engine
def careless(url):
    engine = engine_of(url)
    event.listen(engine, "connect", lambda made, _: made.execute("PRAGMA synchronous=OFF"))
    return engine
database.open_engine = careless
"""


def traced(tmp_path: Path, script: str) -> DiskTrace:
    """Run a script with the folder that it is told, everything that it writes noted."""
    folder, scratch = tmp_path / "site", tmp_path / "scratch"
    (folder / "apart").mkdir(parents=True)
    scratch.mkdir()
    trace = DiskTrace(folder, scratch)
    trace.begin()
    support = os.pathsep.join(each for each in sys.path if each.endswith("support"))
    environment = {**os.environ, **trace.environment, "PYTHONPATH": support}
    subprocess.run([sys.executable, "-c", script, str(folder)], env=environment, check=True)
    return trace


def lost(trace: DiskTrace, into: Path, how: str) -> int:
    """How many entries are missing below what the fence knew, over all moments."""
    disk, found, fenced = trace.disk(), 0, 0
    for number, each in enumerate(trace.operations()):
        if each.kind == SYNCING and fenced:
            disk.write(how, into, number)
            found += max(0, fenced - logged(into))
        disk.apply(each)
        if each.kind == SYNCED and Path(each.path).name == "fence":
            fenced += 1
    return found


def logged(folder: Path) -> int:
    engine = open_engine(f"sqlite:///{folder}/log.db")
    try:
        store = LogStore.open(engine, KEY.verifier_key)
        head = store.head()
        assert store.audit() == head
        return head.size
    finally:
        engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["synced", "torn", "kept"])
def test_no_entry_is_lost_that_the_fence_knows(tmp_path: Path, how: str) -> None:
    trace = traced(tmp_path, APPENDS.format(fault=HONEST))
    assert lost(trace, tmp_path / "left", how) == 0


@pytest.mark.slow
def test_a_database_that_does_not_synchronise_is_caught(tmp_path: Path) -> None:
    trace = traced(tmp_path, APPENDS.format(fault=NOT_SYNCHRONOUS))
    assert lost(trace, tmp_path / "kept", "kept") == 0
    with pytest.raises(Exception):  # noqa: B017 - no table, or a damaged file
        lost(trace, tmp_path / "left", "synced")


def test_the_verifiers_fence_is_there_before_anything_rests_on_it(tmp_path: Path) -> None:
    trace = traced(tmp_path, ATTESTS)
    disk, attested = trace.disk(), 0
    for number, each in enumerate(trace.operations()):
        disk.apply(each)
        if each.kind == SYNCED and Path(each.path).name == "fence":
            attested += 1
            for how in ("synced", "torn"):
                disk.write(how, tmp_path / "left", number)
                place = FencePlace(tmp_path / "left/apart/fence", "regulator.example/one")
                assert place.path.exists()
                with closing(place.open()) as fence:
                    assert fence.head.size >= attested
    assert attested == 8
