"""Checks of the entries one by one: 9 to 11, 25, and a history of the window for people.

Check 9: every entry at its time, in its order, also where a log went on after a restore (spec 9.9);
10: every record in its window and tenant, and what it counts; 11: whose randomness is in the noise;
25: the rounds of the beacon that were mixed in.

For people it is told when a window's log went on without its cosigner, and what came how late. No
rule is judged there: a restart, a verifier that was away, a beacon that was late and a network that
was cut all look alike from outside, and are told as V's own clock shows them.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.chains import activation_of, verify_nonce
from ragaudit.ledger.messages.entries import Charge, Epoch, Record, Version
from ragaudit.verifier.procedure.context import AccountEntry, Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import MAX_EVIDENCE, Findings
from ragaudit.verifier.procedure.logged import NOT_COUNTED, RecordSummary


def check_epochs(context: Context, found: Findings) -> None:
    """Check the epoch entries themselves; their times are checked with those of all entries.

    Args:
        context: of the run.
        found: of check 9.
    """
    if not context.policy.epochs:
        for entry in context.log.of_kind(Epoch.KIND):
            found.fault("an epoch entry after the opening", f"entry {entry.index}")
        return
    with found.attempt():
        _ = context.epoch_order
    sizes = [known.size for known in context.checkpoints]
    for index, epoch in context.epoch_entries:
        with found.attempt(f"epoch entry {index}"):
            # What was cosigned is what the restored log must not fall behind: who names less did
            # not ask, or hides what it lost.
            last = bisect_right(sizes, index)
            size = sizes[last - 1] if last else 0
            if (epoch.size, epoch.root) != (size, context.log.tree.root(size)):
                raise RejectedError(
                    f"continues a checkpoint of {epoch.size} entries",
                    expected=f"the last one cosigned before it, of {size}",
                )
    with found.attempt():
        for before, after in pairwise(context.epochs.epochs):
            # Nothing is answered under an epoch that another one follows at once: two sets of
            # keys would be at hand for one time.
            if after.activation == before.activation:
                raise RejectedError(
                    f"epochs {before.epoch} and {after.epoch} begin at once",
                    where=f"entry {after.entry}",
                )


def check_epoch(context: Context, record: RecordSummary, *, claimed: bool) -> None:
    """Check that a record is of the seed epoch in force.

    Args:
        context: of the run.
        record: any one.
        claimed: whether it keeps a claim: it is logged when the window ends.

    Raises:
        RejectedError: it is not.
    """
    due = context.epochs.in_force(record.time)
    if record.epoch != due.epoch:
        raise RejectedError(f"epoch {record.epoch}", expected=f"{due.epoch}")
    if record.entry < due.entry:
        raise RejectedError("before the entry of its epoch")
    if claimed:
        return
    # Between a restore and its instant nothing is answered: what the lost records were made with
    # would be used again.
    later = [each for each in context.epochs.epochs if due.entry < each.entry < record.entry]
    if later:
        raise RejectedError(
            f"epoch {record.epoch}, behind the entry of epoch {later[-1].epoch}",
            expected=f"epoch {later[-1].epoch}",
        )


MOST_OUTAGES: Final = 5  # lines, with one for how many there are more
TOLD_FROM: Final = 0.5  # of the merge delay: what a log may wait without being told


class _Outage(NamedTuple):
    """How long one lasted (milliseconds), since when (Unix milliseconds), and its words."""

    milliseconds: int
    start: int
    line: str


def outages(context: Context) -> Iterator[str]:
    """Yield at most `MOST_OUTAGES` lines, the longest outages, in order of time.

    Args:
        context: of a window; what cannot be read of it is told by the check that owns it.
    """
    found: list[_Outage] = []
    for source in (_waits(context), _activations(context), _handover(context), _sample(context)):
        with suppress(MissingInput):
            found.extend(source)
    told = sorted(found, reverse=True)
    if len(told) > MOST_OUTAGES:
        told = told[: MOST_OUTAGES - 1]
    for each in sorted(told, key=lambda outage: outage.start):
        yield each.line
    if len(found) > len(told):
        yield f"{len(found) - len(told)} shorter outages"


def _waits(context: Context) -> Iterator[_Outage]:
    """Each wait that used up more than half of what is allowed."""
    policy, final = context.policy, context.log.tree.size
    inside = [known for known in context.checkpoints if known.size < final]
    ends = [*((each.size, each.time) for each in inside), (final, context.final_time)]
    sizes, start = [size for size, _ in ends], 0
    # Of the entries that wait for each, the first: all of them would be the window in memory.
    stamped: dict[int, int] = {}
    for index, time in _times(context):
        number = bisect_right(sizes, index)
        stamped[number] = min(time, stamped.get(number, time))
    for number, (size, seconds) in enumerate(ends):
        first = stamped.get(number, 1000 * seconds)
        wait = 1000 * seconds - first
        if wait > TOLD_FROM * 1000 * policy.merge_delay_seconds:
            yield _Outage(
                wait,
                first,
                f"{rfc3339(first)} to {rfc3339(1000 * seconds)}: no checkpoint was cosigned "
                f"while {size - start} entries waited for one, the first for {wait // 1000} of the "
                f"{policy.merge_delay_seconds} seconds that the policy allows",
            )
        start = size


def _times(context: Context) -> Iterable[tuple[int, int]]:
    """(log index, time) of entries that are stamped when they are logged.

    An anchored account's record is stamped when it is promised, and logged once that is revealed.
    """
    yield from ((each.entry, each.time) for each in context.registrations.summaries())
    yield from ((index, version.time) for index, version in context.version_entries)
    for logged in context.records.summaries():
        if not logged.anchored:
            yield logged.entry, logged.time


def _activations(context: Context) -> Iterator[_Outage]:
    """Each activation that was released late: until then nothing that needs it was answered.

    One that came after the window's end was perhaps asked for by nobody.
    """
    policy = context.policy
    for a, message in sorted(context.activations.items()):
        if message.time >= 1000 * policy.end:
            continue
        what = f"activation {a} was released"
        yield from _late(context, message.time, policy.release_instant(a), what, "it was due")


def _handover(context: Context) -> Iterator[_Outage]:
    """A log that came later than any entry may stay uncovered."""
    if (taken := context.clock.records) is not None:
        end = context.policy.end
        yield from _late(context, taken, end, "the log was handed over", "the window's end")


def _sample(context: Context) -> Iterator[_Outage]:
    """A sample that was drawn late."""
    policy = context.policy
    drawn = context.challenge.deadline - 1000 * policy.audit.deadline_seconds
    due = policy.release_instant(policy.activations)
    yield from _late(context, drawn, due, "the sample was drawn", "it was due")


def _late(context: Context, came: int, due: int, what: str, after: str) -> Iterator[_Outage]:
    """What came (Unix milliseconds) later than it was due (Unix seconds), by the merge delay."""
    late = came - 1000 * due
    if late > 1000 * context.policy.merge_delay_seconds:
        line = f"{rfc3339(came)}: {what}, {late // 1000} seconds after {after}"
        yield _Outage(late, 1000 * due, line)


# With a line for how many there are more, and room for what went wrong meanwhile.
_MOST_NOTED: Final = MAX_EVIDENCE - MOST_OUTAGES - 1
_REASONS: Final = {
    "restore": "database or fence had been restored or lost",
    "key-loss": "the seed of the noise was lost, or had become known",
}


def note_history(context: Context, found: Findings) -> None:
    """Say which indexes and seeds changed, when, and why, in log order; then the outages.

    Args:
        context: of the run.
        found: of check 9.
    """
    lines = []
    # Told by whoever needs them: words for people are no rule that could be broken.
    with suppress(MissingInput):
        lines = [text for _, text in sorted([*_versions(context), *_epochs(context)])]
    for line in lines[:_MOST_NOTED]:
        found.note(line)
    if len(lines) > _MOST_NOTED:
        found.note(f"{len(lines) - _MOST_NOTED} more changes")
    for line in outages(context):
        found.note(line)


def _versions(context: Context) -> Iterator[tuple[int, str]]:
    times = {index: version.time for index, version in context.version_entries}
    for logged in context.schedule.versions:
        index = logged.index
        if logged.entry:
            yield (
                logged.entry,
                f"{rfc3339(times[logged.entry])}: version {index.version} of the index of "
                f"{index.tenant}, {index.rows} rows, logged as entry {logged.entry}; "
                f"{_in_force(context, logged.activation)}",
            )


def _epochs(context: Context) -> Iterator[tuple[int, str]]:
    bodies = dict(context.epoch_entries)
    for logged in context.epochs.epochs:
        if logged.entry:
            epoch = bodies[logged.entry]
            yield (
                logged.entry,
                f"{rfc3339(epoch.time)}: {_REASONS[epoch.reason]}; the log goes on behind entry "
                f"{logged.entry - 1} (cosigned up to {epoch.size} entries) with seed epoch "
                f"{epoch.epoch}, nothing is answered before it; "
                f"{_in_force(context, logged.activation)}",
            )


def _in_force(context: Context, activation: int | None) -> str:
    if activation is None:
        return "never in force: the window had no instant left"
    instant = context.policy.activation_instants[activation - 1]
    return f"in force from {rfc3339(1000 * instant)}"


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
                    activation.check(logged.entry, logged)
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
            bounds.check_change(logged.time, logged.entry)
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
    return context.records[record.position].body.promised()


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

    def check(self, entry: int, record: RecordSummary | Charge) -> None:
        """Check that the entry uses this activation, and after its instant.

        Args:
            entry: its index in the log.

        Raises:
            RejectedError: it does not.
        """
        # Else one registration could be made for queries that had been answered already.
        if entry < self._registered:
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
        if claimed is not None and claimed == self._records[record.position].body.promised():
            # It was logged when the window ended, long after its time: check 12 bounds that by the
            # claim's intake.
            self._check_not_later(record.time, record.entry)
        else:
            self._check_around(record.time, record.entry, self._life if anchored else 0)

    def check_change(self, time: int, index: int) -> None:
        """Check that V's clock confirms the time of an entry that is logged when it is made.

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


