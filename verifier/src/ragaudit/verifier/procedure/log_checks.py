"""Checks of the log: one, complete, with every account and query in its place, and seen by others.

Checks 5 to 8; 22: how many records each account has, as the log states it before it closes; 23: the
further cosigners that the policy names saw it; 24: when opening and final checkpoint existed, by
authorities that the verifier trusts.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import Any

from ragaudit.encoding.errors import RagauditError, RejectedError, UnsupportedError
from ragaudit.encoding.text import hex_encode, rfc3339
from ragaudit.ledger.log.checkpoints import (
    SignedCheckpoint,
    SplitView,
    find_split_view,
    verify_checkpoint,
)
from ragaudit.ledger.log.timestamps import Stamp, read_roots, verify_stamp
from ragaudit.ledger.log.tlog_policy import QuorumFinding
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.accounts import AccountIndex
from ragaudit.ledger.messages.entries import (
    Accounts,
    Charge,
    Close,
    Epoch,
    Generated,
    Record,
    Registration,
    Version,
    Void,
)
from ragaudit.ledger.messages.evidence import TimeStamps
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import STAMP_LIBRARY, MissingInput
from ragaudit.verifier.procedure.framework import Findings

# Which version entries may occur, and that no epoch entry does, is check 9's.
_INSIDE = frozenset({Registration.KIND, Record.KIND, Version.KIND, Epoch.KIND})
_GENERATION = frozenset({Charge.KIND, Generated.KIND, Void.KIND})


def check_log(context: Context, found: Findings) -> None:
    """5: what was handed over is the log of the final checkpoint, in the right order."""
    with found.attempt("final checkpoint"):
        _ = context.final
    log = context.log
    # Whether there are such entries, and what they say, is said by checks 22 and 31.
    outer = [log.first, log.last, log.before_last if context.policy.account_index else None]
    if outer[2] is not None and outer[2].kind != Accounts.KIND:
        outer.pop()
    if context.policy.owners is not None:
        outer += log.lists
    inside = _INSIDE if context.policy.generation is None else _INSIDE | _GENERATION
    places = {entry.index for entry in outer if entry is not None}
    for index, kind in log.entries.kinds():
        if kind not in inside and index not in places:
            found.fault(f"of kind {kind}, out of order", f"entry {index}")
    if log.first is None or log.first.kind != "opening":
        found.fault("is not the opening", "entry 0")
    close, count = context.close, context.record_count
    # Entries after the close would be queries that nobody counts.
    if log.entries.index(-1) != log.size - 1:
        found.fault("is not the last entry", "close")
    if close.window != context.policy.window:
        found.fault("names another window", "close")
    if close.records != count:
        found.fault(f"counts {close.records} records, the log has {count}", "close")
    if context.unnoised:
        _check_unnoised(context, close, found)
    found.summary = f"{log.size} entries, {count} of them records, in one log"


def _check_unnoised(context: Context, close: Close, found: Findings) -> None:
    """What check 20 would see to, in a window where nobody estimates."""
    if close.coalition_claim:
        found.fault(f"claims a coalition of {close.coalition_claim}, without noise", "close")
    for record in context.records.summaries() if context.part == "all" else ():
        # Nothing handed over stays unread: what the log does not fix, nobody has to believe.
        if not record.sketched:
            found.fault("another sketch than the committed one", record.name)


def check_split_view(context: Context, found: Findings) -> None:
    """6: every checkpoint that anybody was shown is a prefix of the final log."""
    log, seen = context.log, 0
    for where, signed in _checkpoints(context, found):
        seen += 1
        size = signed.head.size
        # Sizes beyond the final log are a branch too: what was cosigned has been withdrawn.
        if size > log.tree.size:
            found.fault(f"{size} entries, the final log has {log.tree.size}", where)
        elif log.tree.root(size) != signed.head.root_hash:
            fork = _split_view(context, signed)
            # Two notes of one key and a proof convict the log before anybody (spec 6.8).
            named = "" if fork is None else f", split view {sha256(fork.encode()).hexdigest()}"
            found.fault(f"another log of {size} entries{named}", where)
    found.summary = f"{seen} checkpoints, all of one log"


def split_views(context: Context) -> tuple[SplitView, ...]:
    """Return the evidence of every split view that check 6 finds, for `verify_split_view`.

    Raises:
        MissingInput: log or checkpoints cannot be read; their checks say why.
    """
    shown = _checkpoints(context, Findings("split-view"))
    forks = (_split_view(context, signed) for _, signed in shown)
    return tuple(fork for fork in forks if fork is not None)


def _split_view(context: Context, signed: SignedCheckpoint) -> SplitView | None:
    """The evidence that a checkpoint is no prefix of the final log; None where there is none."""
    # Of no leaves there is no consistency proof, and of more than the final log's no tree.
    if not 0 < signed.head.size <= context.log.tree.size:
        return None
    return find_split_view(signed, context.final.signed, context.log.tree)


def _checkpoints(context: Context, found: Findings) -> Iterator[tuple[str, SignedCheckpoint]]:
    """Checkpoints that the log signed: the cosigner's, and those in receipts."""
    for known in context.checkpoints:
        yield f"cosigned checkpoint of size {known.size}", known.signed
    key = context.policy.keys.log
    with found.attempt():
        for receipt in context.receipts:
            for proof in receipt.proofs:
                if proof is None:
                    continue
                try:
                    # Nobody signed the proof itself; a checkpoint that the log signed stands alone.
                    signed = verify_checkpoint(TlogProof.parse(proof.encode()).checkpoint, key)
                except RagauditError:
                    continue
                yield f"checkpoint in the receipt for {receipt.name}", signed


