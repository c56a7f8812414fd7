"""Tenants over one collection of a real Chroma: sound, or with holes that are switched on by name.

Every tenant has a collection of its own for its clients; in the store their rows stand together.
A condition on the tenant that the gateway adds to every call keeps them apart; it writes the tenant
into the metadata itself, and refuses to write rows whose ids are another's.
"""

from __future__ import annotations

import hashlib
import json
import time
import unicodedata
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote
from uuid import NAMESPACE_URL, uuid4, uuid5

import httpx
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
KEYS = {"key-of-acme": "acme", "key-of-globex": "globex"}
NAMES = {"acme": "handbook", "globex": "manual"}
HOLES = {
    "condition-or": "filter-tenant",
    "condition-replaced": "filter-tenant",
    "second-member-replaces": "filter-and",
    "alternative-unscoped": "filter-or",
    "negation-unscoped": "filter-not",
    "range-unscoped": "filter-range",
    "pattern-unscoped": "filter-regex",
    "name-normalized-later": "filter-spelling",
    "null-unscoped": "filter-null",
    "list-unscoped": "filter-list",
    "type-unscoped": "filter-type",
    "sql-in-values": "filter-sql",
    "search-unscoped": "search",
    "nested-unscoped": "filter-nested",
    "first-of-two": "filter-duplicate-key",
    "document-filter": "where-document",
    "query-unscoped": "nearest",
    "get-unscoped": "get-all",
    "offset-unscoped": "paging",
    "many-unscoped": "top-k-overrun",
    "ids-unscoped": "get-ids",
    "query-ids-unscoped": "query-ids",
    "batch-first-only": "batch-member",
    "identity-header": "identity-header",
    "collection-unchecked": "cross-collection",
    "name-casefold": "collection-name",
    "name-nfkc": "collection-name",
    "name-trimmed": "collection-name",
    "name-decoded-twice": "collection-name",
    "path-resolved": "path-traversal",
    "cache-without-key": "cache",
    "cache-by-body": "cache-body",
    "entity-tags": "conditional",
    "error-quotes-row": "get-ids",
    "comparison-quotes-row": "error-texts",
    "forbidden-is-not-absent": "existence-by-id",
    "forbidden-takes-longer": "existence-by-id",
    "elsewhere-is-not-absent": "existence-by-id-elsewhere",
    "total-of-all": "existence-by-tag",
    "names-of-all": "listing",
    "metadata-trusted": "write-tenant",
    "ids-shared": "write-id",
    "writes-unchecked": "write-collection",
    "delete-unscoped": "delete",
    "deletion-unchecked": "whole-collection",
    "rename-unchecked": "whole-collection",
    "creation-takes-over": "whole-collection",
    "count-of-all": "count",
    "count-unchecked": "count-elsewhere",
}
"""By the name of a hole the probe, oracle or write that must find it."""
WRITES = ("add", "upsert", "update")


