"""As much of Chroma's REST API as is read here, in memory, for what a real server never says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx

ADDRESS = "http://chroma.internal.example:8123"
UUID_TEXT = str(UUID(int=7))
Row = tuple[str | None, dict[str, Any] | None, list[Any]]


class FakeChroma(httpx.BaseTransport):
    """A collection whose rows, and whose answers, a test may change at any time.

    Attributes:
        rows: content, metadata and vector by id, in the order of insertion.
        before: called with each request; may return an answer instead of the collection's.
        requests: what was asked so far.
    """

    def __init__(self, rows: dict[str, Row], *, space: str = "cosine", name: str = "docs") -> None:
        self.rows = rows
        self.space = space
        self.name = name
        self.dimension: int | None = len(next(iter(rows.values()))[2]) if rows else None
        self.requests: list[httpx.Request] = []
        self.before: Callable[[httpx.Request], httpx.Response | None] = lambda request: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer instead of the network."""
        self.requests.append(request)
        instead = self.before(request)
        if instead is not None:
            return instead
        path = request.url.path.removeprefix(
            "/api/v2/tenants/default_tenant/databases/default_database/collections/"
        )
        if path == self.name:
            return httpx.Response(200, json=self._shown())
        if path == f"{UUID_TEXT}/count":
            return httpx.Response(200, json=len(self.rows))
        if path == f"{UUID_TEXT}/get":
            return httpx.Response(200, json=self._get(json.loads(request.content)))
        if path.startswith(f"{UUID_TEXT}/"):
            return httpx.Response(201, json={})
        error = {"error": "NotFoundError", "message": f"Collection [{path}] does not exist"}
        return httpx.Response(404, json=error)

    def _shown(self) -> dict[str, Any]:
        configuration = {"hnsw": {"space": self.space}, "spann": None}
        return {
            "id": UUID_TEXT,
            "name": self.name,
            "configuration_json": configuration,
            "dimension": self.dimension,
        }

    def _get(self, body: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in self.rows if name in body.get("ids", self.rows)]
        start = body.get("offset", 0)
        names = names[start : start + body.get("limit", len(names))]
        parts = {"documents": 0, "metadatas": 1, "embeddings": 2}
        chosen = {
            part: [self.rows[name][at] for name in names] if part in body["include"] else None
            for part, at in parts.items()
        }
        return {"ids": names, **chosen, "uris": None, "include": body["include"]}