def check_registrations(context: Context, found: Findings) -> None:
    """7: slots in log order, pseudonyms distinct, tenants and window of the policy."""
    policy = context.policy
    for rank, logged in enumerate(context.registrations):
        entry = logged.body
        # Slots choose noise keys: two accounts in one would get the same noise.
        if entry.slot != rank:
            found.fault(f"slot {entry.slot}, expected {rank}", logged.name)
        if rank >= policy.slots:
            found.fault(f"beyond the {policy.slots} slots of the policy", logged.name)
        # A second registration would be a second budget.
        first, _ = context.registrations.first(entry.pseudonym)
        if first is None or first.rank != rank:
            found.fault(f"account {entry.pseudonym.hex()} is registered twice", logged.name)
        # Its records would be in no stratum of the sample.
        if entry.tenant not in policy.tenants:
            found.fault(f"tenant {entry.tenant} is not in the policy", logged.name)
        if entry.window != policy.window:
            found.fault("names another window", logged.name)
    found.summary = f"{context.registrations.accounts} accounts, each in its own slot"


def check_counters(context: Context, found: Findings) -> None:
    """8: each account's queries are counted without gaps, below r, in its slot."""
    limit = context.policy.queries_per_account
    for pseudonym in context.askers:
        queries = context.queries_of(pseudonym)
        for expected, logged in enumerate(queries):
            # A gap is a query left out of the log, a repetition one noise key used twice.
            if logged.counter != expected:
                found.fault(f"counter {logged.counter}, expected {expected}", logged.name)
            elif expected >= limit:
                found.fault(f"query {expected + 1} of an account that has {limit}", logged.name)
        with found.attempt():
            slot = context.registration(pseudonym).slot
            # A second slot would be a second supply of noise keys for the same account.
            for logged in queries:
                if logged.slot != slot:
                    found.fault(f"slot {logged.slot}, registered {slot}", logged.name)
    found.summary = f"{len(context.records)} records, counted without gaps"


def check_cosigners(context: Context, found: Findings) -> None:
    """23: the quorum stands behind opening and final checkpoint; what it lacks is said."""
    policy = context.policy
    terms = policy.cosigners
    assert terms is not None  # or the check is not listed
    shown, head = context.further, context.final.signed.head
    opening = next((one for one in shown if one.signed.head.size > 0), None)
    final = next((one for one in shown if one.signed.head == head), None)
    records, in_time = context.record_places, _in_time(context, shown)
    context.stated.quorum = {
        "policy": hex_encode(terms.trust.digest),
        "quorum": terms.trust.quorum,
        "known": len(terms.trust.cosigners),
        "opening": _stated_quorum(opening),
        "final": _stated_quorum(final),
        "records": len(records),
        "records_in_time": in_time,
    }
    # Before queries come, the opening has been seen; before the sample is drawn, the end.
    begun = policy.start + policy.merge_delay_seconds + policy.clock_skew_seconds
    for what, finding, limit in (
        ("opening", opening, begun),
        ("final", final, policy.sampling_instant),
    ):
        reason = ""
        if finding is None:
            reason = f"no {what} checkpoint has the quorum {terms.trust.quorum}"
        elif finding.time is not None and finding.time > limit:
            time, due = rfc3339(1000 * finding.time), rfc3339(1000 * limit)
            reason = f"the {what} checkpoint has the quorum since {time}, due by {due}"
        if reason and terms.required:
            found.fault(reason)
        elif reason:
            found.downgrade(Status.NOT_ESTABLISHED, f"that third parties saw the log: {reason}")
        if finding is not None:
            found.note(f"{what} checkpoint of {finding.signed.head.size} entries: {finding}")
    found.note(f"{in_time} of {len(records)} records under the quorum within the merge delay")
    found.summary = (
        f"quorum {terms.trust.quorum} of {len(terms.trust.cosigners)} further cosigners for "
        f"opening and final checkpoint, for {in_time} of {len(records)} records in time"
    )


def _stated_quorum(finding: QuorumFinding | None) -> Mapping[str, Any] | None:
    """Return what the verdict says of one checkpoint; None where none has the quorum."""
    if finding is None:
        return None
    cosigned = {name: line.timestamp for name, line in finding.cosignatures.items()}
    return {"size": finding.signed.head.size, "time": finding.time, "cosigned": cosigned}


