"""The log entry of a later seed epoch (docs/spec/05-records.md §5.15)."""

from dataclasses import dataclass
from typing import ClassVar

from ragaudit.encoding.tagged import read_int, read_text
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.encoded import EntryBody, check_digests, check_range
from ragaudit.ledger.messages.identifiers import check_window
from ragaudit.ledger.messages.kernel import MAX_TIME


@dataclass(frozen=True, slots=True)
class Epoch(EntryBody):
    """A later seed epoch, under which a log goes on after a restore (5.15).

    In force from the instant that activates its entry, see `epochs.EpochSchedule`.

    Attributes:
        epoch: g, 2 and up, rising by one.
        reason: "restore": database or fence were lost, or came from a backup; "key-loss": the seed
            before was lost or became known.
        previous_root, seed_root: C_seed[g-1] and C_seed[g], 32 bytes; both empty without noise.
        size, root: of the largest checkpoint that was cosigned when the entry was made: the log
            has all of it.
        time: Unix milliseconds.
    """

    KIND: ClassVar[str] = "epoch"
    READ = (read_text, read_int, read_text, bytes, bytes, read_int, bytes, read_int)
    REASONS: ClassVar[tuple[str, ...]] = ("restore", "key-loss")

    window: str
    epoch: int
    reason: str
    previous_root: bytes
    seed_root: bytes
    size: int
    root: bytes
    time: int

    def __post_init__(self) -> None:
        check_window(self.window)
        check_range("epoch", self.epoch, 2, MAX_TIME)
        if self.reason not in self.REASONS:
            raise MalformedRecord("reason", where=self.KIND, expected=" or ".join(self.REASONS))
        check_digests(self.previous_root or None, self.seed_root or None, self.root)
        # With noise both, without it neither: one alone would be of no window.
        if bool(self.previous_root) != bool(self.seed_root):
            raise MalformedRecord("one seed commitment of two", where=self.KIND)
        check_range("size", self.size, 0, MAX_TIME)
        check_range("time", self.time, 0, MAX_TIME)
