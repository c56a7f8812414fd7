"""Checkpoints of a stored log: signed over what was read back, cosigned later, served.

A log must never sign two inconsistent checkpoints. So `sign` (1) reads, in one transaction, the
committed head and every entry since the last signed checkpoint, (2) recomputes tiles and root
from these entries and the last signed root, (3) signs, (4) stores the note only if the last
checkpoint is still the one it started from. A note that was not stored is never handed out.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from ragaudit.ledger.errors import (
    CheckpointConflict,
    CorruptLog,
    NoteRejected,
    RestoredBackup,
    UnknownResource,
)
from ragaudit.ledger.log import schema
from ragaudit.ledger.log.advisory import SILENT_SECONDS
from ragaudit.ledger.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    sign_checkpoint,
    verify_checkpoint,
)
from ragaudit.ledger.log.cosignatures import (
    CosignerPolicy,
    cosignature_time,
    verify_cosignature,
    verify_cosigned,
)
from ragaudit.ledger.log.database import Prepared, read_transaction, write_transaction
from ragaudit.ledger.log.notes import Note, NoteSignature, SigningKey, VerifierKey
from ragaudit.ledger.log.store import Leaves, LogStore
from ragaudit.ledger.log.tiles import (
    TILE_WIDTH,
    EntryBundle,
    encode_entry_bundle,
    parse_path,
    tile_at,
)
from ragaudit.ledger.log.tlog_policy import QuorumFinding, TrustPolicy
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import verify_consistency
from sqlalchemy import Connection, bindparam, insert, select, update

_TABLE, _HEAD = schema.checkpoint, schema.log_head
_OF_LOG = _TABLE.c.log_id == bindparam("log")
_OF_SIZE = _OF_LOG & (_TABLE.c.size == bindparam("at_size"))
_NOTE = Prepared(select(_TABLE.c.note).where(_OF_SIZE))
_LOCKED_NOTE = Prepared(select(_TABLE.c.note).where(_OF_SIZE).with_for_update())
_SIZES = (
    select(_TABLE.c.size)
    .where(_OF_LOG, _TABLE.c.cosignatures >= bindparam("least"), _TABLE.c.size > bindparam("above"))
    .where(_TABLE.c.quorum >= bindparam("quorum"))
    .limit(1)
)
_LARGEST = Prepared(_SIZES.order_by(_TABLE.c.size.desc()))
_SMALLEST = Prepared(_SIZES.order_by(_TABLE.c.size.asc()))
_COSIGN = Prepared(
    update(_TABLE)
    .where(_OF_SIZE)
    .values(
        note=bindparam("new_note"), cosignatures=bindparam("count"), quorum=bindparam("reached")
    )
)
_ADVANCE = Prepared(
    update(_HEAD)
    .where(_HEAD.c.log_id == bindparam("log"), _HEAD.c.checkpoint_size == bindparam("expected"))
    .values(checkpoint_size=bindparam("new_size"))
)
_INSERT = Prepared(insert(_TABLE))

Permit = Callable[[Connection], None]


class CheckpointStore:
    """The checkpoints of one log."""

    def __init__(
        self, store: LogStore, cosigners: CosignerPolicy, asked: TrustPolicy | None = None
    ) -> None:
        """Use a log; cosignatures are kept of known cosigners only.

        Args:
            store: of the log.
            cosigners: without whose quorum nothing is shown to anybody.
            asked: further cosigners and their quorum, without which things are shown too.
        """
        self._store = store
        self._cosigners = cosigners
        self.asked = asked
        further = () if asked is None else asked.keys
        self._known = tuple(dict.fromkeys((*cosigners.keys, *further)))
        self._log = store.rows.log_id

    def sign(
        self, key: SigningKey, again: Leaves | None = None, permit: Permit | None = None
    ) -> SignedCheckpoint:
        """Return a stored, signed checkpoint of the committed tree; the last one if it is.

        Args:
            key: of the log, type 0x01.
            again: makes the leaves again from what they commit to, see `LogStore.audit`.
            permit: asked in the transaction that stores the checkpoint; raises if this process may
                not sign any more.

        Raises:
            CorruptLog: entries, tiles, head and the last signed checkpoint do not agree.
            CheckpointConflict: another process stored a checkpoint meanwhile.
            NoteRejected: ``key`` is not this log's.
        """
        with read_transaction(self._store.engine) as connection:
            last = self._latest(connection)
            head = self._store.audit(last.head if last else None, again, connection)
            if last and last.head == head:
                return last
            if last:
                proof = self._store.consistency_proof(last.head.size, head.size, connection)
                # With the verifier's own code: what we would reject of others is not signed.
                verify_consistency(old=last.head, new=head, proof=proof)
        signed = sign_checkpoint(Checkpoint(self._store.log_key.name, head), key)
        # Never store what others could not read, or a signature of another key.
        verify_checkpoint(signed.encode(), self._store.log_key)
        self._insert(signed, last.head.size if last else schema.NO_CHECKPOINT, permit)
        return signed

    def compare(self, note: bytes) -> int:
        """Check that the log goes on from a checkpoint that was published; return its last time.

        Args:
            note: the largest checkpoint that a cosigner shows of this log, as received.

        Returns:
            The latest time among its cosignatures, Unix seconds; 0 if the policy asks for none.

        Raises:
            MalformedNote, NoteRejected: not a checkpoint of this log with a quorum.
            RestoredBackup: the log is behind it, or holds another history.
        """
        seen = verify_cosigned(note, self._store.log_key, self._cosigners)
        head, where = seen.signed.head, self._store.log_key.name
        try:
            root = self._store.root(head.size)
        except UnknownResource:
            raise RestoredBackup(
                "the cosigner has seen a larger tree",
                where=where,
                expected=f"{head.size} entries",
            ) from None
        if root != head.root_hash:
            raise RestoredBackup(
                "the cosigner has seen another history", where=where, expected="its root"
            )
        return max((line.timestamp for line in seen.cosignatures), default=0)

    def add_cosignatures(self, size: int, lines: Iterable[NoteSignature]) -> SignedCheckpoint:
        """Add the verified cosignatures among ``lines`` to a checkpoint, and return it. Idempotent.
        Args:
            size: of the checkpoint.
            lines: those of unknown keys are dropped.

        Raises:
            UnknownResource: no checkpoint of this size was signed.
            NoteRejected: a line of a known cosigner does not verify.
        """
        with self._write() as connection:
            signed = self._read(connection, size, lock=True)
            text = signed.note.text
            pairs = [(line, key) for line in lines for key in self._known if line.by(key)]
            for line, key in pairs:
                # Before it is kept: a false line of a known cosigner makes the whole note
                # unreadable to all.
                verify_cosignature(text, line, key)
            note = signed.note.with_signatures(line for line, _ in pairs)
            signed = SignedCheckpoint(signed.checkpoint, note)
            count, reached = self._standing(signed)
            _COSIGN.change(
                connection,
                log=self._log,
                at_size=size,
                new_note=note.encode(),
                count=count,
                reached=reached,
            )
        return signed

    def _standing(self, signed: SignedCheckpoint) -> tuple[int, bool]:
        """Return what is stored beside a note: by it rows are found, and nothing is believed."""
        keys = self._cosigners.keys
        count = sum(signed.note.signature_of(key) is not None for key in keys)
        found = self.finding(signed) if count >= self._cosigners.quorum else None
        return count, found is not None and found.reached

    def latest(self, cosignatures: int = 0, *, quorum: bool = False) -> SignedCheckpoint | None:
        """Return the largest signed checkpoint with at least so many cosignatures, or None.

        Args:
            cosignatures: 0: any signed checkpoint, also one that nobody may see yet (6.2).
            quorum: only one with the quorum that is asked, too.
        """
        with read_transaction(self._store.engine) as connection:
            return self._latest(connection, cosignatures, quorum=quorum)

    def _latest(
        self, connection: Connection, cosignatures: int = 0, *, quorum: bool = False
    ) -> SignedCheckpoint | None:
        size = self._size(connection, cosignatures, quorum=quorum, largest=True)
        return None if size is None else self._read(connection, size)

    def reached(self, above: int, most: int) -> list[SignedCheckpoint]:
        """Return the checkpoints with the quorum that is asked, by rising size.

        Args:
            above: size of the largest that is left out.
            most: of them, the smallest ones.
        """
        found: list[SignedCheckpoint] = []
        with read_transaction(self._store.engine) as connection:
            while len(found) < most:
                size = self._size(connection, self._cosigners.quorum, quorum=True, above=above)
                if size is None:
                    break
                found.append(self._read(connection, size))
                above = size
        return found

    def cosigned(self) -> SignedCheckpoint | None:
        """Return the largest checkpoint with a quorum, which everybody may see; None before it."""
        return self.latest(self._cosigners.quorum)

    def root(self, size: int) -> bytes:
        """Return the root of the first ``size`` leaves, as `LogStore.root`."""
        return self._store.root(size)

    def at(self, size: int) -> SignedCheckpoint:
        """Return the signed checkpoint of ``size``.

        Args:
            size: in leaves.

        Raises:
            UnknownResource: there is none.
        """
        with read_transaction(self._store.engine) as connection:
            return self._read(connection, size)

    def covering(self, index: int) -> SignedCheckpoint | None:
        """Return the smallest checkpoint with leaf ``index`` and a quorum, or None.

        One with the quorum that is asked goes before smaller ones without it.

        Args:
            index: of the leaf, from 0.
        """
        least = self._cosigners.quorum
        with read_transaction(self._store.engine) as connection:
            size = None
            if self.asked is not None:
                size = self._size(connection, least, quorum=True, above=index)
            if size is None:
                size = self._size(connection, least, above=index)
            return None if size is None else self._read(connection, size)

    def finding(self, signed: SignedCheckpoint) -> QuorumFinding | None:
        """Return who of the further cosigners stands behind a checkpoint; None if none is asked.

        Args:
            signed: of this log.
        """
        return None if self.asked is None else self.asked.judge(signed.encode(), self.log_key)

    def demanded(self, signed: SignedCheckpoint) -> SignedCheckpoint:
        """Return a checkpoint with the lines of the log and the demanded cosigners alone.

        Args:
            signed: of this log.
        """
        keys = (self.log_key, *self._cosigners.keys)
        lines = tuple(line for key in keys if (line := signed.note.signature_of(key)) is not None)
        return SignedCheckpoint(signed.checkpoint, Note(signed.note.text, lines))

    @property
    def log_key(self) -> VerifierKey:
        """The log's key."""
        return self._store.log_key

    def tlog_proof(self, index: int, *, settled: int | None = None) -> TlogProof | None:
        """Return the .tlog-proof of leaf ``index``; None until a cosigned checkpoint covers it.

        Args:
            index: of the leaf, from 0.
            settled: Unix seconds; a checkpoint without the quorum that is asked is waited with
                unless it was cosigned before that. None: it is not.
        """
        signed = self.covering(index)
        if signed is None or (settled is not None and self._waits(signed, settled)):
            return None
        # The count in the table only finds the row; a proof that is given out must hold.
        verify_cosigned(signed.encode(), self._store.log_key, self._cosigners)
        path = self._store.inclusion_proof(index, signed.head.size)
        return TlogProof(index, path, signed.encode())

    def resource(self, path: str) -> bytes:
        """Return the bytes at ``path`` of C2SP tlog-tiles: ``checkpoint``, a tile or a bundle.

        Nothing beyond the last cosigned checkpoint is served. Otherwise somebody who got a signed
        checkpoint early could take it to the cosigner later, and entries made since would seem
        older than they are.

        Args:
            path: below the log's prefix, as a stranger asks for it.

        Raises:
            UnknownResource: there is no such thing.
            MalformedTile: not such a path.
        """
        latest = self.cosigned()
        if latest is None:
            raise UnknownResource("no checkpoint yet", where=path)
        if path == "checkpoint":
            return latest.encode()
        place = parse_path(path)
        level = 0 if isinstance(place, EntryBundle) else place.level
        widest = tile_at(level, place.index, latest.head.size)
        if widest is None or widest.width < place.width:
            raise UnknownResource("no such tile", where=path)
        if not isinstance(place, EntryBundle):
            return self._store.tile(place)
        start = place.index * TILE_WIDTH
        return encode_entry_bundle(self._store.entries(start, start + place.width))

    def _waits(self, signed: SignedCheckpoint, settled: int) -> bool:
        """Return whether the quorum that is asked may still be reached for a checkpoint."""
        found = self.finding(signed)
        if found is None or found.reached:
            return False
        lines = (signed.note.signature_of(key) for key in self._cosigners.keys)
        return max((cosignature_time(line) for line in lines if line), default=0) >= settled

    def _write(self) -> AbstractContextManager[Connection]:
        """Return a transaction in which a process that stands still keeps nobody from signing."""
        return write_transaction(self._store.engine, silent_seconds=SILENT_SECONDS)

    def _insert(self, signed: SignedCheckpoint, expected: int, permit: Permit | None) -> None:
        size = signed.head.size
        with self._write() as connection:
            if permit is not None:
                permit(connection)
            # The last signed size is the lock: of two processes that signed from one checkpoint,
            # one fails here, and its note is seen by nobody.
            moved = _ADVANCE.change(connection, log=self._log, expected=expected, new_size=size)
            if moved != 1:
                raise CheckpointConflict(
                    "another checkpoint was signed meanwhile",
                    where=self._store.log_key.name,
                    expected=f"last size {expected}",
                )
            _INSERT.change(
                connection,
                log_id=self._log,
                size=size,
                note=signed.encode(),
                cosignatures=0,
                quorum=False,
            )

    def _size(
        self,
        connection: Connection,
        cosignatures: int,
        *,
        quorum: bool = False,
        above: int = -1,
        largest: bool = False,
    ) -> int | None:
        query = _LARGEST if largest else _SMALLEST
        row = query.row(connection, log=self._log, least=cosignatures, above=above, quorum=quorum)
        return None if row is None else int(row[0])

    def _read(self, connection: Connection, size: int, *, lock: bool = False) -> SignedCheckpoint:
        row = (_LOCKED_NOTE if lock else _NOTE).row(connection, log=self._log, at_size=size)
        if row is None:
            raise UnknownResource(f"no checkpoint of size {size}", where=self._store.log_key.name)
        try:
            return verify_checkpoint(bytes(row[0]), self._store.log_key)
        except NoteRejected as error:
            raise CorruptLog("a stored checkpoint is not ours", where=f"size {size}") from error