def _in_time(context: Context, shown: Sequence[QuorumFinding]) -> int:
    """Return how many records a checkpoint with the quorum covered within the merge delay.

    It counts from the first checkpoint that covers the record and the verifier cosigned: the
    receipt may be complete from then on, and says with which cosigners.
    """
    policy = context.policy
    known = context.checkpoints
    sizes, first = [one.size for one in known], [one.time for one in known]
    larger = [one.signed.head.size for one in shown]
    # From each size on, the earliest time at which the quorum had seen so much or more.
    times = [one.time or 0 for one in shown]
    earliest = list(accumulate(reversed(times), min))[::-1]
    allowed = policy.merge_delay_seconds + policy.clock_skew_seconds
    count = 0
    for index in context.record_places:
        at, by = bisect_right(sizes, index), bisect_right(larger, index)
        covered = at < len(sizes) and by < len(larger)
        count += covered and earliest[by] <= first[at] + allowed
    return count


@dataclass(frozen=True, slots=True)
class _Due:
    """A checkpoint that is to be stamped, and when it may have been; Unix seconds."""

    what: str
    sizes: frozenset[int]
    earliest: int
    latest: int


def check_time_stamps(context: Context, found: Findings) -> None:
    """24: opening and final checkpoint have stamps from the time at which they were made."""
    policy, stamps, stated = context.policy, _stamps(context), dict[str, Any]()
    for due in _due_stamps(context):
        own = [(stamp.not_after, size) for size, stamp in stamps if size in due.sizes]
        fitting = [(time, size) for time, size in own if due.earliest <= time <= due.latest]
        stated[due.what] = None
        if fitting:
            time, size = min(fitting)
            stated[due.what] = {"size": size, "time": time, "stamps": len(fitting)}
            shown = rfc3339(1000 * time)
            found.note(f"the {due.what} checkpoint, of {size} entries, existed by {shown}")
            continue
        found.note(f"{len(own)} time stamps of the {due.what} checkpoint, none of them in time")
        between = " to ".join(rfc3339(1000 * time) for time in (due.earliest, due.latest))
        reason = f"no time stamp of the {due.what} checkpoint is from {between}"
        if policy.time_stamps:
            found.fault(reason)
        else:
            text = f"when the log existed, by anybody but provider and verifier: {reason}"
            found.downgrade(Status.NOT_ESTABLISHED, text)
    context.stated.time_stamps = stated
    found.summary = "opening and final checkpoint are stamped by a trusted authority, in time"


def _due_stamps(context: Context) -> tuple[_Due, _Due]:
    """What is stamped, and when that may have been (spec 9, check 24)."""
    policy = context.policy
    # Every tree but the empty one has the opening as its first leaf.
    opening = frozenset(one.size for one in context.checkpoints) - {0}
    skew = policy.clock_skew_seconds
    begun = policy.start + policy.merge_delay_seconds + skew
    first = context.countersignature.time // 1000 - skew
    final = context.final.signed.head.size
    return (
        _Due("opening", opening, first, begun),
        _Due("final", frozenset({final}), policy.end - skew, policy.sampling_instant),
    )


def _stamps(context: Context) -> Sequence[tuple[int, Stamp]]:
    """Every stamp that was taken, each verified under the roots that were taken with them.

    Raises:
        MissingInput: `time-stamps` for one that is false: the verifier took none such.
    """
    known = {one.size: one.signed.checkpoint for one in context.checkpoints}
    pem = context.item(items.STAMP_ROOTS, "time-stamps")
    roots = read_roots(pem) if pem else ()  # of a verifier that trusts none
    found = []
    for stamp in context.parsed(items.TIME_STAMPS, "time-stamps", TimeStamps.parse).messages:
        if stamp.size not in known:
            raise RejectedError("not one that the verifier cosigned", where=f"size {stamp.size}")
        try:
            found.append((stamp.size, verify_stamp(stamp.token, known[stamp.size], roots)))
        except UnsupportedError as error:
            # Nobody's fault, and nothing that could be said without it.
            raise MissingInput(STAMP_LIBRARY, str(error)) from error
    return found


def account_index(context: Context) -> AccountIndex:
    """Return the account index that registrations and records give (spec 5.14).

    Raises:
        MissingInput: they cannot be read; their checks say why.
    """
    registered, records = context.registrations.pseudonyms, context.records.listed()
    return AccountIndex.build(context.policy.window, registered, records)


def check_accounts(context: Context, found: Findings) -> None:
    """22: the entry before the close commits to every account's records, sorted and whole."""
    # Where the last entry is no close, nobody knows which one must be the index: check 5 says so.
    _ = context.close
    entry = context.log.before_last
    if entry is None or entry.kind != Accounts.KIND:
        found.fault("the entry before the close is no account index")
        return
    stated, where = Accounts.parse(entry.body), f"entry {entry.index}"
    if stated.window != context.policy.window:
        found.fault("names another window", where)
    index = account_index(context)
    # A row left out would be an account that can be denied; a row too many, one that is made up.
    if stated.accounts != index.accounts:
        found.fault(f"counts {stated.accounts} accounts, the log has {index.accounts}", where)
    elif stated.index_root != index.root:
        found.fault("other records, or another order, than the log gives", where)
    found.summary = f"{index.accounts} accounts, each with the records that the log has"
