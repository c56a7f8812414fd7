"""Chroma's REST interface, version 2 (docs/surfaces.md): bodies, routes and answers."""

import json
from collections.abc import Callable, Sequence
from time import time_ns
from typing import Annotated, Any, Literal
from uuid import UUID, uuid5

from fastapi import Depends, Response
from pydantic import Field
from ragaudit.encoding.errors import Conflict, MalformedRequest, NotFound, UnsupportedError
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.prover.errors import MalformedQuery, NotServed
from ragaudit.prover.surfaces.caller import Caller, own_header
from ragaudit.prover.surfaces.dialects import Body, Dialect, Vector, reply, vector_bytes
from ragaudit.prover.surfaces.queries import (
    Answer,
    Condition,
    Hit,
    Index,
    Query,
    all_of,
    any_of,
    leaf,
)
from ragaudit.serving.exchange import Write, note

Included = Literal["documents", "metadatas", "embeddings", "distances", "uris"]
_OPERATORS = {
    "$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "ge", "$lt": "lt", "$lte": "le",
    "$in": "in", "$nin": "nin",
}  # fmt: skip
# Chroma's own names for the text and the vector of a row, in a filter.
_RESERVED = "#"
TENANT = "default_tenant"
DATABASE = "default_database"
_NAMESPACE = UUID("f3a3a2a6-3f0b-5a0e-9b57-6f1b6f5f3d11")
_SPACES = {"cosine": "cosine", "inner-product": "ip", "l2": "l2"}
_FIELDS: dict[str, Callable[[Hit], Any]] = {
    "documents": lambda hit: hit.content,
    "metadatas": lambda hit: dict(hit.metadata) or None,
    "embeddings": lambda hit: list(hit.vector),
    "distances": lambda hit: hit.distance,
    "uris": lambda hit: None,
}
_ERRORS = {
    400: "InvalidArgumentError", 401: "AuthorizationError", 403: "AuthError",
    404: "NotFoundError", 409: "UniqueConstraintError", 413: "BatchSizeExceededError",
    429: "RateLimitError", 500: "InternalError",
}  # fmt: skip
DEFAULT_RESULTS = 10
MAX_BATCH = 250
_DATABASE = "/api/v2/tenants/{tenant}/databases/{database}"
_ROWS = _DATABASE + "/collections/{collection_id}"


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


def error(text: str, status: int) -> dict[str, Any]:
    """Return the body of an error; its name decides what the client raises."""
    return {"error": _ERRORS.get(status, "ChromaError"), "message": text}


def collection_id(name: str) -> UUID:
    """Return the id that a collection has on this surface, whatever its id in the store."""
    return uuid5(_NAMESPACE, name)


def collection(name: str, index: Index) -> dict[str, Any]:
    """Return a collection.

    Args:
        name: in the settings' table.
        index: that answers for it.
    """
    return {
        "id": str(collection_id(name)),
        "name": name,
        "configuration_json": {
            "hnsw": {"space": _SPACES[index.metric]},
            "spann": None,
            # Chroma's word for "the application's own": it embeds before it asks.
            "embedding_function": {"type": "legacy"},
        },
        "schema": None,
        "metadata": None,
        "dimension": index.dimension,
        "tenant": TENANT,
        "database": DATABASE,
        "log_position": 0,
        "version": 0,
    }


def query_result(answers: Sequence[Answer], include: Sequence[str]) -> dict[str, Any]:
    """Return the rows of a query's answers; members that were not asked for are null.

    Args:
        include: of the query.
    """
    rows = [answer.hits for answer in answers]
    return {
        "ids": [[hit.id for hit in hits] for hits in rows],
        **{
            name: [[read(hit) for hit in hits] for hits in rows] if name in include else None
            for name, read in _FIELDS.items()
        },
        "include": list(include),
    }


def get_result(hits: Sequence[Hit], include: Sequence[str]) -> dict[str, Any]:
    """Return rows that were asked for by id.

    Args:
        include: of the call.
    """
    return {
        "ids": [hit.id for hit in hits],
        **{
            name: [read(hit) for hit in hits] if name in include else None
            for name, read in _FIELDS.items()
            if name != "distances"
        },
        "include": list(include),
    }


