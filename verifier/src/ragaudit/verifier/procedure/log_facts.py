"""The window's log as the procedure sees it: leaves, entries, decoded bodies, owned by check 5."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final, TypeVar

from ragaudit.encoding.digests import SALT_BYTES, salted
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, verify_cosigned
from ragaudit.ledger.log.tree import HASH_BYTES, MemoryTree
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.epochs import EpochSchedule
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.ledger.messages.records import (
    Close,
    Record,
    Registration,
    TenantOpening,
    Version,
    parse_body,
)
from ragaudit.ledger.messages.versions import VersionSchedule
from ragaudit.verifier.procedure.facts import CONFIDENTIAL_PART, MissingInput, fact
from ragaudit.verifier.procedure.opening_facts import OpeningFacts

_RECORD_TAG: Final = "ragaudit/v1/entry/record"
_RECORD_FIELDS: Final = 19

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record in the log.

    Attributes:
        body: its bytes without an eager proof digest, which is what a proof is bound to.
        eager: whether the body names an eager proof, which version 1 has not.
    """

    index: int
    record: Record
    body: bytes = field(repr=False)
    eager: bool
    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"record {self.index}"

    @property
    def committed_sketch_digest(self) -> bytes | None:
        """H(salt_s, sketch) of the handover, None for a salt of another length."""
        return salted(self.salt_s, self.sketch) if len(self.salt_s) == SALT_BYTES else None


@dataclass(frozen=True, slots=True)
class LoggedRegistration:
    """A registration in the log."""

    index: int
    registration: Registration

    @property
    def name(self) -> str:
        """What findings call it."""
        return f"registration {self.index}"


@dataclass(frozen=True, slots=True)
class Log:
    """All leaves, and the entries that are at hand: without records in the public part."""

    tree: MemoryTree
    leaves: tuple[bytes, ...] = field(repr=False)
    entries: tuple[Entry, ...] = field(repr=False)

    def of_kind(self, kind: str) -> Iterator[Entry]:
        """Return the entries of a kind that are at hand, in log order."""
        return (entry for entry in self.entries if entry.kind == kind)


