"""The prover's own interface: queries of an account, and its receipts."""

import json
from typing import Any
from urllib.parse import quote

from ragaudit.encoding.errors import UnavailableError
from ragaudit.lab.attacks.scope.exchange import Request, json_request, members, succeeded
from ragaudit.lab.attacks.scope.probes import (
    FAILING,
    IDEAS,
    TAG,
    Oracle,
    Probe,
    conditions,
    each,
    name_variants,
    question,
)
from ragaudit.lab.attacks.scope.stores.store import IDENTITY_HEADERS, Scene, Store

_RECEIPTS = 20


class Prover(Store):
    """``/v1/windows/NAME/query`` and what an account may read."""

    writeless = "documents come in by the operator's own command, with no account's key"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._window = ""

    def open(self) -> None:
        client, tenants = self.scene.client, sorted(self.scene.keys)
        if (name := self.target.window) is None:
            answer = succeeded(client, Request(tenants[0], "GET", "/v1/windows"), "url")
            listed = members(answer.text) or []
            name = next((str(one["window"]) for one in listed if one.get("state") == "open"), None)
        if name is None:
            raise UnavailableError("no window is open", where="window", expected="its name")
        self._window = f"/v1/windows/{quote(name, safe='')}"
        for tenant in tenants:
            succeeded(client, json_request(tenant, f"{self._window}/registration", {}),
                      f"tenants.{tenant}.key_file")  # fmt: skip

    def control(self, tenant: str) -> Request:
        return self._query(tenant, tenant)

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        target, name = self.target, self._window.rpartition("/")[2]
        given = conditions(target.tenant_field, target.value(attacker), target.value(victim))
        field, own, other = target.tenant_field, target.value(attacker), target.value(victim)
        asked = self._query(victim, victim)
        again = Request(attacker, "POST", asked.path, asked.body)
        ours = [{"op": "eq", "key": field, "value": other},
                {"op": "ne", "key": field, "value": own},
                {"op": "in", "key": field, "value": [own, other]},
                {"op": "not", "of": [{"op": "eq", "key": field, "value": own}]},
                {"op": "or", "of": [{"op": "eq", "key": field, "value": own},
                                    {"op": "ne", "key": field, "value": own}]}]  # fmt: skip
        extra: list[dict[str, Any]] = [
            {"tenant": other},
            {"account": victim},
            {"user": victim},
            {"where": {field: other}},
            {"ids": [canary.id for canary in self.scene.planted(victim)]},
            {"offset": 10},
        ]
        receipts = [f"/v1/receipts/{name}.{place}" for place in range(_RECEIPTS)]
        once = {"idempotency-key": f"ragaudit-{self.scene.generator.integers(2**62)}"}
        keyed = Request(victim, "POST", asked.path, asked.body, once)
        return [
            Probe("nearest", "filter", "A question whose nearest rows are another's.",
                  each([again])),
            Probe("filter", "filter", "Filters of our own grammar.", each(
                self._query(attacker, victim, filter=_canonical(one)) for one in ours)),
            *(Probe(probe, "filter", IDEAS[probe], each(
                self._query(attacker, victim, filter=_canonical(one))
                for one in filters)) for probe, filters in given.items()),
            Probe("error-texts", "error", FAILING, each([
                *(self._query(attacker, victim, filter=text) for text in (
                    _canonical({"op": "gt", "key": TAG, "value": 1}),
                    _canonical({"op": "eq", "key": TAG, "value": 1}), "{")),
                self._query(attacker, victim, query=[1.0]),
                self._query(attacker, victim, top_k="many"),
            ])),
            Probe("extra-member", "collection", "Members that name another tenant or rows.", each(
                self._query(attacker, victim, **one) for one in extra)),
            Probe("top-k-overrun", "paging", "More results than are allowed.", each(
                self._query(attacker, victim, top_k=count) for count in (10**4, 10**9, 0, -1))),
            Probe("identity-header", "identity", "A header that names the other tenant.", each(
                Request(attacker, "POST", again.path, again.body, {header: other})
                for header in IDENTITY_HEADERS)),
            Probe("idempotency-key", "cache", "The idempotency key of another's question.",
                  ((keyed, Request(attacker, "POST", asked.path, asked.body, once)),)),
            Probe("cache", "cache", "A question that its owner asked before.",
                  ((asked, again, again),)),
            Probe("receipts", "id", "Receipts by their numbers.", (
                (asked, *(Request(attacker, "GET", path) for path in receipts)),)),
            Probe("log", "enumeration", "What the window publishes.", each(
                Request(attacker, "GET", f"{self._window}/{path}") for path in (
                    "account", "policy", "log/checkpoint", "log/tile/entries/000",
                    "log/tile/entries/000.p/1", "log/tile/0/000", "log/../receipts",
                    "log/..%2f..%2freceipts"))),
            Probe("window-name", "name", "The window, variously spelled.", each(
                Request(attacker, "POST", f"/v1/windows/{one}/query", asked.body)
                for one in name_variants(name))),
        ]  # fmt: skip

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        def tagged(value: str) -> Request:
            condition = {"key": TAG, "op": "eq", "value": value}
            return self._query(attacker, victim, filter=_canonical(condition))

        idea = "A filter that only one row of another passes."
        return [Oracle("existence-by-tag", "filter", idea, "tag", tagged)]

    def _query(self, tenant: str, about: str, /, **more: Any) -> Request:
        body = {"query": question(about), "top_k": self.target.top_k, **more}
        return json_request(tenant, f"{self._window}/query", body)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
