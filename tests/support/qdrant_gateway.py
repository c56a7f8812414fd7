"""Tenants over one collection of Qdrant points: sound, or with holes that are switched on by name.

It speaks Qdrant's REST interface over HTTP. No server of Qdrant can be had from a registry, so the
points are kept by the client library's own local mode, which has Qdrant's filters and selections. A
condition on the tenant, which the gateway adds to every call, keeps the rows apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from qdrant_client import QdrantClient, models
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KEYS = {"key-of-acme": "acme", "key-of-globex": "globex"}
NAMES = {"acme": "handbook", "globex": "manual"}
HOLES = {
    "query-unscoped": "nearest",
    "ids-unscoped": "get-ids",
    "scroll-unscoped": "scroll",
    "count-unscoped": "count-by-tag",
    "collection-unchecked": "cross-collection",
    "metadata-trusted": "write-tenant",
    "ids-shared": "write-id",
    "payload-unscoped": "write-id",
    "batch-unscoped": "delete",
    "delete-unscoped": "delete",
    "clear-unscoped": "delete",
    "writes-unchecked": "write-collection",
    "deletion-unchecked": "whole-collection",
    "alias-unchecked": "whole-collection",
    "total-of-all": "count",
    "size-of-all": "collection-size",
    "totals-unchecked": "count-elsewhere",
}
"""By the name of a hole the probe, oracle or write that must find it."""

_ALL = "all-tenants"
_PATH = re.compile(r"/collections/([^/?]+)(?:/points(/[a-z/]+)?)?(?:\?wait=true)?")
_MADE = re.compile(
    r"/collections/(aliases|ragaudit-[^/?]+)(/points|/points/query|/aliases)?(?:\?wait=true)?"
)
_WRITES = ("", "/delete", "/payload", "/payload/clear", "/batch")
_READS = {"/query", "/scroll", "/count"}


class Denied(Exception):
    """The gateway's own answer."""


class Missing(Exception):
    """Another one: there is no such collection, or it is another's."""


