"""What was fixed before the window (policy, opening, index commitments), and the log handed over.

Leaves, entries and decoded bodies are owned by check 5. What is handed over is read entry by entry;
there stays what the classes of `logged` keep.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import ColumnArrays
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignedCheckpoint, CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.tree import HASH_BYTES, MAX_TREE_SIZE, MemoryTree
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.challenge import Countersignature, opening_digest
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.entries import (
    Accounts,
    Close,
    Documents,
    Epoch,
    Opening,
    Record,
    TenantOpening,
    Version,
    parse_body,
)
from ragaudit.ledger.messages.evidence import Entries, OverlappingWindow, Overlaps, overlap
from ragaudit.ledger.messages.handover import Entry, read_frames
from ragaudit.ledger.messages.items import OpeningItem, PreviousWindow
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.schedules import EpochSchedule, VersionSchedule
from ragaudit.verifier.procedure.facts import (
    CONFIDENTIAL_PART,
    Inputs,
    MissingInput,
    demand,
    fact,
    known_or_missing,
)
from ragaudit.verifier.procedure.indexes import check_place, verify_argument
from ragaudit.verifier.procedure.logged import (
    AccountRecords,
    EntryColumns,
    LoggedEntries,
    LoggedRecords,
    LoggedRegistrations,
    RegistrationSummary,
)
from ragaudit.verifier.terms import Terms


class OpeningFacts(Inputs):
    """Facts that checks 1, 3 and 4 own."""

    @fact("policy")
    def policy(self) -> Policy:
        """The parsed policy."""
        return Policy.parse(self.item(items.POLICY, "policy"))

    @fact("policy")
    def policy_digest(self) -> bytes:
        """C_policy."""
        return self.policy.digest

    @fact("policy")
    def tenants(self) -> frozenset[str]:
        """The policy's tenants."""
        return frozenset(self.policy.tenants)

    @fact("policy")
    def countersignature(self) -> Countersignature:
        """The verifier's countersignature, its signature checked."""
        found = Countersignature.parse(self.item(items.COUNTERSIGNATURE, "policy"))
        found.verify(self.policy.keys.verifier)
        return found

    @fact("policy")
    def terms(self) -> Terms:
        """The verifier's terms; after the countersignature, those that it names."""
        found = Terms.parse(self.item(items.TERMS, "policy"))
        # The verifier cannot relax its terms for one window once it has countersigned them.
        if self.now is None and found.digest != self.countersignature.terms_digest:
            raise RejectedError("other terms than were countersigned", where=items.TERMS)
        return found

    @fact("policy")
    def previous(self) -> PreviousWindow:
        """What the verifier holds of the window whose final checkpoint the policy names."""
        # Not a missing item: the verifier has no such window, so nothing that it saw ends there.
        if items.PREVIOUS not in self.evidence:
            raise RejectedError("of a window that this verifier does not know")
        return self.parsed(items.PREVIOUS, "policy", _previous)

    @fact("policy")
    def overlapping(self) -> tuple[OverlappingWindow, ...]:
        """The windows of this provider at the same time, as the verifier countersigned them."""
        if items.OVERLAPS not in self.evidence:
            return ()
        found = self.parsed(items.OVERLAPS, "policy", Overlaps.parse).messages
        for each in found:
            if not overlap(self.policy, each.policy):
                raise RejectedError("does not overlap", where=f"window {each.policy.window}")
        return found

    @property
    def cosigners(self) -> CosignerPolicy:
        """The one cosigner of the policy."""
        return CosignerPolicy((self.policy.keys.cosigner,), 1)

    @fact("commitments")
    def opening_item(self) -> OpeningItem:
        """Salt and body of the opening as it was countersigned."""
        return self.parsed(items.OPENING, "commitments", OpeningItem.parse)

    @fact("commitments")
    def opening_digest(self) -> bytes:
        """What a countersignature of this opening names."""
        return opening_digest(self.opening_item.salt, self.opening_item.body)

    @fact("commitments")
    def opening(self) -> Opening:
        """The opening entry's body."""
        return Opening.parse(self.opening_item.body)

    @fact("commitments")
    def opened(self) -> Mapping[str, TenantOpening]:
        """What the opening says of each tenant."""
        return {opened.tenant: opened for opened in self.opening.tenants}

    @fact("commitments")
    def embedder_manifest(self) -> EmbedderManifest:
        """The manifest at hand, which is for the policy's dimension and questions."""
        try:
            manifest = EmbedderManifest.parse(self.item(items.EMBEDDER, "commitments"))
        except MalformedError as error:
            what = f"not an embedder's manifest: {error.what}"
            raise MalformedError(what, where=items.EMBEDDER, expected=error.expected) from error
        # C_emb alone would bind a manifest that no index of this window can be made with.
        if manifest.dimension != self.policy.dimension:
            raise RejectedError(
                "embedder of another dimension", expected=str(self.policy.dimension)
            )
        # Nobody could say what the vector of a text should be: A1 of such records is never shown.
        if manifest.kind == "none" and "text" in self.policy.retrieval.query_kinds:
            raise RejectedError("no embedder, and a policy with texts", expected="vectors alone")
        return manifest

    @fact("commitments")
    def embedder_digest(self) -> bytes:
        """C_emb of the manifest at hand."""
        return self.embedder_manifest.digest()

    @property
    def unnoised(self) -> bool:
        """Whether the policy can be read and adds no noise: some rules do not apply then (9.7)."""
        try:
            return not self.policy.noised
        except MissingInput:
            return False

    def stated_index(self, tenant: str, version: int) -> TenantOpening:
        """Return what opening or log say of a version of a tenant's index.

        Args:
            tenant: of the policy.
            version: 1 is the opening's.

        Raises:
            MissingInput: `commitments` without an opening that can be read, or that has not the
                tenant; `schedule` for a version that there is not.
        """
        if version != 1:
            raise MissingInput("schedule", f"there is no version {version} of {tenant}")
        if tenant not in self.opened:
            raise MissingInput("commitments", f"the opening has no index of {tenant}")
        return self.opened[tenant]

    def index(self, tenant: str, version: int = 1) -> IndexCommitment:
        """Return a version of the tenant's index commitment, as opening or log name it.

        Raises:
            MissingInput: `registrations` for a tenant that the policy has not, `schedule` for a
                version that there is not, `commitments` without an index that can be read.
        """
        if tenant not in self.tenants:
            raise MissingInput("registrations", f"tenant {tenant} is not in the policy")
        place = tenant, version
        if place not in self._indices:
            self._indices[place] = known_or_missing(
                "commitments", lambda: self._read_index(*place), _called(*place)
            )
        return demand(self._indices[place])

    def _read_index(self, tenant: str, version: int) -> IndexCommitment:
        stated = self.stated_index(tenant, version)
        index = IndexCommitment.parse(self.item(items.index_name(tenant, version), "commitments"))
        check_place(index, self.policy, tenant, version)
        by = "opening" if version == 1 else "log"
        if index.rows != stated.rows:
            raise RejectedError(f"{index.rows} rows uploaded, {stated.rows} in the {by}")
        if index.root != stated.index_root:
            raise RejectedError(f"root is not the {by}'s", expected=stated.index_root.hex())
        if index.proof_digest != stated.proof_digest:
            raise RejectedError(f"proof is not the {by}'s", expected=stated.proof_digest.hex())
        # Read once: filters of all sampled records are evaluated on them.
        self._columns[tenant, version] = ColumnArrays(index.column_values(self.policy))
        return index

    def column_arrays(self, tenant: str, version: int) -> ColumnArrays:
        """Return the public columns of the N rows of a version; raises as `index`."""
        self.index(tenant, version)
        return self._columns[tenant, version]

    def accepted_index(self, tenant: str, version: int = 1) -> IndexCommitment:
        """Return a version of the tenant's index with its argument verified.

        Raises:
            MissingInput: `index-proof` where it does not hold; otherwise as for :meth:`index`.
        """
        index, place = self.index(tenant, version), (tenant, version)
        # Once: an argument about a large index takes minutes, and every sampled record asks.
        if place not in self._accepted:
            self._accepted[place] = known_or_missing(
                "index-proof", lambda: self._verified(index), _called(*place)
            )
        return demand(self._accepted[place])

    def _verified(self, index: IndexCommitment) -> IndexCommitment:
        verify_argument(index, self.policy, self.engine)
        return index


