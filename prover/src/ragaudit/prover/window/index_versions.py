"""The versions of a window's indexes, and which of them is in force (spec 5.13)."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ragaudit.circuits.selection import CandidateRule, candidate_rule
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.index.committed import CommittedIndex


@dataclass(frozen=True)
class Standing:
    """A version of a tenant's index and its entry in the log: 0 for the opening's."""

    index: CommittedIndex
    entry: int


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
    ) -> None:
        """Begin with the opening's versions.

        Args:
            first: by tenant.
            sigma_units: of the policy's noise; None without any.
            activation_of: the activation of a log entry, None while it has none.
            released: how many activations were released so far, without a gap.
        """
        self._policy = policy
        self._sigma_units = sigma_units
        self._activation_of = activation_of
        self._released = released
        # Replaced as a whole when a version is added: readers need no lock.
        self._standing: dict[str, tuple[Standing, ...]] = {
            tenant: (Standing(index, 0),) for tenant, index in first.items()
        }
        self._rules: dict[tuple[str, int], CandidateRule | None] = {}
        for index in first.values():
            self.rule(index)

    def add(self, index: CommittedIndex, entry: int) -> None:
        """Add the next version of a tenant's index, once its entry is durable.

        Args:
            entry: its place in the log.
        """
        self.rule(index)
        self._standing[index.tenant] = (*self._standing[index.tenant], Standing(index, entry))

    def get(self, tenant: str, version: int) -> CommittedIndex:
        """Return a version.

        Args:
            tenant, version: of a record of this window.

        Raises:
            InternalError: there is none.
        """
        for standing in self._standing[tenant]:
            if standing.index.version == version:
                return standing.index
        raise InternalError(f"no version {version} of the index", where=tenant)

    def latest(self, tenant: str) -> Standing:
        """Return the last version that was logged, in force or not."""
        return self._standing[tenant][-1]

    def activation(self, tenant: str, version: int) -> int | None:
        """Return the activation of a version's entry, None while it has none."""
        entry = next(each.entry for each in self._standing[tenant] if each.index.version == version)
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
        for each in reversed(standing[1:]):
            activation = self._activation_of(each.entry)
            if activation is None:
                if self._released() < min(bisect_right(instants, time // 1000), len(instants) - 1):
                    return None
            elif 1000 * instants[activation - 1] <= time:
                return each.index
        return standing[0].index

    def all(self) -> list[CommittedIndex]:
        """Return every version of every tenant."""
        return [each.index for standing in self._standing.values() for each in standing]

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
