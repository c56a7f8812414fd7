"""Jobs: the first result of a key stays, faults are reported, what is withdrawn is not stored."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from ragaudit.encoding.errors import (
    MalformedError,
    MalformedSettings,
    RejectedError,
    UnavailableError,
)
from ragaudit.lab.scenario.third_parties import CHAIN, OTHER
from ragaudit.ledger.log.database import close_engine, open_engine, write_transaction
from ragaudit.ledger.messages.beacon import QUICKNET, BeaconRound
from ragaudit.serving.jobs.job import (
    ArrayFiles,
    Job,
    JobFailed,
    JobsStopped,
    JobsWithdrawn,
    JobTable,
    MemoryArrays,
    Outcome,
    job_tables,
)
from ragaudit.serving.jobs.runner import MAX_TAKEN, InProcess, Runner, attempt
from ragaudit.serving.rounds import BeaconSettings, RoundFinder
from round_api import RoundApi
from sqlalchemy import MetaData

METADATA = MetaData()
TABLES = job_tables(METADATA, "test_")


def doubled(task: bytes, _window: str, _arrays: Any, progress: Any) -> bytes:
    progress(0.5)
    return task + task


def refused(_task: bytes, _window: str, _arrays: Any, _progress: Any) -> bytes:
    raise MalformedError("cannot be proven", where="rows")


def surprised(_task: bytes, _window: str, _arrays: Any, _progress: Any) -> bytes:
    raise ZeroDivisionError("salt 12 34")


def away(_task: bytes, _window: str, _arrays: Any, _progress: Any) -> bytes:
    raise UnavailableError("no disk")


KINDS = {"doubled": doubled, "refused": refused, "surprised": surprised, "away": away}


def job(task: bytes, kind: str = "doubled", window: str = "w1") -> Job:
    return Job(kind, window, "a name", task)


@pytest.fixture
def table(empty_database: str) -> Iterator[JobTable]:
    engine = open_engine(empty_database)
    with write_transaction(engine) as connection:
        METADATA.create_all(connection)
    yield JobTable(engine, TABLES)
    close_engine(engine)


@pytest.fixture
def runner(table: JobTable) -> Runner:
    arrays = MemoryArrays()
    return Runner(table, arrays, InProcess(table, arrays, KINDS))


def test_results_come_in_order_and_are_computed_once(table: JobTable, runner: Runner) -> None:
    jobs = [job(bytes([n])) for n in range(5)]
    shares: list[float] = []
    assert runner.results(jobs, shares.append) == [bytes([n, n]) for n in range(5)]
    assert shares == sorted(shares) and shares[0] == 0 and 0.9 <= shares[-1] < 1
    assert [table.take(each.key) for each in jobs] == [None] * 5
    silent = Runner(table, MemoryArrays(), InProcess(table, MemoryArrays(), {}))
    assert silent.results(jobs) == [bytes([n, n]) for n in range(5)]


def test_keys_follow_from_kind_window_and_task() -> None:
    keys = {job(b"a").key, job(b"b").key, job(b"a", "refused").key, job(b"a", window="w2").key}
    assert len(keys) == 4
    assert Job("doubled", "w1", "another name", b"a").key == job(b"a").key
    assert "task" not in repr(job(b"secret"))


def test_the_first_result_stays(table: JobTable) -> None:
    table.add([job(b"a")])
    assert table.finish(job(b"a"), Outcome(b"first", None))
    assert not table.finish(job(b"a"), Outcome(b"second", None))
    table.add([job(b"a")])
    assert table.open_keys([job(b"a").key]) == set()
    assert table.outcomes([job(b"a").key])[job(b"a").key].result == b"first"


def test_a_fault_of_the_inputs_names_the_job_and_ends_it(table: JobTable, runner: Runner) -> None:
    with pytest.raises(JobFailed, match="rows: cannot be proven") as error:
        runner.results([job(b"a", "refused")])
    assert "w1: a name, job " + job(b"a", "refused").key[:16] in str(error.value)
    with pytest.raises(JobFailed, match="ZeroDivisionError") as error:
        runner.results([job(b"a", "surprised")])
    assert "salt" not in str(error.value)
    with pytest.raises(JobFailed, match="unknown kind 'later'"):
        runner.results([job(b"a", "later")])
    # A restart tries again.
    runner.keep(["w1"])
    assert table.outcomes([job(b"a", "refused").key]) == {}


def test_what_does_not_follow_from_the_job_is_no_fault(table: JobTable, runner: Runner) -> None:
    for _ in range(MAX_TAKEN + 1):  # in a process of its own it takes nobody down
        with pytest.raises(UnavailableError, match="no disk"):
            runner.results([job(b"a", "away")])
    assert table.outcomes([job(b"a", "away").key]) == {}


def test_a_job_that_no_worker_survives_is_given_up(table: JobTable) -> None:
    table.add([job(b"a", "away")])
    for _ in range(MAX_TAKEN):
        with pytest.raises(UnavailableError):
            attempt(table, MemoryArrays(), KINDS, job(b"a", "away").key)
    attempt(table, MemoryArrays(), KINDS, job(b"a", "away").key)
    outcome = table.outcomes([job(b"a", "away").key])[job(b"a", "away").key]
    assert outcome.fault is not None and outcome.fault.startswith(f"{MAX_TAKEN} workers")


def test_what_is_withdrawn_is_not_stored(table: JobTable, runner: Runner) -> None:
    def forget(share: float) -> None:
        if share:
            runner.withdraw("w1")

    with pytest.raises(JobsWithdrawn):
        runner.results([job(b"a"), job(b"b")], forget)
    assert table.outcomes([job(b"a").key, job(b"b").key]) == {}
    with pytest.raises(JobsWithdrawn):
        runner.results([job(b"a")], lambda _: False)
    assert table.outcomes([job(b"a").key]) == {}


def test_other_windows_are_forgotten_at_a_start(table: JobTable, runner: Runner) -> None:
    runner.results([job(b"a"), job(b"b")])
    runner.results([job(b"a", window="w2")])
    runner.keep(["w2"])
    assert table.outcomes([job(b"a").key]) == {}
    assert table.outcomes([job(b"a", window="w2").key])
    runner.done("w2")
    assert table.outcomes([job(b"a", window="w2").key]) == {}


def test_a_service_that_stops_is_not_held_up(runner: Runner) -> None:
    runner.stop()
    with pytest.raises(JobsStopped):
        runner.results([job(b"a")])


class TestArrayFiles:
    """Arrays in files that workers map."""

    def test_what_is_written_is_mapped_and_equal(self, tmp_path: Path) -> None:
        array = np.arange(12, dtype=np.int8).reshape(3, 4)
        writer, reader = ArrayFiles(tmp_path / "jobs"), ArrayFiles(tmp_path / "jobs")
        digest = writer.put("a/w1", array)
        assert writer.put("a/w1", array.copy()) == digest
        found = reader.get("a/w1", digest)
        assert isinstance(found, np.memmap) and not found.flags.writeable
        assert np.array_equal(found, array) and found.dtype == array.dtype
        assert reader.get("a/w1", digest) is found
        (file,) = (tmp_path / "jobs").rglob("*.npy")
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.parent == tmp_path / "jobs"  # no name leads out of the folder

    def test_type_and_shape_are_part_of_the_name(self, tmp_path: Path) -> None:
        files, array = ArrayFiles(tmp_path), np.zeros((2, 3), dtype=np.int8)
        names = {
            files.put("w1", each)
            for each in (array, array.reshape(3, 2), array.astype(np.uint8), array[:1])
        }
        assert len(names) == 4

    @pytest.mark.parametrize("damage", ["flipped", "cut", "text", "gone"])
    def test_another_file_is_refused(self, tmp_path: Path, damage: str) -> None:
        digest = ArrayFiles(tmp_path).put("w1", np.arange(100, dtype=np.int16))
        (file,) = tmp_path.rglob("*.npy")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        match damage:
            case "flipped":
                file.write_bytes(data)
            case "cut":
                file.write_bytes(data[:-1])
            case "text":
                file.write_bytes(b"rows")
            case _:
                file.unlink()
        with pytest.raises(UnavailableError, match="array of a job"):
            ArrayFiles(tmp_path).get("w1", digest)

    def test_windows_are_forgotten(self, tmp_path: Path) -> None:
        files = ArrayFiles(tmp_path)
        files.keep([])
        for window in ("w1", "w2", "w3"):
            files.put(window, np.zeros(3))
        files.keep(["w1", "w2"])
        files.forget("w1")
        files.release("w2")
        assert len(list(tmp_path.rglob("*.npy"))) == 1


# Memory that was freed below something that stays goes back to the system when it is told to.

# In a process of its own: what others have freed would go back, too. Pieces below the size from
# which the C library asks the system for each of them.
PROGRAM = """
from pathlib import Path
from ragaudit.serving.server import bound_heaps, give_back
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
bound_heaps()
pieces = [b"x" * size for size in range(60_000, 60_500)]
stays = b"x" * 60_000
full = resident()
del pieces
kept = full - resident()
give_back()
print(kept, full - resident())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_was_freed_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    by_itself, told = (int(number) for number in done.stdout.split())
    assert by_itself < 10_000 < 20_000 < told  # of 29,419 KiB


