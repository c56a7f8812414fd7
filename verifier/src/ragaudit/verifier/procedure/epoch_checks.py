"""The part of check 9 about seed epochs: where a log went on after a restore (spec 9.9)."""

from bisect import bisect_right
from itertools import pairwise

from ragaudit.encoding.errors import RejectedError
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.logged_records import RecordSummary


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