class LogFacts(OpeningFacts):
    """Facts that check 5 owns."""

    @fact("log")
    def log(self) -> Log:
        """The log: every body rehashes, the leaves give the final root, every body decodes."""
        leaves, entries = self._public_log() if self.part == "public" else self._whole_log()
        # Its signatures are another fact (`final`): of a log under a bad signature the other checks
        # can still say what is in it.
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
        _check_bodies(entries)
        return Log(tree, leaves, entries)

    def _public_log(self) -> tuple[tuple[bytes, ...], tuple[Entry, ...]]:
        leaves = _split_leaves(self.item(items.LEAVES, "log"))
        entries = self.parsed(items.ENTRIES, "log", Entries.parse).messages
        _check_leaves(entries, leaves)
        return leaves, entries

    def _whole_log(self) -> tuple[tuple[bytes, ...], tuple[Entry, ...]]:
        """Everything handed over; what the verifier derived from it must agree."""
        entries = tuple(read_handover(BytesIO(self.item(items.RECORDS, "log"))))
        leaves, public = self._public_log()
        _check_leaves(entries, leaves)
        other = [entry for entry in entries if entry.kind != Record.KIND]
        # Leaves and entries are what the public part has: if they said less than the handover, a
        # verdict re-checked from the public part would speak of another log.
        if len(entries) != len(leaves) or tuple(other) != public:
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
        # A log without its close has an end that the provider can still move.
        if entries[-1].kind != Close.KIND:
            where = f"entry {entries[-1].index}"
            raise MalformedError("the last entry is not the close", where=where)
        return Close.parse(entries[-1].body)

    @fact("log")
    def registrations(self) -> tuple[LoggedRegistration, ...]:
        """All registrations in log order."""
        return tuple(
            LoggedRegistration(entry.index, Registration.parse(entry.body))
            for entry in self.log.of_kind(Registration.KIND)
        )

    @fact("log")
    def records(self) -> tuple[LoggedRecord, ...]:
        """All records in log order."""
        if self.part == "public":
            # Nobody's fault: NOT RUN, and a re-check lists it as not repeated.
            raise MissingInput(CONFIDENTIAL_PART, "records are confidential")
        return tuple(map(read_record, self.log.of_kind(Record.KIND)))

    @property
    def record_count(self) -> int:
        """Number of records, known from the public part too."""
        log = self.log
        if self.part == "public":
            return len(log.leaves) - len(log.entries)
        return len(self.records)

    @property
    def record_places(self) -> tuple[int, ...]:
        """Log indices of the records, rising; known from the public part too."""
        others = {entry.index for entry in self.log.entries if entry.kind != Record.KIND}
        return tuple(at for at in range(len(self.log.leaves)) if at not in others)

    @fact("log")
    def by_account(self) -> Mapping[bytes, tuple[LoggedRecord, ...]]:
        """Records by pseudonym, in log order."""
        return _grouped((logged.record.pseudonym, logged) for logged in self.records)

    @fact("log")
    def registered(self) -> Mapping[bytes, tuple[LoggedRegistration, ...]]:
        """Registrations by pseudonym, in log order; check 7 says that each has one."""
        return _grouped((one.registration.pseudonym, one) for one in self.registrations)

    @property
    def version_count(self) -> int:
        """Number of version entries."""
        return sum(1 for _ in self.log.of_kind(Version.KIND))

    @property
    def null_row_count(self) -> int:
        """Number of rows that the last version of each tenant's index marks as null rows."""
        last = dict(self.index_places)  # versions rise
        return sum(self.column_arrays(*place).null_rows for place in last.items())

    @fact("log")
    def version_entries(self) -> tuple[tuple[int, Version], ...]:
        """(log index, body) of version entries; none under a policy that allows none."""
        if not self.policy.retrieval.versions:
            return ()
        entries = self.log.of_kind(Version.KIND)
        return tuple((entry.index, Version.parse(entry.body)) for entry in entries)

    @fact("schedule")
    def version_order(self) -> VersionSchedule:
        """Versions as opening and log have them, whatever activated them (9.8).

        All or none: what a tenant's versions are, after one that does not follow, nobody can say.
        """
        return VersionSchedule.of(self.policy, self.opening, self.version_entries, ())

    @property
    def epoch_count(self) -> int:
        """Number of epoch entries."""
        return sum(1 for _ in self.log.of_kind(Epoch.KIND))

    @fact("log")
    def epoch_entries(self) -> tuple[tuple[int, Epoch], ...]:
        """(log index, body) of epoch entries; none under a policy that allows none."""
        if not self.policy.epochs:
            return ()
        entries = self.log.of_kind(Epoch.KIND)
        return tuple((entry.index, Epoch.parse(entry.body)) for entry in entries)

    @fact("schedule")
    def epoch_order(self) -> EpochSchedule:
        """Seed epochs as opening and log have them, whatever activated them (9.9)."""
        return EpochSchedule.of(self.policy, self.opening, self.epoch_entries, ())

    def seed_root(self, epoch: int) -> bytes:
        """Return C_seed of an epoch, 32 bytes, as opening or log say.

        Args:
            epoch: 1 is the opening's.

        Raises:
            MissingInput: `commitments` without an opening that can be read; `schedule` for an
                epoch that there is not.
        """
        if epoch == 1:
            return self.opening.seed_root
        later = {body.epoch: body.seed_root for _, body in self.epoch_entries}
        if epoch not in later:
            raise MissingInput("schedule", f"there is no epoch {epoch}")
        return later[epoch]

    def stated_index(self, tenant: str, version: int) -> TenantOpening:
        """Return what opening or log say of a version of a tenant's index.

        Args:
            tenant: of the policy.
            version: 1 is the opening's.

        Raises:
            MissingInput: `commitments` without an opening that can be read, or that has not the
                tenant; `schedule` for a version that there is not.
        """
        if version == 1 or self.now is not None:
            return super().stated_index(tenant, version)
        if (tenant, version) not in self._stated:
            raise MissingInput("schedule", f"there is no version {version} of {tenant}")
        return self._stated[tenant, version]

    @fact("schedule")
    def _stated(self) -> Mapping[tuple[str, int], TenantOpening]:
        found = [logged.index for logged in self.version_order.versions]
        return {(index.tenant, index.version): index for index in found}

    @property
    def index_places(self) -> tuple[tuple[str, int], ...]:
        """(tenant, version) of every index of the window, by tenant and version.

        Raises:
            MissingInput: as for `version_order`; not before there is a log.
        """
        places = {(tenant, 1) for tenant in self.policy.tenants}
        if self.now is None and self.version_entries:
            places |= self._stated.keys()
        return tuple(sorted(places))

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


def read_record(entry: Entry) -> LoggedRecord:
    """Return the record of an entry of kind record, also of one that names an eager proof.

    Raises:
        MalformedError: its body is none.
    """
    body, eager = entry.body, False
    fields = decode(_RECORD_TAG, body, _RECORD_FIELDS)
    # Version 1 has no eager proofs. That a body names one is check 10's fault; a body that nobody
    # can read would be check 5's, and would stop all others.
    if fields[-1]:
        body, eager = enc(_RECORD_TAG, *fields[:-1], None), True
    record = Record.parse(body)
    return LoggedRecord(entry.index, record, body, eager, entry.salt_s, entry.sketch)


def _split_leaves(data: bytes) -> tuple[bytes, ...]:
    """MalformedError unless the leaves of ``public/leaves.bin`` are 32 bytes each."""
    if len(data) % HASH_BYTES:
        raise MalformedError("leaves are cut short", expected="32 bytes each")
    return tuple(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES))


def _grouped(pairs: Iterable[tuple[bytes, _T]]) -> dict[bytes, tuple[_T, ...]]:
    groups: dict[bytes, list[_T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}


def _check_leaves(entries: tuple[Entry, ...], leaves: tuple[bytes, ...]) -> None:
    """RejectedError unless every entry rehashes to the leaf at its index."""
    for entry in entries:
        if entry.index >= len(leaves) or entry.leaf != leaves[entry.index]:
            raise RejectedError("rehashes to another leaf", where=f"entry {entry.index}")


def _check_bodies(entries: tuple[Entry, ...]) -> None:
    """MalformedError for a body that is none of its kind; the opening's is check 3's."""
    for entry in entries:
        try:
            if entry.kind == Record.KIND:
                read_record(entry)
            elif entry.kind != "opening":
                parse_body(entry.kind, entry.body)
        except MalformedError as error:
            where = f"entry {entry.index}"
            raise MalformedError(error.what, where=where, expected=error.expected) from error