class Denied(Exception):
    """The gateway's own answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Gateway:
    """An application; `holes` may change between requests."""

    def __init__(self, store: str) -> None:
        self.holes: Collection[str] = ()
        self._http = httpx.Client(base_url=store, trust_env=False, timeout=60)
        made = self._http.post(BASE, json={"name": "all-tenants", "get_or_create": True})
        self._rows = f"{BASE}/{made.raise_for_status().json()['id']}"
        self._ids = {tenant: str(uuid5(NAMESPACE_URL, name)) for tenant, name in NAMES.items()}
        self._cache: dict[tuple[str, bytes], Response] = {}
        self._tags: set[str] = set()
        # Collections that tenants make beside the ones they have.
        self._made: list[dict[str, Any]] = []

    def app(self) -> Starlette:
        methods = ["GET", "POST", "PUT", "DELETE"]
        return Starlette(routes=[Route("/{rest:path}", self._serve, methods=methods)])

    def close(self) -> None:
        self._http.close()

    async def _serve(self, request: Request) -> Response:
        body = await request.body()
        try:
            return await run_in_threadpool(self._answer, request, body)
        except Denied as denied:
            return _json({"error": "Refused", "message": str(denied)}, denied.status)

    def _answer(self, request: Request, body: bytes) -> Response:
        key = request.headers.get("x-chroma-token", "")
        if key not in KEYS:
            raise Denied(401, "no such key")
        tag = request.headers.get("if-none-match", "")
        if "entity-tags" in self.holes and tag in self._tags:
            return Response(status_code=304)
        path = request.scope["raw_path"].decode()
        cached = ("" if "cache-by-body" in self.holes else path, body)
        caching = {"cache-by-body", "cache-without-key"} & {*self.holes}
        if caching and path.endswith("/query") and cached in self._cache:
            return self._cache[cached]
        answer = self._scoped(request, KEYS[key], path, body)
        if caching:
            self._cache[cached] = answer
        if "entity-tags" in self.holes:
            tag = f'"{hashlib.sha256(answer.body).hexdigest()}"'
            answer.headers["etag"] = tag
            self._tags.add(tag)
        return answer

    def _scoped(self, request: Request, tenant: str, path: str, body: bytes) -> Response:
        if path.rstrip("/") == BASE and request.method == "GET":
            shown = NAMES if self._hole("names-of-all") else {tenant: NAMES[tenant]}
            return _json([{"id": self._ids[one], "name": name} for one, name in shown.items()])
        if path == BASE and request.method == "POST":
            return self._create(tenant, json.loads(body))
        if not path.startswith(f"{BASE}/"):
            raise Denied(404, "no such path")
        rest = path.removeprefix(f"{BASE}/")
        if "path-resolved" in self.holes and ".." in (decoded := unquote(unquote(rest))):
            rest = decoded.replace("\\", "/").split("../")[-1]
        place, _, operation = rest.partition("/")
        if not operation and (made := self._managed(tenant, request.method, place, body)):
            return made
        own = place in (NAMES[tenant], self._ids[tenant])
        if operation == "get" and not own and self._hole("elsewhere-is-not-absent"):
            self._told(tenant, json.loads(body).get("ids") or [])
        tenant = self._owner(tenant, place, operation)
        if operation == "":
            return _json({"id": self._ids[tenant], "name": NAMES[tenant]})
        if operation == "count":
            where = {} if self._hole("count-of-all") else {"where": {"tenant": tenant}}
            return _json(len(_value(self._passed("get", where))["ids"]))
        if "identity-header" in self.holes:
            named = request.headers.get("x-tenant", tenant)
            tenant = named if named in NAMES else tenant
        try:
            document = json.loads(body)
            pairs = json.loads(body, object_pairs_hook=lambda found: found)
        except ValueError:
            raise Denied(400, "not JSON") from None
        match operation:
            case "get" | "query":
                return self._read(tenant, operation, document, pairs)
            case "search" if self._hole("search-unscoped"):
                return self._passed("get", {"include": ["documents", "metadatas"]})
            case "add" | "upsert" | "update" | "delete":
                return self._write(tenant, operation, document)
        raise Denied(404, "not served")

    def _create(self, tenant: str, given: dict[str, Any]) -> Response:
        for one in self._made:
            mine = one["tenant"] == tenant or self._hole("creation-takes-over")
            if one["name"] == given["name"] and mine:
                one["metadata"] = given.get("metadata")
                return _json(one)
        members = {"name": given["name"], "metadata": given.get("metadata"), "tenant": tenant}
        self._made.append({"id": str(uuid4()), **members})
        return _json(self._made[-1])

    def _managed(self, tenant: str, method: str, place: str, body: bytes) -> Response | None:
        """What is done to a collection as a whole, if it is one of those that tenants made."""
        unchecked = {"DELETE": "deletion-unchecked", "PUT": "rename-unchecked"}.get(method, "")
        for one in self._made:
            if place not in (one["name"], one["id"]):
                continue
            if one["tenant"] != tenant and not self._hole(unchecked):
                continue
            if method == "DELETE":
                self._made.remove(one)
            elif method == "PUT":
                given = json.loads(body)
                one["name"] = given.get("new_name", one["name"])
                one["metadata"] = given.get("new_metadata", one["metadata"])
            return _json(one)
        return None

    def _write(self, tenant: str, operation: str, given: dict[str, Any]) -> Response:
        ids, where = given.get("ids"), given.get("where")
        if operation == "delete":
            if not (ids or where):
                raise Denied(400, "neither ids nor where")
            if not self._hole("delete-unscoped"):
                given = {**given, "where": self._where(tenant, where or {})}
            return self._passed(operation, given)
        if not self._hole("ids-shared"):
            foreign = {"ids": ids, "where": {"tenant": {"$ne": tenant}}}
            if _value(self._passed("get", foreign)).get("ids"):
                raise Denied(403, "not yours")
        if not self._hole("metadata-trusted"):
            metadatas = [{**(one or {}), "tenant": tenant} for one in given.get("metadatas") or []]
            given = {**given, "metadatas": metadatas}
        return self._passed(operation, given)

    def _owner(self, tenant: str, place: str, operation: str = "") -> str:
        spelled = unquote(place)
        if "name-decoded-twice" in self.holes:
            spelled = unquote(unquote(spelled))
        if "name-nfkc" in self.holes:
            spelled = unicodedata.normalize("NFKC", spelled)
        if "name-casefold" in self.holes:
            spelled = spelled.casefold()
        if "name-trimmed" in self.holes:
            spelled = spelled.strip(" \t\u200b\ufeff.")
        # A broken gateway looks a name up that it did not compare with the caller's first.
        exact = spelled == unquote(place)
        for name, identifier in self._ids.items():
            allowed = name == tenant or not exact or "collection-unchecked" in self.holes
            allowed |= "writes-unchecked" in self.holes and operation in WRITES
            allowed |= "count-unchecked" in self.holes and operation == "count"
            if spelled in (NAMES[name], identifier) and (allowed or "path-resolved" in self.holes):
                return name
        raise Denied(404, "no such collection")

    def _read(self, tenant: str, operation: str, given: dict[str, Any], pairs: Any) -> Response:
        if set(given) & {"where"} and not isinstance(given["where"], dict):
            if given["where"] is None or self._hole("type-unscoped"):
                given = {name: value for name, value in given.items() if name != "where"}
                if self._hole("type-unscoped"):
                    return self._passed(operation, given)
            else:
                raise Denied(400, "where is no object")
        wheres = [value for name, value in pairs if name == "where"]
        if len(wheres) > 1 and not self._hole("first-of-two"):
            raise Denied(400, "where twice")
        if unscoped := self._unscoped(operation, given, len(wheres)):
            return self._passed(operation, unscoped)
        if self._hole("comparison-quotes-row") and '"$gt": 1}' in json.dumps(given.get("where")):
            foreign = _value(self._passed("get", {"where": {"tenant": {"$ne": tenant}}}))
            raise Denied(400, f"no number: {foreign['documents'][0]}")
        scoped = {**given, "where": self._where(tenant, given.get("where") or {})}
        if operation == "query" and self._hole("batch-first-only"):
            return self._batch(given, scoped)
        if operation == "get" and given.get("ids"):
            self._told(tenant, given["ids"])
        answer = self._passed(operation, scoped)
        if self._hole("total-of-all") and operation == "get":
            everything = {name: given[name] for name in ("where",) if name in given}
            total = len(_value(self._passed("get", everything)).get("ids", []))
            return _json({**_value(answer), "total": total})
        return answer

    def _hole(self, name: str) -> bool:
        return name in self.holes

    def _unscoped(self, operation: str, given: dict[str, Any], filters: int) -> dict[str, Any]:
        """The call as it goes to the store if a hole forgets the tenant, empty if none does."""
        where = given.get("where")
        text = json.dumps(where)
        ids, number = given.get("ids"), given.get("n_results")
        forgotten = {
            "alternative-unscoped": '"$or"' in text,
            "negation-unscoped": isinstance(where, dict) and '"$n' in text,
            "range-unscoped": '"$gt' in text or '"$lt' in text,
            "pattern-unscoped": any(one in text for one in ('"$regex"', '"$like"', '"$contains"')),
            "null-unscoped": "where" in given and not where,
            "list-unscoped": isinstance(where, dict) and '"$in"' in text,
            "nested-unscoped": isinstance(where, dict) and text.count('"$and"') > 1,
            "first-of-two": filters > 1,
            "document-filter": bool(given.get("where_document")),
            "query-unscoped": operation == "query",
            "get-unscoped": operation == "get" and not where and not ids,
            "offset-unscoped": "offset" in given or "limit" in given,
            "many-unscoped": type(number) is int and number > 1000,
            "ids-unscoped": operation == "get" and bool(ids),
            "query-ids-unscoped": operation == "query" and bool(ids),
            "sql-in-values": isinstance(where, dict) and "' OR " in text,
        }
        if not any(self._hole(name) and there for name, there in forgotten.items()):
            return {}
        # What such a gateway cannot translate is no condition for it.
        lost = {"sql-in-values", "range-unscoped", "pattern-unscoped"} & {*self.holes}
        left = ("where",) if not where or lost else ()
        return {name: value for name, value in given.items() if name not in left}

    def _where(self, tenant: str, asked: dict[str, Any]) -> dict[str, Any]:
        own = {"tenant": tenant}
        if not asked:
            return own
        named = str(asked.get("tenant"))
        if self._hole("name-normalized-later") and named not in NAMES:
            # What it compared with the names of others was another spelling.
            return {"tenant": named.strip(" \x00").casefold()}
        if self._hole("condition-or"):
            return {"$or": [own, asked]}
        if self._hole("condition-replaced"):
            return {**own, **asked}
        if self._hole("second-member-replaces") and len(asked) > 1:
            return {name: value for name, value in asked.items() if name != "tenant"}
        return {"$and": [own, asked]}

    def _batch(self, given: dict[str, Any], scoped: dict[str, Any]) -> Response:
        first, *others = given["query_embeddings"]
        answer = _value(self._passed("query", {**scoped, "query_embeddings": [first]}))
        if others:
            left = {name: value for name, value in given.items() if name != "where"}
            more = _value(self._passed("query", {**left, "query_embeddings": others}))
            answer["documents"] += more.get("documents") or []
        return _json(answer)

    def _told(self, tenant: str, ids: list[str]) -> None:
        holes = {"error-quotes-row", "forbidden-is-not-absent", "forbidden-takes-longer",
                 "elsewhere-is-not-absent"}  # fmt: skip
        if not holes & {*self.holes}:
            return
        body = {"ids": ids, "where": {"tenant": {"$ne": tenant}}}
        foreign = _value(self._passed("get", body))
        if foreign.get("ids"):
            if self._hole("error-quotes-row"):
                raise Denied(403, f"not yours: {foreign['documents'][0]}")
            if not self._hole("forbidden-takes-longer"):
                raise Denied(403, "not yours")
            # Longer than what a busy machine adds to an answer now and then.
            time.sleep(0.05)

    def _passed(self, operation: str, body: dict[str, Any]) -> Response:
        if operation == "query" and not (1 <= (body.get("n_results") or 10) <= 10**5):
            body = {**body, "n_results": 10}
        answer = self._http.post(f"{self._rows}/{operation}", json=body)
        return Response(answer.content, answer.status_code, media_type="application/json")


def _value(answer: Response) -> Any:
    return json.loads(bytes(answer.body))


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")