def _called(tenant: str, version: int) -> str:
    return f"index of {tenant}" if version == 1 else f"index of {tenant}, version {version}"


def _previous(data: bytes) -> PreviousWindow:
    return PreviousWindow.from_json(canonical_json.loads(data))


_TILE_LEAVES: Final = 256  # read at a time


@dataclass(frozen=True, slots=True)
class Log:
    """All leaves, and the entries other than records.

    Attributes:
        entries: other than records, in log order.
        columns: what is kept of these by account.
        records: None in the public part, which has none.
    """

    tree: MemoryTree
    entries: LoggedEntries = field(repr=False)
    columns: EntryColumns = field(repr=False)
    records: LoggedRecords | None = field(repr=False)

    @property
    def size(self) -> int:
        """Number of entries, records included."""
        return self.tree.size

    @property
    def first(self) -> Entry | None:
        """Entry 0, if it is no record."""
        return self.entries[0] if len(self.entries) and not self.entries.index(0) else None

    @property
    def last(self) -> Entry | None:
        """The last entry, if it is no record; in the public part the last one at hand."""
        last = self.entries[-1] if len(self.entries) else None
        if last is None or self.records is None or last.index == self.size - 1:
            return last
        return None

    @property
    def before_last(self) -> Entry | None:
        """The entry right before `last`, if it is no record."""
        if self.last is None or len(self.entries) < 2:
            return None
        before = self.entries[-2]
        return before if before.index == self.last.index - 1 else None

    @property
    def lists(self) -> tuple[Entry, ...]:
        """The documents entries right before accounts entry or close, in log order."""
        before = self.before_last
        end = len(self.entries) - 1
        if before is not None and before.kind == Accounts.KIND:
            end -= 1
        start = end
        while start > 0 and self._lists(start - 1):
            start -= 1
        return tuple(self.entries[at] for at in range(start, end))

    def _lists(self, position: int) -> bool:
        """Whether an entry is a documents entry, and nothing stands between it and the next."""
        entries = self.entries
        follows = entries.index(position) + 1 == entries.index(position + 1)
        return follows and entries.kind(position) == Documents.KIND

    def of_kind(self, kind: str) -> Iterator[Entry]:
        """Return the entries of a kind other than record, in log order."""
        return self.entries.of_kind(kind)


