"""Plans of simulated windows: drawn from a seed, run, and made smaller while they fail.

    python tests/support/simulated_plan.py --seed 1 --runs 1000

`make simulate SEED=1 RUNS=1000` does the same. A seed that fails is printed as the line that runs
it again, with the steps that are left of its plan. The last line is the same whenever the same
seeds run again.
"""

import argparse
import hashlib
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from multiprocessing import Pool
from pathlib import Path

from procedure_cases import use_cached_table
from simulated_ports import seeded
from simulated_world import House, Violation, World, build

MEMORY = Path("/dev/shm")
SECONDS = 200  # at most, in all: a promise lives longer, and the window has not ended by then
WEIGHTS = {
    "ada": 2,
    "bob": 3,
    "cyd": 2,
    "together": 16,
    "dispute": 1,
    "drive": 2,
    "checkpoint": 3,
    "tick": 1,
    "pass": 4,
    "prover clock": 1,
    "verifier clock": 1,
    "clocks": 2,
    "end prover": 1,
    "end verifier": 1,
    "arrive": 2,
    "restore": 2,
    "flip": 0,
}
# Home, within the skew of five seconds, and beyond it; ahead by less than the merge delay.
OFFSETS = (0, 900, -900, 4500, -4500, 20_000, -60_000)
TOGETHER = (20_000, 0, 8_000, -20_000)  # of clocks that go wrong alike
RARE = 0.15  # of the windows lose something for good
SET_BACK = 0.3  # of the others have their database set back
PEOPLE = ("ada", "bob", "cyd")
ASKING = (*PEOPLE, "together")
GROUPS = (*permutations(PEOPLE, 2), *permutations(PEOPLE))
# Of a group, behind its first requests: members, the commit, the fence, answers that leave.
POINTS = range(2, 14)
UNSTEADY = 0.2  # of the windows have machines whose clocks go wrong again and again
BEFORE = ("register ada", "register bob", "register cyd", "drive", "checkpoint", "tick")


@dataclass(frozen=True)
class Step:
    """Something that happens.

    Attributes:
        what: one of `WEIGHTS`, or of `BEFORE`.
        value: seconds, milliseconds or a choice, as the step understands it.
        faults: pairs of a point, counted from the step's first, and a choice of what goes wrong.
        starts: whether processes that ended are started first.
    """

    what: str
    value: int = 0
    faults: tuple[tuple[int, int], ...] = ()
    starts: bool = True


@dataclass(frozen=True)
class Plan:
    """What happens before a window opens, and while it is open."""

    before: tuple[Step, ...] = ()
    during: tuple[Step, ...] = ()

    def without(self, number: int) -> "Plan":
        """Return the plan without one of its steps, counted over both parts."""
        first = len(self.before)
        if number < first:
            return replace(self, before=_without(self.before, number))
        return replace(self, during=_without(self.during, number - first))

    def simpler(self, number: int) -> "Plan":
        """Return the plan with one of its steps free of faults."""
        first = len(self.before)
        if number < first:
            return replace(self, before=_simpler(self.before, number))
        return replace(self, during=_simpler(self.during, number - first))

    def __len__(self) -> int:
        return len(self.before) + len(self.during)


