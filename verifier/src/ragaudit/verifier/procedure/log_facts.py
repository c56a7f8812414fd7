"""The log and what stands in it."""

from collections.abc import Mapping
from io import BytesIO

from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, verify_cosigned
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.ledger.messages.records import Close, Record, Registration
from ragaudit.verifier import evidence as items
from ragaudit.verifier.procedure.facts import CONFIDENTIAL_PART, MissingInput, fact
from ragaudit.verifier.procedure.log_view import (
    Log,
    LoggedRecord,
    LoggedRegistration,
    check_bodies,
    check_leaves,
    read_close,
    read_entries,
    read_record,
    read_registration,
    split_leaves,
)
from ragaudit.verifier.procedure.opening_facts import OpeningFacts


class LogFacts(OpeningFacts):
    """Facts that check 5 owns."""

    # --- 5: the log -------------------------------------------------------------------------

    @fact("log")
    def log(self) -> Log:
        """The log: every body rehashes, the leaves give the final root, every body decodes."""
        leaves, entries = self._public_log() if self.part == "public" else self._whole_log()
        head = parse_checkpoint(self.item(items.FINAL_CHECKPOINT, "log")).head
        tree = MemoryTree(leaves)
        if head.size != tree.size:
            raise RejectedError(
                f"{tree.size} entries handed over", expected=f"{head.size} as in the checkpoint"
            )
        if tree.root() != head.root_hash:
            raise RejectedError(
                "what was handed over gives another root", expected=head.root_hash.hex()
            )
        check_bodies(entries)
        return Log(tree, leaves, entries)

    def _public_log(self) -> tuple[tuple[bytes, ...], tuple[Entry, ...]]:
        leaves = split_leaves(self.item(items.LEAVES, "log"))
        entries = read_entries(self.item(items.ENTRIES, "log"))
        check_leaves(entries, leaves)
        return leaves, entries

    def _whole_log(self) -> tuple[tuple[bytes, ...], tuple[Entry, ...]]:
        """Everything handed over; what the verifier derived from it must agree."""
        entries = tuple(read_handover(BytesIO(self.item(items.RECORDS, "log"))))
        leaves, listed = self._public_log()
        check_leaves(entries, leaves)
        other = [entry for entry in entries if entry.kind != Record.KIND]
        if len(entries) != len(leaves) or tuple(other) != listed:
            raise RejectedError("leaves and entries are not those that were handed over")
        return leaves, entries

    @fact("log")
    def final(self) -> CosignedCheckpoint:
        """The final checkpoint, both signatures checked."""
        data = self.item(items.FINAL_CHECKPOINT, "log")
        return verify_cosigned(data, self.policy.keys.log, self.cosigners)

    @property
    def final_time(self) -> int:
        """When the final checkpoint was cosigned, Unix seconds."""
        return self.final.quorum_time

    @fact("log")
    def close(self) -> Close:
        """The close entry's body."""
        entries = self.log.entries
        if not entries:
            raise MalformedError("the log is empty")
        return read_close(entries[-1])

    @fact("log")
    def registrations(self) -> tuple[LoggedRegistration, ...]:
        """All registrations in log order."""
        return tuple(map(read_registration, self.log.of_kind(Registration.KIND)))

    @fact("log")
    def records(self) -> tuple[LoggedRecord, ...]:
        """All records in log order."""
        if self.part == "public":
            raise MissingInput(CONFIDENTIAL_PART, "records are confidential")
        return tuple(map(read_record, self.log.of_kind(Record.KIND)))

    @property
    def record_count(self) -> int:
        """Number of records, known from the public part too."""
        log = self.log
        if self.part == "public":
            return len(log.leaves) - len(log.entries)
        return len(self.records)

    @fact("log")
    def by_account(self) -> Mapping[bytes, tuple[LoggedRecord, ...]]:
        """Records by pseudonym, in log order."""
        found: dict[bytes, list[LoggedRecord]] = {}
        for each in self.records:
            found.setdefault(each.record.pseudonym, []).append(each)
        return {pseudonym: tuple(records) for pseudonym, records in found.items()}

    @fact("log")
    def registered(self) -> Mapping[bytes, tuple[LoggedRegistration, ...]]:
        """Registrations by pseudonym."""
        found: dict[bytes, list[LoggedRegistration]] = {}
        for each in self.registrations:
            found.setdefault(each.registration.pseudonym, []).append(each)
        return {pseudonym: tuple(each) for pseudonym, each in found.items()}

    def registration(self, pseudonym: bytes) -> LoggedRegistration:
        """Return the one registration of an account.

        Raises:
            MissingInput: `schedule` without one, `registrations` with more than one.
        """
        found = self.registered.get(pseudonym, ())
        if not found:
            raise MissingInput("schedule", f"account {pseudonym.hex()} was never registered")
        if len(found) > 1:
            raise MissingInput("registrations", f"account {pseudonym.hex()} is registered twice")
        return found[0]
