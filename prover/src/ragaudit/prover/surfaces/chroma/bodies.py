"""Bodies of Chroma's calls, and what of them is not served."""

import json
from typing import Any, Literal

from pydantic import Field
from ragaudit.encoding.errors import MalformedRequest, UnsupportedError
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.prover.surfaces.conditions import all_of, any_of, leaf
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.queries import Condition, Query
from ragaudit.prover.surfaces.wire import Body, Vector, vector_bytes

Included = Literal["documents", "metadatas", "embeddings", "distances", "uris"]
_OPERATORS = {
    "$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "ge", "$lt": "lt", "$lte": "le",
    "$in": "in", "$nin": "nin",
}  # fmt: skip
# Chroma's own names for the text and the vector of a row, in a filter.
_RESERVED = "#"


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

    query_embeddings: list[Vector]
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
    embeddings: list[Vector] | list[str] | list[Vector | str | None] | None = None
    documents: list[str | None] | None = None
    metadatas: list[dict[str, Any] | None] | None = None
    uris: list[str | None] | None = None


class DeleteBody(_Selection):
    """Rows to delete, by their ids, by a filter on any metadata, or by both."""

    limit: int | None = Field(default=None, ge=1)

    def checked(self) -> dict[str, Any]:
        """Return what the store is to delete.

        A filter is the store's to apply, to rows as they are now. What it took is told later only
        of rows that are selected for an answer, whose metadata would have come with them.

        Raises:
            NotServed: a filter on texts, also by Chroma's own name for them.
            UnsupportedError, MalformedRequest: as `condition_of`; neither ids nor a filter, or one
                that is longer than a query's may be.
        """
        self.check_document_filter()
        if self.where:
            if len(json.dumps(condition_of(self.where))) > MAX_FILTER_BYTES:
                expected = f"at most {MAX_FILTER_BYTES} bytes"
                raise MalformedRequest("a long filter", where="where", expected=expected)
        elif not self.ids:
            raise MalformedRequest("nothing to delete", where="body", expected="ids or a filter")
        # Ids, if only none of them, with a filter: rows that both name.
        given = {"ids": self.ids, "where": self.where or None, "limit": self.limit}
        return {name: value for name, value in given.items() if value is not None}


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
