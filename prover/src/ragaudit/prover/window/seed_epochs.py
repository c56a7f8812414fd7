"""The seed epochs of a window, and which of them is in force (spec 5.15)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.randomness import EPOCH, SeedTree
from ragaudit.prover.store import tables
from sqlalchemy import Connection, insert, select


@dataclass(frozen=True)
class StandingEpoch:
    """An epoch that the log has.

    Attributes:
        epoch: g.
        entry: its place in the log: 0 for the opening's.
        tree: its noise keys; None in a window without noise.
    """

    epoch: int
    entry: int
    tree: SeedTree | None = field(repr=False)


class SeedEpochs:
    """All seed epochs of one window. Safe to use from several threads."""

    def __init__(
        self,
        policy: Policy,
        first: SeedTree | None,
        activation_of: Callable[[int], int | None],
    ) -> None:
        """Begin with the opening's epoch.

        Args:
            first: its noise keys; None in a window without noise.
            activation_of: the activation of a log entry, None while it has none.
        """
        self._policy = policy
        self._activation_of = activation_of
        self._standing: tuple[StandingEpoch, ...] = (StandingEpoch(EPOCH, 0, first),)

    def add(self, epoch: StandingEpoch) -> None:
        """Add the next epoch, once its entry is durable."""
        self._standing = (*self._standing, epoch)

    @property
    def latest(self) -> StandingEpoch:
        """The last one that was logged, in force or not."""
        return self._standing[-1]

    def tree(self, epoch: int) -> SeedTree:
        """Return the noise keys of an epoch.

        Args:
            epoch: g, of a record of this window.

        Raises:
            InternalError: there is no such epoch, or the window has no noise.
        """
        for standing in self._standing:
            if standing.epoch == epoch and standing.tree is not None:
                return standing.tree
        raise InternalError(f"no noise keys of epoch {epoch}", where=self._policy.window)

    def activation(self, epoch: int) -> int | None:
        """Return the activation of an epoch's entry, None while it has none."""
        entry = next(each.entry for each in self._standing if each.epoch == epoch)
        return self._activation_of(entry)

    def in_force(self, time: int) -> int | None:
        """Return the epoch that a record of this time names; None between restore and instant.

        Behind the entry of an epoch nothing is answered under an earlier one: records that a
        restore has lost may have had its keys.

        Args:
            time: Unix milliseconds, within the window.
        """
        latest = self._standing[-1]
        if latest.epoch == EPOCH:
            return EPOCH
        activation = self._activation_of(latest.entry)
        if activation is None:
            return None
        instant = 1000 * self._policy.activation_instants[activation - 1]
        return latest.epoch if instant <= time else None


def store_epoch(
    connection: Connection, window: str, epoch: int, noise_seed: bytes, slot_roots: bytes
) -> None:
    """Store the secret of an epoch, in the transaction that logs it.

    Args:
        epoch: g, from 2.
        noise_seed: s_W of the epoch, 32 bytes.
        slot_roots: 32 bytes a slot; empty in a window without noise.
    """
    connection.execute(
        insert(tables.seed_epoch).values(
            window=window, epoch=epoch, noise_seed=noise_seed, slot_roots=slot_roots
        )
    )


def stored_tree(connection: Connection, policy: Policy, epoch: int) -> SeedTree | None:
    """Return the noise keys of an epoch as they are stored; None in a window without noise.

    Args:
        epoch: g, from 2, of the window's log.

    Raises:
        InternalError: the log has an epoch whose seed is not stored.
    """
    if not policy.noised:
        return None
    table = tables.seed_epoch
    row = connection.execute(
        select(table.c.noise_seed, table.c.slot_roots).where(
            table.c.window == policy.window, table.c.epoch == epoch
        )
    ).one_or_none()
    if row is None:
        raise InternalError(f"the seed of epoch {epoch} is missing", where=policy.window)
    tree = SeedTree(policy.window, row.noise_seed, policy.slots, policy.queries_per_account, epoch)
    tree.restore(row.slot_roots)
    return tree
