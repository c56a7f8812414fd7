"""An owner's documents, and how they compare with the index of a tenant, in both directions.

They come from a folder or a JSONL export; what the index holds, from proofs (docs/spec 5.16).
"""

import asyncio
import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.metrics import scaled
from ragaudit.client.errors import AnswerRejected
from ragaudit.client.owner_proofs import Batch, OwnerService, far_off, too_short
from ragaudit.client.state import read_bytes
from ragaudit.encoding.errors import MalformedError, UnavailableError, UnsupportedError
from ragaudit.encoding.json_structure import loads
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.columns import canonical_text, columns_text, parse_text
from ragaudit.ledger.messages.documents import ProvenIndexRow
from ragaudit.ledger.messages.entries import TenantOpening
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import Embed
from ragaudit.ledger.messages.signed_results import CommittedRows, OwnedDocuments, OwnerResult

__all__ = ["Found", "OwnedDocument", "OwnerAudit", "check_owner_key", "read_documents"]

_TEXTS = (".txt", ".md", ".markdown")
_LINES = ".jsonl"
_EXPECTED = (
    '{"id": text, "text": text}, and "metadata": {..} and "vector": [numbers] if there are any'
)
# A store may return a vector otherwise in its last bits than when it was committed to.
_MOVED_ONE_IN = 128
_MAX_LINE_BYTES = 2**20  # a text, its metadata and a vector, each of the longest that may be
MOST_TOLD: Final = 1000
"""Findings that are kept in words; all of them count."""


@dataclass(frozen=True, slots=True)
class OwnedDocument:
    """A document as its owner has it.

    Attributes:
        id: as in the index.
        text: empty where the store has a vector alone.
        attributes: canonical JSON text of its metadata; empty for none.
        vector: float64[d]; None where the text is embedded.
    """

    id: str
    text: str = field(repr=False)
    attributes: str = field(default="", repr=False)
    vector: npt.NDArray[np.float64] | None = field(default=None, repr=False, compare=False)


def read_documents(path: Path) -> dict[str, OwnedDocument]:
    """Return documents by id.

    A JSONL file has one document a line. In a folder, JSONL files have theirs, and each text file
    is one document, whose id is its path below the folder. Passages, into which a service may cut
    longer texts, are documents of their own: export those.

    Args:
        path: a file of JSON lines, or a folder.

    Raises:
        MalformedError: a file of another kind or form, an id twice, or no document at all.
        UnavailableError: a file cannot be read.
    """
    found: dict[str, OwnedDocument] = {}
    for document in _documents(path):
        if document.id in found:
            raise MalformedError("an id twice", where=f"{path}: {document.id}")
        found[document.id] = document
    if not found:
        expected = f"{_LINES}, or a folder with {', '.join((*_TEXTS, _LINES))}"
        raise MalformedError("no documents", where=str(path), expected=expected)
    return found


def difference(document: OwnedDocument, row: ProvenIndexRow, policy: Policy) -> str:
    """Return how a live row differs from its document, in words; empty if it does not.

    Of the vector nothing is said: see `vector_differences` and `far_off`.

    Args:
        document: of the row's id.
        row: proven, and no null row.
        policy: of the window.
    """
    if not row.holds(document.text, document.attributes):
        return "is committed with another text or other metadata"
    try:
        declared = columns_text(_columns(document, policy), policy.retrieval.public_columns)
    except MalformedRecord as error:
        return f"has metadata that is no public column: {error}"
    if row.columns != declared:
        return "is committed with other public columns"
    return ""


def vector_differences(
    vectors: Sequence[npt.NDArray[np.float64]], rows: Sequence[ProvenIndexRow], policy: Policy
) -> list[str]:
    """Return how rows differ from their documents' vectors, in words; empty where they do not.

    Many at once take a tenth of the time that as many single ones do.

    Args:
        vectors: real numbers, as the store returns them.
        rows: proven, as many.
        policy: of the window.
    """
    if any(len(vector) != policy.dimension for vector in vectors):
        return [_vector_difference(*pair, policy) for pair in zip(vectors, rows, strict=True)]
    try:
        made = _scaled(np.array(vectors), policy)
    except MalformedError:  # of one of them: which, and why, each says for itself
        return [_vector_difference(*pair, policy) for pair in zip(vectors, rows, strict=True)]
    return [_moved(own, row) for own, row in zip(made, rows, strict=True)]


