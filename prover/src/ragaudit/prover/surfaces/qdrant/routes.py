"""What Qdrant's clients call to query, and the reads that they need for it."""

from typing import Annotated

from fastapi import Depends, Response
from ragaudit.encoding.errors import NotFound
from ragaudit.prover.surfaces.caller import Caller, own_header
from ragaudit.prover.surfaces.dialects import Dialect, reply
from ragaudit.prover.surfaces.errors import NotServed
from ragaudit.prover.surfaces.qdrant import shapes
from ragaudit.prover.surfaces.qdrant.bodies import (
    BatchBody,
    CountBody,
    PointsBody,
    QueryBody,
    query_of,
)
from ragaudit.prover.surfaces.thresholds import passing

QDRANT = Dialect(
    "qdrant",
    (
        "/collections", "/aliases", "/cluster", "/issues", "/quotas", "/snapshots", "/telemetry",
    ),
    own_header("api-key"),
    shapes.error,
)  # fmt: skip
DEFAULT_LIMIT = 10
CallerOf = Annotated[Caller, Depends(QDRANT.caller)]
_COLLECTION = "/collections/{collection_name}"
router = QDRANT.router()


@router.get("/", operation_id="qdrantRoot")
def root() -> Response:
    """Name the version that clients compare theirs with."""
    return reply({"title": "qdrant - vector search engine", "version": shapes.VERSION})


@router.get("/collections", operation_id="qdrantCollections")
def list_collections(caller: CallerOf) -> Response:
    """List the collections of the key's tenant."""
    names = [{"name": name} for name in caller.collections]
    return reply(shapes.result({"collections": names}))


@router.get(_COLLECTION, operation_id="qdrantCollection")
def get_collection(caller: CallerOf, collection_name: str) -> Response:
    """Show a collection."""
    caller.check_collection(collection_name)
    return reply(shapes.result(shapes.collection(caller.index())))


@router.get(_COLLECTION + "/exists", operation_id="qdrantExists")
def exists(caller: CallerOf, collection_name: str) -> Response:
    """Say whether the key's tenant has such a collection."""
    return reply(shapes.result({"exists": collection_name in caller.collections}))


@router.post(_COLLECTION + "/points/count", operation_id="qdrantCount")
def count(
    caller: CallerOf, collection_name: str, body: CountBody, timeout: str | None = None
) -> Response:
    """Count all rows of the index, which the policy says; not those of a filter."""
    caller.check_collection(collection_name)
    if body.filter or body.shard_key is not None:
        raise NotServed("counting with a filter", expected="no filter: a count would answer it")
    return reply(shapes.result({"count": caller.index().rows}))


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
    return reply(shapes.result(results[0]), receipts)


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
    return reply(shapes.result(results), receipts)


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
    shapes.check_selection(payload, body.with_vector)
    hits = caller.fetch([shapes.row_id(one) for one in body.ids])
    settings = caller.settings.qdrant
    points = [shapes.point(hit, payload, body.with_vector, settings) for hit in hits]
    return reply(shapes.result(points))


@router.get(_COLLECTION + "/points/{point_id}", operation_id="qdrantPoint")
def get_point(
    caller: CallerOf, collection_name: str, point_id: str, consistency: str | None = None
) -> Response:
    """Show one such row."""
    caller.check_collection(collection_name)
    hits = caller.fetch([point_id])
    if not hits:
        raise NotFound("no such point", expected="one that a query of this key returned")
    return reply(shapes.result(shapes.point(hits[0], True, True, caller.settings.qdrant)))


def _answered(caller: Caller, bodies: list[QueryBody]) -> tuple[list[dict[str, object]], list[str]]:
    settings = caller.settings.qdrant
    for body in bodies:
        shapes.check_selection(body.with_payload, body.with_vector)
    default = min(DEFAULT_LIMIT, caller.index().top_k_max)
    answers = caller.ask([query_of(body, settings, default) for body in bodies])
    results: list[dict[str, object]] = []
    for body, answer in zip(bodies, answers, strict=True):
        hits = passing(answer.hits, body.score_threshold)
        points = shapes.scored(hits, body.with_payload, body.with_vector, settings)
        results.append({"points": points})
    return results, [answer.receipt for answer in answers]


QDRANT.refuse_rest(router)
