"""The window's cosigner, C2SP tlog-witness over the service's database, and what others attest.

A checkpoint is judged and persisted in one writing transaction; its cosignature leaves the process
only after the commit. A checkpoint that was cosigned before gets the same cosignature again, so
there is exactly one cosigned note for each size.

What third parties say of a window's checkpoints, cosignatures and time stamps, the provider brings
until the sample. It is verified before it is kept: the evidence holds nothing of a stranger's.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from ragaudit.encoding.errors import Conflict, NotFound, RejectedError
from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, cosign, verify_cosigned
from ragaudit.ledger.log.cosigner_protocol import (
    BAD_REQUEST,
    UNKNOWN_ORIGIN,
    UNTRUSTED_LOG,
    AddCheckpointRequest,
    Answer,
    judge,
)
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.log.notes import Note, NoteSignature, SigningKey, parse_note
from ragaudit.ledger.log.timestamps import check_library, read_roots, verify_stamp
from ragaudit.ledger.log.tlog_policy import QuorumFinding
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.evidence import TimeStamp, TimeStamps
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.history import Statement
from ragaudit.verifier.service import tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached
from ragaudit.verifier.service.windows import Window, check_before
from sqlalchemy import Connection, delete, func, select


@dataclass(frozen=True)
class StoredCheckpoint:
    """A cosigned checkpoint's row.

    Attributes:
        time: at which it was cosigned, Unix seconds.
        note: with the lines of the log and of this cosigner.
    """

    size: int
    root: bytes
    time: int
    note: bytes

    @property
    def head(self) -> TreeHead:
        """Its tree head."""
        return TreeHead(self.size, self.root)


_CHECKPOINTS = Rows(StoredCheckpoint, tables.checkpoint)


def add_checkpoint(
    database: Database, key: SigningKey, body: bytes, *, cap: int, read: int | None = None
) -> Answer:
    """Return the answer to an add-checkpoint request.

    Args:
        body: of the request, as C2SP tlog-witness has it.
        cap: bounds the checkpoints of one window.
        read: when the log says that it read the head, Unix milliseconds. A request that is older
            than the policy's skew is not cosigned: entries made since would seem back-dated. Nor
            is one from ahead of our clock, which may have been wrong since the machine's start.
        key: of the cosigner, type 0x04.

    Returns:
        A cosignature line, or the refusal of docs/spec/06-ledger.md §6.6.
    """
    try:
        request = AddCheckpointRequest.parse(body)
        origin = request.origin
    except MalformedNote as error:
        return Answer.refusal(BAD_REQUEST, error.what)
    with database.write() as transaction:
        window = windows.find(transaction.connection, Origin(origin))
        if window is None or window.countersigned is None:
            return Answer.refusal(UNKNOWN_ORIGIN, "unknown origin")
        policy = windows.policy(transaction.connection, window)
        return _decide(transaction, window, policy, key, request, cap, read)


def _decide(
    transaction: Transaction,
    window: Window,
    policy: Policy,
    key: SigningKey,
    request: AddCheckpointRequest,
    cap: int,
    read: int | None,
) -> Answer:
    # The sample's seed depends on the final root and n_A (9.1): who knows n_A must not extend the
    # log until the sample suits it.
    if transaction.now >= 1000 * policy.sampling_instant:
        return Answer.refusal(UNTRUSTED_LOG, "the sampling instant has passed")
    latest = last(transaction.connection, window.origin)
    stored = {policy.origin: latest.head} if latest else {}
    judged = judge(request, {policy.origin: policy.keys.log}, stored)
    if isinstance(judged, Answer):
        return judged
    # Before what follows: nothing new is attested, so the same head gets its cosignature again,
    # though the request be late, the log closed or the cap reached (8.3).
    if latest is not None and latest.head == judged.head:
        line = parse_note(latest.note).signature_of(key.verifier_key)
    elif read is not None and abs(transaction.now - read) > 1000 * policy.clock_skew_seconds:
        # One of the clocks is wrong, or the request waited: either way check 9 would fail.
        return Answer.refusal(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the request waited longer than the skew, or the clocks differ by more",
        )
    elif window.closed is not None:
        return Answer.refusal(UNTRUSTED_LOG, "the log is closed")
    elif count(transaction.connection, window.origin) >= cap:
        return Answer.refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many checkpoints")
    else:
        known = 0 if latest is None else latest.size
        after = judged.head.size
        transaction.attest(Statement.COSIGNATURE, window.origin, before=known, after=after)
        line = _persist(transaction, window.origin, policy, key, judged)
    return Answer.cosigned((line,) if line else ())


def _persist(
    transaction: Transaction,
    window: Origin,
    policy: Policy,
    key: SigningKey,
    checkpoint: SignedCheckpoint,
) -> NoteSignature:
    # Rounded down: one of second c was made in [1000·c, 1000·c + 999], as check 9 takes it.
    time = transaction.now // 1000
    line = cosign(checkpoint.note.text, key, time)
    # Lines of other keys are not kept: nobody verified them.
    own = checkpoint.note.signature_of(policy.keys.log)
    lines = (own, line) if own is not None else (line,)
    note = Note(checkpoint.note.text, lines).encode()
    head = checkpoint.head
    row = StoredCheckpoint(head.size, head.root_hash, time, note)
    _CHECKPOINTS.insert(transaction.connection, row, window=window)
    return line


def last(connection: Connection, window: Origin) -> StoredCheckpoint | None:
    """Return the largest cosigned checkpoint of a window."""
    columns = tables.checkpoint.c
    query = _CHECKPOINTS.select(columns.window == window).order_by(columns.size.desc())
    return next(iter(_CHECKPOINTS.all(connection, query.limit(1))), None)


def has(connection: Connection, window: Origin, head: TreeHead) -> bool:
    """Return whether this very tree head was cosigned."""
    columns = tables.checkpoint.c
    found = _CHECKPOINTS.find(connection, columns.window == window, columns.size == head.size)
    return found is not None and found.head == head


def covered_size(connection: Connection, window: Origin, instant: int) -> int:
    """Return the size of the largest checkpoint cosigned before ``instant``, 0 if none.

    Args:
        instant: Unix seconds; one that was cosigned in it does not count.
    """
    columns = tables.checkpoint.c
    condition = (columns.window == window) & (columns.time < instant)
    size = connection.execute(select(func.max(columns.size)).where(condition)).scalar_one()
    return int(size or 0)


def count(connection: Connection, window: Origin) -> int:
    """Return how many checkpoints of a window were cosigned."""
    table = tables.checkpoint
    query = select(func.count()).select_from(table).where(table.c.window == window)
    return int(connection.execute(query).scalar_one())


def latest_note(database: Database, origin_hash: bytes) -> bytes:
    """Return the largest cosigned checkpoint of the log whose origin has this SHA-256.

    Raises:
        NotFound: nothing was cosigned under such an origin.
    """
    with database.read() as connection:
        window = windows.find_by_origin_hash(connection, origin_hash)
        latest = last(connection, window.origin) if window is not None else None
    if latest is None:
        raise NotFound("no cosigned checkpoint", where=origin_hash.hex())
    return latest.note


def all_of(connection: Connection, window: Origin) -> list[StoredCheckpoint]:
    """Return every checkpoint that was cosigned, by rising size."""
    columns = tables.checkpoint.c
    query = _CHECKPOINTS.select(columns.window == window).order_by(columns.size)
    return _CHECKPOINTS.all(connection, query)


MAX_COSIGNED_BYTES = 128 * 2**20
MAX_STAMPS_KEPT = 64  # of opening and final checkpoint, by as many authorities as anybody asks
_ONE = bytes(32)  # identity of what there is one of at a size

Counts = dict[str, int]


class Kind(StrEnum):
    """What is kept, and by whom it is signed."""

    COSIGNED = "cosigned"
    STAMP = "stamp"


@dataclass(frozen=True)
class Attestation:
    """A row.

    Attributes:
        size: of the checkpoint.
        identity: 32 bytes; tells apart what there may be several of at one size.
        document: the note, or the token, as bytes.
    """

    kind: str
    size: int
    identity: bytes
    document: bytes


_ROWS = Rows(Attestation, tables.attestation)


class Attestations:
    """Takes them from the countersignature to the sampling instant."""

    def __init__(self, database: Database, roots: bytes | None = None) -> None:
        """Keep the parts.

        Args:
            roots: PEM, of the time-stamping authorities that are trusted; None for none.

        Raises:
            MalformedError: no certificates.
            UnsupportedError: roots are given, and the library for time stamps is not installed.
        """
        self._database = database
        self._roots = () if roots is None else read_roots(roots)
        self.roots = roots or b""
        if self._roots:
            check_library()

    def cosigned(self, origin: Origin, notes: Sequence[str]) -> Counts:
        """Take checkpoints with the quorum of the policy's further cosigners.

        Args:
            notes: each with a tree head that this verifier has cosigned; other lines are dropped.

        Returns:
            How many are kept now, and how many were known, or had to give way to larger ones.

        Raises:
            Conflict: the policy names no further cosigners, or a head that was not cosigned here.
            RejectedError: not of this log, or without the quorum.
            TooLate: from the sampling instant on.
        """
        policy = windows.policy_of(self._database, origin)
        terms = policy.cosigners
        if terms is None:
            raise Conflict("the policy names no further cosigners", where=origin)
        findings = []
        for number, note in enumerate(notes):
            try:
                finding = terms.trust.judge(note.encode(), policy.keys.log)
                finding.demand()
            except RejectedError as error:
                where = f"checkpoints/{number}"
                raise RejectedError(str(error), where=where) from error
            findings.append(finding)
        accepted = 0
        with self._database.write() as transaction:
            check_before(transaction, origin, policy.sampling_instant)
            for finding in findings:
                accepted += _keep(transaction, origin, policy, finding)
        return {"accepted": accepted, "known": len(findings) - accepted}

    def stamped(self, origin: Origin, stamps: Sequence[TimeStamp]) -> Counts:
        """Take time stamps of checkpoints that this verifier has cosigned.

        Args:
            stamps: each by an authority that this verifier trusts.

        Returns:
            How many are kept now, and how many were known.

        Raises:
            Conflict: the policy asks for none, this verifier trusts no authority, or a size of
                which no checkpoint was cosigned here.
            RagauditError: a token that is none, or is not of this checkpoint and authority.
            TooLate: from the sampling instant on.
            CapReached: more than MAX_STAMPS_KEPT.
        """
        with self._database.read() as connection:
            policy = windows.policy(connection, windows.get(connection, origin))
            notes = {one.size: one.note for one in all_of(connection, origin)}
        if policy.time_stamps is None or not self._roots:
            what = (
                "the policy asks for no time stamps" if self._roots else "no authority is trusted"
            )
            raise Conflict(what, where=origin)
        for stamp in stamps:
            if stamp.size not in notes:
                raise Conflict("a size that was not cosigned here", where=f"size {stamp.size}")
            checkpoint = parse_checkpoint(notes[stamp.size]).checkpoint
            verify_stamp(stamp.token, checkpoint, self._roots)
        accepted = 0
        with self._database.write() as transaction:
            check_before(transaction, origin, policy.sampling_instant)
            for stamp in stamps:
                accepted += _keep_stamp(transaction, origin, stamp)
        return {"accepted": accepted, "known": len(stamps) - accepted}


def _keep_stamp(transaction: Transaction, origin: Origin, stamp: TimeStamp) -> bool:
    connection, columns = transaction.connection, tables.attestation.c
    kept = (columns.window == origin, columns.kind == Kind.STAMP)
    identity = hashlib.sha256(stamp.token).digest()
    known = (columns.size == stamp.size, columns.identity == identity)
    if _ROWS.find(connection, *kept, *known) is not None:
        return False
    count = select(func.count()).select_from(tables.attestation).where(*kept)
    if connection.execute(count).scalar_one() >= MAX_STAMPS_KEPT:
        raise CapReached("too many time stamps", where=origin, expected=str(MAX_STAMPS_KEPT))
    row = Attestation(Kind.STAMP, stamp.size, identity, stamp.token)
    _ROWS.insert(connection, row, window=origin)
    return True


def time_stamps(connection: Connection, origin: Origin) -> TimeStamps:
    """Return the time stamps of a window that were taken."""
    rows = attested(connection, origin, Kind.STAMP)
    return TimeStamps(tuple(TimeStamp(row.size, row.document) for row in rows))


def attested(connection: Connection, origin: Origin, kind: Kind) -> list[Attestation]:
    """Return what was kept of a kind, by rising size and identity."""
    columns = tables.attestation.c
    query = _ROWS.select(columns.window == origin, columns.kind == kind)
    return _ROWS.all(connection, query.order_by(columns.size, columns.identity))


def _keep(transaction: Transaction, origin: Origin, policy: Policy, finding: QuorumFinding) -> bool:
    connection, columns = transaction.connection, tables.attestation.c
    head, own = finding.signed.head, columns.window == origin
    if not has(connection, origin, head):
        raise Conflict("a head that was not cosigned here", where=f"size {head.size}")
    same = (own, columns.kind == Kind.COSIGNED, columns.size == head.size)
    if _ROWS.find(connection, *same) is not None:
        return False
    document = _stripped(policy, finding)
    held = connection.execute(
        select(func.sum(func.length(columns.document)), func.max(columns.size)).where(
            own, columns.kind == Kind.COSIGNED
        )
    ).one()
    if (held[0] or 0) + len(document) > MAX_COSIGNED_BYTES:
        # The last one covers all others: it always finds room.
        if head.size < held[1]:
            return False
        last = (own, columns.kind == Kind.COSIGNED, columns.size == held[1])
        connection.execute(delete(tables.attestation).where(*last))
    row = Attestation(Kind.COSIGNED, head.size, _ONE, document)
    _ROWS.insert(connection, row, window=origin)
    return True


def _stripped(policy: Policy, finding: QuorumFinding) -> bytes:
    """Return the note with the lines of the log and of cosigners that the policy names."""
    assert policy.cosigners is not None
    keys = (policy.keys.log, *policy.cosigners.trust.keys)
    note = finding.signed.note
    lines = tuple(line for key in keys if (line := note.signature_of(key)) is not None)
    stripped = Note(note.text, lines).encode()
    # What is kept is what the audit reads: it must hold alone.
    verify_cosigned(stripped, policy.keys.log, CosignerPolicy(policy.cosigners.trust.keys, 0))
    return stripped
