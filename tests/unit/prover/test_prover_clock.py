"""The prover's clock: no time across a step, never a time before one that was given."""

import pytest
from ragaudit.encoding.errors import ClockStepped
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