def _scaled(vectors: npt.NDArray[np.float64], policy: Policy) -> npt.NDArray[np.int64]:
    terms = policy.retrieval
    norm = None if terms.largest_norm is None else Decimal(terms.largest_norm)
    return scaled(vectors, terms.metric, norm, policy.norm_bound).astype(np.int64)


def _vector_difference(vector: npt.NDArray[np.float64], row: ProvenIndexRow, policy: Policy) -> str:
    if len(vector) != policy.dimension:
        return f"has a vector of {len(vector)} entries, and the index of {policy.dimension}"
    try:
        [made] = _scaled(vector[np.newaxis], policy)
    except MalformedError as error:
        return f"has a vector that no row of this window can have: {error.what}"
    return _moved(made, row)


def _moved(made: npt.NDArray[np.int64], row: ProvenIndexRow) -> str:
    committed = np.array(row.vector, dtype=np.int64)
    moved = np.abs(made - committed)
    if int(moved.max()) <= 1 and int(moved.sum()) <= 2 + len(made) // _MOVED_ONE_IN:
        return ""
    own, there = (float(np.linalg.norm(each)) for each in (made, committed))
    if own and there < own / 2:
        return too_short(there / own)
    return "is committed with another vector"


def _columns(document: OwnedDocument, policy: Policy) -> dict[str, Any]:
    if not document.attributes:
        return {}
    values = parse_text(document.attributes, "metadata")
    names = [column.name for column in policy.retrieval.public_columns]
    return {name: values[name] for name in names if values.get(name) is not None}


def _documents(path: Path) -> Iterator[OwnedDocument]:
    if not path.is_dir():
        yield from _lines(path)
        return
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() == _LINES and file.is_file():
            yield from _lines(file)
        elif file.suffix.lower() in _TEXTS and file.is_file():
            name = file.relative_to(path).as_posix()
            # A byte order mark or the line ends of an editor make no other document.
            text = _text(file).removeprefix("\ufeff").replace("\r\n", "\n")
            yield OwnedDocument(check_document_id(name), text)


def _text(file: Path) -> str:
    try:
        return read_bytes(file).decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{file}, byte {error.start}"
        raise MalformedError("not UTF-8", where=where, expected="UTF-8 text") from None


def _lines(path: Path) -> Iterator[OwnedDocument]:
    # Line by line: with vectors an export is larger than the memory that it is compared in.
    try:
        with path.open("rb") as file:
            for number in count(1):
                line = file.readline(_MAX_LINE_BYTES)
                if not line:
                    return
                if line.strip():
                    yield _document(line, f"{path}, line {number}")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise MalformedError("no such file", where=str(path)) from error
    except OSError as error:
        raise UnavailableError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _document(line: bytes, where: str) -> OwnedDocument:
    try:
        value = loads(line)
    except (MalformedError, ValueError):
        raise MalformedError("not JSON", where=where, expected=_EXPECTED) from None
    match value:
        case {"id": str(name), "text": str(text), **more}:
            metadata = more.pop("metadata", more.pop("attributes", None)) or {}
            vector = more.pop("vector", None)
            if not more and isinstance(metadata, dict):
                try:
                    attributes = canonical_text(metadata) if metadata else ""
                    return OwnedDocument(
                        check_document_id(name), text, attributes, _vector(vector, where)
                    )
                except MalformedRecord as error:
                    raise MalformedError(error.what, where=where, expected=_EXPECTED) from None
    raise MalformedError("not a document", where=where, expected=_EXPECTED)


def _vector(value: object, where: str) -> npt.NDArray[np.float64] | None:
    if value is None:
        return None
    numbers: Sequence[Any] = value if isinstance(value, list) else ()
    if not numbers or not set(map(type, numbers)) <= {int, float}:
        raise MalformedError("not a vector", where=where, expected="numbers")
    # Stores hold 32 bits; what is quantised is what they return.
    return np.array(numbers, dtype=np.float32).astype(np.float64)


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
    named = policy.tenants.get(tenant)
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
