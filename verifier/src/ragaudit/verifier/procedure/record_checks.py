"""Check 9: every entry at its time, in its order."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeVar

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.records import Record, Version
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.epoch_checks import check_epoch, check_epochs
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.generation_facts import AccountEntry
from ragaudit.verifier.procedure.history import note_history
from ragaudit.verifier.procedure.logged_entries import RegistrationSummary
from ragaudit.verifier.procedure.logged_records import RecordSummary

E = TypeVar("E", bound=AccountEntry)

_SECOND: Final = 999  # a cosignature at second t was made up to 999 ms later


def check_schedule(context: Context, found: Findings) -> None:
    """9: version, epoch, activation and time of every entry."""
    check_epochs(context, found)
    _check_versions(context, found)
    bounds = None
    with found.attempt():
        bounds = TimeBounds(context)
        _check_other_times(context, bounds, found)
    claimed = context.claimed_records if context.epoch_entries else {}
    for pseudonym in context.by_account:
        activation = None
        with found.attempt(f"account {pseudonym.hex()}"):
            activation = DueActivation(context, pseudonym)
        for logged in in_order(context.entries_of(pseudonym), found, RecordSummary):
            name = logged.name
            with found.attempt(name):
                _check_in_force(context, logged, claimed)
            if activation is not None:
                with found.attempt(name):
                    activation.check(logged)
            if bounds is not None:
                with found.attempt(name):
                    bounds.check_record(logged)
    note_history(context, found)
    found.summary = f"{len(context.records)} records at times that the checkpoints confirm"


def in_order(entries: Iterable[AccountEntry], found: Findings, kind: type[E]) -> Iterator[E]:
    """Yield an account's entries of a kind; none may be dated before the entry that precedes it.

    Times decide which accounts look alike in time (check 20), and what a nonce was revealed for:
    none may be dated at will.

    Args:
        entries: of the account, of every kind, in log order.
        kind: of those that may be at fault here: the check of the later one owns the pair.
    """
    before: AccountEntry | None = None
    for entry in entries:
        if isinstance(entry, kind):
            if before is not None and entry.time < before.time:
                found.fault(f"earlier than the account's {before.kind} before it", entry.name)
            yield entry
        before = entry


def _check_versions(context: Context, found: Findings) -> None:
    if context.policy.retrieval.versions:
        with found.attempt():
            _ = context.version_order
        return
    for entry in context.log.of_kind(Version.KIND):
        found.fault("a version entry after the opening", f"entry {entry.index}")


def _check_other_times(context: Context, bounds: "TimeBounds", found: Findings) -> None:
    for logged in context.registrations.summaries():
        with found.attempt(logged.name):
            bounds.check_registration(logged)
    with found.attempt():
        for index, version in context.version_entries:
            with found.attempt(f"version entry {index}"):
                bounds.check_change(version.time, index)
        for index, epoch in context.epoch_entries:
            with found.attempt(f"epoch entry {index}"):
                bounds.check_change(epoch.time, index)
    with found.attempt("close"):
        bounds.check_close(context.close.time, context.log.entries.index(-1))


def _check_in_force(
    context: Context, record: RecordSummary, claimed: Mapping[tuple[bytes, int], Record]
) -> None:
    """RejectedError unless the record is of index and epoch in force, within the window."""
    policy = context.policy
    if not 1000 * policy.start <= record.time < 1000 * policy.end:
        raise RejectedError(f"at {rfc3339(record.time)}, outside the window")
    due, entry = 1, 0
    if policy.retrieval.versions:
        tenant = context.registration(record.pseudonym).tenant
        logged_version = context.schedule.in_force(tenant, record.time)
        due, entry = logged_version.index.version, logged_version.entry
    # A later version could be fitted to what was asked; an earlier one serves what was replaced.
    if record.version != due:
        raise RejectedError(f"version {record.version}", expected=f"{due}")
    if record.entry < entry:
        raise RejectedError("before the entry of its version")
    if context.policy.epochs:
        promised = claimed.get((record.pseudonym, record.counter))
        kept = promised is not None and _promised(context, record) == promised
        check_epoch(context, record, claimed=kept)
    elif record.epoch != 1:
        raise RejectedError(f"epoch {record.epoch}", expected="1")


def _promised(context: Context, record: RecordSummary) -> Record:
    return context.records[record.position].record.promised()


class Dated(Protocol):
    """A record or a charge entry, as far as its activation goes."""

    @property
    def entry(self) -> int: ...
    @property
    def activation(self) -> int: ...
    @property
    def time(self) -> int: ...


class DueActivation:
    """Which activation an account's records and charge entries must use, and from when on."""

    def __init__(self, context: Context, pseudonym: bytes) -> None:
        registration = context.registration(pseudonym)
        self._context = context
        self._tenant = registration.tenant
        sizes = context.covered_sizes
        of_opening, own = activation_of(0, sizes), activation_of(registration.entry, sizes)
        if of_opening is None or own is None:
            raise RejectedError("its registration was never activated")
        self._registered = registration.entry
        # Whichever is later was released only after V had seen index, noise keys and account: no
        # provider could choose any of them with the randomness in hand.
        self._due = max(of_opening, own)

    def check(self, record: Dated) -> None:
        """Check that the entry uses this activation, and after its instant.

        Raises:
            RejectedError: it does not.
        """
        # Else one registration could be made for queries that had been answered already.
        if record.entry < self._registered:
            raise RejectedError("before its account's registration")
        due = max(self._due, self._of_version(record.time), self._of_epoch(record.time))
        # An earlier value was known when account or index were: its noise could be chosen.
        if record.activation != due:
            raise RejectedError(f"activation {record.activation}", expected=str(due))
        # Where a beacon is mixed in, the value was known to nobody before its round was due.
        instant = 1000 * self._context.policy.release_instant(due)
        if record.time < instant:
            raise RejectedError(
                f"at {rfc3339(record.time)}", expected=f"{rfc3339(instant)} or later"
            )

    def _of_version(self, time: int) -> int:
        """The activation of the version in force: the due one, whichever the record names."""
        if not self._context.policy.retrieval.versions:
            return 0
        return self._context.schedule.in_force(self._tenant, time).activation or 0

    def _of_epoch(self, time: int) -> int:
        """The activation of the seed epoch in force, likewise."""
        if not self._context.policy.epochs:
            return 0
        return self._context.epochs.in_force(time).activation or 0


