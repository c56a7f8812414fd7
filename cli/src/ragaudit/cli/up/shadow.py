"""Shadow mode: the store answers, and what a prover would have done is compared with it.

Every request goes on to the store as it came, and its answer back as it is. Nothing is logged,
nobody gets a receipt, and no verifier hears of it: nothing that this mode makes is evidence.
"""

import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
from pydantic import ValidationError
from ragaudit.cli.up.comparison import Compared, Exact, Tally, columns_of
from ragaudit.cli.up.store import Collection
from ragaudit.encoding.errors import RagauditError
from ragaudit.prover.surfaces.chroma.bodies import GetBody, QueryBody, queries_of
from ragaudit.prover.surfaces.chroma.routes import router
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

__all__ = ["create_shadow"]

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_OF_ONE_CONNECTION = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade", "host", "content-length", "content-encoding",
    "accept-encoding",
}  # fmt: skip
_WRITES = {"add", "upsert", "update", "delete"}
_TIMEOUT = 60.0
Told = Callable[[str], None]


class Shadow:
    """Compares answers of one store. Safe to use from several threads."""

    def __init__(
        self, url: str, rows: Mapping[str, Exact], tally: Tally, told: Told,
        counted: Told = lambda _text: None,
    ) -> None:  # fmt: skip
        """Prepare.

        Args:
            url: of the store.
            rows: by the collection's name.
            tally: that counts.
            told: is told of every difference, in words: which collection, and what differs.
            counted: is told how many were compared so far, and how many differ.
        """
        self._counted = counted
        self._url = url
        self._rows = rows
        self._tally = tally
        self._told = told
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._written: set[str] = set()

    def look(
        self, method: str, path: str, headers: Mapping[str, str], sent: bytes, got: bytes
    ) -> None:
        """Compare a request and its answer with what a prover would have done.

        Args:
            method, path: of the request.
            headers: of the request, sent again where the store is asked for a filter's rows.
            sent: the body.
            got: the store's answer, if it was one.
        """
        with self._lock:
            parts = path.strip("/").split("/")
            operation = parts[-1]
            if operation in _WRITES and method == "POST":
                self._written.add(parts[-2])
            try:
                refusal = _refusal(method, path, sent)
                if refusal:
                    self._tally.refused[refusal] += 1
                    if self._tally.refused[refusal] == 1:  # the sum counts them
                        self._told(f"a prover would have refused: {refusal}")
                if operation == "query" and method == "POST":
                    self._compare("/".join(parts[:-1]), parts[-2], headers, sent, got)
            except (ValueError, KeyError, TypeError, httpx.HTTPError, RagauditError) as error:
                # Of the comparison alone: the application has its answer.
                self._told(f"not compared: {type(error).__name__}")

    def _compare(
        self, base: str, identifier: str, headers: Mapping[str, str], sent: bytes, got: bytes
    ) -> None:
        body, answer = json.loads(sent), json.loads(got)
        name = self._name(base, identifier, headers)
        rows = self._rows.get(name)
        if rows is None or "ids" not in answer or body.get("where_document"):
            return
        allowed = None
        if where := body.get("where"):
            self._tally.columns.update(columns_of(where))
            allowed = self._passing(base, headers, where)
        for vector, ids in zip(body["query_embeddings"], answer["ids"], strict=True):
            top_k = int(body.get("n_results") or 10)
            query = np.array(vector, dtype=np.float32)
            exact = rows.first(query, top_k, allowed)
            gap = rows.gap(query, ids, exact)
            compared = Compared(tuple(ids), exact, identifier in self._written, gap)
            self._tally.add(compared)
            if compared.store != compared.exact:
                self._told(f"{name}: K = {top_k}: {compared.words}")
            self._counted(self._tally.so_far)

    def _name(self, base: str, identifier: str, headers: Mapping[str, str]) -> str:
        if identifier not in self._names:
            place = base.rpartition("/")[0]
            shown = self._ask("GET", f"{place}?limit=1000", headers)
            self._names |= {each["id"]: each["name"] for each in shown}
        return self._names.get(identifier, "")

    def _passing(self, base: str, headers: Mapping[str, str], where: Any) -> list[str]:
        shown = self._ask("POST", f"{base}/get", headers, {"where": where, "include": []})
        return list(shown["ids"])

    def _ask(self, method: str, path: str, headers: Mapping[str, str], body: object = None) -> Any:
        url = f"{self._url}/{path}"
        answer = httpx.request(
            method, url, json=body, headers=_passed_on(headers), trust_env=False, timeout=_TIMEOUT
        )
        return answer.raise_for_status().json()


def create_shadow(
    url: str, rows: Mapping[str, Exact], tally: Tally, told: Told, counted: Told
) -> Starlette:
    """Return the application that stands before a store and changes nothing.

    Args:
        url: of the store.
        rows: of the collections that are compared, by name.
        tally: that counts.
        told, counted: as of `Shadow`.
    """
    shadow = Shadow(url, rows, tally, told, counted)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=_TIMEOUT) as client:
            app.state.client = client
            yield

    async def forward(request: Request) -> Response:
        client: httpx.AsyncClient = request.app.state.client
        path, sent = request.url.path, await request.body()
        target = f"{path}?{request.url.query}" if request.url.query else path
        headers = dict(request.headers)
        try:
            answer = await client.request(
                request.method, target, content=sent, headers=_passed_on(headers)
            )
        except httpx.HTTPError:
            return Response("the store does not answer", 502)
        given = _passed_on(answer.headers)
        after = BackgroundTask(shadow.look, request.method, path, headers, sent, answer.content)
        return Response(answer.content, answer.status_code, given, background=after)

    return Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)], lifespan=lifespan)


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value for name, value in headers.items() if name.lower() not in _OF_ONE_CONNECTION
    }
    return {**kept, "accept-encoding": "identity"}


def _refusal(method: str, path: str, sent: bytes) -> str:
    """Return why a prover's own surface would have refused a request; empty if it would not."""
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    served = [route for route in router.routes if route.matches(scope)[0] is Match.FULL]
    shown = [route for route in served if getattr(route, "include_in_schema", False)]
    operation = path.rstrip("/").rpartition("/")[2]
    if not shown:
        return f"{method} of {operation[:40]!r}, which is not served"
    try:
        if operation == "query":
            body = json.loads(sent)
            body.pop("where", None)  # whether its columns are declared is not known here
            queries_of(QueryBody.model_validate(body), 1)
        elif operation == "get" and method == "POST":
            GetBody.model_validate_json(sent).checked_ids()
    except RagauditError as error:
        return f"{operation}: {error.what}"
    except ValidationError:
        return f"{operation}: a body of another form"
    return ""


def exact_rows(backend: Any, found: tuple[Collection, ...], page_rows: int) -> dict[str, Exact]:
    """Return the rows of the collections, by name.

    Args:
        backend: of the prover, in front of the store.
        found: the collections.
        page_rows: read at a time.

    Raises:
        RagauditError: as `Exact`.
    """
    return {each.name: Exact(backend, each.tenant, each.metric, page_rows) for each in found}