def _without(steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
    return steps[:number] + steps[number + 1 :]


def _simpler(steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
    simple = replace(steps[number], faults=(), starts=True)
    return (*steps[:number], simple, *steps[number + 1 :])


def draw(chance: random.Random) -> Plan:
    """Draw a plan."""
    before = [Step(what, 0, _faults(chance)) for what in BEFORE if chance.random() < 0.8]
    chance.shuffle(before)
    weights = dict(WEIGHTS)
    if chance.random() < RARE:
        weights["flip"], weights["restore"] = 1, 0  # which would undo it
    elif chance.random() >= SET_BACK:
        weights["restore"] = 0
    unsteady = chance.random() < UNSTEADY
    if unsteady:
        weights |= {"clocks": 12, "pass": 1}
    left, during = SECONDS, []
    for what in chance.choices(list(weights), list(weights.values()), k=chance.randint(5, 16)):
        together = [what]
        if unsteady and what == "clocks":
            # So that an entry and a head are on both sides of a clock's step.
            together = [what, chance.choice(ASKING), "checkpoint"]
        if what == "restore":
            # So that something is lost, and somebody asks who may notice.
            together = [chance.choice(ASKING), what, chance.choice(ASKING)]
        for each in together:
            value = chance.randrange(2**16)
            if each == "pass":
                value = min(left, 1 + value % 35)
                left -= value
            faults = _faults(chance, chance.choice(POINTS) if each == "together" else None)
            during.append(Step(each, value, faults, chance.random() < 0.8))
    return Plan(tuple(before), tuple(during))


def _faults(chance: random.Random, first: int | None = None) -> tuple[tuple[int, int], ...]:
    if chance.random() < 0.5:
        return ()
    if first is None:
        first = int(chance.expovariate(0.35))
    faults = [(first, chance.randrange(2**20))]
    while chance.random() < 0.25:
        faults.append((faults[-1][0] + 1, chance.randrange(2**20)))
    return tuple(faults)


def take(world: World, step: Step) -> None:
    """Take a step, with what goes wrong in it; raise Violation if something does not hold then."""
    world.faults.arm(step.faults)
    if step.starts:
        world.start_all()
    what, value = step.what, step.value
    if what in PEOPLE:
        world.ask(what, value)
    elif what == "together":
        world.ask_together(GROUPS[value % len(GROUPS)], value // len(GROUPS))
    elif what.startswith("register"):
        world.register(what.rsplit(" ", maxsplit=1)[-1])
    elif what == "dispute":
        world.dispute(value)
    elif what == "drive":
        world.drive()
    elif what == "checkpoint":
        world.checkpoint()
    elif what == "tick":
        world.tick()
    elif what == "pass":
        world.let_pass(value)
    elif what.endswith(" clock"):
        party = world.prover if what.startswith("prover") else world.verifier
        world.set_clock(party, OFFSETS[value % len(OFFSETS)])
        if value // len(OFFSETS) % 2:  # a process that starts has no earlier time to compare with
            world.end(party)
            world.start_all()
        world.watch()
    elif what == "clocks":  # of all machines of a place, which start again
        for party in (world.prover, world.verifier):
            world.set_clock(party, TOGETHER[value % len(TOGETHER)])
            world.end(party)
        world.start_all()
    elif what == "end prover":
        world.end(world.prover)
    elif what == "end verifier":
        world.end(world.verifier)
    elif what == "arrive":
        world.to_prover.arrive()
        world.to_verifier.arrive()
        world.bury()
    elif what == "restore":
        world.restore(value)
    elif what == "flip":
        world.flip(value)
    world.faults.arm(())
    world.check()


@cache
def house() -> House:
    """What every window begins with, made once in a process."""
    use_cached_table()
    with _folder() as folder:
        return build(folder)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def world_of(seed: int) -> Iterator[World]:
    """A window before it opens, whose parties draw from a seed."""
    made = house()
    with (
        _folder() as folder,
        seeded(random.Random(seed)),
        World(folder, made).running() as world,
    ):
        world.start_all()
        world.load()
        yield world


def live(world: World, plan: Plan) -> None:
    """Live a window's whole life; Violation if something does not hold."""
    for step in plan.before:
        take(world, step)
    world.open()
    sets_back = any(step.what == "restore" for step in plan.during)
    for step in plan.during:
        take(world, step)
        if sets_back:
            world.keep()
    world.finish()


def drawn(seed: int) -> Plan:
    """Return the plan of a seed."""
    return draw(random.Random(f"plan {seed}"))


def outcome(seed: int, plan: Plan | None = None) -> tuple[str, str]:
    """Return why a window fails, or nothing, and its trace."""
    reason, trace = "", ""
    try:
        with world_of(seed) as world:
            try:
                live(world, drawn(seed) if plan is None else plan)
            finally:
                trace = world.trace()
    except Violation as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    return reason, trace


def failing(seed: int, plan: Plan | None = None) -> str:
    """Return why a window fails, or nothing."""
    return outcome(seed, plan)[0]


def shrink(seed: int, reason: str) -> Plan:
    """Return the plan of a seed that fails, without the steps and faults that it does not need.

    Args:
        reason: why it fails; a smaller plan fails for the same.
    """

    def still(plan: Plan) -> bool:
        return failing(seed, plan).partition(":")[0] == reason.partition(":")[0]

    plan = drawn(seed)
    for number in reversed(range(len(plan))):
        if still(smaller := plan.without(number)):
            plan = smaller
    for number in range(len(plan)):
        if still(simpler := plan.simpler(number)):
            plan = simpler
    return plan


def report(seed: int, reason: str) -> str:
    """Say how a seed fails: the line that runs it again, and what is left of its plan."""
    plan = shrink(seed, reason)
    steps = "".join(f"\n    {step}" for step in (*plan.before, *plan.during))
    return f"make simulate SEED={seed} RUNS=1\n  {reason}{steps}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run seeds; return how many fail, 1 at most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    seeds = range(options.seed, options.seed + options.runs)
    since, found, traces = time.monotonic(), 0, hashlib.sha256()
    with Pool(options.jobs) as pool:
        for seed, (reason, trace) in zip(seeds, pool.imap(outcome, seeds), strict=True):
            traces.update(trace.encode())
            if reason:
                found += 1
                print(report(seed, reason), flush=True)
    seconds = time.monotonic() - since
    speed = 3600 * options.runs / seconds
    print(f"{options.runs} windows, {found} of them failed; {speed:.0f} an hour")
    print(f"trace {traces.hexdigest()}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
