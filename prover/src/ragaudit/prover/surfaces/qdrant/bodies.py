"""Bodies of Qdrant's calls, and what of them is not served."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from ragaudit.prover.surface_settings import QdrantSettings
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.qdrant.filters import FilterBody, condition_of
from ragaudit.prover.surfaces.queries import Query
from ragaudit.prover.surfaces.thresholds import check_threshold
from ragaudit.prover.surfaces.wire import Body, Vector, few_members, vector_bytes

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
