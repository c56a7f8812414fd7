"""What the evidence of a window holds of one account (docs/spec/10-verdict.md §10.8), and proofs.

A proof says what a closed window's log says of the account (spec 5.14).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import TypeVar

from ragaudit.encoding.errors import MalformedError, NotFound, RefusedError, RejectedError
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.accounts import VERIFIER, AccountProof, AccountRecords, Line
from ragaudit.ledger.messages.entries import Accounts, Charge, Generated, Record, Registration, Void
from ragaudit.ledger.messages.evidence import (
    Claims,
    Disputes,
    Entries,
    EvidenceList,
    Receipts,
    Refusals,
    Statements,
)
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.ledger.messages.receipts import GeneratedReceipt, PublicPart
from ragaudit.ledger.messages.shown import OpenedEntry
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput, Pins
from ragaudit.verifier.procedure.log_checks import account_index


def prove_account(evidence: Evidence, pseudonym: bytes, *, engine: Engine) -> AccountProof:
    """Return the proof of how many records an account has, or that it has none.

    Args:
        evidence: whole, both parts.
        pseudonym: 32 bytes; it need not be of the window.
        engine: of the context, which no argument is checked with here.

    Raises:
        RefusedError: the policy asks for no account index, or the evidence is not all there.
        RejectedError: the log has another index than its registrations and records give (check 22).
    """
    context = Context(evidence, engine=engine, pins=Pins())
    try:
        return _prove(context, pseudonym)
    except MissingInput as missing:
        raise RefusedError(
            missing.reason, where=missing.owner, expected="evidence that can be read"
        ) from missing


def _prove(context: Context, pseudonym: bytes) -> AccountProof:
    policy = context.policy
    if not policy.account_index:
        raise RefusedError("the policy asks for no account index", where="policy")
    index, _, entry = account_index(context), context.close, context.log.before_last
    # Of an index that is not the log's a proof could say anything.
    if entry is None or entry.kind != Accounts.KIND or Accounts.parse(entry.body) != index.entry:
        raise RejectedError("the log has no such account index", where="the entry before the close")
    path = context.log.tree.inclusion_proof(entry.index)
    proof = TlogProof(entry.index, path, context.final.signed.encode())
    opened = OpenedEntry(entry.salt, entry.body)
    return AccountProof.of(policy.origin, pseudonym, index, opened, proof)


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

    def _is_own(self, receipt: PublicPart, own: set[int]) -> bool:
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