CHROMA = Dialect(
    "chroma",
    ("/api/v2", "/api/v1"),
    own_header("x-chroma-token"),
    error,
    frozenset({"chromaQuery"}),
)
CallerOf = Annotated[Caller, Depends(CHROMA.caller)]
Number = Annotated[int | None, Field(ge=0, strict=False)]

router = CHROMA.router()


@router.get("/api/v2/heartbeat", operation_id="chromaHeartbeat")
def heartbeat() -> Response:
    """Say that the service is there."""
    return reply({"nanosecond heartbeat": time_ns()})


@router.get("/api/v2/version", operation_id="chromaVersion")
def version() -> Response:
    """Name the version of the interface."""
    return reply("1.0.0")


@router.get("/api/v2/healthcheck", operation_id="chromaHealth")
def healthcheck() -> Response:
    """Say that the service is there, in another way."""
    return reply({"is_executor_ready": True, "is_log_client_ready": True})


@router.get("/api/v2/pre-flight-checks", operation_id="chromaPreFlight")
def pre_flight_checks() -> Response:
    """Say how many rows a write may have."""
    return reply({"max_batch_size": MAX_BATCH, "supports_base64_encoding": True})


@router.get("/api/v2/auth/identity", operation_id="chromaIdentity")
def identity(caller: CallerOf) -> Response:
    """Name tenant and databases of the key, in Chroma's sense of a tenant."""
    return reply(
        {
            "user_id": caller.account.user or caller.account.name,
            "tenant": TENANT,
            "databases": [DATABASE],
        }
    )


@router.get("/api/v2/tenants/{tenant}", operation_id="chromaTenant")
def get_tenant(caller: CallerOf, tenant: str) -> Response:
    """Show the tenant, of which every key has the same one."""
    _check_place(tenant)
    return reply({"name": TENANT, "resource_name": None})


@router.get(_DATABASE, operation_id="chromaDatabase")
def get_database(caller: CallerOf, tenant: str, database: str) -> Response:
    """Show the database, of which every key has the same one."""
    _check_place(tenant, database)
    return reply({"id": str(UUID(int=0)), "name": DATABASE, "tenant": TENANT})


@router.get(_DATABASE + "/collections", operation_id="chromaCollections")
def list_collections(
    caller: CallerOf, tenant: str, database: str, limit: Number = None, offset: Number = None
) -> Response:
    """List the collections of the key's tenant."""
    _check_place(tenant, database)
    names = caller.collections[offset or 0 :]
    return reply([_shown(caller, name) for name in names[:limit]])


@router.get(_DATABASE + "/collections_count", operation_id="chromaCollectionsCount")
def count_collections(caller: CallerOf, tenant: str, database: str) -> Response:
    """Count the collections of the key's tenant."""
    _check_place(tenant, database)
    return reply(len(caller.collections))


@router.post(_DATABASE + "/collections", operation_id="chromaCreate")
def create_collection(caller: CallerOf, tenant: str, database: str, body: CreateBody) -> Response:
    """Return a collection that there is already; there are no others."""
    _check_place(tenant, database)
    if body.name not in caller.collections:
        # The same for another tenant's: who may create it learns no more than who may not.
        raise NotServed("creating a collection", expected="one that the settings map")
    if not body.get_or_create:
        raise Conflict(f"Collection [{body.name}] already exists", expected="get_or_create")
    return reply(_shown(caller, body.name))


@router.get(_DATABASE + "/collections/by-id/{collection_id}", operation_id="chromaById")
def get_collection_by_id(
    caller: CallerOf, tenant: str, database: str, collection_id: str
) -> Response:
    """Show a collection by its id."""
    return reply(_shown(caller, _named(caller, tenant, database, collection_id)))


# In Chroma's own description this parameter is called an id too; it is a name.
@router.get(_ROWS, operation_id="chromaCollection")
def get_collection(caller: CallerOf, tenant: str, database: str, collection_id: str) -> Response:
    """Show a collection by its name."""
    _check_place(tenant, database)
    caller.check_collection(collection_id)
    return reply(_shown(caller, collection_id))


