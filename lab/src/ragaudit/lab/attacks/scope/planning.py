"""What a run will send, known before it starts."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.attacks.scope.probes import Census, Oracle, Probe, Tested, Write
from ragaudit.lab.attacks.scope.stores.store import Store


@dataclass(frozen=True)
class Options:
    """How a run goes.

    Attributes:
        seed: of the order of requests, and of what is drawn for them.
        rounds: how often an oracle asks for each value; twice that, where times accuse.
        error: at most this probability that any oracle of the run accuses a store whose answers
            do not depend on what others have.
        pause: seconds before each request.
        only: names of probes, oracles, censuses and writes; all if empty.
        writes: whether writes are tried too.
    """

    seed: int = 0
    rounds: int = 5
    error: float = 0.01
    pause: float = 0.0
    only: frozenset[str] = frozenset()
    writes: bool = False


@dataclass(frozen=True)
class Patience:
    """How long planted rows are waited for: a prover in front of a store takes them up later.

    Attributes:
        seconds: at most, for each tenant.
        told: is told of each wait, in words.
        sleep: for so many seconds.
    """

    seconds: float
    told: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Pair:
    """What one tenant tries against another."""

    attacker: str
    victim: str
    probes: tuple[Probe, ...] = field(repr=False)
    oracles: tuple[Oracle, ...] = field(repr=False)
    censuses: tuple[Census, ...] = field(repr=False)
    writes: tuple[Write, ...] = field(repr=False)

    @property
    def counted(self) -> list[Probe | Census | Write]:
        """Return what knows how many requests it sends; an oracle depends on the canaries."""
        return [*self.probes, *self.censuses, *self.writes]


class Plan:
    """All that a run will send, known before it starts."""

    def __init__(self, store: Store, options: Options, *, plant: bool) -> None:
        """Draw it up.

        Args:
            store: opened.
            plant: whether canaries are planted before and removed afterwards.

        Raises:
            MalformedError: no pair of tenants can be tested, or a name is of no probe.
        """
        self.store = store
        self.options = options
        self.plant = plant
        keys, canaries = store.scene.keys, store.scene.canaries
        names = [
            (one, other)
            for one in store.target.tenants if one in keys
            for other in store.target.tenants if other != one and other in canaries
        ]  # fmt: skip
        if not names:
            raise MalformedError(
                "nobody to look for: no tenant but the one with a key has canaries",
                where="canaries",
                expected="those of another tenant",
            )
        self._known: set[str] = set()
        self.pairs = [self._pair(*pair) for pair in names]
        if unknown := sorted(options.only - self._known):
            raise MalformedError(
                f"no probe {unknown[0]!r}", where="--only", expected=", ".join(sorted(self._known))
            )

    @property
    def requests(self) -> int:
        """How many it sends at most."""
        values = {name: len(given) for name, given in self.store.scene.canaries.items()}
        sent = sum(
            one.requests
            for pair in self.pairs for one in pair.counted
        )  # fmt: skip
        # Each may be followed by a lawful question, whether the key is still answered.
        asked = sum(
            len(pair.probes) + len(pair.oracles) + len(pair.writes)
            for pair in self.pairs if pair.attacker in self.controlled
        )  # fmt: skip
        oracles = sum(
            2 * len(pair.oracles) * values[pair.victim] * self.options.rounds for pair in self.pairs
        )
        planted = sum(
            len(self.store.plant(name)) + len(self.store.remove(name)) for name in self.planters
        )
        return sent + asked + oracles + planted + len(self.controlled)

    @property
    def planters(self) -> list[str]:
        """Return the tenants whose canaries the run plants."""
        return [name for name in self.controlled if self.plant]

    @property
    def controlled(self) -> list[str]:
        """Return the tenants that can show that their own canaries are there."""
        return sorted(self.store.scene.keys & self.store.scene.canaries.keys())

    def _pair(self, attacker: str, victim: str) -> Pair:
        only = self.options.only
        probes = self.store.probes(attacker, victim)
        oracles = self.store.oracles(attacker, victim)
        # A census has the victim add a row of its own.
        censuses = self.store.censuses(attacker, victim) if self.plant else []
        writes = self.store.writes(attacker, victim) if self.options.writes else []
        every: list[Tested] = [*probes, *oracles, *censuses, *writes]
        self._known |= {one.name for one in every}
        # What sends ids comes last: from then on an answer that has them may repeat them.
        probes.sort(key=lambda one: self._holds(one, victim))
        return Pair(
            attacker,
            victim,
            tuple(one for one in probes if not only or one.name in only),
            tuple(one for one in oracles if not only or one.name in only),
            tuple(one for one in censuses if not only or one.name in only),
            tuple(one for one in writes if not only or one.name in only),
        )

    def _holds(self, probe: Probe, victim: str) -> bool:
        markers = [name for one in self.store.scene.canaries[victim] for name in one.markers()]
        return any(
            request.holds(marker)
            for steps in probe.attempts for request in steps for marker in markers
        )  # fmt: skip