def check_nonces(context: Context, found: Findings) -> None:
    """11: anchored accounts' records carry the nonces of their chain, plain ones none."""
    if context.unnoised:
        _check_no_chains(context, found)
        return
    anchored = 0
    for pseudonym in context.askers:
        with found.attempt(f"account {pseudonym.hex()}"):
            registered = context.registration(pseudonym)
            if registered.anchored:
                anchored += 1
                _check_chain(context, pseudonym, registered.rank)
            # A nonce that no chain binds is the provider's own, and a choice of noise.
            elif any(logged.anchored for logged in context.by_account.get(pseudonym, ())):
                raise RejectedError("a nonce in a record of a plain account")
    _check_share(context, found)
    found.summary = (
        f"nonces of {anchored} anchored accounts lie on their chains; "
        f"those of {len(context.anchored)} of them were shown by who holds their dispute key"
    )


def _check_no_chains(context: Context, found: Findings) -> None:
    """Without noise there is nothing that a nonce could fix, and no promise it would be for."""
    _ = context.anchored  # of no account; the item of statements is this check's
    for logged in context.registrations.summaries():
        if logged.anchored:
            found.fault("an anchor in a window without noise", logged.name)
    for record in context.records.summaries():
        if record.anchored:
            found.fault("a nonce in a window without noise", record.name)
    found.summary = "no account has a chain of nonces, as there is no noise that they would fix"


