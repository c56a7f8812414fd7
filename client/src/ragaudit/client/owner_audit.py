"""An owner's documents against the index of a tenant, in both directions (docs/spec 5.16)."""

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragaudit.client.errors import AnswerRejected
from ragaudit.client.owned_documents import (
    OwnedDocument,
    difference,
    far_off,
    vector_differences,
)
from ragaudit.client.owner_service import Batch, OwnerService
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.owner_result import CommittedRows, OwnedDocuments, OwnerResult
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import Embed
from ragaudit.ledger.messages.records import TenantOpening
from ragaudit.ledger.messages.row_proofs import ProvenIndexRow

__all__ = ["Found", "OwnerAudit", "check_owner_key"]

MOST_TOLD: Final = 1000
"""Findings that are kept in words; all of them count."""


@dataclass
class Found:
    """What an audit found so far.

    Attributes:
        missing, different, unknown, gone: as of the owner's result.
        compared_documents, compared_rows: likewise.
        as_given: compared documents that were found as they are, their vectors too.
        without_vector: those whose vectors nothing at hand tells.
        told: a sentence for each of the first findings.
    """

    missing: int = 0
    different: int = 0
    unknown: int = 0
    gone: int = 0
    compared_documents: int = 0
    compared_rows: int = 0
    as_given: int = 0
    without_vector: int = 0
    told: list[str] = field(default_factory=list)

    def tell(self, sentence: str) -> None:
        """Keep a sentence about a finding."""
        if len(self.told) < MOST_TOLD:
            self.told.append(sentence)


def check_owner_key(policy: Policy, tenant: str, key: PublicKey) -> None:
    """Check that a key is the one that the policy names for a tenant's owner.

    Args:
        policy: of the window.
        tenant: that the provider shows for the API key.
        key: of the owner.

    Raises:
        UnsupportedError: the policy names none.
        MalformedError: it names another one: nobody could rely on what this one signs.
    """
    named = None if policy.owners is None else policy.owners.key(tenant)
    if named is None:
        where, expected = f"tenant {tenant}", "window.owners.keys in the provider's settings"
        raise UnsupportedError(
            "the policy names no key of the owner", where=where, expected=expected
        )
    if named != key:
        expected = f"{named.raw.hex()}, as the policy says"
        raise MalformedError("not the owner's key", where=f"tenant {tenant}", expected=expected)


