"""Accounts ask at the same moment: one transaction and one fence hold several answers."""

import pytest
from simulated_plan import GROUPS, Step, take, world_of
from simulated_ports import COMMIT, KINDS, LEAVE, MEMBER, SYNC, WRITE
from simulated_world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TOGETHER = GROUPS.index(("ada", "bob", "cyd"))
# Behind three requests: what each of them changes, the commit, the fence, the answers.
SEED = 2031  # in which all three share one transaction, and bob is the first of them
FIRST = {MEMBER: 3, COMMIT: 6, WRITE: 7, SYNC: 8, LEAVE: 9}


def answered(world: World) -> str:
    """Return the initials of who has an answer, or a promise."""
    people = world.people.values()
    return "".join(each.name[0] for each in people if each.files or each.promised)


@pytest.mark.parametrize(
    ("point", "kind", "which", "first"),
    [
        pytest.param(MEMBER, "fails", 1, "bc", id="one fails alone"),
        pytest.param(MEMBER, "refused", 2, "ab", id="a statement of one is refused"),
        pytest.param(COMMIT, "full", 0, "", id="the commit fails"),
        pytest.param(COMMIT, "unknown", 0, "", id="the commit is there all the same"),
        pytest.param(COMMIT, "die after", 0, "", id="the process ends before the fence"),
        pytest.param(WRITE, "full", 0, "", id="the fence is not written"),
        pytest.param(SYNC, "fail", 0, "", id="the fence is not synchronised"),
        pytest.param(LEAVE, "die", 1, "b", id="the process ends among the answers"),
    ],
)
def test_what_fails_for_a_group(point: str, kind: str, which: int, first: str) -> None:
    """Nobody has an answer that is not durable, and everybody has one in the end."""
    with world_of(SEED) as world:
        world.open()
        fault = (FIRST[point] + which, KINDS[point].index(kind))
        take(world, Step("together", TOGETHER, (fault,)))
        assert world.groups[:1] == [3] and world.faults.happened == [f"prover: {point}: {kind}"]
        assert answered(world) == first
        for _ in range(2):  # a promise, and what it promises
            take(world, Step("together", TOGETHER))
        world.finish()
        assert answered(world) == "abc" and world.result == "PASS"
