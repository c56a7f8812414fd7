"""What has happened to logs of others, as far as the model can express it: small, and always alike.

Each is named after what was published. What must hold then, the world itself checks after each step
and at the window's end.
"""

from collections.abc import Sequence

import pytest
from simulated_plan import OFFSETS, Step, take, world_of
from simulated_ports import CALL, COMMIT, KINDS, SYNC
from simulated_world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
REGISTERED = tuple(Step(f"register {name}") for name in ("ada", "bob", "cyd"))
ANSWERED = (Step("ada"), Step("bob"), Step("bob"), Step("checkpoint"))


def fault(point: str, kind: str) -> int:
    """The choice that stands for a kind at a point."""
    return KINDS[point].index(kind)


def clock(whose: str, offset: int, *, starts_again: bool = False) -> Step:
    """A clock that is set, and perhaps a process that starts with it."""
    value = OFFSETS.index(offset) + (len(OFFSETS) if starts_again else 0)
    return Step(f"{whose} clock", value)


def lived(steps: Sequence[Step]) -> World:
    """Return the world after a window's end, in which steps were taken while it was open."""
    with world_of(2016) as world:
        for step in REGISTERED:
            take(world, step)
        world.open()
        for step in steps:
            take(world, step)
            world.keep()
        world.finish()
        return world


def test_a_bit_flips_in_a_stored_entry() -> None:
    """Yeti 2022, June 2021: an entry was stored otherwise than its leaf had been hashed."""
    world = lived((*ANSWERED, Step("flip", 53)))
    assert world.result != "PASS"
    assert world.lost == ["a bit of entry 4"]


def test_a_log_goes_on_from_an_old_database() -> None:
    """Trust Asia 2021, November 2020: tree heads between which no consistency can be proven."""
    world = lived((*ANSWERED, Step("ada"), Step("checkpoint"), Step("restore", 2), Step("cyd")))
    assert world.lost == ["a database that was set back"]
    assert not world.people["cyd"].files
    assert world.result is None


def test_an_entry_is_later_than_the_head_above_it() -> None:
    """Mammoth 2025h1, June 2024: the clock that stamps is ahead of the one that signs."""
    within = lived((clock("prover", 4500, starts_again=True), *ANSWERED))
    assert within.result == "PASS" and within.people["ada"].files
    beyond = lived((clock("prover", 20_000, starts_again=True), Step("ada")))
    assert not beyond.faults.happened and beyond.result == "PASS"
    assert any("clock" in each for each in beyond.errors)


def test_a_write_that_was_given_up_is_there() -> None:
    """As where a client's timeout comes before the database's answer: the retry must find it."""
    given_up = Step("ada", faults=((1, fault(COMMIT, "unknown")),))
    world = lived((*ANSWERED, given_up, Step("ada"), Step("ada")))
    assert world.faults.happened == ["prover: commit: unknown"]
    assert world.result == "PASS" and len(world.people["ada"].files) == 3


def test_two_failures_in_a_row() -> None:
    """The second comes while the first is being mended."""
    unsynced = Step("ada", faults=((3, fault(SYNC, "fail")),))
    dies = Step("ada", faults=((1, fault(COMMIT, "die after")),))
    world = lived((*ANSWERED, unsynced, Step("end prover"), dies, Step("ada")))
    assert world.faults.happened[0] == "prover: sync: fail"
    assert len(world.faults.happened) == 2
    assert world.result == "PASS" and len(world.people["ada"].files) == 2


def test_a_consistency_proof_from_an_older_head() -> None:
    """The cosigner has seen more than the log knows: its answer was lost, and the tree grew."""
    unheard = Step("checkpoint", faults=((1, fault(CALL, "no answer")),))
    world = lived((*ANSWERED, Step("ada"), unheard, Step("cyd"), Step("checkpoint")))
    assert world.faults.happened == ["prover: call: no answer"]
    assert world.result == "PASS"


def test_messages_come_twice_and_late() -> None:
    twice = Step("cyd", faults=((0, KINDS[CALL].index("twice")),))
    late = Step("checkpoint", faults=((1, fault(CALL, "late")),))
    world = lived(
        (*ANSWERED, twice, late, Step("ada"), Step("arrive"), Step("dispute"), Step("cyd"))
    )
    assert len(world.faults.happened) == 2
    assert world.result == "PASS" and len(world.people["cyd"].files) == 2