class OwnerAudit:
    """One comparison of documents with a version of an index."""

    def __init__(
        self,
        service: OwnerService,
        documents: Mapping[str, OwnedDocument],
        index: TenantOpening,
        embed: Embed | None,
    ) -> None:
        """Collect the parts.

        Args:
            service: of the window.
            documents: of the owner, by id.
            index: the version that is compared, as the window shows it.
            embed: the committed embedder, where it is at hand; else vectors are compared only of
                documents that have one.
        """
        self._service = service
        self._policy = service.window.view.policy
        self._documents = documents
        self._index = index
        self._version, self._rows = index.version, index.rows
        self._embed = embed
        # Of a batch: whose vectors are still to be compared, and whose texts to be embedded.
        self._vectors: list[tuple[OwnedDocument, ProvenIndexRow]] = []
        self._texts: list[tuple[OwnedDocument, ProvenIndexRow]] = []
        self.found = Found()

    async def all(self) -> Found:
        """Compare every row and every document."""
        seen: dict[str, int] = {}
        async for batch in self._service.batches(range(self._rows), self._version):
            self._check_index(batch)
            for place, row, fault in _each(batch):
                self.found.compared_rows += 1
                if row is None or row.position != place:
                    self._unproven(f"row {place}", "the provider does not show it")
                elif fault is not None:
                    self._unproven(f"row {place}", str(fault))
                    if row.id in self._documents and row.id not in seen:
                        seen[row.id] = row.position
                        self._differs(row.id, f"is shown in row {place}, which is not proven")
                elif row.id in seen:
                    self._unproven(f"row {place}", f"its document is that of row {seen[row.id]}")
                else:
                    seen[row.id] = row.position
                    self._row(row)
                    if row.id in self._documents:
                        self._document(self._documents[row.id], row)
            await asyncio.to_thread(self._compare_vectors)
        for name in self._documents:
            if name not in seen:
                self._missing(name, "is not in the index")
        self.found.compared_documents = len(self._documents)
        return self.found

    async def sample(self, count: int) -> Found:
        """Compare so many documents, and so many rows, each chosen at random.

        Args:
            count: at least 1; at most all of each are compared.
        """
        # Here, when asked: a provider that knew the sample would commit to it alone.
        chosen = secrets.SystemRandom()
        names = chosen.sample(sorted(self._documents), min(count, len(self._documents)))
        places = chosen.sample(range(self._rows), min(count, self._rows))
        async for batch in self._service.batches(names, self._version):
            self._check_index(batch)
            for name, row, fault in _each(batch):
                self.found.compared_documents += 1
                if row is None:
                    self._missing(str(name), "is not in the index, the provider says")
                elif fault is not None or row.id != name:
                    self._differs(str(name), str(fault or "another row is shown for it"))
                else:
                    self._document(self._documents[row.id], row)
            await asyncio.to_thread(self._compare_vectors)
        async for batch in self._service.batches(places, self._version):
            self._check_index(batch)
            for place, row, fault in _each(batch):
                self.found.compared_rows += 1
                if row is None or row.position != place:
                    self._unproven(f"row {place}", "the provider does not show it")
                elif fault is not None:
                    self._unproven(f"row {place}", str(fault))
                else:
                    self._row(row)
        return self.found

    def result(self, tenant: str, time: int) -> OwnerResult:
        """Return what was found, to be signed.

        Args:
            tenant: whose documents they are.
            time: Unix milliseconds.
        """
        found, policy = self.found, self._policy
        return OwnerResult(
            policy=hashlib.sha256(policy.canonical).hexdigest(),
            origin=policy.origin,
            tenant=tenant,
            version=self._version,
            time=time,
            owned=OwnedDocuments(
                len(self._documents),
                found.compared_documents,
                found.as_given,
                found.missing,
                found.different,
            ),
            committed=CommittedRows(self._rows, found.compared_rows, found.unknown, found.gone),
        )

    def _check_index(self, batch: Batch) -> None:
        if batch.index != self._index:
            raise AnswerRejected("another index than the window shows", where="row proofs")

    def _row(self, row: ProvenIndexRow) -> None:
        if row.null:
            self.found.gone += 1
        elif row.id not in self._documents:
            self.found.unknown += 1
            self.found.tell(f"row {row.position} holds {row.id}, which is none of your documents")

    def _document(self, document: OwnedDocument, row: ProvenIndexRow) -> None:
        if row.null:
            how = "is marked as deleted" if row.marked else "has a null row, as a deleted one"
            self._missing(document.id, how)
        elif said := difference(document, row, self._policy):
            self._differs(document.id, said)
        elif document.vector is not None:
            self._vectors.append((document, row))
        elif self._embed is None or not document.text.strip():
            self.found.without_vector += 1
        else:
            self._texts.append((document, row))

    def _compare_vectors(self) -> None:
        """Compare the vectors of a batch, of the export or embedded, all at once."""
        policy = self._policy
        given = [document.vector for document, _ in self._vectors if document.vector is not None]
        said = vector_differences(given, [row for _, row in self._vectors], policy) if given else []
        if self._embed is not None and self._texts:
            made = self._embed([document.text for document, _ in self._texts])
            pairs = zip(made, self._texts, strict=True)
            said += [far_off(vector, row, policy) for vector, (_, row) in pairs]
        for (document, _), words in zip(self._vectors + self._texts, said, strict=True):
            if words:
                self._differs(document.id, words)
            else:
                self.found.as_given += 1
        self._vectors.clear()
        self._texts.clear()

    def _missing(self, name: str, said: str) -> None:
        self.found.missing += 1
        self.found.tell(f"{name} {said}")

    def _differs(self, name: str, said: str) -> None:
        self.found.different += 1
        self.found.tell(f"{name} {said}")

    def _unproven(self, where: str, said: str) -> None:
        self.found.unknown += 1
        self.found.tell(f"{where} is not proven: {said}")


def _each(batch: Batch) -> Sequence[tuple[str | int, ProvenIndexRow | None, Any]]:
    return [
        (asked, row, batch.faults.get(at))
        for at, (asked, row) in enumerate(zip(batch.asked, batch.rows, strict=True))
    ]
