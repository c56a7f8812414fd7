"""Qdrant's REST interface, as far as its clients query (docs/surfaces.md)."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Depends, Response
from pydantic import BeforeValidator, Field
from ragaudit.encoding.errors import MalformedRequest, NotFound, UnsupportedError
from ragaudit.prover.errors import NotServed
from ragaudit.prover.settings import QdrantSettings
from ragaudit.prover.surfaces.caller import Caller, own_header
from ragaudit.prover.surfaces.dialects import (
    Body,
    Dialect,
    Vector,
    few_members,
    reply,
    vector_bytes,
)
from ragaudit.prover.surfaces.queries import (
    Condition,
    Hit,
    Index,
    Query,
    all_of,
    any_of,
    check_threshold,
    leaf,
    negated,
    passing,
)

_RANGE = {"lt": "lt", "lte": "le", "gt": "gt", "gte": "ge"}
VERSION = "1.20.0"
_DISTANCES = {"cosine": "Cosine", "inner-product": "Dot", "l2": "Euclid"}
# What Qdrant calls an unsigned integer; other ids are texts, UUIDs or not.
_INTEGER = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_INTEGERS = 2**64
DEFAULT_LIMIT = 10
_COLLECTION = "/collections/{collection_name}"


class RangeBody(Body):
    """Bounds of a number."""

    lt: int | float | None = None
    lte: int | float | None = None
    gt: int | float | None = None
    gte: int | float | None = None


class ConditionBody(Body):
    """A condition on a field, or a filter within a filter."""

    key: str | None = None
    match: dict[str, Any] | None = None
    range: RangeBody | None = None
    geo_bounding_box: Any = None
    geo_radius: Any = None
    geo_polygon: Any = None
    values_count: Any = None
    is_empty: Any = None
    is_null: Any = None
    has_id: Any = None
    has_vector: Any = None
    nested: Any = None
    must: "list[ConditionBody] | ConditionBody | None" = None
    should: "list[ConditionBody] | ConditionBody | None" = None
    must_not: "list[ConditionBody] | ConditionBody | None" = None
    min_should: Any = None


FilterBody = ConditionBody


def condition_of(given: FilterBody, prefix: str | None) -> Condition | None:
    """Return the filter of a Qdrant filter; None if it states nothing.

    Args:
        prefix: key of the payload under which the metadata are; None if they are at its top.

    Raises:
        NotServed: a condition on anything but a public column's value.
        UnsupportedError: a match that means something else where the value is missing.
        MalformedRequest: a condition in no form.
    """
    if given.min_should is not None:
        raise NotServed("min_should", expected="must, should and must_not")
    parts = [_condition(one, prefix) for one in _list(given.must)]
    if should := _list(given.should):
        parts.append(any_of([_condition(one, prefix) for one in should]))
    parts += [negated(_condition(one, prefix)) for one in _list(given.must_not)]
    if given.key is not None or given.match is not None or given.range is not None:
        raise MalformedRequest("a condition where a filter stands", where="filter")
    return all_of(parts) if parts else None


def _list(given: "list[ConditionBody] | ConditionBody | None") -> list[ConditionBody]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _condition(given: ConditionBody, prefix: str | None) -> Condition:
    named = given.model_fields_set & set(ConditionBody.model_fields)
    stated = {name for name in named if getattr(given, name) is not None}
    if stated and stated <= {"must", "should", "must_not", "min_should"}:
        nested = condition_of(given, prefix)
        if nested is None:
            raise MalformedRequest("an empty filter within a filter", where="filter")
        return nested
    if stated == {"key", "match"}:
        return _match(_column(given.key, prefix), given.match or {})
    if stated == {"key", "range"} and given.range is not None:
        bounds = given.range.model_dump(exclude_none=True)
        column = _column(given.key, prefix)
        return all_of([leaf(_RANGE[name], column, bound) for name, bound in bounds.items()])
    raise NotServed(
        "a condition on anything but the value of a public column",
        where="filter",
        expected="key with match or range",
    )


def _match(column: str, given: dict[str, Any]) -> Condition:
    if set(given) == {"value"} and isinstance(given["value"], str | int):
        return leaf("eq", column, given["value"])
    if set(given) == {"any"}:
        return leaf("in", column, given["any"])
    raise UnsupportedError(
        "a match by words, or except, which rows without the value never pass",
        where="filter",
        expected="value or any; must_not for the contrary",
    )


def _column(key: str | None, prefix: str | None) -> str:
    """Return the public column of a payload's key."""
    start = "" if prefix is None else f"{prefix}."
    if key is None or not key.startswith(start):
        raise UnsupportedError("key", where="filter", expected=f"{start}<public column>")
    return key.removeprefix(start)


