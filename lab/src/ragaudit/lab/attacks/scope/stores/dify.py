"""Dify's external knowledge interface: one call."""

from typing import Any
from urllib.parse import unquote

from ragaudit.lab.attacks.scope.exchange import Request, json_request
from ragaudit.lab.attacks.scope.probes import (
    FAILING,
    TAG,
    Oracle,
    Probe,
    each,
    name_variants,
    question,
)
from ragaudit.lab.attacks.scope.stores.store import IDENTITY_HEADERS, Store


class Dify(Store):
    """``POST /retrieval``."""

    writeless = "its one call is a retrieval"

    def control(self, tenant: str) -> Request:
        return self._retrieve(tenant, tenant)

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        field, target = self.target.tenant_field, self.target
        own, other = target.value(attacker), target.value(victim)
        name = target.tenants[victim].collection

        def tests(*conditions: tuple[Any, str, Any], joined: Any = "and") -> dict[str, Any]:
            return {"logical_operator": joined, "conditions": [
                {"name": key, "comparison_operator": operator, "value": value}
                for key, operator, value in conditions
            ]}  # fmt: skip

        filters = [
            tests((field, "is", other)), tests((field, "is not", own)),
            tests((field, "is", own), (field, "is", other), joined="or"),
            tests((field, "in", [own, other])), tests((field, "not empty", None)),
            tests((field, "contains", "")), tests((field, "start with", "")),
            tests(([field], "is", other)), tests((field, "is", f"{own}' OR '1'='1")),
            tests(joined="or"), tests((field, "is", None)), {}, [], "x",
            tests((field, "is", other), joined="OR"),
        ]  # fmt: skip
        asked, again = self._retrieve(victim, victim), self._retrieve(attacker, victim)
        replayed = Request(attacker, "POST", asked.path, asked.body)
        probes = [
            Probe("filter", "filter", "Conditions on the metadata of others.", each(
                self._retrieve(attacker, victim, metadata_condition=one) for one in filters)),
            Probe("nearest", "filter", "A question near another's rows.", each([again])),
            Probe("error-texts", "error", FAILING, each([
                *(self._retrieve(attacker, victim, metadata_condition=tests((TAG, kind, value)))
                  for kind, value in ((">", 1), ("before", "x"), ("nothing", "x"))),
                self._retrieve(attacker, victim, retrieval_setting={"top_k": "many"}),
                self._retrieve(attacker, victim, query=[question(victim)]),
            ])),
            Probe("top-k-overrun", "paging", "More results than are allowed.", each(
                self._retrieve(attacker, victim,
                               retrieval_setting={"top_k": count, "score_threshold": -1.0})
                for count in (10**4, 0, -1))),
            Probe("identity-header", "identity", "A header that names the other tenant.", each(
                Request(attacker, "POST", again.path, again.body, {header: other})
                for header in IDENTITY_HEADERS)),
            Probe("cache", "cache", "A question that its owner asked before.",
                  ((asked, replayed, replayed), (asked, again, again))),
        ]  # fmt: skip
        if name != target.tenants[attacker].collection:
            names = [name, *dict.fromkeys(map(unquote, name_variants(name)))]
            probes += [
                Probe("cross-collection", "collection", "Another tenant's knowledge by its id.",
                      each([replayed])),
                Probe("collection-name", "name", "The same, variously spelled or typed.", each(
                    self._retrieve(attacker, victim, knowledge_id=one)
                    for one in (*names[1:], [name], {"$ne": ""}, None, True))),
            ]  # fmt: skip
        return probes

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        def tagged(value: str) -> Request:
            condition = {"name": TAG, "comparison_operator": "is", "value": value}
            return self._retrieve(attacker, victim, metadata_condition={
                "logical_operator": "and", "conditions": [condition]})  # fmt: skip

        idea = "A condition that only one row of another passes."
        return [Oracle("existence-by-tag", "filter", idea, "tag", tagged)]

    def _retrieve(self, tenant: str, about: str, /, **more: Any) -> Request:
        body = {
            "knowledge_id": self.target.tenants[tenant].collection,
            "query": question(about),
            "retrieval_setting": {"top_k": self.target.top_k, "score_threshold": 0.0},
            **more,
        }
        return json_request(tenant, "/retrieval", body)
