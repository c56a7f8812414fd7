"""A finished window leaves nothing in memory, and no cache grows with the number of windows."""

from __future__ import annotations

import gc
import logging
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.embedders import registry
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.items import EMBEDDER
from ragaudit.verifier import models
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.service import challenge, windows
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.challenge import Sampler
from service_window import ServiceWindow
from verifier_service_harness import PROVIDER, VerifierScenario, challenge_of

WINDOWS = 5
SETTLED = 2  # windows after which imports are done and public constants known
GROWTH = 2**14  # bytes for each more window, whose evidence is several times as large


class Weighing(Auditor):
    """The procedure, which notes what the process holds before each audit."""

    def __init__(self, scenario: VerifierScenario) -> None:
        super().__init__(scenario.keys, "auto")
        self.held: list[int] = []
        self.evidence = 0

    def audit(self, evidence: Evidence, now: int, progress: Any) -> bytes:
        self.evidence = sum(len(evidence[name]) for name in evidence)
        self.held.append(held())
        return super().audit(evidence, now, progress)


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[VerifierScenario]:
    use_cached_table()
    made = VerifierScenario(tmp_path, None, Clock(1000 * (COUNTERSIGNED - 60)))
    made.auditor = Weighing(made)
    with made.running() as running:
        yield running


@pytest.mark.slow
def test_finished_windows_leave_nothing(scenario: VerifierScenario) -> None:
    """Of several that run at the same time and are audited one after the other."""
    playing = [
        ServiceWindow(scenario, seed=number, provider=f"provider-{number}.example")
        for number in range(WINDOWS)
    ]
    for window in playing:
        window.open()
    for events in zip(*(window.script() for window in playing), strict=True):
        for window, (event, *arguments) in zip(playing, events, strict=True):
            getattr(window, event)(*arguments)
    for step in ("close", "submit", "hand_over", "reach_sampling", "respond"):
        for window in playing:
            getattr(window, step)()
    service, auditor = scenario.service, scenario.auditor
    assert isinstance(auditor, Weighing)
    assert len(service.sampler._samples) == WINDOWS
    logging.disable()  # pytest keeps every record, with the frames of what it is about
    tracemalloc.start()
    try:
        service.scheduler.tick()
        for _ in range(12_000):
            if not service.runner.busy():
                break
            threading.Event().wait(0.01)
        auditor.held.append(held())
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)
    growth = (auditor.held[-1] - auditor.held[SETTLED]) / (WINDOWS - SETTLED)
    assert growth < GROWTH < auditor.evidence / 2, auditor.held
    assert not service.sampler._samples
    assert not service.runner._running and not service.runner._failed
    assert not service.registrar._locks
    for window in playing:
        shown = scenario.client.get(window.target("")).json()
        assert (shown["state"], shown["result"]) == ("decided", "PASS")


def test_calls_about_windows_that_are_none_leave_nothing(scenario: VerifierScenario) -> None:
    for number in range(3):
        opening = scenario.opening()
        answer = scenario.send("POST", f"/v1/windows/none-{number}/countersign", opening)
        assert answer.status_code == 404
    assert not scenario.service.registrar._locks


def test_samples_in_memory_are_bounded_together(
    scenario: VerifierScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(challenge, "MAX_SAMPLED", 100)
    sizes = {windows.of(PROVIDER, f"w{number}"): number for number in (60, 40, 30, 101)}

    def read(_connection: object, origin: Any, _name: str) -> bytes:
        return challenge_of(range(sizes[origin]))

    monkeypatch.setattr(challenge, "demand_item", read)
    sampler = Sampler(scenario.service.database, scenario.keys, scenario.service.sampler.rounds)
    kept = []
    for origin, size in sizes.items():
        assert len(sampler.sample(None, origin)) == size  # type: ignore[arg-type]
        kept.append([len(each) for each in sampler._samples.values()])
    assert kept == [[60], [60, 40], [40, 30], [101]]


def test_an_embedder_is_loaded_once() -> None:
    manifest = registry.load().manifest()
    models._installed.cache_clear()
    first, second = (
        models.committed_embedder(Evidence.of({EMBEDDER: manifest.encode()})) for _ in range(2)
    )
    assert first is not None and first is second
    other = replace(manifest, name="other").encode()
    assert models.committed_embedder(Evidence.of({EMBEDDER: other})) is None
