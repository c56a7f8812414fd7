"""What an account asks and gets: request, answer, documents (docs/spec/05-records.md §5.8)."""

from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.identifiers import check_document_id
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.records import MAX_QUERIES, MAX_ROWS, MAX_TOP_K

MAX_QUERY_BYTES = 8192
MAX_FILTER_BYTES = 8192
MAX_CONTENT_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Request:
    """Query text, K, filter; the counter is an anchored client's, None for a plain one."""

    query: str = field(repr=False)
    top_k: int
    counter: int | None = None
    filter: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "counter": self.counter,
            "filter": self.filter,
            "query": self.query,
            "top_k": self.top_k,
        }

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "request") -> "Request":
        """Raises MalformedRecord, or UnsupportedError for a filter."""
        f = Fields(value, "counter filter query top_k", MalformedRecord, where)
        text = f.text("filter", 0, MAX_FILTER_BYTES)
        if text:
            raise UnsupportedError("filters", where=where, expected="empty text in version 1")
        counter = None if f.raw("counter") is None else f.integer("counter", 0, MAX_QUERIES - 1)
        return cls(f.text("query", 1, MAX_QUERY_BYTES), f.integer("top_k", 1, MAX_TOP_K), counter)


@dataclass(frozen=True, slots=True)
class Document:
    """A row as it was served."""

    position: int
    id: str = field(repr=False)
    content: str = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": {},
            "content": self.content,
            "id": self.id,
            "position": self.position,
        }

    @classmethod
    def from_json(cls, value: Any, where: str) -> "Document":
        f = Fields(value, "columns content id position", MalformedRecord, where)
        return cls(*read_row(f))


@dataclass(frozen=True, slots=True)
class Answer:
    """The documents of an answer, in rising position: the order says nothing about scores."""

    documents: tuple[Document, ...]

    def __post_init__(self) -> None:
        check_rising([each.position for each in self.documents], "answer")

    def to_json(self) -> dict[str, Any]:
        return {"documents": [each.to_json() for each in self.documents]}

    def encode(self) -> bytes:
        return canonical_json.dumps(self.to_json())

    @classmethod
    def from_json(cls, value: Any, where: str = "answer") -> "Answer":
        """Raises MalformedRecord, also for documents out of order."""
        f = Fields(value, "documents", MalformedRecord, where)
        items = f.objects("documents", 0, MAX_TOP_K)
        return cls(tuple(Document.from_json(item, place) for place, item in items))


def read_row(f: Fields) -> tuple[int, str, str]:
    """Position, id and content of a row; its columns must be empty in version 1."""
    if f.raw("columns") != {}:
        raise UnsupportedError("public columns", where=f.path("columns"), expected="{}")
    identifier = check_document_id(f.text("id", 1, 512))
    position = f.integer("position", 0, MAX_ROWS - 1)
    return position, identifier, f.text("content", 0, MAX_CONTENT_BYTES)


def check_rising(positions: list[int], where: str) -> None:
    """Check that positions rise strictly; MalformedRecord."""
    if positions != sorted(set(positions)):
        raise MalformedRecord("positions not rising and distinct", where=where)


def load_canonical(data: bytes, where: str) -> Any:
    """The value of canonical JSON; MalformedRecord for anything else."""
    try:
        return canonical_json.loads(data)
    except MalformedError as error:
        raise MalformedRecord(error.what, where=where, expected=error.expected) from error