Chosen = Annotated[dict[str, list[str]], BeforeValidator(few_members)]
Payload = bool | list[str] | Chosen | None


class SearchParams(Body):
    """How to search: every answer is exact, so that these change nothing."""

    hnsw_ef: int | None = None
    exact: bool | None = None
    quantization: dict[str, Any] | None = None
    indexed_only: bool | None = None


class QueryBody(Body):
    """A query."""

    query: Vector | dict[str, Any] | int | str | None = None
    filter: FilterBody | None = None
    params: SearchParams | None = None
    limit: int | None = Field(default=None, ge=1)
    offset: int | None = None
    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    with_payload: Payload = None
    with_vector: bool | list[str] | None = None
    using: str | None = None
    prefetch: Any = None
    lookup_from: Any = None
    shard_key: Any = None


class BatchBody(Body):
    """Several queries."""

    searches: list[QueryBody] = Field(min_length=1)


class PointsBody(Body):
    """Points by their ids."""

    ids: list[int | str] = Field(min_length=1)
    with_payload: Payload = None
    with_vector: bool | list[str] | None = None
    shard_key: Any = None


class CountBody(Body):
    """A count."""

    filter: dict[str, Any] | None = None
    exact: bool | None = None
    shard_key: Any = None


def query_of(body: QueryBody, settings: QdrantSettings, default: int) -> Query:
    """Return the query of a body.

    Args:
        settings: where a payload's metadata is.
        default: K where the body names none.

    Raises:
        NotServed: anything but the nearest points of one vector.
        UnsupportedError, MalformedRequest: as `condition_of`; a threshold that nothing passes; no
            float32.
    """
    if body.prefetch not in (None, []):
        raise NotServed("prefetch", expected="one vector: several stages are not proven")
    if body.lookup_from is not None or body.shard_key is not None:
        raise NotServed("lookup_from or shard_key", expected="neither")
    if body.using not in (None, ""):
        raise NotServed("a named vector", where="using", expected="the only one")
    if body.offset not in (None, 0):
        raise NotServed("an offset", expected="0: every row that is skipped is charged")
    if body.params is not None and body.params.indexed_only:
        raise NotServed("indexed_only", expected="all rows")
    check_threshold(body.score_threshold)
    return Query(
        vector_bytes(_nearest(body.query), "query"),
        body.limit or default,
        None if body.filter is None else condition_of(body.filter, settings.metadata_key),
    )


def _nearest(query: Any) -> list[float]:
    vector = query.get("nearest") if isinstance(query, dict) and len(query) == 1 else query
    numbers = isinstance(vector, list) and all(type(one) in (int, float) for one in vector)
    if not numbers:
        raise NotServed("another query than by one vector", expected="a vector: no MMR, no ids")
    assert isinstance(vector, list)
    return vector


def error(text: str, status: int) -> dict[str, Any]:
    """Return the body of an error."""
    return {"status": {"error": text}, "time": 0.0}


def result(value: Any) -> dict[str, Any]:
    """Return an answer's body.

    Args:
        value: what was asked for.
    """
    return {"usage": None, "time": 0.0, "status": "ok", "result": value}


