"""Which version of a tenant's index is in force when (docs/spec/05-records.md §5.13).

Prover, verifier and account use the same rule: of the versions whose instant of activation has
come, the last one is in force.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, QueryEntry, TenantOpening, Version


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