@router.get(_ROWS + "/count", operation_id="chromaCount")
def count(
    caller: CallerOf,
    tenant: str,
    database: str,
    collection_id: str,
    read_level: str | None = None,
) -> Response:
    """Count all rows of the index, which the policy says."""
    _named(caller, tenant, database, collection_id)
    return reply(caller.index().rows)


@router.post(_ROWS + "/query", operation_id="chromaQuery")
def query(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: QueryBody
) -> Response:
    """Answer as many queries as there are vectors."""
    _named(caller, tenant, database, collection_id)
    default = body.n_results or min(DEFAULT_RESULTS, caller.index().top_k_max)
    answers = caller.ask(queries_of(body, default))
    receipts = [answer.receipt for answer in answers]
    return reply(query_result(answers, body.include), receipts)


@router.post(_ROWS + "/get", operation_id="chromaGet")
def get(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: GetBody
) -> Response:
    """Show rows that this account was served in this window; others do not exist for it."""
    _named(caller, tenant, database, collection_id)
    ids, include = body.checked_ids(), [name for name in body.include if name != "distances"]
    return reply(get_result(caller.fetch(ids), include))


@router.post(_ROWS + "/add", operation_id="chromaAdd")
def add(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: WriteBody
) -> Response:
    """Pass rows on to the store."""
    return _write(caller, (tenant, database, collection_id), "add", body)


@router.post(_ROWS + "/upsert", operation_id="chromaUpsert")
def upsert(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: WriteBody
) -> Response:
    """Pass rows on to the store, new or not."""
    return _write(caller, (tenant, database, collection_id), "upsert", body)


@router.post(_ROWS + "/update", operation_id="chromaUpdate")
def update(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: WriteBody
) -> Response:
    """Pass changes of rows on to the store."""
    return _write(caller, (tenant, database, collection_id), "update", body)


@router.post(_ROWS + "/delete", operation_id="chromaDelete")
def delete(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: DeleteBody
) -> Response:
    """Pass deletions on to the store."""
    caller.check_writes()
    _named(caller, tenant, database, collection_id)
    selection = body.checked()
    answer = _forwarded(caller, "delete", selection, body.ids or [])
    if answer.status_code >= 300:
        return answer
    # Not the store's own number, which says which rows there are. Clients take none for 0.
    return reply({"deleted": len(selection["ids"])} if selection.keys() == {"ids"} else {})


def _write(
    caller: Caller, place: tuple[str, str, str], operation: str, body: WriteBody
) -> Response:
    caller.check_writes()
    _named(caller, *place)
    return _forwarded(caller, operation, body.model_dump(exclude_unset=True), body.ids)


def _forwarded(
    caller: Caller, operation: str, document: dict[str, Any], ids: Sequence[str]
) -> Response:
    if len(ids) > MAX_BATCH:
        raise MalformedQuery(f"{len(ids)} rows", expected=f"at most {MAX_BATCH} in a call")
    try:
        # Written anew from what was checked: the store must not read it in another way.
        content = json.dumps(document, allow_nan=False).encode()
    except ValueError:
        # 1e999 is JSON, and no number that a store could have.
        raise MalformedRequest("infinite numbers", where="body", expected="finite ones") from None
    # Before it leaves: whatever becomes of it, the store may have taken it.
    note(write=Write.of(operation, ids, where=document.get("where")))
    answer = caller.port.forward(caller.account.tenant, operation, content)
    return Response(answer.body, answer.status, media_type="application/json")


def _named(caller: Caller, tenant: str, database: str, identifier: str) -> str:
    _check_place(tenant, database)
    for name in caller.collections:
        if str(collection_id(name)) == identifier:
            return name
    raise NotFound("no such collection", where="path", expected="an id of the tenant's")


def _check_place(tenant: str, database: str = DATABASE) -> None:
    if (tenant, database) != (TENANT, DATABASE):
        expected = f"{TENANT} and {DATABASE}"
        raise NotFound("no such tenant or database", where="path", expected=expected)


def _shown(caller: Caller, name: str) -> dict[str, Any]:
    return collection(name, caller.index())


CHROMA.refuse_rest(router)
