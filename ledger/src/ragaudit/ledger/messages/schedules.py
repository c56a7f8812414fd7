"""Which version of an index and which seed epoch is in force when (docs/spec 5.13, 5.15).

Prover, verifier and account use the same rule: of those whose instant of activation has come, the
last one is in force.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.entries import Epoch, Opening, QueryEntry, TenantOpening, Version
from ragaudit.ledger.messages.policy import Policy


@dataclass(frozen=True, slots=True)
class LoggedVersion:
    """A version of an index and where the log has it.

    Attributes:
        index: what is committed to.
        entry: index of the entry in the log; 0 for the opening's.
        activation: a, the instant that activates the entry; None while none has.
    """

    index: TenantOpening
    entry: int
    activation: int | None


@dataclass(frozen=True, slots=True)
class VersionSchedule:
    """The versions of all tenants, in log order.

    Attributes:
        policy: of the window, for the instants.
        versions: the opening's first, then those of version entries by rising index.
    """

    policy: Policy
    versions: tuple[LoggedVersion, ...]

    @classmethod
    def of(
        cls,
        policy: Policy,
        opening: Opening,
        entries: Iterable[tuple[int, Version]],
        covered_sizes: Sequence[int],
    ) -> "VersionSchedule":
        """Return the schedule of a window.

        Args:
            policy: of the window.
            opening: its entry 0.
            entries: (log index, body) of its version entries.
            covered_sizes: of the activations a = 1, 2, .. released so far.

        Raises:
            MalformedRecord: versions where the policy allows none, of an unknown tenant, not rising
                by one, or with fewer rows than before.
        """
        latest = {tenant.tenant: tenant for tenant in opening.tenants}
        first = activation_of(0, covered_sizes)
        found = [LoggedVersion(tenant, 0, first) for tenant in opening.tenants]
        for entry, body in sorted(entries, key=lambda pair: pair[0]):
            if not policy.retrieval.versions:
                raise MalformedRecord("a version", where=f"entry {entry}", expected="none")
            before = latest.get(body.tenant)
            if body.window != policy.window or before is None:
                raise MalformedRecord("of another window or tenant", where=f"entry {entry}")
            # Positions are stable: a row that goes becomes a null row, and keeps its place.
            if body.version != before.version + 1 or body.rows < before.rows:
                expected = f"version {before.version + 1} of {before.rows} rows or more"
                raise MalformedRecord("does not follow", where=f"entry {entry}", expected=expected)
            latest[body.tenant] = body.index
            found.append(LoggedVersion(body.index, entry, activation_of(entry, covered_sizes)))
        return cls(policy, tuple(found))

    def in_force(self, tenant: str, time: int) -> LoggedVersion:
        """Return the version that a record of this time names.

        Args:
            tenant: of the record.
            time: Unix milliseconds.

        Raises:
            ReceiptRejected: none is in force yet, or no such tenant.
        """
        found = None
        for version in self.versions:
            if version.index.tenant == tenant and version.activation is not None:
                instant = self.policy.activation_instants[version.activation - 1]
                if 1000 * instant <= time:
                    found = version
        if found is None:
            raise ReceiptRejected("no version in force", where="version")
        return found

    def named(self, record: QueryEntry) -> LoggedVersion:
        """Return the version that a record names, whenever it is in force.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: no such version, or another number of rows than it has.
        """
        versions = [each for each in self.versions if each.index.tenant == record.tenant]
        known = {each.index.version: each for each in versions}
        if record.version not in known:
            expected = f"1..{max(known, default=1)}" if len(known) > 1 else "1"
            raise ReceiptRejected(f"{record.version}", where="version", expected=expected)
        return _with_rows(known[record.version], record)

    def verify(self, record: QueryEntry) -> LoggedVersion:
        """Return the version that a record names, which must be the one in force at its time.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: another version, or another number of rows than it has.
        """
        version = self.in_force(record.tenant, record.time)
        if record.version != version.index.version:
            expected = f"{version.index.version}"
            raise ReceiptRejected(f"{record.version}", where="version", expected=expected)
        return _with_rows(version, record)


def _with_rows(version: LoggedVersion, record: QueryEntry) -> LoggedVersion:
    if record.rows != version.index.rows:
        expected = f"{version.index.rows}"
        raise ReceiptRejected(f"{record.rows}", where="rows", expected=expected)
    return version


@dataclass(frozen=True, slots=True)
class LoggedEpoch:
    """A seed epoch and where the log has it.

    Attributes:
        epoch: g; 1 is the opening's.
        seed_root: C_seed[g], 32 bytes; empty in a window without noise.
        entry: index of the entry in the log; 0 for the opening's.
        activation: a, the instant that activates the entry; None while none has.
    """

    epoch: int
    seed_root: bytes
    entry: int
    activation: int | None


@dataclass(frozen=True, slots=True)
class EpochSchedule:
    """The seed epochs of a window, in log order.

    Attributes:
        policy: of the window, for the instants.
        epochs: the opening's first, then those of epoch entries by rising index.
    """

    policy: Policy
    epochs: tuple[LoggedEpoch, ...]

    @classmethod
    def of(
        cls,
        policy: Policy,
        opening: Opening,
        entries: Iterable[tuple[int, Epoch]],
        covered_sizes: Sequence[int],
    ) -> "EpochSchedule":
        """Return the schedule of a window.

        Args:
            policy: of the window.
            opening: its entry 0.
            entries: (log index, body) of its epoch entries.
            covered_sizes: of the activations a = 1, 2, .. released so far.

        Raises:
            MalformedRecord: epochs where the policy allows none, not rising by one, of another
                window, or not behind the seed before.
        """
        first = activation_of(0, covered_sizes)
        found = [LoggedEpoch(1, opening.seed_root, 0, first)]
        for entry, body in sorted(entries, key=lambda pair: pair[0]):
            where, before = f"entry {entry}", found[-1]
            if not policy.epochs:
                raise MalformedRecord("a seed epoch", where=where, expected="none")
            if body.window != policy.window:
                raise MalformedRecord("of another window", where=where)
            if body.epoch != before.epoch + 1:
                expected = f"epoch {before.epoch + 1}"
                raise MalformedRecord(f"epoch {body.epoch}", where=where, expected=expected)
            if body.previous_root != before.seed_root or bool(body.seed_root) != policy.noised:
                raise MalformedRecord("does not follow the seed before", where=where)
            activation = activation_of(entry, covered_sizes)
            found.append(LoggedEpoch(body.epoch, body.seed_root, entry, activation))
        return cls(policy, tuple(found))

    def in_force(self, time: int) -> LoggedEpoch:
        """Return the epoch that a record of this time names.

        Args:
            time: Unix milliseconds.

        Raises:
            ReceiptRejected: none is in force yet.
        """
        instants, found = self.policy.activation_instants, None
        for epoch in self.epochs:
            if epoch.activation is not None and 1000 * instants[epoch.activation - 1] <= time:
                found = epoch
        if found is None:
            raise ReceiptRejected("no epoch in force", where="epoch")
        return found

    def named(self, record: QueryEntry) -> LoggedEpoch:
        """Return the epoch that a record names, whenever it is in force.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: there is no such epoch.
        """
        known = len(self.epochs)  # they rise by one, from 1
        if record.epoch > known:
            expected = f"1..{known}" if known > 1 else "1"
            raise ReceiptRejected(f"{record.epoch}", where="epoch", expected=expected)
        return self.epochs[record.epoch - 1]

    def verify(self, record: QueryEntry) -> LoggedEpoch:
        """Return the epoch that a record names, which must be the one in force at its time.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: another epoch.
        """
        epoch = self.in_force(record.time)
        if record.epoch != epoch.epoch:
            expected = f"{epoch.epoch}"
            raise ReceiptRejected(f"{record.epoch}", where="epoch", expected=expected)
        return epoch