def collection(index: Index) -> dict[str, Any]:
    """Return what a client may know of a collection: size and kind of its vectors, its rows."""
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": index.rows,
        "points_count": index.rows,
        "segments_count": 1,
        "config": {
            "params": {
                "vectors": {"size": index.dimension, "distance": _DISTANCES[index.metric]},
                "shard_number": 1,
                "replication_factor": 1,
                "write_consistency_factor": 1,
                "on_disk_payload": False,
            },
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 1,
                "flush_interval_sec": 5,
            },
            "wal_config": None,
            "quantization_config": None,
        },
        "payload_schema": {},
    }


def point_id(identifier: str) -> int | str:
    """Return a row's id as a point's: a number if it is written as Qdrant writes one."""
    if _INTEGER.fullmatch(identifier) and int(identifier) < _INTEGERS:
        return int(identifier)
    return identifier


def row_id(identifier: int | str) -> str:
    """Return a point's id as a row's."""
    return str(identifier)


def scored(
    hits: Sequence[Hit], payload: Payload, vector: Any, settings: QdrantSettings
) -> list[dict[str, Any]]:
    """Return rows as scored points.

    Args:
        payload, vector: what of each is asked for.
    """
    return [
        {**point(hit, payload, vector, settings), "version": 0, "score": hit.similarity}
        for hit in hits
    ]


def point(hit: Hit, payload: Payload, vector: Any, settings: QdrantSettings) -> dict[str, Any]:
    """Return a row as a point.

    Args:
        payload, vector: what of it is asked for.

    Raises:
        UnsupportedError: parts of nested members, or a named vector.
    """
    if isinstance(vector, list) and vector:
        raise UnsupportedError("a named vector", where="with_vector", expected="true or false")
    shown: dict[str, Any] = {"id": point_id(hit.id)}
    if payload not in (None, False):
        shown["payload"] = _selected(payload_of(hit, settings), payload)
    if vector:
        shown["vector"] = list(hit.vector)
    return shown


def payload_of(hit: Hit, settings: QdrantSettings) -> dict[str, Any]:
    """Return a row's text and metadata where the settings put them in a payload."""
    if settings.metadata_key is None:
        return {**hit.metadata, settings.content_key: hit.content}
    return {settings.content_key: hit.content, settings.metadata_key: dict(hit.metadata)}


def check_selection(payload: Payload, vector: Any) -> None:
    """Check what is asked for of each row, before anything is charged.

    Raises:
        UnsupportedError: parts of nested members, or a named vector.
    """
    point(Hit("", "", {}, ()), payload, vector, QdrantSettings())


def _selected(whole: Mapping[str, Any], payload: Payload) -> dict[str, Any]:
    if payload is True:
        return dict(whole)
    chosen = {"include": payload} if isinstance(payload, list) else payload
    if not isinstance(chosen, dict) or len(chosen) != 1 or not {"include", "exclude"} & set(chosen):
        raise UnsupportedError("payload", where="with_payload", expected="include or exclude")
    [(how, names)] = chosen.items()
    if any("." in name or "[" in name for name in names):
        raise UnsupportedError("nested keys", where="with_payload", expected="keys at the top")
    return {name: value for name, value in whole.items() if (name in names) == (how == "include")}


QDRANT = Dialect(
    "qdrant",
    (
        "/collections", "/aliases", "/cluster", "/issues", "/quotas", "/snapshots", "/telemetry",
    ),
    own_header("api-key"),
    error,
    frozenset({"qdrantQuery", "qdrantQueryBatch"}),
)  # fmt: skip
CallerOf = Annotated[Caller, Depends(QDRANT.caller)]
router = QDRANT.router()


@router.get("/", operation_id="qdrantRoot")
def root() -> Response:
    """Name the version that clients compare theirs with."""
    return reply({"title": "qdrant - vector search engine", "version": VERSION})


