"""Qdrant's REST interface."""

from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import quote

from ragaudit.lab.attacks.scope.exchange import Request, json_request, succeeded
from ragaudit.lab.attacks.scope.probes import (
    FAILING,
    TAG,
    Attempt,
    Canary,
    Census,
    Oracle,
    Probe,
    Write,
    conditional,
    each,
    name_variants,
)
from ragaudit.lab.attacks.scope.stores.store import IDENTITY_HEADERS, Store

_SHOWN = {"with_payload": True, "with_vector": True}


class Qdrant(Store):
    """Points of collections: query, scroll, count, facet, matrix, recommend, and their batches."""

    header: ClassVar[str] = "api-key"
    prefix: ClassVar[str] = ""
    vectors: ClassVar[bool] = True
    plants: ClassVar[bool] = True

    def open(self) -> None:
        for tenant in sorted(self.scene.keys):
            succeeded(self.scene.client, Request(tenant, "GET", self._at(tenant)),
                      f"tenants.{tenant}.collection")  # fmt: skip

    def control(self, tenant: str) -> Request:
        return self._query(tenant, tenant)

    def plant(self, tenant: str) -> list[Request]:
        body = self._written(tenant, *self.scene.planted(tenant))
        return [json_request(tenant, f"{self._at(tenant)}/points?wait=true", body, method="PUT")]

    def remove(self, tenant: str) -> list[Request]:
        ids = [canary.id for canary in self.scene.planted(tenant)]
        return [
            json_request(tenant, f"{self._at(tenant)}/points/delete?wait=true", {"points": ids})
        ]

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        return [
            *self._filters(attacker, victim),
            *self._reading(attacker, victim),
            *self._searching(attacker, victim),
            *self._collections(attacker, victim),
        ]

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        points = f"{self._at(attacker)}/points"

        def tagged(value: str) -> dict[str, Any]:
            return {"must": [{"key": TAG, "match": {"value": value}}]}

        return [
            Oracle("existence-by-id", "id", "An id of the other tenant.", "id",
                   lambda value: Request(attacker, "GET", f"{points}/{value}")),
            Oracle("existence-by-ids", "id", "The same among several.", "id",
                   lambda value: json_request(attacker, points, {"ids": [value]})),
            Oracle("recommend-existence", "id", "An example that may not exist.", "id",
                   lambda value: json_request(attacker, f"{points}/query",
                                              {"query": {"recommend": {"positive": [value]}}})),
            Oracle("count-by-tag", "filter", "A count that only one row of another can raise.",
                   "tag", lambda value: json_request(attacker, f"{points}/count",
                                                     {"filter": tagged(value), "exact": True})),
        ]  # fmt: skip

    def writes(self, attacker: str, victim: str) -> list[Write]:
        own, other = (f"{self._at(tenant)}/points" for tenant in (attacker, victim))
        known = self.scene.planted(victim)[0]
        new, taken = self.forged(victim), self.forged(victim, known)
        read = self._query(victim, victim, query=known.vector)
        undo = [
            json_request(tenant, f"{self._at(tenant)}/points/delete?wait=true",
                         {"points": [new.id]}) for tenant in (attacker, victim)
        ] + self.plant(victim)  # fmt: skip
        payload = self._written(victim, taken)["points"][0]["payload"]
        by_tag = {"must": [{"key": TAG, "match": {"value": known.tag}}]}

        def put(place: str, row: Canary, tenant: str) -> Request:
            body = self._written(tenant, row)
            return json_request(attacker, f"{place}?wait=true", body, method="PUT")

        def post(place: str, operation: str, body: dict[str, Any]) -> Request:
            return json_request(attacker, f"{place}/{operation}?wait=true", body)

        def changed(place: str) -> Iterator[Request]:
            yield put(place, taken, victim)
            for which in ({"points": [known.id]}, {"filter": by_tag}):
                yield post(place, "payload", {"payload": payload, **which})
            upsert = {"upsert": self._written(victim, taken)}
            yield post(place, "batch", {"operations": [upsert]})

        def removed(place: str) -> Iterator[Request]:
            for which in ({"points": [known.id]}, {"filter": by_tag}):
                yield post(place, "delete", which)
                yield post(place, "payload/clear", which)
            yield post(place, "batch", {"operations": [{"delete": {"points": [known.id]}}]})

        places = list(dict.fromkeys([own, other]))
        found = [
            Write("write-tenant", "An own row that says it is the other tenant's.",
                  self.attempts(read, new, [put(own, new, victim)], undo)
                  + self._renamed(attacker, victim)),
            Write("write-id", "A row in the own collection with an id of another's.",
                  self.attempts(read, taken, [put(own, taken, attacker), *changed(own)], undo,
                                loses=known.marker)),
            Write("delete", "Removing another's row: by its id, by a filter, in a batch.",
                  self.attempts(read, known, (one for place in places for one in removed(place)),
                                undo, loses=known.marker)),
        ]  # fmt: skip
        if other != own:
            found.append(
                Write(
                    "write-collection",
                    "A row in another's collection.",
                    self.attempts(read, new, [put(other, new, victim)], undo)
                    + self.attempts(read, taken, changed(other), undo, loses=known.marker),
                )
            )
        return [*found, self._whole(attacker, victim)]

    def censuses(self, attacker: str, victim: str) -> list[Census]:
        row, at = self.forged(victim), self._at(victim)
        body = self._written(victim, row)
        add = json_request(victim, f"{at}/points?wait=true", body, method="PUT")
        remove = json_request(victim, f"{at}/points/delete?wait=true", {"points": [row.id]})
        own, exact = self._at(attacker), {"exact": True}
        asked = {
            "count": json_request(attacker, f"{own}/points/count", exact),
            "collection-size": Request(attacker, "GET", own),
        }
        if own != at:
            asked["count-elsewhere"] = json_request(attacker, f"{at}/points/count", exact)
        idea = "A count that another's row raises."
        return [Census(name, idea, request, add, remove) for name, request in asked.items()]

    def _whole(self, attacker: str, victim: str) -> Write:
        """A collection that the victim makes for the test, with one row: another deletes it, or
        gives it a name of its own."""
        name, row = self.disposable(), self.forged(victim)
        place, alias = f"/collections/{name}", f"{name}-taken"
        vectors = {"vectors": {"size": self.target.dimension, "distance": "Cosine"}}
        setup = (
            Request(victim, "DELETE", place),
            json_request(victim, place, vectors, method="PUT"),
            json_request(victim, f"{place}/points?wait=true", self._written(victim, row),
                         method="PUT"),
        )  # fmt: skip
        query = {"query": row.vector, "limit": 1, **_SHOWN}
        found = json_request(victim, f"{place}/points/query", query)
        named = {"create_alias": {"collection_name": name, "alias_name": alias}}
        take = json_request(attacker, "/collections/aliases", {"actions": [named]})
        gone = {"delete_alias": {"alias_name": alias}}
        undo = (
            json_request(attacker, "/collections/aliases", {"actions": [gone]}),
            *(Request(tenant, "DELETE", place) for tenant in (victim, attacker)),
        )
        return Write("whole-collection", "Another's collection, deleted or given a name.", (
            Attempt(Request(attacker, "DELETE", place), found, "", row.marker, undo, setup),
            Attempt(take, Request(victim, "GET", f"{place}/aliases"), alias, "", undo, setup),
        ))  # fmt: skip

    def _renamed(self, attacker: str, victim: str) -> tuple[Attempt, ...]:
        """Own metadata overwritten with the other tenant's, so that the row moves over to it."""
        if (row := self.own_row(attacker)) is None:
            return ()
        payload = self._written(victim, row)["points"][0]["payload"]
        body = {"payload": payload, "points": [row.id]}
        place = f"{self._at(attacker)}/points/payload?wait=true"
        requests = [json_request(attacker, place, body, method=way) for way in ("POST", "PUT")]
        read = self._query(victim, victim, query=row.vector)
        return self.attempts(read, row, requests, self.plant(attacker))

    def _written(self, tenant: str, *rows: Canary) -> dict[str, Any]:
        field, value = self.target.tenant_field, self.target.value(tenant)
        given = [(row, row.metadata(field, value)) for row in rows]
        return {"points": [
            {"id": row.id, "vector": row.vector,
             "payload": {"text": row.text, "metadata": metadata, **metadata}}
            for row, metadata in given
        ]}  # fmt: skip

    def _filters(self, attacker: str, victim: str) -> Iterator[Probe]:
        field, target = self.target.tenant_field, self.target
        own, other = target.value(attacker), target.value(victim)

        def match(**how: Any) -> dict[str, Any]:
            return {"key": field, "match": how}

        mine, yours = match(value=own), match(value=other)
        ids = [canary.id for canary in self.scene.planted(victim)]
        filters: dict[str, tuple[str, list[Any]]] = {
            "filter-tenant": ("A filter that names the other tenant.",
                              [{"must": [yours]}, {"must": yours}, {"must": [match(text=other)]}]),
            "filter-should": ("An alternative beside the condition that keeps tenants apart.",
                              [{"should": [mine, yours]}, {"should": [yours]},
                               {"min_should": {"conditions": [mine, yours], "min_count": 1}},
                               {"min_should": {"conditions": [mine, yours], "min_count": 0}}]),
            "filter-must-not": ("A negation that holds for the rows of others.",
                                [{"must_not": [mine]}, {"must": [match(**{"except": [own]})]},
                                 {"must_not": [{"must": [mine]}]}]),
            "filter-list": ("A list of tenants where one is expected.",
                            [{"must": [match(any=[own, other])]},
                             {"must": [match(value=[other])]}]),
            "filter-null": ("No condition, a null, or a test of existence.",
                            [None, {}, {"must": []}, {"must": None},
                             {"must_not": [{"is_null": {"key": field}}]},
                             {"must_not": [{"is_empty": {"key": field}}]}]),
            "filter-nested": ("Filters within filters, and paths to members.",
                              [{"must": [{"should": [mine, {"must": [yours]}]}]},
                               {"must": [{"nested": {"key": "metadata", "filter": yours}}]},
                               {"must": [{"key": f"metadata.{field}", "match": {"value": other}}]},
                               {"must": [{"key": f'"{field}"', "match": {"value": other}}]}]),
            "filter-type": ("A value of another type than the checks expect.",
                            [[], [yours], yours, True, "must", {"must": "x"}, {"must": [[]]}]),
            "filter-has-id": ("A condition on ids of another tenant's rows.",
                              [{"must": [{"has_id": ids}]}, {"should": [{"has_id": ids}, mine]}]),
        }  # fmt: skip
        points = f"{self._at(attacker)}/points"
        for name, (idea, given) in filters.items():
            yield Probe(name, "filter", idea, each(
                request for condition in given for request in (
                    self._query(attacker, victim, filter=condition),
                    json_request(attacker, f"{points}/scroll",
                                 {"filter": condition, "limit": 100, **_SHOWN}),
                )
            ))  # fmt: skip

    def _reading(self, attacker: str, victim: str) -> Iterator[Probe]:
        points = f"{self._at(attacker)}/points"
        ids = [canary.id for canary in self.scene.planted(victim)]
        scrolls: list[dict[str, Any]] = [
            {}, {"limit": 10**6}, {"offset": ids[0]}, {"offset": 0}, {"limit": 100, "offset": None},
            {"order_by": TAG}, {"order_by": {"key": TAG, "direction": "desc"}},
        ]  # fmt: skip
        yield Probe("nearest", "filter", "A question whose nearest rows are another's.",
                    each([self._query(attacker, victim)]))  # fmt: skip
        yield Probe("scroll", "enumeration", "Reading a collection page by page.", each(
            json_request(attacker, f"{points}/scroll", {**_SHOWN, **scroll}) for scroll in scrolls
        ))  # fmt: skip
        yield Probe("top-k-overrun", "paging", "More results than the tenant has rows.", each(
            [self._query(attacker, victim, **more)
             for more in ({"limit": 10**5}, {"limit": 10, "offset": 10}, {"limit": 0},
                          {"limit": -1}, {"offset": -1}, {"limit": 10**18})]
        ))  # fmt: skip
        yield Probe("get-ids", "id", "Ids of another tenant's rows.", each([
            json_request(attacker, points, {"ids": ids, **_SHOWN}),
            *(Request(attacker, "GET", f"{points}/{name}") for name in ids[:3]),
        ]))  # fmt: skip
        numbers = {"must": [{"key": TAG, "range": {"gt": 1}}]}
        yield Probe("error-texts", "error", FAILING, each([
            self._query(attacker, victim, filter=numbers),
            json_request(attacker, f"{points}/scroll", {**_SHOWN, "filter": numbers}),
            self._query(attacker, victim, query=[1.0]),
            self._query(attacker, victim, using="nothing"),
            self._query(attacker, victim, filter={"must": [{"key": TAG, "match": {"text": 1}}]}),
            json_request(attacker, points, {"ids": ["nobody's"], **_SHOWN}),
        ]))  # fmt: skip
        yield Probe("facet", "enumeration", "Values of a member, counted over all rows.", each(
            json_request(attacker, f"{self._at(attacker)}/facet", {"key": key, "limit": 1000})
            for key in (TAG, f"metadata.{TAG}", "text")
        ))  # fmt: skip
        yield Probe("matrix", "enumeration", "Pairs of sampled rows.", each(
            json_request(attacker, f"{points}/search/matrix/{shape}", {"sample": 1000, "limit": 99})
            for shape in ("pairs", "offsets")
        ))  # fmt: skip
        yield Probe("maintenance", "enumeration", "Snapshots, telemetry and shards.", each(
            Request(attacker, "GET", path) for path in (
                f"{self._at(attacker)}/snapshots", f"{self._at(victim)}/snapshots", "/snapshots",
                "/telemetry?details_level=10", f"{self._at(victim)}/cluster",
                f"{self._at(victim)}/aliases", "/aliases",
            )
        ))  # fmt: skip
        yield Probe("identity-header", "identity", "A header that names the other tenant.", each(
            Request(attacker, "POST", f"{points}/query", self._query(attacker, victim).body,
                    {header: self.target.value(victim)}) for header in IDENTITY_HEADERS
        ))  # fmt: skip

    def _searching(self, attacker: str, victim: str) -> Iterator[Probe]:
        points = f"{self._at(attacker)}/points"
        ids = [canary.id for canary in self.scene.planted(victim)]
        other = self.target.tenants[victim].collection
        elsewhere = {"collection": other}
        near = self.near(victim)
        pair = {"positive": ids[1], "negative": ids[2]}
        yield Probe("recommend", "id", "Rows like an example of another tenant's.", each([
            self._query(attacker, victim, query=query) for query in (
                ids[0], {"nearest": ids[0]}, {"recommend": {"positive": ids[:3]}},
                {"discover": {"target": ids[0], "context": [pair]}},
                {"context": [pair]}, {"sample": "random"},
                {"order_by": TAG}, {"fusion": "rrf"},
            )
        ] + [
            json_request(attacker, f"{points}/{operation}",
                         {"positive": ids[:2], "limit": 100, **_SHOWN})
            for operation in ("recommend", "discover")
        ]))  # fmt: skip
        yield Probe("lookup-from", "collection", "A vector looked up in another collection.", each(
            self._query(attacker, victim, query=query, lookup_from=elsewhere)
            for query in (ids[0], {"recommend": {"positive": ids[:2]}})
        ))  # fmt: skip
        yield Probe("with-lookup", "collection", "Groups joined with another collection.", each(
            json_request(attacker, f"{points}/query/groups", {
                "query": near, "group_by": group, "limit": 10, "group_size": 10,
                "with_lookup": {**elsewhere, "with_payload": True, "with_vectors": True}, **_SHOWN,
            }) for group in (TAG, self.target.tenant_field, "id")
        ))  # fmt: skip
        prefetch = {"query": near, "limit": 100}
        yield Probe("prefetch", "batch", "A first stage that the condition does not reach.", each([
            self._query(attacker, victim, prefetch=prefetch, query={"fusion": "rrf"}),
            self._query(attacker, victim, prefetch=[prefetch]),
            self._query(attacker, victim, prefetch=[{**prefetch, "lookup_from": elsewhere}]),
            self._query(attacker, victim, prefetch={**prefetch, "prefetch": prefetch}),
        ]))  # fmt: skip
        lawful = {"query": self.near(attacker), "limit": self.target.top_k, **_SHOWN}
        hostile = {**lawful, "query": near}
        yield Probe("batch-member", "batch", "Another question behind a lawful one.", each([
            json_request(attacker, f"{points}/query/batch", {"searches": [lawful, member]})
            for member in (hostile, {**hostile, "filter": {"should": []}},
                           {**hostile, "prefetch": prefetch}, {**hostile, "query": ids[0]},
                           {**hostile, "collection": other, "collection_name": other})
        ] + [
            json_request(attacker, f"{points}/search/batch",
                         {"searches": [{"vector": near, "limit": 100, **_SHOWN}]})
        ]))  # fmt: skip
        yield Probe("older-search", "enumeration", "The search interface of before.", each([
            json_request(attacker, f"{points}/search", {"vector": near, "limit": 100, **_SHOWN}),
            json_request(attacker, f"{points}/search/groups",
                         {"vector": near, "group_by": TAG, "limit": 10, **_SHOWN}),
        ]))  # fmt: skip

    def _collections(self, attacker: str, victim: str) -> Iterator[Probe]:
        name = self.target.tenants[victim].collection
        body = {"limit": 100, **_SHOWN}
        question = self._query(victim, victim)
        again = Request(attacker, "POST", question.path, question.body)
        own = Request(attacker, "POST", f"{self._at(attacker)}/points/query", question.body)
        yield Probe("cache", "cache", "A question that its owner asked before.",
                    ((question, again, again), (question, own, own)))  # fmt: skip
        if name == self.target.tenants[attacker].collection:
            return
        yield conditional(question, attacker)
        yield Probe("listing", "enumeration", "Lists of collections and of aliases.", each(
            Request(attacker, "GET", path) for path in ("/collections", "/aliases", "/cluster")
        ), (name,))  # fmt: skip
        spellings = name_variants(name)
        yield Probe("cross-collection", "collection", "Another tenant's collection by name.", each([
            json_request(attacker, f"{self._at(victim)}/points/scroll", body),
            Request(attacker, "POST", f"{self._at(victim)}/points/query", question.body),
        ]))  # fmt: skip
        yield Probe("collection-name", "name", "The same, variously spelled.", each(
            request for spelling in spellings for request in (
                json_request(attacker, f"/collections/{spelling}/points/scroll", body),
                Request(attacker, "POST", f"/collections/{spelling}/points/query", question.body),
            )
        ))  # fmt: skip
        yield Probe("path-traversal", "name", "A path that leads out of the own collection.", each(
            Request(attacker, "POST", f"{self._at(attacker)}/{way}{quote(name)}/points/query",
                    question.body)
            for way in ("../", "%2e%2e/", "..%2f", "%2e%2e%2f", "..%252f", "..;/", "points/../../")
        ))  # fmt: skip

    def _query(self, tenant: str, about: str, /, **more: Any) -> Request:
        body = {"query": self.near(about), "limit": self.target.top_k, **_SHOWN, **more}
        return json_request(tenant, f"{self._at(tenant)}/points/query", body)

    def _at(self, tenant: str) -> str:
        return f"/collections/{quote(self.target.tenants[tenant].collection, safe='')}"