def _check_share(context: Context, found: Findings) -> None:
    """The verifier's terms may demand a share of queries whose account showed its chain.

    It is a claimed one: a provider may register accounts of its own, and hold all their keys.
    """
    total = len(context.records) + len(context.charges)
    least = context.terms.bounds["least_claimed_anchored_share"]
    count = sum(len(context.queries_of(pseudonym)) for pseudonym in context.anchored)
    # Of queries, not of accounts: accounts that ask nothing cost a provider nothing.
    if count < least * total:
        what = "records and charge entries" if len(context.charges) else "records"
        found.fault(
            f"{count} of {total} {what} are of accounts whose chain was shown, and the verifier's "
            f"terms demand a claimed anchored share of {least}"
        )


def _check_chain(context: Context, pseudonym: bytes, rank: int) -> None:
    """Each nonce hashes to that of the counter before it, the first one to the anchor."""
    anchor = context.registrations[rank].body.anchor
    assert anchor is not None
    window, limit = context.policy.window, context.policy.queries_per_account
    previous, after = anchor, -1
    for counter, logged in enumerate(context.queries_of(pseudonym)):
        if logged.counter != counter or counter >= limit:
            raise MissingInput(
                "counters", f"{logged.name}: counter {logged.counter} is out of order"
            )
        if isinstance(logged, RecordSummary):
            nonce = context.records[logged.position].body.nonce if logged.anchored else None
            if nonce is None:
                what = "an anchored account's record without a nonce"
                raise RejectedError(what, where=logged.name)
        else:
            answer = context.answer_of(logged.entry)
            nonce = None if answer is None else answer.nonce
            if nonce is None:  # void, or check 28's
                continue
        verify_nonce(window, pseudonym, previous, counter, nonce, after=after)
        previous, after = nonce, counter