class TimeBounds:
    """What V's own clock says about when entries were made (spec 9.3); all in Unix milliseconds.

    Entries name times of the provider's clock. V knows when it cosigned the last checkpoint before
    an entry and the first one that covers it, and when it took a claim.
    """

    def __init__(self, context: Context) -> None:
        final = context.log.tree.size
        inside = [known for known in context.checkpoints if known.size < final]
        self._sizes = [*(known.size for known in inside), final]
        self._cosigned = [*(1000 * known.time for known in inside), 1000 * context.final_time]
        policy = context.policy
        self._opened = context.countersignature.time
        if self._opened >= 1000 * min(policy.start, policy.activation_instants[0]):
            raise MissingInput("policy", "it was countersigned too late")
        self._end, self._last_promise = 1000 * policy.end, policy.last_promise
        self._skew = 1000 * policy.clock_skew_seconds
        self._merge = 1000 * policy.merge_delay_seconds
        self._life = 1000 * policy.promise_life_seconds
        self._claimed, self._records = context.claimed_records, context.records

    def check_record(self, record: RecordSummary) -> None:
        """Check that V's clock confirms the record's time.

        Raises:
            RejectedError: it does not.
        """
        anchored = record.anchored
        # Later promises could be dropped: there is no time left to claim them.
        if anchored and record.time > self._last_promise:
            raise RejectedError(
                f"promised at {rfc3339(record.time)}, when no account could claim any more",
                expected=f"{rfc3339(self._last_promise)} at the latest",
            )
        claimed = self._claimed.get((record.pseudonym, record.counter))
        if claimed is not None and claimed == self._records[record.position].record.promised():
            # It was logged when the window ended, long after its time: check 12 bounds that by the
            # claim's intake.
            self._check_not_later(record.time, record.entry)
        else:
            self._check_around(record.time, record.entry, self._life if anchored else 0)

    def check_registration(self, logged: RegistrationSummary) -> None:
        """Check that V's clock confirms the registration's time.

        Raises:
            RejectedError: it does not.
        """
        self._check_around(logged.time, logged.entry, 0)

    def check_change(self, time: int, index: int) -> None:
        """Check that V's clock confirms the time of a version or epoch entry.

        Args:
            time, index: of the entry.

        Raises:
            RejectedError: it does not.
        """
        self._check_around(time, index, 0)

    def check_close(self, time: int, index: int) -> None:
        """Check that the log was closed after the window's end, at the time that it says.

        Args:
            time: of the close entry, Unix milliseconds.
            index: of the close entry.

        Raises:
            RejectedError: it was not.
        """
        # A log closed early leaves time for answers that it does not hold.
        if time < self._end - self._skew:
            raise RejectedError(
                f"at {rfc3339(time)}, before the window's end", expected=f"{rfc3339(self._end)}"
            )
        self._check_not_later(time, index)
        self._check_not_earlier(time, index, 0)

    def _check_around(self, time: int, index: int, life: int) -> None:
        self._check_not_later(time, index)
        self._check_not_earlier(time, index, life)
        # Without (3) a provider that lets no checkpoint be cosigned for hours could make up the
        # records of all of them when the window is over.
        covered = self._cosigned[self._covering(index)]
        latest = time + self._merge + self._skew + life
        if covered > latest:
            raise RejectedError(
                f"at {rfc3339(time)}, but no checkpoint covered it until {rfc3339(covered)}",
                expected=f"one by {rfc3339(latest)}",
            )

    def _check_not_later(self, time: int, index: int) -> None:
        latest = self._cosigned[self._covering(index)] + _SECOND + self._skew
        if time > latest:
            raise RejectedError(
                f"at {rfc3339(time)}, but it was in the log before",
                expected=f"{rfc3339(latest)} at the latest",
            )

    def _check_not_earlier(self, time: int, index: int, life: int) -> None:
        covering = self._covering(index)
        before = self._cosigned[covering - 1] if covering else self._opened
        earliest = before - self._skew - life
        if time < earliest:
            raise RejectedError(
                f"at {rfc3339(time)}, but it was not in the log then",
                expected=f"{rfc3339(earliest)} at the earliest",
            )

    def _covering(self, index: int) -> int:
        """Position of the first checkpoint that covers the entry."""
        return bisect_right(self._sizes, index)
