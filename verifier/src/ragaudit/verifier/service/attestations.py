"""What third parties say of a window's checkpoints, brought by the provider until the sample.

Everything is verified before it is kept, so that the evidence holds nothing of a stranger's.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragaudit.encoding.errors import Conflict, RejectedError
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.log.notes import Note
from ragaudit.ledger.log.timestamps import check_library, read_roots, verify_stamp
from ragaudit.ledger.log.tlog_policy import QuorumFinding
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.time_stamps import TimeStamp, TimeStamps
from ragaudit.verifier.service import cosigner, tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached
from ragaudit.verifier.service.windows import check_before
from sqlalchemy import Connection, delete, func, select

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
        with self._database.read() as connection:
            policy = windows.policy(connection, windows.get(connection, origin))
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
            notes = {one.size: one.note for one in cosigner.all_of(connection, origin)}
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
    rows = all_of(connection, origin, Kind.STAMP)
    return TimeStamps(tuple(TimeStamp(row.size, row.document) for row in rows))


def all_of(connection: Connection, origin: Origin, kind: Kind) -> list[Attestation]:
    """Return what was kept of a kind, by rising size and identity."""
    columns = tables.attestation.c
    query = _ROWS.select(columns.window == origin, columns.kind == kind)
    return _ROWS.all(connection, query.order_by(columns.size, columns.identity))


def _keep(transaction: Transaction, origin: Origin, policy: Policy, finding: QuorumFinding) -> bool:
    connection, columns = transaction.connection, tables.attestation.c
    head, own = finding.signed.head, columns.window == origin
    if not cosigner.has(connection, origin, head):
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
