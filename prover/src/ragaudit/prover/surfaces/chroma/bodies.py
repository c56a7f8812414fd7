"""Bodies of Chroma's calls, and what of them is not served."""

from typing import Any, Literal

from pydantic import Field
from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.prover.surfaces.conditions import all_of, any_of, leaf
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.queries import Condition, Query
from ragaudit.prover.surfaces.wire import Body, vector_bytes

Included = Literal["documents", "metadatas", "embeddings", "distances", "uris"]
_OPERATORS = {
    "$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "ge", "$lt": "lt", "$lte": "le",
    "$in": "in", "$nin": "nin",
}  # fmt: skip
# Chroma's own names for the text and the vector of a row, in a filter.
_RESERVED = "#"
# LlamaIndex's name in a row's metadata for the document that the row is a part of.
_DOCUMENT = "document_id"


class CreateBody(Body):
    """A collection to create: one that exists, or none."""

    name: str
    metadata: dict[str, Any] | None = None
    configuration: dict[str, Any] | None = None
    # `schema` is a method of the library's class.
    schema_: Any = Field(default=None, alias="schema")
    get_or_create: bool = False


class _Selection(Body):
    ids: list[str] | None = None
    where: dict[str, Any] | None = None
    where_document: dict[str, Any] | None = None

    def check_document_filter(self) -> None:
        """Check that nothing is asked of the rows' texts.

        Raises:
            NotServed: whoever may ask which rows hold a word can read them word by word.
        """
        if self.where_document:
            raise NotServed("where_document", expected="none: texts are no public columns")


class QueryBody(_Selection):
    """A query: as many as it has vectors."""

    query_embeddings: list[list[float]]
    n_results: int | None = Field(default=None, ge=1)
    include: tuple[Included, ...] = Field(
        default=("metadatas", "documents", "distances"), strict=False
    )


class GetBody(_Selection):
    """Rows by their ids."""

    limit: int | None = None
    offset: int | None = None
    include: tuple[Included, ...] = Field(default=("metadatas", "documents"), strict=False)

    def checked_ids(self) -> list[str]:
        """Return the ids.

        Raises:
            NotServed: it asks for rows otherwise than by their ids.
        """
        self.check_document_filter()
        if not self.ids or self.where or self.limit is not None or self.offset:
            raise NotServed(
                "reading a collection", expected="ids of rows that a query of this key returned"
            )
        return self.ids


class WriteBody(Body):
    """Rows to add, to update or to replace."""

    ids: list[str] = Field(min_length=1)
    # Texts are base64 of little-endian float32: the store reads them.
    embeddings: list[list[float]] | list[str] | list[list[float] | str | None] | None = None
    documents: list[str | None] | None = None
    metadatas: list[dict[str, Any] | None] | None = None
    uris: list[str | None] | None = None


class DeleteBody(_Selection):
    """Rows to delete, by their ids or by that of the document they are parts of."""

    limit: int | None = None

    def checked(self) -> tuple[dict[str, Any], int]:
        """Return what the store is to delete, and how many names that is.

        Raises:
            NotServed: rows by a filter; how many there are would answer it.
        """
        self.check_document_filter()
        if self.limit is None:
            if self.ids and not self.where:
                return {"ids": self.ids}, len(self.ids)
            match self.where:
                # A name that the application gave, as an id is: whoever has it may delete what it
                # names. LlamaIndex has no other way to delete or replace a document.
                case {"document_id": str(name), **others} if not self.ids and not others:
                    return {"where": {_DOCUMENT: name}}, 1
        raise NotServed("deleting by a filter", expected="ids, or an equal document_id")


def queries_of(body: QueryBody, default: int) -> list[Query]:
    """Return a query for each vector.

    Args:
        default: K where the body names none.

    Raises:
        NotServed: a filter on texts, or among given ids.
        UnsupportedError, MalformedRequest: as `condition_of`; no vector, or one of no float32.
    """
    body.check_document_filter()
    if body.ids is not None:
        raise NotServed("a query among ids", expected="a filter on public columns")
    condition = condition_of(body.where) if body.where else None
    return [
        Query(vector_bytes(vector, "query_embeddings"), body.n_results or default, condition)
        for vector in body.query_embeddings
    ]


def condition_of(where: dict[str, Any]) -> Condition:
    """Return the filter of a ``where``.

    Args:
        where: one member; several are refused, as Chroma refuses them.

    Raises:
        UnsupportedError: an operator that is not served.
        MalformedRequest: not a where.
    """
    if len(where) != 1:
        raise MalformedRequest("several members", where="where", expected="$and of single ones")
    [(key, given)] = where.items()
    if key in ("$and", "$or"):
        if not isinstance(given, list) or not all(isinstance(part, dict) for part in given):
            raise MalformedRequest("not a list of conditions", where=f"where.{key}")
        parts = [condition_of(part) for part in given]
        return all_of(parts) if key == "$and" else any_of(parts)
    if key.startswith(("$", _RESERVED)):
        raise UnsupportedError("operator", where="where", expected="$and, $or or a public column")
    if not isinstance(given, dict):
        return leaf("eq", key, given)
    if len(given) != 1:
        raise MalformedRequest("several operators", where="where", expected="$and of single ones")
    [(name, value)] = given.items()
    if (operator := _OPERATORS.get(name)) is None:
        raise UnsupportedError("operator", where="where", expected=", ".join(_OPERATORS))
    return leaf(operator, key, value)
