"""Files of OpenAI-shaped stores before our surface: sound, or with a hole that is named.

Our surface has no calls that write; others of its shape do. Each tenant's own store takes, changes
and gives up files here, and a file is its owner's alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ragaudit.prover.surfaces.queries import Hit
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface_app import KEYS, NAMES, MemoryPort

HOLES = {
    "attributes-unscoped": "write-id",
    "delete-unscoped": "delete",
    "attributes-trusted": "write-tenant",
    "attach-unchecked": "write-collection",
    "batch-unchecked": "write-collection",
    "store-deletion-unchecked": "whole-store",
    "store-change-unchecked": "whole-store",
    "file-deletion-unchecked": "whole-file",
}
"""By the name of a hole the write that must find it."""
_MADE = re.compile(r"/v1/(vector_stores|files)(?:/(made-[0-9]+))?")
_PATH = re.compile(r"/v1/vector_stores/([^/]+)/(files|file_batches)(?:/([^/]+))?")


class Files:
    """An application before another; `holes` may change between requests."""

    def __init__(self, app: ASGIApp, port: MemoryPort) -> None:
        self._app, self._port = app, port
        self.holes: Collection[str] = ()
        self.owners = {row.id: tenant for tenant, rows in port.rows.items() for row in rows}
        self._kept = {row.id: row for rows in port.rows.values() for row in rows}
        # What tenants make beside what they have: owner and name by id.
        self._made: dict[str, tuple[str, str]] = {}
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        made = _MADE.fullmatch(scope.get("path", ""))
        if made and (made[2] or scope["method"] == "POST"):
            await self._manage(scope, receive, send, made)
            return
        place = _PATH.fullmatch(scope.get("path", ""))
        if place is None or scope["method"] not in ("POST", "DELETE"):
            await self._app(scope, receive, send)
            return
        raw, tenant = await _asked(scope, receive)
        document = json.loads(raw) if raw else {}
        done = self._written(tenant, place, scope["method"], document)
        await _say(send, {"status": "completed"} if done else None)

    async def _manage(
        self, scope: Scope, receive: Receive, send: Send, place: re.Match[str]
    ) -> None:
        """Stores and files as wholes."""
        raw, tenant = await _asked(scope, receive)
        kind, name, method = place[1], place[2], scope["method"]
        if name is None:
            self._count += 1
            name = f"made-{self._count}"
            self._made[name] = (tenant, raw.decode())
        unchecked = {
            ("vector_stores", "DELETE"): "store-deletion-unchecked",
            ("vector_stores", "POST"): "store-change-unchecked",
            ("files", "DELETE"): "file-deletion-unchecked",
        }.get((kind, method))
        owner, said = self._made.get(name, ("", ""))
        if name not in self._made or (owner != tenant and unchecked not in self.holes):
            await _say(send, None)
            return
        if method == "DELETE":
            del self._made[name]
        elif method == "POST":
            self._made[name] = (owner, said := raw.decode())
        await _say(send, {"id": name, "name": said})

    def _written(self, tenant: str, place: re.Match[str], method: str, given: Any) -> bool:
        """Do what is asked for; return whether it was done."""
        store = next((one for one, name in NAMES.items() if name == place[1]), None)
        name = place[3] or given.get("file_id") or given.get("file_ids", [""])[0]
        if store is None or name not in self.owners:
            return False
        mine = (store, self.owners[name]) == (tenant, tenant)
        if place[3] is None:
            hole = "batch-unchecked" if place[2] == "file_batches" else "attach-unchecked"
            if not mine and hole not in self.holes:
                return False
            self._put(store, self._kept[name], given.get("attributes"))
        elif method == "DELETE":
            # A store's owner may take out whatever is in it.
            if store != tenant and "delete-unscoped" not in self.holes:
                return False
            holder = self.owners[name] if "delete-unscoped" in self.holes else store
            self._port.rows[holder] = [row for row in self._port.rows[holder] if row.id != name]
            self._port.rows[store] = [row for row in self._port.rows[store] if row.id != name]
        else:
            if not mine and "attributes-unscoped" not in self.holes:
                return False
            attributes = given["attributes"]
            holder = self.owners[name]
            if "attributes-trusted" in self.holes:
                # The member that says whose a row is decides where it is found.
                holder = attributes["tenant"]
            for rows in self._port.rows.values():
                rows[:] = [row for row in rows if row.id != name]
            self._put(holder, self._kept[name], attributes)
        return True

    def _put(self, tenant: str, row: Hit, attributes: Any) -> None:
        rows = [one for one in self._port.rows[tenant] if one.id != row.id]
        changed = row if attributes is None else replace(row, metadata=dict(attributes))
        self._port.rows[tenant] = [*rows, changed]


async def _asked(scope: Scope, receive: Receive) -> tuple[bytes, str]:
    """The body of a request, and whose it is."""
    raw, more = b"", True
    while more:
        message: Message = await receive()
        raw, more = raw + message.get("body", b""), message.get("more_body", False)
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    return raw, KEYS[headers.get("authorization", "").removeprefix("Bearer ")].tenant


async def _say(send: Send, done: dict[str, Any] | None) -> None:
    """Answer with what was done, or that there is nothing of the name."""
    status, body = (404, {"error": "no such file"}) if done is None else (200, done)
    kind = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
