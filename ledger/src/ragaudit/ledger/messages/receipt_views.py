"""What a receipt is checked against: a window, an account, operations (docs/spec 5.9)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ragaudit.ledger.messages.entries import Epoch, Opening, QueryEntry, Version
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.schedules import (
    EpochSchedule,
    LoggedEpoch,
    LoggedVersion,
    VersionSchedule,
)
from ragaudit.ledger.messages.ties import TiesStatement


class GroupOperations(Protocol):
    """What the check needs from `ragaudit.core` and `ragaudit.circuits`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to d + 4 integers; MalformedError outside their range."""

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to a set of positions."""

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of a query embedding."""

    def quantise(self, vector: Sequence[float], norm_bound: int) -> Sequence[int]:
        """Return the integer vector of real numbers (spec 2.1), or MalformedError."""

    def verify_ties(self, statement: TiesStatement, proof: bytes) -> None:
        """Check a ties opening (spec 4.6.10); RejectedError if it does not prove the statement."""


Embed = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Texts to quantised embeddings, by the committed embedder."""


@dataclass(frozen=True)
class WindowView:
    """What a relying party knows of a window; it has checked the countersignature on it.

    Attributes:
        policy: the countersigned policy.
        opening: entry 0 of the log, countersigned.
        covered_sizes: of the activations a = 1, 2, .. released so far, signed by the verifier.
        versions: (log index, body) of the entries of later index versions, whose inclusion in the
            log the caller has checked.
        epochs: (log index, body) of the entries of later seed epochs, likewise.
    """

    policy: Policy
    opening: Opening
    covered_sizes: Sequence[int] = ()
    versions: Sequence[tuple[int, Version]] = ()
    epochs: Sequence[tuple[int, Epoch]] = ()

    @property
    def schedule(self) -> VersionSchedule:
        """The versions of all tenants; MalformedRecord if the entries do not follow each other."""
        return VersionSchedule.of(self.policy, self.opening, self.versions, self.covered_sizes)

    def index(self, record: QueryEntry) -> LoggedVersion:
        """Return the index that a record was answered from.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: not the version in force at its time, or another N. While no covered
                sizes are known, only that the named version exists is checked.
            MalformedRecord: no such tenant or version.
        """
        self.opening.tenant(record.tenant)
        schedule = self.schedule
        # Before the first instant nobody knows the order of instants and entries; a window whose
        # index never changes does not depend on it.
        if self.policy.retrieval.versions and self.covered_sizes:
            return schedule.verify(record)
        return schedule.named(record)

    def epoch(self, record: QueryEntry) -> LoggedEpoch:
        """Return the seed epoch that a record names.

        Args:
            record: promised or logged.

        Raises:
            ReceiptRejected: not the epoch in force at its time. While no covered sizes are known,
                only that the named epoch exists is checked.
            MalformedRecord: the epoch entries do not follow each other.
        """
        schedule = EpochSchedule.of(self.policy, self.opening, self.epochs, self.covered_sizes)
        if self.policy.epochs and self.covered_sizes:
            return schedule.verify(record)
        return schedule.named(record)


@dataclass(frozen=True)
class AccountView:
    """What an account knows of itself; None where the checker does not know it.

    Attributes:
        registration_index: of its registration in the log, for the activation.
        counter: of the record that it expects.
    """

    tenant: str | None = None
    pseudonym: bytes | None = None
    slot: int | None = None
    registration_index: int | None = None
    counter: int | None = None


@dataclass(frozen=True)
class StepResult:
    """One check: ``done`` and passed, or ``not done`` with what it lacked."""

    number: int
    name: str
    status: Literal["done", "not done"]
    detail: str = ""