# Sources of rounds: HTTP, folders, files; each bounded, verified, and asked in turn.

NUMBER = 1234
GOOD = CHAIN.round(NUMBER)


@pytest.fixture
def api() -> Iterator[RoundApi]:
    with closing(RoundApi(GOOD.encode())) as made:
        yield made


@pytest.fixture
def finder(tmp_path: Path) -> Iterator[Callable[..., RoundFinder]]:
    made: list[RoundFinder] = []
    (tmp_path / "chain.json").write_text(json.dumps(CHAIN.info()))

    def make(*sources: object, **more: Any) -> RoundFinder:
        section = BeaconSettings(
            sources=tuple(map(str, sources)), chain_file=tmp_path / "chain.json", **more
        )
        made.append(RoundFinder(section))
        return made[-1]

    yield make
    for each in made:
        each.close()


def found(finder: RoundFinder, number: int = NUMBER) -> BeaconRound | None:
    finder.find(CHAIN.chain, number)
    finder.wait()
    return finder.find(CHAIN.chain, number)


def failures(finder: RoundFinder) -> dict[str, str]:
    return dict(finder._failures)


def test_a_round_of_the_api(api: RoundApi, finder: Callable[..., RoundFinder]) -> None:
    made = finder(api.url + "/")
    assert made.chain == CHAIN.chain
    assert found(made) == GOOD
    assert api.paths == [f"/{CHAIN.chain.hash.hex()}/public/{NUMBER}"]
    assert found(made) == GOOD and len(api.paths) == 1  # kept
    made.check(1000 * CHAIN.chain.time(NUMBER + 11))


