"""Checkpoints of a window keep the distance that its length asks for, however often it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace

import pytest
from ragaudit.prover.jobs import Background
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store.states import State


@dataclass
class Scene:
    """A window that grows with every checkpoint; ends after five of them."""

    spacing: float
    failing: int = 0
    done: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def background(self) -> Background:
        self.live = SimpleNamespace(
            log_changed=Event(), policy=SimpleNamespace(checkpoint_spacing=self.spacing)
        )
        window = SimpleNamespace(
            state=State.OPEN, unusable=None, handed_over=False, countersignature=b"signed"
        )
        found = Background(
            windows=SimpleNamespace(get=lambda _name: window),  # type: ignore[arg-type]
            open_windows=SimpleNamespace(get=lambda _name: self.live),  # type: ignore[arg-type]
            driver=SimpleNamespace(checkpoint=self.checkpoint),  # type: ignore[arg-type]
            timing=TimingSettings(checkpoint_seconds=0.2),
        )
        self.stopping = Event()
        found._stopping = SimpleNamespace(is_set=self.stopping.is_set, wait=self.wait)  # type: ignore[assignment]
        return found

    def checkpoint(self, _name: str) -> None:
        self.done.append(sum(self.waits))
        self.live.log_changed.set()
        if len(self.done) == 5:
            self.stopping.set()
        if len(self.done) <= self.failing:
            raise OSError("the verifier is away")

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False


@pytest.mark.parametrize(("spacing", "expected"), [(0.05, 0.2), (172.8, 172.8)])
def test_each_checkpoint_waits_for_its_time(spacing: float, expected: float) -> None:
    scene = Scene(spacing)
    scene.background()._run_checkpoints("w1")
    gaps = [b - a for a, b in zip(scene.done, scene.done[1:], strict=False)]
    assert gaps == pytest.approx([expected] * 4)


def test_a_checkpoint_that_failed_is_tried_again_at_once() -> None:
    scene = Scene(172.8, failing=2)
    scene.background()._run_checkpoints("w1")
    gaps = [b - a for a, b in zip(scene.done, scene.done[1:], strict=False)]
    assert max(gaps[:2]) < 1 and gaps[2:] == pytest.approx([172.8] * 2)
