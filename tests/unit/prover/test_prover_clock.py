"""The prover's clock goes on across steps, and its checkpoints keep their distance on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from ragaudit.encoding.errors import ClockStepped
from ragaudit.prover.background import Background, ClockWatch
from ragaudit.prover.errors import VerifierUnreachable
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store.states import State
from ragaudit.serving.clock import TOLERANCE_MS, UNTIL_CONFIRMED, EvenClock


class Clocks:
    """A clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.steady = 5_000
        self.offset = 1_790_000_000_000
        self.clock = EvenClock(
            UNTIL_CONFIRMED, lambda: self.steady + self.offset, lambda: self.steady
        )

    def wait(self, milliseconds: int) -> None:
        self.steady += milliseconds

    @property
    def wall(self) -> int:
        return self.steady + self.offset


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_an_even_clock_is_followed(clocks: Clocks) -> None:
    for _ in range(5):
        clocks.wait(86_400_000)
        assert clocks.clock() == clocks.wall


@pytest.mark.parametrize("step", [20_000, -20_000, TOLERANCE_MS + 1, -TOLERANCE_MS - 1])
def test_no_time_across_a_step_until_it_is_set_back(clocks: Clocks, step: int) -> None:
    before = clocks.clock()
    clocks.offset += step
    assert clocks.clock.stepped
    with pytest.raises(ClockStepped, match=f"set by {step} ms"):
        clocks.clock()
    clocks.wait(2_000)
    clocks.offset -= step
    assert not clocks.clock.stepped
    assert clocks.clock() == before + 2_000


def test_a_pause_between_the_readings_is_no_step(clocks: Clocks) -> None:
    pauses = [0, 0, 1300, 700, 51, 50]

    def wall() -> int:
        read = clocks.wall
        clocks.wait(pauses.pop(0))
        return read

    clock = EvenClock(UNTIL_CONFIRMED, wall, lambda: clocks.steady)
    assert clock() == clocks.wall
    assert clock() == clocks.wall - 50 and pauses == []


def test_small_corrections_are_followed_and_never_go_back(clocks: Clocks) -> None:
    last = clocks.clock()
    for _ in range(10):
        clocks.offset -= TOLERANCE_MS
        assert clocks.clock() == last
        clocks.wait(TOLERANCE_MS)
        last = max(last, clocks.clock())
    assert last <= clocks.wall + TOLERANCE_MS


def test_another_clock_confirms_a_step(clocks: Clocks) -> None:
    clocks.clock()
    clocks.offset += 20_000
    clocks.clock.confirm(clocks.wall - 2_501, 2_500)
    with pytest.raises(ClockStepped):
        clocks.clock()
    clocks.clock.confirm(clocks.wall - 2_500, 2_500)
    assert clocks.clock() == clocks.wall


def test_a_confirmed_step_back_waits_for_the_times_that_were_given(clocks: Clocks) -> None:
    given = clocks.clock()
    clocks.offset -= 20_000
    clocks.clock.confirm(clocks.wall, 0)
    with pytest.raises(ClockStepped):
        clocks.clock()
    clocks.wait(20_000)
    assert clocks.clock() == given


def test_a_clock_in_doubt_gives_no_time(clocks: Clocks) -> None:
    clocks.clock.doubt()
    assert clocks.clock.stepped
    with pytest.raises(ClockStepped, match="not compared since the start"):
        clocks.clock()
    assert not clocks.clock.confirm(clocks.wall + 5_001, 5_000) and clocks.clock.stepped
    assert clocks.clock.confirm(clocks.wall + 5_000, 5_000)
    assert clocks.clock() == clocks.wall


class Asked:
    """A verifier whose clock is off by so many milliseconds, or that is away, and one window."""

    def __init__(self, clocks: Clocks, ahead: int | None, countersignature: bytes | None) -> None:
        self.clocks, self.ahead = clocks, ahead
        policy = SimpleNamespace(clock_skew_seconds=5)
        self.window = SimpleNamespace(
            state=State.OPEN, countersignature=countersignature, policy=policy
        )

    def keys(self) -> SimpleNamespace:
        if self.ahead is None:
            raise VerifierUnreachable("away", where="keys")
        return SimpleNamespace(time=self.clocks.wall + self.ahead)

    def all(self) -> list[SimpleNamespace]:
        return [self.window]


