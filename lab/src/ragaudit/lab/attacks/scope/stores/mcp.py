"""The Model Context Protocol over HTTP, with the tools ``search`` and ``fetch``."""

from typing import Any

from ragaudit.lab.attacks.scope.exchange import Request, json_request
from ragaudit.lab.attacks.scope.probes import FAILING, Oracle, Probe, each, name_variants, question
from ragaudit.lab.attacks.scope.stores.store import IDENTITY_HEADERS, Store


class Mcp(Store):
    """``POST /mcp``, each request for itself."""

    writeless = "its tools are search and fetch, which read"

    def control(self, tenant: str) -> Request:
        return self._tool(tenant, "search", query=question(tenant))

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        ids = [canary.id for canary in self.scene.planted(victim)]
        name = self.target.tenants[victim].collection or victim
        search = self._tool(attacker, "search", query=question(victim))
        asked = Request(victim, search.method, search.path, search.body)
        extra: list[dict[str, Any]] = [
            {"tenant": victim}, {"collection": name}, {"user": victim}, {"account": victim},
            {"filter": {"tenant": victim}}, {"top_k": 10**4}, {"limit": 10**4},
        ]  # fmt: skip
        batch = f"[{self._tool(attacker, 'search', query=question(attacker)).body}, {search.body}]"
        return [
            Probe("nearest", "filter", "A question whose nearest rows are another's.",
                  each([search])),
            Probe("extra-argument", "filter", "Arguments that name the other tenant.", each(
                self._tool(attacker, "search", query=question(victim), **one) for one in extra)),
            Probe("query-type", "filter", "A question of another type.", each(
                self._tool(attacker, "search", query=one)
                for one in ([question(victim)], {"$ne": ""}, None, ""))),
            Probe("fetch-id", "id", "Ids of another tenant's rows.", each(
                self._tool(attacker, "fetch", id=one)
                for one in (*ids, *(one.upper() for one in ids[:2]), ids))),
            Probe("error-texts", "error", FAILING, each([
                *(self._tool(attacker, "fetch", id=one) for one in ({}, {"text": ""}, 1, "")),
                self._tool(attacker, "nothing", query=question(victim)),
                self._call(attacker, "tools/call", question(victim)),
            ])),
            Probe("fetch-after-search", "session", "An id that its owner was served before.", (
                (asked, *(self._tool(attacker, "fetch", id=one) for one in ids[:3])),)),
            Probe("batch-member", "batch", "A batch of JSON-RPC.",
                  each([Request(attacker, "POST", "/mcp", batch)])),
            Probe("resources", "enumeration", "Resources, prompts and other tools.", each([
                *(self._call(attacker, method, {}) for method in (
                    "resources/list", "resources/templates/list", "prompts/list")),
                *(self._call(attacker, "resources/read", {"uri": one}) for one in (
                    ids[0], f"file:///{ids[0]}", f"collection://{name}")),
                *(self._tool(attacker, tool, collection=name, id=ids[0]) for tool in (
                    "list", "get", "list_documents", "qdrant-find", "chroma_get_documents")),
            ])),
            Probe("identity-header", "identity", "A header that names the other tenant.", each(
                Request(attacker, "POST", "/mcp", search.body, {header: victim})
                for header in IDENTITY_HEADERS)),
            Probe("session", "session", "A session that may be another's.", each(
                Request(attacker, "POST", "/mcp", search.body, {"mcp-session-id": one})
                for one in (victim, "1", "0" * 32))),
            Probe("path", "name", "The name of another's collection in the path.", each(
                Request(attacker, "POST", f"/mcp/{one}", search.body)
                for one in name_variants(name)[:10])),
            Probe("cache", "cache", "A question that its owner asked before.",
                  ((asked, search, search),)),
        ]  # fmt: skip

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        idea = "An id of the other tenant."
        return [Oracle("existence-by-id", "id", idea, "id",
                       lambda value: self._tool(attacker, "fetch", id=value))]  # fmt: skip

    def _tool(self, tenant: str, name: str, /, **arguments: Any) -> Request:
        return self._call(tenant, "tools/call", {"name": name, "arguments": arguments})

    def _call(self, tenant: str, method: str, params: Any) -> Request:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json_request(tenant, "/mcp", body)