@router.get("/collections", operation_id="qdrantCollections")
def list_collections(caller: CallerOf) -> Response:
    """List the collections of the key's tenant."""
    names = [{"name": name} for name in caller.collections]
    return reply(result({"collections": names}))


@router.get(_COLLECTION, operation_id="qdrantCollection")
def get_collection(caller: CallerOf, collection_name: str) -> Response:
    """Show a collection."""
    caller.check_collection(collection_name)
    return reply(result(collection(caller.index())))


@router.get(_COLLECTION + "/exists", operation_id="qdrantExists")
def exists(caller: CallerOf, collection_name: str) -> Response:
    """Say whether the key's tenant has such a collection."""
    return reply(result({"exists": collection_name in caller.collections}))


@router.post(_COLLECTION + "/points/count", operation_id="qdrantCount")
def count(
    caller: CallerOf, collection_name: str, body: CountBody, timeout: str | None = None
) -> Response:
    """Count all rows of the index, which the policy says; not those of a filter."""
    caller.check_collection(collection_name)
    if body.filter or body.shard_key is not None:
        raise NotServed("counting with a filter", expected="no filter: a count would answer it")
    return reply(result({"count": caller.index().rows}))


@router.post(_COLLECTION + "/points/query", operation_id="qdrantQuery")
def query(
    caller: CallerOf,
    collection_name: str,
    body: QueryBody,
    consistency: str | None = None,
    timeout: str | None = None,
) -> Response:
    """Answer a vector."""
    caller.check_collection(collection_name)
    results, receipts = _answered(caller, [body])
    return reply(result(results[0]), receipts)


@router.post(_COLLECTION + "/points/query/batch", operation_id="qdrantQueryBatch")
def query_batch(
    caller: CallerOf,
    collection_name: str,
    body: BatchBody,
    consistency: str | None = None,
    timeout: str | None = None,
) -> Response:
    """Answer several vectors, each as a query of its own."""
    caller.check_collection(collection_name)
    results, receipts = _answered(caller, body.searches)
    return reply(result(results), receipts)


@router.post(_COLLECTION + "/points", operation_id="qdrantPoints")
def get_points(
    caller: CallerOf,
    collection_name: str,
    body: PointsBody,
    consistency: str | None = None,
    timeout: str | None = None,
) -> Response:
    """Show rows that this account was served in this window; others do not exist for it."""
    caller.check_collection(collection_name)
    payload = True if body.with_payload is None else body.with_payload
    check_selection(payload, body.with_vector)
    hits = caller.fetch([row_id(one) for one in body.ids])
    settings = caller.settings.qdrant
    points = [point(hit, payload, body.with_vector, settings) for hit in hits]
    return reply(result(points))


@router.get(_COLLECTION + "/points/{point_id}", operation_id="qdrantPoint")
def get_point(
    caller: CallerOf, collection_name: str, point_id: str, consistency: str | None = None
) -> Response:
    """Show one such row."""
    caller.check_collection(collection_name)
    hits = caller.fetch([point_id])
    if not hits:
        raise NotFound("no such point", expected="one that a query of this key returned")
    return reply(result(point(hits[0], True, True, caller.settings.qdrant)))


def _answered(caller: Caller, bodies: list[QueryBody]) -> tuple[list[dict[str, object]], list[str]]:
    settings = caller.settings.qdrant
    for body in bodies:
        check_selection(body.with_payload, body.with_vector)
    default = min(DEFAULT_LIMIT, caller.index().top_k_max)
    answers = caller.ask([query_of(body, settings, default) for body in bodies])
    results: list[dict[str, object]] = []
    for body, answer in zip(bodies, answers, strict=True):
        hits = passing(answer.hits, body.score_threshold)
        points = scored(hits, body.with_payload, body.with_vector, settings)
        results.append({"points": points})
    return results, [answer.receipt for answer in answers]


QDRANT.refuse_rest(router)
