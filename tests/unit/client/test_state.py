"""Client state survives crashes at any moment and is used by one client at a time."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ragaudit.client.errors import StateConflict
from ragaudit.client.state import PendingPromise, StateDirectory, write_durably
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import UnavailableError

PSEUDONYM = bytes(range(32))
PROMISE = PendingPromise(0, {"query": "q"}, {"body": "00"})


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    directory = StateDirectory(tmp_path / "state")
    yield directory
    directory.close()


def reopened(state: StateDirectory) -> StateDirectory:
    state.close()
    return StateDirectory(state.directory)


def test_keys_are_kept_and_secret(state: StateDirectory) -> None:
    assert state.keys() is None
    keys = state.make_keys("p/ragaudit/w", PSEUDONYM, length=40)
    assert keys.seed is not None
    assert len(keys.seed) == 32
    secrets = (keys.seed, keys.dispute_key.seed())
    for secret in secrets:
        assert secret.hex() not in repr(keys)
        assert repr(secret) not in repr(keys)
    again = reopened(state)
    assert again.keys() == keys
    again.close()
    path = state.directory / "registration.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = loads(path.read_bytes())
    assert (kept["seed"], kept["dispute_seed"]) == tuple(each.hex() for each in secrets)


def test_a_plain_account_has_a_dispute_key_alone(state: StateDirectory) -> None:
    keys = state.make_keys("p/ragaudit/w", PSEUDONYM, length=0)
    assert keys.seed is None
    again = reopened(state)
    assert again.keys() == keys
    again.close()


def test_keys_are_never_replaced(state: StateDirectory) -> None:
    state.make_keys("p/ragaudit/w", PSEUDONYM, length=40)
    with pytest.raises(StateConflict, match="has keys already"):
        state.make_keys("p/ragaudit/w", PSEUDONYM, length=40)


def test_every_seed_is_fresh(tmp_path: Path) -> None:
    seeds = set()
    for number in range(5):
        state = StateDirectory(tmp_path / str(number))
        keys = state.make_keys("o", PSEUDONYM, length=3)
        seeds |= {keys.seed, keys.dispute_key.seed()}
        state.close()
    assert len(seeds) == 10


def test_promise_then_answer(state: StateDirectory) -> None:
    state.keep_promise(PROMISE)
    again = reopened(state)
    assert again.pending() == PROMISE
    again.keep_promise(PROMISE)  # the same once more is a retry
    path = again.keep_answer(0, b"receipt")
    assert path.read_bytes() == b"receipt"
    assert loads((state.directory / "promises" / "0.json").read_bytes()) == PROMISE.promise
    assert again.pending() is None
    assert again.next_counter() == 1
    again.close()


def test_at_most_one_promise(state: StateDirectory) -> None:
    state.keep_promise(PROMISE)
    with pytest.raises(StateConflict, match="awaits its answer"):
        state.keep_promise(PendingPromise(0, {"query": "other"}, {"body": "01"}))


def test_a_crash_between_answer_and_removal_changes_nothing(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.keep_promise(PROMISE)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        state.keep_answer(0, b"receipt")
    assert (state.directory / "promise.json").exists()
    again = reopened(state)
    assert again.pending() is None
    assert again.next_counter() == 1
    again.close()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail) if step == "fsync" else patch.setattr(
            Path, "replace", fail
        )
        with pytest.raises(UnavailableError, match="no space"):
            write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_the_file_and_its_folder_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_durably(tmp_path / "file", b"data")
    assert len(flushed) == 2
    assert flushed[0].startswith(str(tmp_path / ".file."))
    assert flushed[1] == str(tmp_path)


def test_one_client_at_a_time(state: StateDirectory) -> None:
    with pytest.raises(StateConflict, match="another client"):
        StateDirectory(state.directory)
    reopened(state).close()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format":"other"}', b"[1]", b'{"a": 1}'])
def test_damaged_files_are_refused(state: StateDirectory, content: bytes) -> None:
    (state.directory / "registration.json").write_bytes(content)
    with pytest.raises(StateConflict):
        state.keys()


def test_rejected_answers_are_kept_apart(state: StateDirectory) -> None:
    first = state.keep_rejected(3, b"{bad")
    second = state.keep_rejected(3, b"{bad")
    assert first != second
    assert state.next_counter() == 0
