"""Checks 5 to 8: one log, complete, with every account and every query in its place."""

from collections.abc import Iterator
from hashlib import sha256

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.log.checkpoints import (
    SignedCheckpoint,
    SplitView,
    find_split_view,
    verify_checkpoint,
)
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.account_index import Accounts
from ragaudit.ledger.messages.charges import Charge, Generated, Void
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.public_halves import query_name
from ragaudit.ledger.messages.records import Close, Record, Registration, Version
from ragaudit.verifier.procedure.context import Context
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
                yield f"checkpoint in the receipt for {query_name(receipt)}", signed


def check_registrations(context: Context, found: Findings) -> None:
    """7: slots in log order, pseudonyms distinct, tenants and window of the policy."""
    policy = context.policy
    for rank, logged in enumerate(context.registrations):
        entry = logged.registration
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