class LogFacts(OpeningFacts):
    """Facts that check 5 owns."""

    @fact("log")
    def log(self) -> Log:
        """The log: every body rehashes, the leaves give the final root, every body decodes."""
        entries = LoggedEntries(self.open_item(items.ENTRIES, "log"))
        unreadable: list[MalformedError] = []
        with closing(self.open_item(items.LEAVES, "log")) as leaves:
            log = self._public_log(leaves, entries, unreadable)
            if self.part == "all":
                log = self._whole_log(leaves, log, unreadable)
        # Its signatures are another fact (`final`): of a log under a bad signature the other checks
        # can still say what is in it.
        head = parse_checkpoint(self.item(items.FINAL_CHECKPOINT, "log")).head
        if head.size != log.size:
            raise RejectedError(
                f"{log.size} entries handed over", expected=f"{head.size} as in the checkpoint"
            )
        if log.tree.root() != head.root_hash:
            raise RejectedError(
                "what was handed over gives another root", expected=head.root_hash.hex()
            )
        # Not before: of bodies that are not the log's nobody need say that they are malformed.
        if unreadable:
            raise unreadable[0]
        return log

    def _public_log(
        self, leaves: BinaryIO, entries: LoggedEntries, unreadable: list[MalformedError]
    ) -> Log:
        columns, rejected = EntryColumns.of(entries), None
        for entry, start, end in self.located(items.ENTRIES, "log", Entries):
            position = entries.add(entry, start, end)
            # Whether the list is one at all is said first, wherever it ceases to be one.
            try:
                _check_leaf(leaves, entry)
            except RejectedError as error:
                rejected = rejected or error
            # The opening's is check 3's.
            if entry.kind == "opening" or rejected:
                continue
            try:
                columns.add(position, parse_body(entry.kind, entry.body))
            except MalformedError as error:
                _note(unreadable, entry, error)
        log = Log(MemoryTree(_read_leaves(leaves)), entries, columns, None)
        if rejected is not None:
            raise rejected
        return log

    def _whole_log(self, leaves: BinaryIO, public: Log, unreadable: list[MalformedError]) -> Log:
        """Everything handed over; what the verifier derived from it must agree."""
        handover = self.open_item(items.RECORDS, "log")
        records = LoggedRecords(handover)
        others, count = iter(public.entries.indices), 0
        leaves.seek(0)
        for entry, offset in read_frames(handover):
            count += 1
            if entry.leaf != leaves.read(HASH_BYTES):
                raise RejectedError("rehashes to another leaf", where=f"entry {entry.index}")
            if entry.kind == Record.KIND:
                try:
                    records.add(entry, offset)
                except MalformedError as error:
                    _note(unreadable, entry, error)
            # Leaves and entries are what the public part has: if they said less than the handover,
            # a verdict re-checked from the public part would speak of another log. Both rehash to
            # the leaf at their index: of one index, they are one entry.
            elif entry.index != next(others, None):
                raise RejectedError("entries are not those that were handed over")
        if count != public.size or next(others, None) is not None:
            raise RejectedError("leaves and entries are not those that were handed over")
        return Log(public.tree, public.entries, public.columns, records)

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
        log = self.log
        if not log.size:
            raise MalformedError("the log is empty")
        # A log without its close has an end that the provider can still move.
        if log.last is None or log.last.kind != Close.KIND:
            where = f"entry {log.size - 1 if log.last is None else log.last.index}"
            raise MalformedError("the last entry is not the close", where=where)
        return Close.parse(log.last.body)

    @fact("log")
    def registrations(self) -> LoggedRegistrations:
        """All registrations in log order; check 7 says that each account has one."""
        return self.log.columns.registrations

    @fact("log")
    def records(self) -> LoggedRecords:
        """All records in log order."""
        records = self.log.records
        if records is None:
            # Nobody's fault: NOT RUN, and a re-check lists it as not repeated.
            raise MissingInput(CONFIDENTIAL_PART, "records are confidential")
        return records

    @property
    def record_count(self) -> int:
        """Number of records, known from the public part too."""
        return self.log.size - len(self.log.entries)

    @property
    def record_places(self) -> npt.NDArray[np.int64]:
        """Log indices of the records, rising; known from the public part too."""
        records = np.ones(self.log.size, dtype=bool)
        records[self.log.entries.indices] = False
        return np.flatnonzero(records)

    @fact("log")
    def by_account(self) -> AccountRecords:
        """Records by pseudonym, in log order."""
        return self.records.by_account()

    @property
    def version_count(self) -> int:
        """Number of version entries."""
        return self.log.entries.count(Version.KIND)

    @property
    def null_row_count(self) -> int:
        """Number of rows that the last version of each tenant's index marks as null rows."""
        return sum(self.column_arrays(*place).null_rows for place in self.last_places.items())

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
        return self.log.entries.count(Epoch.KIND)

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

    @property
    def last_places(self) -> dict[str, int]:
        """The last version that the log has of each tenant's index, in policy order.

        Raises:
            MissingInput: as for `index_places`.
        """
        return dict(self.index_places)  # tenants and versions rise

    @property
    def last_rows(self) -> dict[str, int]:
        """N of the last version of each tenant's index, in policy order.

        Raises:
            MissingInput: as for `index_places`, and `commitments` where an index is not at hand.
        """
        return {place[0]: self.index(*place).rows for place in self.last_places.items()}

    def registration(self, pseudonym: bytes) -> RegistrationSummary:
        """Return what is kept of the one registration of an account.

        Raises:
            MissingInput: `schedule` without one, `registrations` with more than one.
        """
        found, more = self.registrations.first(pseudonym)
        if found is None:
            raise MissingInput("schedule", f"account {pseudonym.hex()} was never registered")
        if more:
            raise MissingInput("registrations", f"account {pseudonym.hex()} is registered twice")
        return found


def _read_leaves(file: BinaryIO) -> Iterator[bytes]:
    """Leaf data of ``public/leaves.bin``; MalformedError unless they are 32 bytes each."""
    file.seek(0)
    while tile := file.read(_TILE_LEAVES * HASH_BYTES):
        if len(tile) % HASH_BYTES:
            raise MalformedError("leaves are cut short", expected="32 bytes each")
        for at in range(0, len(tile), HASH_BYTES):
            yield tile[at : at + HASH_BYTES]


def _check_leaf(leaves: BinaryIO, entry: Entry) -> None:
    """RejectedError unless the entry rehashes to the leaf at its index."""
    leaves.seek(min(entry.index, MAX_TREE_SIZE // HASH_BYTES) * HASH_BYTES)
    if entry.leaf != leaves.read(HASH_BYTES):
        raise RejectedError("rehashes to another leaf", where=f"entry {entry.index}")


def _note(unreadable: list[MalformedError], entry: Entry, error: MalformedError) -> None:
    """Keep the first error, with the entry that it is about."""
    if not unreadable:
        where = f"entry {entry.index}"
        unreadable.append(MalformedError(error.what, where=where, expected=error.expected))
