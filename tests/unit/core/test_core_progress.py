"""Progress, cancellation, and the interpreter lock."""

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from ragaudit import core


@pytest.fixture(scope="module")
def large(make_index: Callable[..., Any]) -> Any:
    return make_index(6000, 8, seed=3)


def long_calls(
    large: Any, record: Any, proof: bytes, index_proof: bytes
) -> dict[str, Callable[[core.Progress], object]]:
    rows, blindings = large.rows, large.blindings
    proven = record.proven(proof)
    return {
        "commit_rows": lambda progress: core.commit_rows(rows, blindings, progress=progress),
        "prove_index": lambda progress: core.prove_index(
            large.statement(), rows, blindings, progress=progress
        ),
        "verify_index": lambda progress: core.verify_index(
            record.index.statement(), index_proof, progress=progress
        ),
        "prove_selection": lambda progress: record.prove(progress=progress),
        "verify_selections": lambda progress: core.verify_selections(
            [proven] * 130, progress=progress
        ),
    }


NAMES = ["commit_rows", "prove_index", "verify_index", "prove_selection", "verify_selections"]


@pytest.fixture(params=NAMES)
def long_call(
    request: pytest.FixtureRequest, large: Any, record: Any, proof: bytes, index_proof: bytes
) -> Callable[[core.Progress], object]:
    return long_calls(large, record, proof, index_proof)[request.param]


def test_progress_rises_to_one(long_call: Callable[[core.Progress], object]) -> None:
    seen: list[float] = []
    long_call(seen.append)
    assert len(seen) >= 3
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 1
    assert seen[-1] == 1


def test_false_cancels(long_call: Callable[[core.Progress], object]) -> None:
    calls: list[float] = []

    def stop(done: float) -> bool:
        calls.append(done)
        return len(calls) < 2

    with pytest.raises(core.Cancelled):
        long_call(stop)
    assert len(calls) == 2


def test_only_false_cancels(record: Any, proof: bytes) -> None:
    for answer in (None, True, 0, ""):
        callback: Any = Mock(return_value=answer)
        core.verify_selections([record.proven(proof)], progress=callback)
        assert callback.called


def test_an_exception_of_the_callback_is_passed_on(
    long_call: Callable[[core.Progress], object],
) -> None:
    def fail(_: float) -> None:
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        long_call(fail)


def test_other_threads_run_meanwhile(large: Any) -> None:
    """A second thread makes progress while the first is inside one call without callbacks."""
    inside = threading.Event()
    done = threading.Event()

    def compute() -> None:
        inside.set()
        core.commit_rows(large.rows, large.blindings)
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    inside.wait()
    steps = 0
    while not done.is_set():
        steps += 1
    thread.join()
    # With the lock held throughout, the loop would run once or for one switch interval.
    assert steps > 1000


def test_calls_from_many_threads_agree(record: Any, proof: bytes) -> None:
    failures: list[BaseException] = []

    def check() -> None:
        try:
            record.verify(proof)
            record.verify(record.prove())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=check) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
