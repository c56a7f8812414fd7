"""What the evidence of a window holds of one account (docs/spec/10-verdict.md §10.8)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, NotFound
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages import items
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

FORMAT: Final = "ragaudit/v1/account-records"

M = TypeVar("M")


def account_records(evidence: Evidence, provider: str, window: str, pseudonym: bytes) -> bytes:
    """Return everything that the evidence holds of an account, canonical JSON.

    Args:
        evidence: with its confidential part.
        provider, window: whose evidence it is.
        pseudonym: of the account, 32 bytes.

    Raises:
        NotFound: the evidence has no registration and no record of it.
        MalformedError: an item that is not what it should be, or more than a document can hold.
    """
    found = _Account(evidence, pseudonym)
    registrations, records = found.registrations(), found.records()
    if not registrations and not records:
        raise NotFound("no such account in the evidence", where=pseudonym.hex())
    indices = {record.index for record in records}
    document = {
        "format": FORMAT,
        "provider": provider,
        "window": window,
        "pseudonym": pseudonym.hex(),
        "registrations": [entry.to_json() for entry in registrations],
        "records": [_record(entry) for entry in records],
        "receipts": found.receipts(items.RECEIPTS, indices),
        "judged": found.receipts(items.JUDGED, indices),
        "refusals": found.of(items.REFUSALS, Refusals),
        "claims": found.claims(),
        "statements": found.of(items.STATEMENTS, Statements),
        "disputes": found.disputes(),
        "responses": found.responses(indices),
    }
    return canonical_json.dumps(document)


@dataclass(frozen=True, slots=True)
class _Account:
    evidence: Evidence
    pseudonym: bytes

    def registrations(self) -> list[Entry]:
        """Its registrations; of a log that breaks the rules there may be several."""
        listed = Entries.parse(self.evidence.get(items.ENTRIES, b"[]")).messages
        return [
            entry
            for entry in listed
            if entry.kind == Registration.KIND and self._names_it(Registration, entry.body)
        ]

    def records(self) -> list[Entry]:
        if items.RECORDS not in self.evidence:
            return []
        with self.evidence.open(items.RECORDS) as handed_over:
            return [
                entry
                for entry in read_handover(handed_over)
                if entry.kind == Record.KIND and self._names_it(Record, entry.body)
            ]

    def receipts(self, item: str, indices: set[int]) -> list[Any]:
        listed = self._listed(item, Receipts)
        return [each.to_json() for each in listed if self._is_own(each, indices)]

    def _is_own(self, receipt: PublicHalf, indices: set[int]) -> bool:
        # An answer in words has no record.
        words = isinstance(receipt, GeneratedReceipt) and receipt.pseudonym == self.pseudonym
        return words or receipt.index in indices

    def of(self, item: str, kind: type[EvidenceList[Any]]) -> list[Any]:
        listed = self._listed(item, kind)
        return [each.to_json() for each in listed if each.pseudonym == self.pseudonym]

    def _listed(self, item: str, kind: type[EvidenceList[M]]) -> Iterator[M]:
        if item in self.evidence:
            with self.evidence.open(item) as file:
                yield from kind.stream(file)

    def claims(self) -> list[Any]:
        listed = self._listed(items.CLAIMS, Claims)
        found = [each for each in listed if each.promise.promised.pseudonym == self.pseudonym]
        return [claim.to_json() for claim in found]

    def disputes(self) -> list[Any]:
        listed = Disputes.parse(self.evidence.get(items.DISPUTES, b"[]")).messages
        return [kept.to_json() for kept in listed if kept.dispute.pseudonym == self.pseudonym]

    def responses(self, indices: set[int]) -> dict[str, str]:
        names = {index: items.response_name(index) for index in sorted(indices)}
        return {
            str(index): b64_encode(self.evidence[name])
            for index, name in names.items()
            if name in self.evidence
        }

    def _names_it(self, kind: type[Registration] | type[Record], body: bytes) -> bool:
        # What does not decode is check 5's, and names nobody.
        with suppress(MalformedError):
            return kind.parse(body).pseudonym == self.pseudonym
        return False


def _record(entry: Entry) -> dict[str, Any]:
    return {**entry.to_json(), "salt_s": entry.salt_s.hex(), "sketch": entry.sketch.hex()}