@pytest.mark.parametrize(
    ("status", "headers", "body", "why"),
    [
        (404, {}, b"", "it answered 404"),
        (302, {"Location": "http://127.0.0.1:1/"}, b"", "it answered 302"),
        (200, {}, b"{}", "missing member"),
        (200, {}, b" " * 5000, "too long"),
        (200, {}, CHAIN.round(NUMBER + 1).encode(), f"round {NUMBER + 1} of the beacon"),
        (200, {}, OTHER.round(NUMBER).encode(), "signature does not verify"),
        (200, {"Content-Length": "9"}, b"{", "not JSON"),
    ],
)
def test_what_is_no_round_is_named_and_the_next_source_asked(
    api: RoundApi, finder: Callable[..., RoundFinder], tmp_path: Path, status: int,
    headers: dict[str, str], body: bytes, why: str,
) -> None:  # fmt: skip
    api.answer = lambda: (status, headers, body)
    (tmp_path / f"{NUMBER}.json").write_bytes(GOOD.encode())
    made = finder(api.url, tmp_path)
    assert found(made) == GOOD
    assert why in failures(made)[api.url] and str(tmp_path) not in failures(made)
    with pytest.raises(UnavailableError) as error:
        made.check(1000 * CHAIN.chain.time(NUMBER + 11))
    assert api.url in error.value.where


def test_nobody_answers(finder: Callable[..., RoundFinder], api: RoundApi) -> None:
    made = finder("http://127.0.0.1:1", api.url, timeout_seconds=1)
    assert found(made) == GOOD
    assert "cannot be read" in failures(made)["http://127.0.0.1:1"]


def test_files_and_folders(finder: Callable[..., RoundFinder], tmp_path: Path) -> None:
    lines = tmp_path / "rounds.jsonl"
    lines.write_bytes(b"\n".join(CHAIN.round(n).encode() for n in (NUMBER - 1, NUMBER)))
    made = finder(tmp_path / "nothing", lines)
    assert found(made) == GOOD
    assert found(made, NUMBER + 1) is None
    assert "no such round" in failures(made)[str(lines)]


def test_a_source_is_asked_again_after_a_while(
    finder: Callable[..., RoundFinder], tmp_path: Path
) -> None:
    made = finder(tmp_path, every_seconds=3600)
    assert found(made) is None
    (tmp_path / f"{NUMBER}.json").write_bytes(GOOD.encode())
    assert found(made) is None
    made._again.clear()  # an hour later
    assert found(made) == GOOD


def test_what_is_offered_is_verified(finder: Callable[..., RoundFinder]) -> None:
    made = finder()
    with pytest.raises(RejectedError, match="does not verify"):
        made.offer(CHAIN.chain, OTHER.round(NUMBER))
    made.offer(CHAIN.chain, GOOD)
    assert found(made) == GOOD
    assert made.find(OTHER.chain, NUMBER) is None


def test_settings(tmp_path: Path) -> None:
    assert BeaconSettings().chain() == QUICKNET
    read = BeaconSettings(sources=("rounds", "https://api.drand.sh"), chain_file=Path("c.json"))
    moved = read.beside(tmp_path)
    assert moved.sources == (str(tmp_path / "rounds"), "https://api.drand.sh")
    for source in ("ftp://x/", "http://user:word@x/", "file:///x"):
        with pytest.raises(ValidationError):
            BeaconSettings(sources=(source,))
    with pytest.raises(MalformedSettings, match="cannot read"):
        moved.chain()
    (tmp_path / "c.json").write_text("{}")
    with pytest.raises(MalformedSettings, match="missing member"):
        moved.chain()
    with pytest.raises(MalformedSettings, match="no certificates"):
        RoundFinder(BeaconSettings(ca_file=tmp_path / "c.json"))
