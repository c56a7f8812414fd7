"""Disputes: taken before the draw by digest, judged after it, kept only where they are upheld.

Whoever holds the noise of a record and the positions that were selected can subtract one from the
other. So the verifier looks at a receipt file only when the sample is drawn and the record is not
in it; its noise key is then opened by nobody. Of a file that is dismissed nothing is kept but its
public part (docs/spec/08-services.md §8.9).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import Conflict, NotFound, RejectedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.messages.bodies import DisputesBody, FindingBody, StatementBody
from ragaudit.ledger.messages.disputes import (
    Dispute,
    DisputeStatus,
    Finding,
    RegistrationStatement,
    file_digest,
)
from ragaudit.ledger.messages.entries import Epoch, Opening, Registration, Version
from ragaudit.ledger.messages.evidence import KeptDispute
from ragaudit.ledger.messages.items import OPENING, OpeningItem
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import (
    PublicPart,
    bound_receipt,
    read_public_part,
)
from ragaudit.verifier.procedure.statement_checks import Judgement
from ragaudit.verifier.service import handover, submissions, tables, windows
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached, TooLate
from ragaudit.verifier.service.submissions import (
    Kind,
    Room,
    Submission,
    check_origin,
    dispute_key,
    registrations,
)
from ragaudit.verifier.service.windows import Window, check_before, check_due
from sqlalchemy import ColumnElement, Connection, func, select, update

_HALVES: Final = 2  # that differ prove all there is to prove


@dataclass(frozen=True)
class StoredDispute:
    """A dispute's row.

    Attributes:
        position: leaf index of the record, or of the charge entry.
        document: the dispute as it was signed, canonical JSON.
        public: the file's public part, once it was judged; two, a line each, if two were brought.
        file: of an upheld dispute about a query that was not sampled.
        finding: the arbiter's.
        step: of docs/spec 5.9, or 11.10, that fails; 0 if dismissed, None if not judged.
    """

    identity: bytes
    pseudonym: bytes
    position: int
    answer_digest: bytes
    file_digest: bytes
    received: int
    document: bytes
    public: bytes | None = None
    file: bytes | None = field(default=None, repr=False)
    finding: bytes | None = None
    step: int | None = None

    def halves(self) -> list[bytes]:
        """Return the public parts, canonical JSON."""
        return (self.public or b"").splitlines()  # canonical JSON has no line ends

    def kept(self) -> KeptDispute:
        """Return the dispute as the evidence holds it."""
        finding = _json(self.finding)
        return KeptDispute(
            Dispute.from_json(_json(self.document)),
            self.step,
            _json(self.file),
            None if finding is None else Finding.from_json(finding),
        )


def with_half(rows: Sequence[StoredDispute], public: PublicPart) -> bytes:
    """Return what is kept of a file's public parts with this one, a line each.

    A finding does not say which half is the file's. Were the last one kept, whoever signed another
    that is in the log could bring it in the place of one that is not.

    Args:
        rows: of the disputes of the file.
        public: without proofs.
    """
    kept = sorted({half for row in rows for half in row.halves()})
    known = {read_public_part(canonical_json.loads(half)).identity for half in kept}
    if public.identity not in known and len(kept) < _HALVES:
        kept.append(public.encode())
    return b"\n".join(kept)


def _json(document: bytes | None) -> Any:
    return None if document is None else canonical_json.loads(document)


# Quotas of docs/spec/08-services.md §8.9; an account's own, so that nobody uses another's up.
PER_ACCOUNT = 32
PER_ANSWER = 2
_ROW_BYTES = 4096  # a dispute with the public part of its file, generously

Counts = dict[str, int]
Judge = Callable[[dict[str, Any], WindowView], Judgement]
"""Judges a disputed receipt file; RagauditError if the provider did not sign it."""


_DISPUTES = Rows(StoredDispute, tables.dispute)
_table = tables.dispute


class Disputes:
    """Takes disputes, the files and findings about them, and registration statements.

    Args:
        judge: of the audit procedure.
        cap: bytes that disputes, and the files of upheld ones, may take in one window.
    """

    def __init__(self, database: Database, judge: Judge, sampler: Sampler, cap: int) -> None:
        self._database = database
        self._judge = judge
        self._sampler = sampler
        self._cap = cap

    def add(self, origin: Origin, document: DisputesBody, shown: Registration | None) -> Counts:
        """Take disputes before the sampling instant; all of a request or none.

        Args:
            document: disputes of one account (docs/spec/05-records.md §5.10).
            shown: the account's registration, if it came with them; None: as the provider gave it.

        Raises:
            MalformedError, RejectedError: not of this log, of no registered account, or not
                signed with its dispute key.
            TooLate: from the sampling instant on.
            CapReached: above a quota (docs/spec/08-services.md §8.9).
        """
        policy = windows.policy_of(self._database, origin)
        checked = [Dispute.from_json(dispute) for dispute in document.disputes]
        with self._database.read() as connection:
            for dispute in checked:
                check_origin(dispute.origin, policy)
                for registration in registrations(connection, origin, dispute.pseudonym, shown):
                    dispute.verify(dispute_key(registration))
        with self._database.write() as transaction:
            check_before(transaction, origin, policy.sampling_instant)
            new = sum(self._put(transaction, origin, policy, dispute) for dispute in checked)
        return {"accepted": new, "known": len(checked) - new}

    def show_registration(
        self, origin: Origin, document: StatementBody, shown: Registration | None
    ) -> Counts:
        """Take an account's statement about its registration before the sampling instant.

        With it the account counts as anchored (docs/spec/09-audit.md §9.5).

        Args:
            document: a registration statement (docs/spec/05-records.md §5.10).
            shown: as in `add`.

        Raises:
            MalformedError, TooLate, CapReached: as `add`.
            RejectedError: as `add`, or the statement has another anchor than the registration.
        """
        policy = windows.policy_of(self._database, origin)
        statement = RegistrationStatement.from_json(document.statement)
        check_origin(statement.origin, policy)
        with self._database.read() as connection:
            for registration in registrations(connection, origin, statement.pseudonym, shown):
                statement.verify(dispute_key(registration))
                if registration.anchor != statement.anchor:
                    raise RejectedError("another anchor than registered", where="statement/anchor")
        submission = Submission(Kind.STATEMENT, 0, statement.pseudonym, statement.encode())
        with self._database.write() as transaction:
            check_before(transaction, origin, policy.sampling_instant)
            new = submissions.put(transaction, origin, submission)
            submissions.check_cap(transaction.connection, origin, Kind.STATEMENT, self._cap)
        return {"accepted": int(new), "known": int(not new)}

    def demand_unsampled(self, origin: Origin, index: int) -> None:
        """Check that the verifier may look at the file of a disputed record.

        Asked before the body of a request is read: the verifier does not receive what it must
        not see.

        Args:
            index: leaf index of the record.

        Raises:
            TooEarly: before the sampling instant.
            TooLate: the audit began.
            NotFound: nobody disputed the record.
            Conflict: it was sampled, so its noise key is opened to this verifier; or no sample
                was drawn.
        """
        if self.standing(origin, index).sampled:
            raise Conflict(
                "the record was sampled, so this verifier must not see its receipt file",
                where=str(index),
                expected="the arbiter of the policy, if it names one",
            )
        with self._database.read() as connection:
            _check_unsealed(windows.get(connection, origin))

    def standing(self, origin: Origin, index: int) -> DisputeStatus:
        """Return what became of the disputes about a record.

        Args:
            index: its leaf index.

        Raises:
            TooEarly: before the sampling instant.
            NotFound: nobody disputed the record.
            Conflict: no sample was drawn.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
            policy = windows.policy(connection, window)
            check_due(policy.sampling_instant, self._database.now())
            if window.challenged is None:
                raise Conflict("no sample was drawn", where=origin)
            rows = _rows(connection, (_table.c.window == origin) & (_table.c.position == index))
            sampled = index in self._sampler.sample(connection, origin)
        if not rows:
            raise NotFound("nobody disputed this record", where=str(index))
        judged = [row.step for row in rows if row.step is not None]
        return DisputeStatus(sampled, max(judged) if judged else None)

    def judge(self, origin: Origin, index: int, file: dict[str, Any]) -> DisputeStatus:
        """Judge the receipt file of a disputed record that is not in the sample.

        Args:
            index: leaf index of the record.
            file: the receipt file as parsed JSON, in whatever form (docs/spec/05-records.md §5.10).

        Raises:
            NotFound: nobody disputed this file.
            RejectedError: the provider did not sign it, part for part.
            Conflict, TooEarly, TooLate: as `demand_unsampled`.
            CapReached: the upheld files of the window take too much.
        """
        self.demand_unsampled(origin, index)
        disputed = file_digest(file)
        condition = _of_file(origin, index, disputed)
        with self._database.read() as connection:
            rows = _rows(connection, condition)
            if not rows:
                raise NotFound("nobody disputed this file", where=str(index))
            view = _view(connection, windows.get(connection, origin))
        public, step = bound_receipt(file, view.policy), rows[0].step
        if public.index != index:
            raise RejectedError("of another record", where="public/index", expected=str(index))
        values: dict[str, Any] = {}
        if step is None:  # judging takes a while, and is done once
            judgement = self._judge(file, view)
            step = judgement.step
            kept = canonical_json.dumps(file) if judgement.upheld else None
            values = {"file": kept, "step": step}
        with self._database.write() as transaction:
            # Again: judging takes a while, and the audit may have begun meanwhile.
            _check_unsealed(windows.get(transaction.connection, origin))
            values["public"] = with_half(_rows(transaction.connection, condition), public)
            transaction.connection.execute(update(_table).where(condition).values(**values))
            # All of them are in one item with the disputes.
            most = min(self._cap, submissions.POOL_BYTES)
            _check_files(transaction.connection, origin, most)
        return DisputeStatus(sampled=False, step=step)

    def find(self, origin: Origin, document: FindingBody) -> Counts:
        """Take a finding of the arbiter about a disputed file, and the file's public part.

        Args:
            document: a finding (docs/spec/05-records.md §5.10); a proof in the public part is
                dropped.

        Raises:
            MalformedError, RejectedError: not the arbiter's, or the public part is another one.
            Conflict: the policy names no arbiter.
            NotFound: nobody disputed this file.
            TooLate: the audit began.
        """
        policy = windows.policy_of(self._database, origin)
        finding = Finding.from_json(document.finding)
        # Without the proof: nobody signed it, and one half with many proofs would be many halves.
        public = read_public_part(document.public, "public").unproven()
        if policy.keys.arbiter is None:
            raise Conflict("the policy names no arbiter", where=origin)
        finding.verify(policy.keys.arbiter)
        public.verify(policy.keys.provider)
        for signed in (finding, public):
            check_origin(signed.origin, policy)
        if (public.index, public.answer_digest) != (finding.index, finding.answer_digest):
            raise ReceiptRejected("not of the finding's answer", where="public")
        condition = _of_file(origin, finding.index, finding.file_digest)
        condition &= _table.c.answer_digest == finding.answer_digest
        with self._database.write() as transaction:
            _check_unsealed(windows.get(transaction.connection, origin))
            rows = _rows(transaction.connection, condition)
            if not rows:
                raise NotFound("nobody disputed this file", where=str(finding.index))
            # A finding of 0 does not take back what V itself upheld.
            step = max(finding.step, *(row.step or 0 for row in rows))
            half = with_half(rows, public)
            values = {"public": half, "finding": finding.encode(), "step": step}
            transaction.connection.execute(update(_table).where(condition).values(**values))
        known = sum(row.finding is not None for row in rows)
        return {"accepted": len(rows) - known, "known": known}

    def pending(self, window: Window) -> bool:
        """Return whether somebody may still judge a dispute: the audit waits for the deadline."""
        with self._database.read() as connection:
            arbiter = windows.policy(connection, window).keys.arbiter
            condition = (_table.c.window == window.origin) & _table.c.step.is_(None)
            waiting = {row.position for row in _rows(connection, condition)}
            # Without an arbiter nobody may judge the file of a sampled record.
            if arbiter is None and waiting:
                waiting -= self._sampler.sample(connection, window.origin)
        return bool(waiting)

    def _put(
        self, transaction: Transaction, origin: Origin, policy: Policy, dispute: Dispute
    ) -> bool:
        """Store a dispute unless it is known; its identity has no signature in it."""
        connection, mine = transaction.connection, _table.c.window == origin
        if _rows(connection, mine & (_table.c.identity == dispute.identity)):
            return False
        own = mine & (_table.c.pseudonym == dispute.pseudonym)
        # So small that it fits into the account's share: none takes another's place (8.9).
        room = Room.of(self._cap, policy.slots)
        quota = max(1, min(PER_ACCOUNT, room.share // _ROW_BYTES))
        if _count(connection, own) >= quota:
            raise CapReached("too many disputes of one account", expected=f"at most {quota}")
        same = own & (_table.c.position == dispute.index)
        same &= _table.c.answer_digest == dispute.answer_digest
        if _count(connection, same) >= PER_ANSWER:
            raise CapReached("too many disputes of one answer", expected=f"at most {PER_ANSWER}")
        row = StoredDispute(
            identity=dispute.identity,
            pseudonym=dispute.pseudonym,
            position=dispute.index,
            answer_digest=dispute.answer_digest,
            file_digest=dispute.file_digest,
            received=transaction.now,
            document=dispute.encode(),
        )
        _DISPUTES.insert(connection, row, window=origin)
        return True


def kept(connection: Connection, origin: Origin) -> list[bytes]:
    """Return every dispute of a window as the evidence holds it, by rising index and identity."""
    rows = _rows(connection, _table.c.window == origin)
    rows.sort(key=lambda row: (row.position, row.identity))
    return [canonical_json.dumps(row.kept().to_json()) for row in rows]


def judged(connection: Connection, origin: Origin) -> list[bytes]:
    """Return the public parts of the files that were judged, rising and distinct."""
    rows = _rows(connection, _table.c.window == origin)
    halves = {(row.position, half) for row in rows for half in row.halves()}
    return [public for _, public in sorted(halves)]


def count(connection: Connection, origin: Origin) -> int:
    """Return how many disputes a window holds."""
    return _count(connection, _table.c.window == origin)


def _view(connection: Connection, window: Window) -> WindowView:
    item = OpeningItem.parse(windows.read_item(connection, window.origin, OPENING) or b"")
    policy = windows.policy(connection, window)
    versions, epochs = [], []
    if policy.retrieval.versions:
        entries = handover.entries_of(connection, window.origin, {Version.KIND})
        versions = [(one.index, Version.parse(one.body)) for one in entries]
    if policy.epochs:
        entries = handover.entries_of(connection, window.origin, {Epoch.KIND})
        epochs = [(one.index, Epoch.parse(one.body)) for one in entries]
    return WindowView(policy, Opening.parse(item.body), versions=versions, epochs=epochs)


def _check_unsealed(window: Window) -> None:
    if window.sealed is not None:
        raise TooLate("the audit has begun", where=window.origin)


def _check_files(connection: Connection, origin: Origin, cap: int) -> None:
    """Check what the upheld files take: the first of them is enough to fail.

    Raises:
        CapReached: they exceed ``cap`` bytes.
    """
    query = select(func.sum(func.length(_table.c.file))).where(_table.c.window == origin)
    if int(connection.execute(query).scalar_one() or 0) > cap:
        raise CapReached("too many upheld disputes", where=origin, expected=f"{cap} bytes in all")


def _of_file(origin: Origin, index: int, digest: bytes) -> ColumnElement[bool]:
    mine = (_table.c.window == origin) & (_table.c.position == index)
    return mine & (_table.c.file_digest == digest)


def _rows(connection: Connection, condition: ColumnElement[bool]) -> list[StoredDispute]:
    return _DISPUTES.all(connection, _DISPUTES.select(condition))


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(_table).where(condition)
    return int(connection.execute(query).scalar_one())