def check_containment(context: Context, found: Findings) -> None:
    """10: policy, window, tenant, index size and K of every record, and its withheld rows."""
    policy, named = context.policy, (context.policy.digest, context.policy.window)
    answers, withholding = Counter[str](), Counter[str]()
    for record in context.records.summaries():
        if (record.policy_digest, record.window) != named:
            found.fault("names another policy or window", record.name)
        if record.top_k > policy.top_k_max:
            found.fault(f"K is {record.top_k}, at most {policy.top_k_max}", record.name)
        _check_withheld(record, found, noised=policy.noised)
        answers[record.tenant] += 1
        withholding[record.tenant] += record.withheld > 0
        with found.attempt(record.name):
            tenant = context.registration(record.pseudonym).tenant
            rows = _rows(context, tenant, record.version)
            if record.tenant != tenant:
                raise RejectedError(f"tenant {record.tenant}", expected=f"{tenant}, as registered")
            # Else noise and selection would be proven over another number of rows than there are.
            if record.rows != rows:
                raise RejectedError(f"N is {record.rows}", expected=str(rows))
    most = context.terms.bounds["most_withheld_share"]
    for tenant, count in withholding.items():
        if count > most * answers[tenant]:
            found.fault(
                f"{count} of {answers[tenant]} answers of tenant {tenant} withhold rows, and the "
                f"verifier's terms allow a share of {most}"
            )
    found.summary = f"{len(context.records)} records, each in its account's tenant"


def _check_withheld(record: RecordSummary, found: Findings, *, noised: bool) -> None:
    """Rows that an answer withholds are counted where there is no noise, and nowhere else."""
    if noised and record.withheld != NOT_COUNTED:
        found.fault("counts withheld rows, in a window with noise", record.name)
    elif not noised and not 0 <= record.withheld <= record.top_k:
        counted = "no" if record.withheld == NOT_COUNTED else str(record.withheld)
        found.fault(f"counts {counted} withheld rows of {record.top_k}", record.name)


def _rows(context: Context, tenant: str, version: int) -> int:
    """N of a version of the tenant's index; without one, a missing input of check 7, 3 or 9."""
    if tenant not in context.tenants:
        raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
    # Without later versions a record that names one is check 9's alone.
    return context.stated_index(tenant, version if context.policy.retrieval.versions else 1).rows


def check_beacon(context: Context, found: Findings) -> None:
    """25: each release has the round that the policy fixed, and none was made before it was due."""
    policy = context.policy
    terms, numbers = policy.beacon, [policy.round_of(a) for a in range(1, policy.activations + 1)]
    assert terms is not None  # asked for by a check that is listed under such a policy only
    # As the policy fixes them; whether they were mixed in is what the check says.
    context.stated.beacon = {
        "chain": terms.chain.hash.hex(),
        "name": terms.chain.name,
        "delay_seconds": terms.delay_seconds,
        "rounds": numbers,
    }
    with found.attempt("activations"):
        found.note(f"{len(context.rounds)} activations, each with its round of the beacon")
    with found.attempt("sample"):
        _ = context.sampling_round
        found.note(f"the sample is drawn with round {numbers[-1]}")
    found.summary = f"rounds {numbers[0]} to {numbers[-1]} of {terms.chain.name} are mixed in"
