"""The fence: durable progress outside the database."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.errors import InternalError, MalformedError, RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.fence import (
    GROUP_RECORDS,
    HEADER,
    RECORD_BYTES,
    Fence,
    FenceRecord,
)
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tree import EMPTY_ROOT, MemoryTree, TreeHead

ORIGIN = "provider.example/ragaudit/w1"
KEY = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x01" * 32)).verifier_key
ANN, BOB = b"a" * 32, b"b" * 32
TREE = MemoryTree(bytes([i]) * 32 for i in range(20))
HEADER_BYTES = len(f"{HEADER} {ORIGIN}\n")


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return tmp_path / "fence"


def opened(path: Any, *, log_is_empty: bool = False) -> Fence:
    return Fence(path, ORIGIN, log_is_empty=log_is_empty)


def filled(path: Any) -> None:
    fence = opened(path, log_is_empty=True)
    fence.advance(TREE.head(1))
    fence.advance(TREE.head(2), ANN, 1)
    fence.advance(TREE.head(4), ANN, 2)
    fence.advance(TREE.head(3), BOB, 1)  # a slower thread
    fence.close()


def test_the_highest_values_survive(path: Any) -> None:
    filled(path)
    for _ in range(2):  # also after compaction
        fence = opened(path)
        assert fence.head == TREE.head(4)
        assert fence.records == {ANN: 2, BOB: 1}
        fence.close()
    assert path.stat().st_size == HEADER_BYTES + 2 * RECORD_BYTES


def test_a_file_that_grew_is_compacted_while_it_is_written(
    path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragaudit.ledger.log.fence.GROWTH_BYTES", 4 * RECORD_BYTES)
    fence, largest = opened(path, log_is_empty=True), 0
    for size in range(1, 20):
        fence.advance(TREE.head(size), (ANN, BOB)[size % 2], size)
        largest = max(largest, path.stat().st_size)
    fence.close()
    assert largest <= HEADER_BYTES + 7 * RECORD_BYTES
    again = opened(path)
    assert (again.head, again.records) == (TREE.head(19), {ANN: 18, BOB: 19})
    again.close()


def test_records_are_fixed_bytes() -> None:
    record = FenceRecord(TREE.head(4), ANN, 2)
    assert FenceRecord.parse(record.encode()) == record
    assert record.encode()[:8] == b"\x04" + bytes(7)
    assert record.encode()[8:72] == TREE.root(4) + ANN
    assert FenceRecord.parse(FenceRecord(TREE.head(4), None, 0).encode()).pseudonym is None


def test_a_head_without_accounts_survives(path: Any) -> None:
    fence = opened(path, log_is_empty=True)
    fence.advance(TREE.head(3))
    fence.close()
    for _ in range(2):
        fence = opened(path)
        assert (fence.head, fence.records) == (TREE.head(3), {})
        fence.close()


def check(path: Any, size: int = 20, counters: Any = None, tree: Any = TREE) -> None:
    known = {ANN: 2, BOB: 1} if counters is None else counters

    def root_of(wanted: Any) -> Any:
        if wanted > size:
            raise_unknown()
        return tree.root(wanted)

    def raise_unknown() -> None:
        from ragaudit.ledger.errors import UnknownResource

        raise UnknownResource("smaller", expected=f"0..{size}")

    fence = opened(path)
    try:
        fence.check(root_of, lambda who: known.get(who, 0))
    finally:
        fence.close()


def test_a_database_at_or_ahead_of_the_fence_is_right(path: Any) -> None:
    filled(path)
    check(path, size=4)
    check(path, size=20, counters={ANN: 9, BOB: 1})


def test_a_restored_backup_is_noticed(path: Any) -> None:
    filled(path)
    with pytest.raises(RestoredBackup, match="behind the fence"):
        check(path, size=3)
    with pytest.raises(RestoredBackup, match="counter"):
        check(path, counters={ANN: 1, BOB: 1})
    with pytest.raises(RestoredBackup, match="counter"):
        check(path, counters={})


def test_another_history_of_the_same_length_is_noticed(path: Any) -> None:
    filled(path)
    other = MemoryTree(bytes([i + 1]) * 32 for i in range(20))
    with pytest.raises(RestoredBackup, match="another history"):
        check(path, tree=other)


def test_a_lost_fence_is_noticed(path: Any) -> None:
    with pytest.raises(RestoredBackup, match="missing"):
        opened(path)
    assert not path.exists()
    opened(path, log_is_empty=True).close()
    opened(path).close()


@pytest.mark.parametrize("cut", [1, RECORD_BYTES // 2, RECORD_BYTES - 1])
def test_a_record_cut_short_by_a_crash_is_dropped(path: Any, cut: Any) -> None:
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole + FenceRecord(TREE.head(9), ANN, 3).encode()[:cut])
    fence = opened(path)
    assert (fence.head, fence.records[ANN]) == (TREE.head(4), 2)
    fence.advance(TREE.head(6), ANN, 3)
    fence.close()
    assert opened(path).head == TREE.head(6)


def test_zeros_at_the_end_are_a_record_that_was_never_written(path: Any) -> None:
    filled(path)
    path.write_bytes(path.read_bytes() + bytes(RECORD_BYTES))
    assert opened(path).head == TREE.head(4)


def test_damage_before_the_last_record_is_not_passed_over(path: Any) -> None:
    filled(path)
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 3] ^= 1
    path.write_bytes(bytes(data) + FenceRecord(TREE.head(9), ANN, 3).encode())
    with pytest.raises(MalformedError, match="not a fence record"):
        opened(path)


GROUP = {bytes([65 + number]) * 32: number + 1 for number in range(5)}


def group() -> list[bytes]:
    """The records of one commit of five accounts."""
    return [
        FenceRecord(TREE.head(9), who, count, place, len(GROUP) - 1).encode()
        for place, (who, count) in enumerate(GROUP.items())
    ]


def test_accounts_of_one_commit_are_durable_together(path: Any) -> None:
    fence = opened(path, log_is_empty=True)
    fence.advance_all(TREE.head(9), GROUP)
    assert (fence.head, fence.records) == (TREE.head(9), GROUP)
    assert path.read_bytes()[HEADER_BYTES:] == b"".join(group())
    fence.advance(TREE.head(10))
    fence.close()
    for _ in range(2):
        fence = opened(path)
        assert (fence.head, fence.records) == (TREE.head(10), GROUP)
        fence.close()


@pytest.mark.parametrize("lost", [{0}, {4}, {1, 3}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}])
def test_any_part_of_the_last_commit_may_be_lost_in_a_crash(path: Any, lost: set[int]) -> None:
    filled(path)
    records = [bytes(RECORD_BYTES) if place in lost else data for place, data in enumerate(group())]
    path.write_bytes(path.read_bytes() + b"".join(records))
    fence = opened(path)
    kept = {who: n for place, (who, n) in enumerate(GROUP.items()) if place not in lost}
    assert fence.records == {ANN: 2, BOB: 1, **kept}
    assert fence.head == TREE.head(9 if kept else 4)
    fence.close()


def test_a_loss_before_the_last_commit_is_not_passed_over(path: Any) -> None:
    filled(path)
    head, later = path.read_bytes(), FenceRecord(TREE.head(10), ANN, 3).encode()
    for place in range(len(GROUP)):
        records = group()
        records[place] = bytes(RECORD_BYTES)
        path.write_bytes(head + b"".join(records) + later)
        with pytest.raises(MalformedError, match="not a fence record"):
            opened(path)
        # Nor one just before a commit of several, whose last ones are lost, too.
        path.write_bytes(head + bytes(RECORD_BYTES) + b"".join(group()[: place + 1]))
        with pytest.raises(MalformedError, match="not a fence record"):
            opened(path)


def test_no_more_is_lost_in_a_crash_than_a_commit_has(path: Any) -> None:
    filled(path)
    data = path.read_bytes()
    path.write_bytes(data + bytes(GROUP_RECORDS * RECORD_BYTES))
    opened(path).close()
    path.write_bytes(data + bytes((GROUP_RECORDS + 1) * RECORD_BYTES))
    with pytest.raises(MalformedError, match="not a fence record"):
        opened(path)


def test_a_record_that_no_commit_has_is_damaged() -> None:
    for place, more in ((1, 0), (0, GROUP_RECORDS), (5, 4)):
        with pytest.raises(MalformedError, match="not a fence record"):
            FenceRecord.parse(FenceRecord(TREE.head(1), ANN, 1, place, more).encode())


def test_a_commit_of_too_many_or_of_nobody_is_refused(path: Any) -> None:
    fence = opened(path, log_is_empty=True)
    many = {bytes([number + 1]) * 32: 1 for number in range(GROUP_RECORDS + 1)}
    with pytest.raises(MalformedError, match="33 accounts"):
        fence.advance_all(TREE.head(1), many)
    with pytest.raises(MalformedError, match="not a pseudonym"):
        fence.advance_all(TREE.head(1), {ANN: 1, bytes(32): 1})
    assert fence.head == TreeHead(0, EMPTY_ROOT)
    fence.close()


@pytest.mark.parametrize("data", [b"", b"ragaudit", f"{HEADER} another\n".encode()])
def test_a_file_of_something_else_is_refused(path: Any, data: Any) -> None:
    path.write_bytes(data)
    with pytest.raises(MalformedError, match="another log"):
        opened(path, log_is_empty=True)
    assert path.read_bytes() == data


def test_two_processes_cannot_hold_it(path: Any) -> None:
    first = opened(path, log_is_empty=True)
    with pytest.raises(RefusedError, match="another process"):
        opened(path)
    first.advance(TREE.head(1))
    first.close()
    opened(path).close()


@pytest.mark.parametrize("pseudonym", [b"", bytes(32), b"x" * 31])
def test_pseudonyms_are_checked(path: Any, pseudonym: Any) -> None:
    fence = opened(path, log_is_empty=True)
    with pytest.raises(MalformedError, match="pseudonym"):
        fence.advance(TREE.head(1), pseudonym, 1)
    fence.close()


def test_after_a_failed_synchronisation_nothing_passes(
    path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = opened(path, log_is_empty=True)

    def fails(_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="space"):
            fence.advance(TREE.head(1), ANN, 1)
    with pytest.raises(InternalError, match="open it again"):
        fence.advance(TREE.head(2), ANN, 2)
    assert fence.head == TreeHead(0, EMPTY_ROOT)
    fence.close()
    opened(path).close()


def test_a_short_write_is_a_failure(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = opened(path, log_is_empty=True)
    write = os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda f, data, at: write(f, data[:50], at))
        with pytest.raises(OSError, match="50 bytes"):
            fence.advance(TREE.head(1), ANN, 1)
    fence.close()
    assert opened(path).head.size == 0


def test_a_real_database_restored_from_a_copy(tmp_path: Path, path: Any) -> None:
    database, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    fence = opened(path, log_is_empty=True)

    def add(store: Any, records: Any) -> None:
        with store.transaction() as connection:
            store.append(connection, bytes(32))
            head = store.head(connection)
        fence.advance(head, ANN, records)

    engine = open_engine(f"sqlite:///{database}")
    store = LogStore.create(engine, KEY)
    add(store, 1)
    engine.dispose()  # checkpoints the write-ahead log into the file
    shutil.copy(database, copy)
    store = LogStore.open(engine, KEY)
    add(store, 2)
    fence.check(store.root, lambda _: 2)
    engine.dispose()
    shutil.copy(copy, database)
    restored = LogStore.open(open_engine(f"sqlite:///{database}"), KEY)
    assert restored.head().size == 1
    with pytest.raises(RestoredBackup, match="behind"):
        fence.check(restored.root, lambda _: 1)