class Gateway:
    """An application; `holes` may change between requests."""

    def __init__(self, dimension: int) -> None:
        self.holes: Collection[str] = ()
        self._store = QdrantClient(":memory:")
        vectors = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        self._store.create_collection(_ALL, vectors_config=vectors)
        # Collections that tenants make beside the ones they have: owner, points, aliases.
        self._made: dict[str, tuple[str, list[Any], list[str]]] = {}

    def app(self) -> Starlette:
        methods = ["GET", "POST", "PUT", "DELETE"]
        return Starlette(routes=[Route("/{rest:path}", self._serve, methods=methods)])

    async def _serve(self, request: Request) -> Response:
        body = await request.body()
        try:
            found = await run_in_threadpool(self._answer, request, body)
        except Missing:
            return _json({"status": {"error": "Not found"}, "result": None}, 404)
        except (Denied, ValueError, TypeError, KeyError, AttributeError):
            # One answer for whatever it does not do: that of Qdrant for a bad request.
            return _json({"status": {"error": "Wrong input"}, "result": None}, 400)
        return _json({"status": "ok", "time": 0.001, "result": found}, 200)

    def _answer(self, request: Request, body: bytes) -> Any:
        tenant = KEYS.get(request.headers.get("api-key", ""))
        path = request.scope["raw_path"].decode()
        if tenant is not None and (made := _MADE.fullmatch(path)):
            return self._managed(tenant, request.method, made, json.loads(body or b"{}"))
        place = _PATH.fullmatch(path)
        if tenant is None or place is None:
            raise Denied
        name, operation = place[1], place[2] or ""
        points = "/points" in path
        writes = points and operation in _WRITES and request.method != "GET"
        if name != NAMES[tenant]:
            open_by = "writes-unchecked" if writes else "collection-unchecked"
            open_by = "totals-unchecked" if operation == "/count" else open_by
            if open_by not in self.holes or name not in NAMES.values():
                raise Denied
            tenant = next(one for one, own in NAMES.items() if own == name)
        if not points:
            if request.method != "GET":
                raise Denied
            counted = None if "size-of-all" in self.holes else tenant
            return {"status": "green", "points_count": len(self._ids(counted, None))}
        document = json.loads(body)
        if operation in _READS or (operation == "" and request.method == "POST"):
            return self._read(tenant, operation, document)
        if not writes:
            raise Denied
        return self._write(tenant, operation, document)

    def _managed(self, tenant: str, method: str, place: re.Match[str], given: Any) -> Any:
        """What is done to a collection as a whole, and to its points, if a tenant has made it."""
        name, what = place[1], place[2] or ""
        if name == "aliases":
            return self._named(tenant, given["actions"])
        if method == "PUT" and what == "" and name not in self._made:
            self._made[name] = (tenant, [], [])
            return True
        if name not in self._made:
            raise Missing
        owner, points, aliases = self._made[name]
        if owner != tenant and not (method == "DELETE" and "deletion-unchecked" in self.holes):
            raise Missing
        match method, what:
            case "DELETE", "":
                del self._made[name]
            case "PUT", "/points":
                points.extend(given["points"])
            case "POST", "/points/query":
                return {"points": points}
            case "GET", "/aliases":
                return {"aliases": [{"alias_name": one} for one in aliases]}
        return True

    def _named(self, tenant: str, actions: Any) -> bool:
        ((kind, given),) = actions[0].items()
        if kind == "delete_alias":
            for _, _, aliases in self._made.values():
                aliases[:] = [one for one in aliases if one != given["alias_name"]]
            return True
        owner, _, aliases = self._made[given["collection_name"]]
        if owner != tenant and "alias-unchecked" not in self.holes:
            raise Denied
        aliases.append(given["alias_name"])
        return True

    # --- reading ---

    def _read(self, tenant: str, operation: str, document: dict[str, Any]) -> Any:
        whole = {"": "ids", "/query": "query", "/scroll": "scroll", "/count": "count"}[operation]
        scoped = None if f"{whole}-unscoped" in self.holes else tenant
        if operation == "/query":
            vector = document["query"]
            if not isinstance(vector, list) or document.keys() & {"prefetch", "lookup_from"}:
                raise Denied
            found = self._store.query_points(
                _ALL, query=[float(one) for one in vector], limit=_limit(document),
                query_filter=_filter(scoped, document.get("filter")), with_vectors=True,
            ).points  # fmt: skip
            return {"points": [_shown(one) for one in found]}
        if operation == "/count":
            if "total-of-all" in self.holes and "filter" not in document:
                scoped = None
            return {"count": len(self._ids(scoped, document.get("filter")))}
        chosen = self._ids(scoped, document.get("filter"), document.get("ids"))
        if operation == "" and "ids" not in document:
            raise Denied
        found_rows = self._store.retrieve(_ALL, chosen[: _limit(document)], with_vectors=True)
        shown = [_shown(one) for one in found_rows]
        return shown if operation == "" else {"points": shown, "next_page_offset": None}

    def _ids(self, tenant: str | None, given: Any, ids: Any = None) -> list[Any]:
        """Ids of the rows that a filter, and a list of ids, select within a tenant's."""
        condition = _filter(tenant, given, ids)
        rows, _ = self._store.scroll(_ALL, scroll_filter=condition, limit=1000)
        return [one.id for one in rows]

    # --- writing ---

    def _write(self, tenant: str, operation: str, document: dict[str, Any]) -> Any:
        match operation:
            case "":
                self._upsert(tenant, document["points"])
            case "/batch":
                for one in document["operations"]:
                    ((kind, inner),) = one.items()
                    if kind == "upsert":
                        self._upsert(tenant, inner["points"])
                    elif kind == "delete":
                        self._delete(None if "batch-unscoped" in self.holes else tenant, inner)
                    else:
                        raise Denied
            case "/delete":
                self._delete(None if "delete-unscoped" in self.holes else tenant, document)
            case "/payload":
                scoped = None if "payload-unscoped" in self.holes else tenant
                chosen = self._selected(scoped, document)
                payload = document["payload"]
                if scoped is not None and "metadata-trusted" not in self.holes:
                    payload = {**payload, "tenant": tenant}
                if chosen:
                    self._store.set_payload(_ALL, payload, points=chosen)
            case "/payload/clear":
                scoped = None if "clear-unscoped" in self.holes else tenant
                if chosen := self._selected(scoped, document):
                    self._store.overwrite_payload(_ALL, {"tenant": tenant}, points=chosen)
        return {"operation_id": 1, "status": "completed"}

    def _upsert(self, tenant: str, points: list[dict[str, Any]]) -> None:
        theirs = {*map(str, self._ids(None, None))} - {*map(str, self._ids(tenant, None))}
        if "ids-shared" not in self.holes and any(str(one["id"]) in theirs for one in points):
            raise Denied
        trusted = "metadata-trusted" in self.holes
        rows = [
            models.PointStruct(
                id=one["id"], vector=one["vector"],
                payload={"tenant": tenant, **one["payload"]} if trusted
                else {**one["payload"], "tenant": tenant},
            ) for one in points
        ]  # fmt: skip
        self._store.upsert(_ALL, rows)

    def _delete(self, scoped: str | None, document: dict[str, Any]) -> None:
        if chosen := self._selected(scoped, document):
            self._store.delete(_ALL, chosen)

    def _selected(self, tenant: str | None, document: dict[str, Any]) -> list[Any]:
        ids, condition = document.get("points"), document.get("filter")
        if (ids is None) == (condition is None):
            raise Denied
        return self._ids(tenant, condition, ids)


def _limit(document: dict[str, Any]) -> int:
    limit = document.get("limit", 10)
    if type(limit) is not int or not 1 <= limit <= 1000:
        raise Denied
    return limit


def _filter(tenant: str | None, given: Any, ids: Any = None) -> models.Filter:
    """The tenant's condition and what was given, both: neither replaces the other."""
    must: list[Any] = []
    if tenant is not None:
        own = models.MatchValue(value=tenant)
        must.append(models.FieldCondition(key="tenant", match=own))
    if given is not None:
        if not isinstance(given, dict):
            raise Denied
        must.append(models.Filter.model_validate(given))
    if ids is not None:
        must.append(models.HasIdCondition(has_id=ids))
    return models.Filter(must=must)


def _shown(point: Any) -> dict[str, Any]:
    return {"id": point.id, "version": 0, "payload": point.payload, "vector": point.vector}


def _json(value: Any, status: int) -> Response:
    return Response(json.dumps(value), status_code=status, media_type="application/json")
