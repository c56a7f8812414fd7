"""Clock, memory, cores: how a measurement is taken."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench import harness
from ragaudit.lab.bench.harness import (
    Measurement,
    digits,
    duration,
    measure,
    measure_once,
    summarise,
)
from ragaudit.lab.bench.workload import Sizes, Workload

MIB = 2**20


def test_measure_warms_up_once_and_counts_runs() -> None:
    calls: list[int] = []
    found = measure("count", lambda: calls.append(1), 5)
    assert len(calls) == 6
    assert (found.runs, found.warmed_up) == (5, True)
    assert found.ratio is None


def test_no_run_is_begun_once_the_allowance_is_used_up() -> None:
    calls: list[int] = []
    found = measure("long", lambda: calls.append(1), 5, allowance=0)
    assert (len(calls), found.runs, found.warmed_up) == (1, 1, False)


def test_once_is_once() -> None:
    calls: list[int] = []
    found = measure_once("once", lambda: calls.append(1), records=7)
    assert (len(calls), found.runs, found.warmed_up, found.records) == (1, 1, False, 7)
    assert found.per_record == found.median / 7


def test_a_median_is_a_median() -> None:
    found = summarise("three", [3.0, 1.0, 2.0])
    assert (found.median, found.lowest, found.highest) == (2.0, 1.0, 3.0)
    beside = found.beside(summarise("one", [0.5]), 7, {"rows": 3.0})
    assert (beside.baseline, beside.ratio, beside.size_bytes) == ("one", 4.0, 7)
    assert beside.details == {"rows": 3.0}


def test_ratios_are_for_each_record() -> None:
    batch = Measurement("batch", 4.0, 4.0, 4.0, 1, records=8)
    assert batch.beside(summarise("one", [0.25])).ratio == 2.0


def test_a_peak_that_is_over_is_forgotten() -> None:
    def take() -> None:
        np.ones(64 * MIB, dtype=np.uint8)

    take()
    high = measure_once("take", take)
    low = measure_once("nothing", lambda: None)
    assert high.peak_mib is not None
    assert low.peak_mib is not None
    if low.peak_of_process:
        pytest.skip("this system does not let a process reset its peak")
    assert high.peak_mib - low.peak_mib > 32


def test_a_system_without_the_files_falls_back_and_says_so(tmp_path: Path) -> None:
    assert harness.reset_peak(tmp_path / "none" / "clear_refs") is False
    assert 10 < harness.peak_memory_mib(tmp_path / "status") < 100_000
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t   2048 kB\n")
    assert harness.peak_memory_mib(tmp_path / "status") == 2.0


def test_a_limit_holds_for_every_thread_and_is_lifted() -> None:
    before = os.sched_getaffinity(0)
    stop, found = threading.Event(), []
    waiting = threading.Thread(target=stop.wait)
    waiting.start()
    with harness.limited_to(1) as cores:
        assert cores == 1
        found = [os.sched_getaffinity(0), os.sched_getaffinity(waiting.native_id or 0)]
        assert harness.available_cores() == 1
    stop.set()
    waiting.join()
    assert [len(each) for each in found] == [1, 1]
    assert os.sched_getaffinity(0) == before


def test_no_limit_and_too_many_cores() -> None:
    with harness.limited_to(None) as cores:
        assert cores == len(os.sched_getaffinity(0))
    with pytest.raises(MalformedError, match="cores"), harness.limited_to(10_000):
        pass


def test_the_machine_is_described_without_its_name() -> None:
    found = harness.machine()
    assert found["cores"] == os.cpu_count()
    assert found["memory_gib"] > 0
    assert os.uname().nodename not in found.values()
    assert harness.software()["ragaudit-core"] != "not installed"


def test_a_sampled_measurement_talks_to_perf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("control", "acknowledged"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setenv(harness.PIPES, str(tmp_path))
    monkeypatch.setenv(harness.WANTED, "this one")
    heard: list[str] = []

    def perf() -> None:
        for _ in range(2):
            heard.append((tmp_path / "control").read_text())
            (tmp_path / "acknowledged").write_text("ack\n")

    listening = threading.Thread(target=perf)
    listening.start()
    measure("another", lambda: heard.append("another\n"), 1)
    measure("this one", lambda: heard.append("run\n"), 1)
    listening.join()
    assert heard == ["another\n", "another\n", "enable\n", "run\n", "run\n", "disable\n"]


def test_numbers_have_three_digits() -> None:
    assert [digits(each) for each in (1234.5, 123.4, 12.34, 0.01234)] == [
        "1,234",
        "123",
        "12.3",
        "0.0123",
    ]
    assert [duration(each) for each in (75, 0.0123, 4.5e-6)] == ["75.0 s", "12.3 ms", "4.50 µs"]


def test_a_workload_is_the_same_again_and_its_rows_do_not_depend_on_blocks() -> None:
    sizes = Sizes(40, 8, 3, "0.5")
    first, second = Workload(sizes), Workload(sizes)
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.query(3), second.query(3))
    assert not np.array_equal(first.query(3), first.query(4))
    assert not np.array_equal(first.draw_noise(3), first.draw_noise(4))
    assert np.array_equal(np.sum(first.rows.astype(np.int64) ** 2, axis=1), [16129] * 40)
