"""What the evidence of a window holds of one account (docs/spec/10-verdict.md §10.8)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import TypeVar

from ragaudit.encoding.errors import MalformedError, NotFound
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.account_records import VERIFIER, AccountRecords, Line
from ragaudit.ledger.messages.charges import Charge, Generated, Void
from ragaudit.ledger.messages.evidence import (
    Claims,
    Disputes,
    Entries,
    EvidenceList,
    Receipts,
    Refusals,
    Statements,
)
from ragaudit.ledger.messages.generated import GeneratedReceipt
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.ledger.messages.public_halves import PublicHalf
from ragaudit.ledger.messages.records import Record, Registration
from ragaudit.verifier.evidence import Evidence

M = TypeVar("M")


def account_records(
    evidence: Evidence, provider: str, window: str, pseudonym: bytes
) -> Iterator[bytes]:
    """Return the lines of everything that the evidence holds of an account.

    Args:
        evidence: with its confidential part.
        provider, window: whose evidence it is.
        pseudonym: of the account, 32 bytes.

    Raises:
        NotFound: at once, if no entry of the log is the account's.
        MalformedError: at once or while lines are taken: an item is not what it should be.
    """
    found = _Account(evidence, pseudonym)
    if next(found.entries(), None) is None:
        raise NotFound("no such account in the evidence", where=pseudonym.hex())
    return AccountRecords(VERIFIER, provider, window, pseudonym).lines(found.lines())


@dataclass(frozen=True, slots=True)
class _Account:
    evidence: Evidence
    pseudonym: bytes

    def lines(self) -> Iterator[Line]:
        own = set()  # of all that is held meanwhile this alone grows: a number for each entry
        for entry in self.entries():
            own.add(entry.index)
            yield Line.of_entry(entry)
        for kind, item in (("receipt", items.RECEIPTS), ("judged", items.JUDGED)):
            for receipt in self._listed(item, Receipts):
                if self._is_own(receipt, own):
                    yield Line(kind, receipt.to_json())
        for refusal in self._listed(items.REFUSALS, Refusals):
            if refusal.pseudonym == self.pseudonym:
                yield Line("refusal", refusal.to_json())
        for claim in self._listed(items.CLAIMS, Claims):
            if claim.promise.promised.pseudonym == self.pseudonym:
                yield Line("claim", claim.to_json())
        for statement in self._listed(items.STATEMENTS, Statements):
            if statement.pseudonym == self.pseudonym:
                yield Line("statement", statement.to_json())
        for kept in self._listed(items.DISPUTES, Disputes):
            if kept.dispute.pseudonym == self.pseudonym:
                yield Line("dispute", kept.to_json())
        for index in sorted(own):
            yield from self._items(index)

    def entries(self) -> Iterator[Entry]:
        """Yield its registrations, charges with their answers, and records.

        Of a log that breaks the rules there may be several registrations.
        """
        charges = set()
        for entry in chain(self._listed(items.ENTRIES, Entries), self._handed_over()):
            body = _body(entry)
            if isinstance(body, Generated | Void):
                own = body.charge in charges
            else:
                own = body is not None and body.pseudonym == self.pseudonym
            if own and isinstance(body, Charge):
                charges.add(entry.index)
            if own:
                yield entry

    def _handed_over(self) -> Iterator[Entry]:
        """Records alone: the handover repeats all other entries."""
        if items.RECORDS in self.evidence:
            with self.evidence.open(items.RECORDS) as file:
                for entry in read_handover(file):
                    if entry.kind == Record.KIND:
                        yield entry

    def _is_own(self, receipt: PublicHalf, own: set[int]) -> bool:
        if isinstance(receipt, GeneratedReceipt):
            return receipt.pseudonym == self.pseudonym
        return receipt.index in own

    def _listed(self, item: str, kind: type[EvidenceList[M]]) -> Iterator[M]:
        if item in self.evidence:
            with self.evidence.open(item) as file:
                yield from kind.stream(file)

    def _items(self, index: int) -> Iterator[Line]:
        # By their digests: a response opens the key of the noise, and a replay whole documents.
        # Whoever has an answer and its noise subtracts one from the other (spec 8.9).
        for name in (items.response_name(index), items.replay_name(index)):
            if name in self.evidence:
                digest = sha256(self.evidence[name]).hexdigest()
                yield Line("item", {"name": name, "digest": digest})


def _body(entry: Entry) -> Registration | Record | Charge | Generated | Void | None:
    """The body of an entry that is an account's, whoever's; None of any other entry."""
    # What does not decode is check 5's, and names nobody.
    with suppress(MalformedError):
        match entry.kind:
            case Registration.KIND:
                return Registration.parse(entry.body)
            case Record.KIND:
                return Record.parse(entry.body)
            case Charge.KIND:
                return Charge.parse(entry.body)
            case Generated.KIND:
                return Generated.parse(entry.body)
            case Void.KIND:
                return Void.parse(entry.body)
    return None
