"""A restored database is refused; a second process too; a torn record is no harm."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import RefusedError
from ragaudit.ledger.errors import RestoredBackup, StoreUnavailable
from ragaudit.verifier.service.database import Database
from ragaudit.verifier.service.fence import RECORD_BYTES, Fence
from verifier_service_harness import Desk, RecordingAuditor, problem_of


def opened(folder: Any) -> Desk:
    return Desk(folder, RecordingAuditor())


def test_a_restored_database_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path).running() as desk:
        desk.open_window()
    backup = (tmp_path / "data" / "verifier.db").read_bytes()
    with opened(tmp_path).running() as desk:
        desk.clock.now += 1000
        assert desk.add_checkpoint(desk.log.add_request(0)).status_code == 200
    shutil.copy(tmp_path / "data" / "verifier.db", tmp_path / "current.db")
    (tmp_path / "data" / "verifier.db").write_bytes(backup)
    with pytest.raises(RestoredBackup), opened(tmp_path).running():
        pass
    shutil.copy(tmp_path / "current.db", tmp_path / "data" / "verifier.db")
    desk = opened(tmp_path)
    desk.clock.now += 1000
    with desk.running():
        assert desk.client.get("/readyz").status_code == 200


def test_a_missing_fence_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path).running() as desk:
        desk.register()
    desk.settings.fence_path.unlink()
    with pytest.raises(RestoredBackup), opened(tmp_path).running():
        pass


def test_commands_before_the_first_start_need_no_fence(tmp_path: Path) -> None:
    desk = opened(tmp_path)
    desk.settings.data.mkdir()
    database = Database(desk.settings.database_url, desk.clock)
    with database.write():
        pass
    database.close()
    with desk.running():
        assert desk.client.get("/readyz").status_code == 200


def test_one_process_serves_a_database(tmp_path: Path) -> None:
    with opened(tmp_path).running(), pytest.raises(RefusedError), opened(tmp_path).running():
        pass


def test_the_latest_whole_record_counts(tmp_path: Path) -> None:
    path = tmp_path / "fence"
    fence = Fence(path)
    assert (fence.existed, fence.latest) == (False, 0)
    for time in (5, 7, 9):
        fence.advance(time)
    fence.close()
    again = Fence(path)
    assert (again.existed, again.latest) == (True, 9)
    again.close()
    whole = path.read_bytes()
    assert len(whole) == 2 * RECORD_BYTES
    for torn in range(RECORD_BYTES):  # the third record went to the first place
        path.write_bytes(bytes(torn) + whole[torn:])
        torn_fence = Fence(path)
        assert torn_fence.latest in (7, 9)
        torn_fence.advance(11)
        assert torn_fence.latest == 11
        torn_fence.close()
        repaired = Fence(path)
        assert repaired.latest == 11
        repaired.close()
        path.write_bytes(whole)


def test_what_still_runs_after_the_close_writes_nowhere(tmp_path: Path) -> None:
    """As a tick may that a shutdown abandoned, while another file has the fence's descriptor."""
    fence = Fence(tmp_path / "fence")
    database = Database(f"sqlite:///{tmp_path}/verifier.db", lambda: 1, fence)
    descriptor = fence._file
    database.close()
    with (tmp_path / "secret").open("w+b") as file:
        assert file.fileno() == descriptor
        with pytest.raises(StoreUnavailable, match="closed"), database.write():
            pass
        with pytest.raises(StoreUnavailable, match="closed"):
            fence.advance(1)
        file.seek(0)
        assert file.read() == b""


def test_what_the_fence_cannot_hold_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path).running() as desk:
        desk.open_window()

        def fail(*_given: object) -> int:
            raise OSError("disk full")

        with monkeypatch.context() as patched:
            patched.setattr("ragaudit.verifier.service.fence.os.pwrite", fail)
            answer = desk.add_checkpoint(desk.log.add_request(0))
            problem_of(answer, 503, "store-unavailable")
        problem_of(desk.client.get("/readyz"), 503, "store-unavailable")  # type: ignore[arg-type]
        with pytest.raises(StoreUnavailable), desk.service.database.write():
            pass
