"""What Chroma's clients call on construction, to query and to write."""

import json
from collections.abc import Sequence
from time import time_ns
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Response
from pydantic import Field
from ragaudit.encoding.errors import Conflict, MalformedRequest, NotFound
from ragaudit.prover.errors import MalformedQuery
from ragaudit.prover.surfaces.caller import Caller, own_header
from ragaudit.prover.surfaces.chroma import shapes
from ragaudit.prover.surfaces.chroma.bodies import (
    CreateBody,
    DeleteBody,
    GetBody,
    QueryBody,
    WriteBody,
    queries_of,
)
from ragaudit.prover.surfaces.dialects import Dialect, reply
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.serving.exchange import Write, note

CHROMA = Dialect("chroma", ("/api/v2", "/api/v1"), own_header("x-chroma-token"), shapes.error)
DEFAULT_RESULTS = 10
MAX_BATCH = 250
CallerOf = Annotated[Caller, Depends(CHROMA.caller)]
Number = Annotated[int | None, Field(ge=0, strict=False)]

_DATABASE = "/api/v2/tenants/{tenant}/databases/{database}"
_ROWS = _DATABASE + "/collections/{collection_id}"
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
            "tenant": shapes.TENANT,
            "databases": [shapes.DATABASE],
        }
    )


@router.get("/api/v2/tenants/{tenant}", operation_id="chromaTenant")
def get_tenant(caller: CallerOf, tenant: str) -> Response:
    """Show the tenant, of which every key has the same one."""
    _check_place(tenant)
    return reply({"name": shapes.TENANT, "resource_name": None})


@router.get(_DATABASE, operation_id="chromaDatabase")
def get_database(caller: CallerOf, tenant: str, database: str) -> Response:
    """Show the database, of which every key has the same one."""
    _check_place(tenant, database)
    return reply({"id": str(UUID(int=0)), "name": shapes.DATABASE, "tenant": shapes.TENANT})


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
    return reply(shapes.query_result(answers, body.include), receipts)


@router.post(_ROWS + "/get", operation_id="chromaGet")
def get(
    caller: CallerOf, tenant: str, database: str, collection_id: str, body: GetBody
) -> Response:
    """Show rows that this account was served in this window; others do not exist for it."""
    _named(caller, tenant, database, collection_id)
    ids, include = body.checked_ids(), [name for name in body.include if name != "distances"]
    return reply(shapes.get_result(caller.fetch(ids), include))


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
        if str(shapes.collection_id(name)) == identifier:
            return name
    raise NotFound("no such collection", where="path", expected="an id of the tenant's")


def _check_place(tenant: str, database: str = shapes.DATABASE) -> None:
    if (tenant, database) != (shapes.TENANT, shapes.DATABASE):
        expected = f"{shapes.TENANT} and {shapes.DATABASE}"
        raise NotFound("no such tenant or database", where="path", expected=expected)


def _shown(caller: Caller, name: str) -> dict[str, Any]:
    return shapes.collection(name, caller.index())


CHROMA.refuse_rest(router)