def test_what_is_compared_at_a_start(
    clocks: Clocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragaudit.prover.background.Policy.parse", lambda policy: policy)
    monkeypatch.setattr(ClockWatch, "_run", lambda _: None)
    boot = tmp_path / "boot"
    monkeypatch.setattr("ragaudit.prover.background._BOOT", boot)
    settings = SimpleNamespace(
        store=SimpleNamespace(fence_folder=tmp_path), window=SimpleNamespace(clock_skew_seconds=5)
    )
    file = tmp_path / "clock"
    # The verifier's clock, a window, the file before, and whether times are given after the start.
    fresh, there = "first 0", f"first {clocks.offset}"
    cases: tuple[tuple[int | None, bool, str | None, bool], ...] = (
        (0, True, None, True),
        (5_000, True, None, True),
        (5_001, True, None, False),
        (-20_000, True, None, False),
        (None, True, None, False),
        (None, True, there, True),
        (None, True, f"second {clocks.offset}", False),  # before the machine started again
        (None, True, f"first {clocks.offset + TOLERANCE_MS + 1}", False),
        (None, True, "first", False),  # cut short
        (None, True, fresh, False),
        (None, False, None, True),
        (20_000, False, None, False),
    )
    for ahead, window, before, given in cases:
        boot.write_text("first\n")
        file.unlink(missing_ok=True)
        if before is not None:
            file.write_text(before)
        clock = EvenClock(
            UNTIL_CONFIRMED, lambda: clocks.steady + clocks.offset, lambda: clocks.steady
        )
        asked = Asked(clocks, ahead, b"signed" if window else None)
        watch = ClockWatch(clock, asked, asked, settings)  # type: ignore[arg-type]
        watch.start()
        watch._attempt("")
        watch.stop()
        case = (ahead, window, before)
        assert clock.stepped is not given, case
        # It is believed at the next start if it was compared, and only then.
        noted = file.exists() and file.read_text().split() == ["first", str(clocks.offset)]
        assert noted is (given and (ahead is not None or before == there)), case
        if not given:
            asked.ahead = 0
            watch._attempt("")
            assert clock() == clocks.wall, case


def test_where_no_start_of_the_machine_is_told_every_start_asks(
    clocks: Clocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClockWatch, "_run", lambda _: None)
    monkeypatch.setattr("ragaudit.prover.background._BOOT", tmp_path / "none")
    (tmp_path / "clock").write_text(f"None {clocks.offset}")
    settings = SimpleNamespace(
        store=SimpleNamespace(fence_folder=tmp_path), window=SimpleNamespace(clock_skew_seconds=5)
    )
    asked = Asked(clocks, None, b"signed")
    watch = ClockWatch(clocks.clock, asked, asked, settings)  # type: ignore[arg-type]
    watch.start()
    watch.stop()
    assert clocks.clock.stepped


@dataclass
class Scene:
    """A window that grows with every checkpoint; ends after five of them."""

    spacing: float
    failing: int = 0
    overtaken: bool = False
    done: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def background(self) -> Background:
        self.live = SimpleNamespace(
            log_changed=Event(),
            policy=SimpleNamespace(checkpoint_spacing=self.spacing),
            log=SimpleNamespace(head_is_cosigned=lambda: not self.overtaken),
        )
        window = SimpleNamespace(
            state=State.OPEN, unusable=None, handed_over=False, countersignature=b"signed"
        )
        found = Background(
            windows=SimpleNamespace(get=lambda _name: window),  # type: ignore[arg-type]
            open_windows=SimpleNamespace(get=lambda _name: self.live),  # type: ignore[arg-type]
            driver=SimpleNamespace(checkpoint=self.checkpoint),  # type: ignore[arg-type]
            refresher=SimpleNamespace(),  # type: ignore[arg-type]
            cosigning=SimpleNamespace(),  # type: ignore[arg-type]
            retention=SimpleNamespace(step=lambda: None),  # type: ignore[arg-type]
            timing=TimingSettings(checkpoint_seconds=0.2),
        )
        self.stopping = Event()
        found._stopping = SimpleNamespace(is_set=self.stopping.is_set, wait=self.wait)  # type: ignore[assignment]
        return found

    def checkpoint(self, _name: str) -> None:
        self.done.append(sum(self.waits))
        if not self.overtaken:
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


def test_a_checkpoint_that_another_leader_overtook_is_signed_again() -> None:
    """What the cosigner has is older than the last entry, and nothing is appended any more."""
    scene = Scene(0.05, overtaken=True)
    scene.background()._run_checkpoints("w1")
    assert len(scene.done) == 5
