"""The versions of a window's indexes, and which of them is in force (spec 5.13).

An index of 100,000 rows takes hundreds of megabytes: in memory are the version in force and those
that follow it. An earlier one is read from the database again when a proof, or a retry, asks.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ragaudit.circuits.selection import CandidateRule, candidate_rule
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.index.committed import CommittedIndex


@dataclass(frozen=True)
class Standing:
    """A version of a tenant's index.

    Attributes:
        entry: its place in the log: 0 for the opening's.
        index: None once it was let go.
    """

    version: int
    entry: int
    index: CommittedIndex | None = field(repr=False)


class IndexVersions:
    """All versions of the indexes of one window. Safe to use from several threads."""

    def __init__(
        self,
        policy: Policy,
        first: Mapping[str, CommittedIndex],
        *,
        sigma_units: float | None,
        activation_of: Callable[[int], int | None],
        released: Callable[[], int],
        load: Callable[[str, int], CommittedIndex] | None = None,
    ) -> None:
        """Begin with the opening's versions.

        Args:
            first: by tenant.
            sigma_units: of the policy's noise; None without any.
            activation_of: the activation of a log entry, None while it has none.
            released: how many activations were released so far, without a gap.
            load: returns a version by tenant and number, as it is stored; without it none is ever
                let go.
        """
        self._policy = policy
        self._sigma_units = sigma_units
        self._activation_of = activation_of
        self._released = released
        self._load = load
        self._lock = threading.Lock()
        # The last one that was read again: proofs of one version follow each other.
        self._again: CommittedIndex | None = None
        # Replaced as a whole when a version is added: readers need no lock.
        self._standing: dict[str, tuple[Standing, ...]] = {
            tenant: (Standing(index.version, 0, index),) for tenant, index in first.items()
        }
        self._rules: dict[tuple[str, int], CandidateRule | None] = {}
        for index in first.values():
            self.rule(index)

    def add(self, index: CommittedIndex, entry: int) -> None:
        """Add the next version of a tenant's index, once its entry is durable. Idempotent.

        Args:
            entry: its place in the log.
        """
        self.rule(index)
        with self._lock:
            if index.version <= self._standing[index.tenant][-1].version:
                return
            new = Standing(index.version, entry, index)
            self._standing[index.tenant] = (*self._standing[index.tenant], new)
        self._let_go(index.tenant)

    def get(self, tenant: str, version: int) -> CommittedIndex:
        """Return a version, read again if it was let go.

        Args:
            tenant, version: of a record of this window.

        Raises:
            InternalError: there is none.
        """
        for standing in self._standing[tenant]:
            if standing.version == version:
                return self._index(tenant, standing)
        raise InternalError(f"no version {version} of the index", where=tenant)

    def latest(self, tenant: str) -> CommittedIndex:
        """Return the last version that was logged, in force or not."""
        return self._index(tenant, self._standing[tenant][-1])

    def in_memory(self, tenant: str) -> list[int]:
        """Return which versions are held, rising, but for the one that was read again."""
        return [each.version for each in self._standing[tenant] if each.index is not None]

    def activation(self, tenant: str, version: int) -> int | None:
        """Return the activation of a version's entry, None while it has none."""
        entry = next(each.entry for each in self._standing[tenant] if each.version == version)
        return self._activation_of(entry)

    def in_force(self, tenant: str, time: int) -> CommittedIndex | None:
        """Return the version that a record of this time must name; None while that is not known.

        It is unknown for a moment: an instant has passed, its activation has not arrived, and it
        may activate a version that is logged.

        Args:
            time: Unix milliseconds, within the window.
        """
        standing = self._standing[tenant]
        instants = self._policy.activation_instants
        for before, each in reversed(list(pairwise(standing))):
            activation = self._activation_of(each.entry)
            if activation is None:
                if self._released() < min(bisect_right(instants, time // 1000), len(instants) - 1):
                    return None
            elif 1000 * instants[activation - 1] <= time:
                if before.index is not None:
                    self._let_go(tenant)
                return self._index(tenant, each)
        return self._index(tenant, standing[0])

    def let_go_superseded(self) -> None:
        """Forget what no new record names, of every tenant."""
        for tenant in self._standing:
            self._let_go(tenant)

    def held(self) -> list[CommittedIndex]:
        """Return every version of every tenant that is in memory."""
        standing = [each for of_tenant in self._standing.values() for each in of_tenant]
        return [each.index for each in standing if each.index is not None]

    def rows(self) -> int:
        """Return how many rows the last versions of all tenants have together."""
        return sum(self.latest(tenant).count for tenant in list(self._standing))

    def _index(self, tenant: str, standing: Standing) -> CommittedIndex:
        if standing.index is not None:
            return standing.index
        again = self._again
        if again is None or (again.tenant, again.version) != (tenant, standing.version):
            assert self._load is not None  # without it none is let go
            self._again = again = self._load(tenant, standing.version)
        return again

    def _let_go(self, tenant: str) -> None:
        """Forget the indexes before the last one that is activated: no new record names them."""
        if self._load is None:
            return
        with self._lock:
            standing = self._standing[tenant]
            newest = max(
                (at for at, each in enumerate(standing) if at and self._activation_of(each.entry)),
                default=0,
            )
            self._standing[tenant] = (
                *(replace(each, index=None) for each in standing[:newest]),
                *standing[newest:],
            )

    def scores_all(self, index: CommittedIndex) -> bool:
        """Return whether answers may score every row of an index."""
        # A filter's rows are scored all, whatever the noise.
        return self.rule(index) is None or self._policy.retrieval.filters

    def rule(self, index: CommittedIndex) -> CandidateRule | None:
        """Return which rows of an index an answer scores; None for all of them."""
        # By the policy, never by settings: those may have changed since the commitment.
        key = (index.tenant, index.version)
        if key not in self._rules:
            units, most = self._sigma_units, self._policy.top_k_max
            self._rules[key] = None if units is None else candidate_rule(units, index.count, most)
        return self._rules[key]
