"""Which seed epoch is in force when (docs/spec/05-records.md §5.15).

Prover, verifier and account use the same rule: of the epochs whose instant of activation has
come, the last one is in force.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragaudit.ledger.errors import MalformedRecord, ReceiptRejected
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, QueryEntry


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
