"""The documents of an owner, from a folder or a JSONL export, and how they compare with rows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.metrics import scaled
from ragaudit.client.state import read_bytes
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.json_structure import loads
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.columns import canonical_text, columns_text, parse_text
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.row_proofs import ProvenIndexRow

__all__ = ["OwnedDocument", "difference", "far_off", "read_documents", "vector_differences"]

_TEXTS = (".txt", ".md", ".markdown")
_LINES = ".jsonl"
_EXPECTED = (
    '{"id": text, "text": text}, and "metadata": {..} and "vector": [numbers] if there are any'
)
# A store may return a vector otherwise in its last bits than when it was committed to.
_MOVED_ONE_IN = 128
_MAX_LINE_BYTES = 2**20  # a text, its metadata and a vector, each of the longest that may be


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


def far_off(made: Sequence[int], row: ProvenIndexRow, policy: Policy) -> str:
    """Return how far a row is off from the embedding of its text, in words; empty if it is not.

    Args:
        made: by the committed embedder, quantised.
        row: proven.
        policy: of the window.
    """
    distance = sum((int(a) - b) ** 2 for a, b in zip(made, row.vector, strict=True))
    if distance <= policy.embedder_tolerance:
        return ""
    own, there = (math.sqrt(sum(int(a) ** 2 for a in each)) for each in (made, row.vector))
    if there < own / 2:
        return _short(there / own)
    most = policy.embedder_tolerance
    return f"is committed with a vector that is off by {distance}, more than {most}"


def _short(share: float) -> str:
    return f"is committed at {share:.2f} of its length: no search ranks it where it belongs"


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
        return _short(there / own)
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
