"""Chroma's REST interface, version 2."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import quote

from ragaudit.lab.attacks.scope.exchange import Request, json_request, members, succeeded
from ragaudit.lab.attacks.scope.probes import (
    FAILING,
    IDEAS,
    TAG,
    Attempt,
    Canary,
    Census,
    Oracle,
    Probe,
    Write,
    conditional,
    conditions,
    each,
    name_variants,
)
from ragaudit.lab.attacks.scope.stores.store import IDENTITY_HEADERS, Scene, Store

_INCLUDE = ["documents", "metadatas", "embeddings"]


class Chroma(Store):
    """Collections by name and id, ``query``, ``get`` and what lists them."""

    header: ClassVar[str] = "x-chroma-token"
    prefix: ClassVar[str] = ""
    vectors: ClassVar[bool] = True
    plants: ClassVar[bool] = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._ids: dict[str, str] = {}

    def open(self) -> None:
        for tenant, settings in self.target.tenants.items():
            self._ids[tenant] = settings.collection
            if self.has_key(tenant):
                path = f"{self._base(tenant)}/collections/{quote(settings.collection, safe='')}"
                answer = succeeded(
                    self.scene.client, Request(tenant, "GET", path), f"tenants.{tenant}.collection"
                )
                self._ids[tenant] = str((members(answer.text) or {}).get("id", ""))

    def control(self, tenant: str) -> Request:
        return self._query(tenant, tenant)

    def plant(self, tenant: str) -> list[Request]:
        rows = self.scene.planted(tenant)
        return [json_request(tenant, f"{self._at(tenant)}/upsert", self._written(tenant, *rows))]

    def remove(self, tenant: str) -> list[Request]:
        ids = [canary.id for canary in self.scene.planted(tenant)]
        return [json_request(tenant, f"{self._at(tenant)}/delete", {"ids": ids})]

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        return [
            *self._filters(attacker, victim),
            *self._own_collection(attacker, victim),
            *self._collections(attacker, victim),
            *self._caches(attacker, victim),
        ]

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        own, field = self._at(attacker), TAG
        other = f"{self._base(attacker)}/collections/{self._ids[victim]}"

        def get(place: str, **more: Any) -> Request:
            return json_request(attacker, f"{place}/get", {"include": [], **more})

        return [
            Oracle("existence-by-id", "id", "An id of the other tenant in the own collection.",
                   "id", lambda value: get(own, ids=[value])),
            Oracle("existence-by-id-elsewhere", "id", "An id in the other tenant's collection.",
                   "id", lambda value: get(other, ids=[value])),
            Oracle("existence-by-tag", "filter", "A filter that only one row of another passes.",
                   "tag", lambda value: get(own, where={field: value})),
        ]  # fmt: skip

    def writes(self, attacker: str, victim: str) -> list[Write]:
        own = self._at(attacker)
        others = list(dict.fromkeys([self._stolen(attacker, victim), self._at(victim)]))
        others = [place for place in others if place != own]
        known = self.scene.planted(victim)[0]
        new, taken = self.forged(victim), self.forged(victim, known)
        assert known.vector is not None
        read = self._query(victim, victim, query_embeddings=[list(known.vector)])
        added = {"ids": [new.id]}
        undo = [
            json_request(attacker, f"{own}/delete", added),
            json_request(victim, f"{self._at(victim)}/delete", added),
            *self.plant(victim),
        ]

        def put(place: str, row: Canary, tenant: str, *operations: str) -> list[Request]:
            body = self._written(tenant, row)
            return [json_request(attacker, f"{place}/{one}", body) for one in operations]

        found = [
            Write("write-tenant", "An own row that says it is the other tenant's.", self.attempts(
                read, new, put(own, new, victim, "add", "upsert"), undo)
                + self._renamed(attacker, victim)),
            Write("write-id", "A row in the own collection with an id of another's.", self.attempts(
                read, taken, (request for tenant in (attacker, victim)
                              for request in put(own, taken, tenant, "upsert", "update")),
                undo, loses=known.marker)),
            Write("delete", "Removing another's row: by its id, by a filter.", self.attempts(
                read, known, (json_request(attacker, f"{place}/delete", body)
                              for place in (own, *others) for body in (
                                  {"ids": [known.id]}, {"where": {TAG: known.tag}},
                                  {"ids": [known.id], "where": {TAG: known.tag}})),
                undo, loses=known.marker)),
        ]  # fmt: skip
        if others:
            found.append(Write(
                "write-collection", "A row in another's collection.", self.attempts(
                    read, new, (request for place in others
                                for request in put(place, new, victim, "add", "upsert")), undo)
                + self.attempts(
                    read, taken, (request for place in others
                                  for request in put(place, taken, victim, "upsert", "update")),
                    undo, loses=known.marker)))  # fmt: skip
        return [*found, self._whole(attacker, victim)]

    def censuses(self, attacker: str, victim: str) -> list[Census]:
        row, at = self.forged(victim), self._at(victim)
        add = json_request(victim, f"{at}/upsert", self._written(victim, row))
        remove = json_request(victim, f"{at}/delete", {"ids": [row.id]})
        places = {"count": self._at(attacker), "count-elsewhere": self._stolen(attacker, victim)}
        return [
            Census(name, "A count that another's row raises.",
                   Request(attacker, "GET", f"{place}/count"), add, remove)
            for name, place in places.items() if name == "count" or place != self._at(attacker)
        ]  # fmt: skip

    def _whole(self, attacker: str, victim: str) -> Write:
        """A collection that the victim makes for the test: another deletes, renames or takes it."""
        name, mark = self.disposable(), self.forged(victim).marker
        own, other = (f"{self._base(tenant)}/collections" for tenant in (attacker, victim))
        places, more = list(dict.fromkeys([own, other])), {"ragaudit": mark}
        made = {"name": name, "get_or_create": True}
        requests = [
            *(Request(attacker, "DELETE", f"{place}/{which}")
              for place in places for which in (name, "{created}", name.upper())),
            *(json_request(attacker, f"{place}/{{created}}", change, method="PUT")
              for place in places
              for change in ({"new_name": f"{name}-taken"}, {"new_metadata": more})),
            *(json_request(attacker, place, {**made, "metadata": more}) for place in places),
        ]  # fmt: skip
        undo = [
            Request(tenant, "DELETE", f"{place}/{which}")
            for tenant, place in ((victim, other), (attacker, own))
            for which in (name, f"{name}-taken")
        ]
        read = Request(victim, "GET", f"{other}/{name}")
        setup = (json_request(victim, other, {**made, "metadata": {"ragaudit": "scope test"}}),)
        return Write(
            "whole-collection", "Another's collection, deleted, renamed or taken over.",
            tuple(Attempt(one, read, mark, name, tuple(undo), setup) for one in requests),
        )  # fmt: skip

    def _renamed(self, attacker: str, victim: str) -> tuple[Attempt, ...]:
        """Own metadata overwritten with the other tenant's, so that the row moves over to it."""
        if (row := self.own_row(attacker)) is None:
            return ()
        assert row.vector is not None
        metadata = self._written(victim, row)["metadatas"]
        place = f"{self._at(attacker)}/update"
        request = json_request(attacker, place, {"ids": [row.id], "metadatas": metadata})
        read = self._query(victim, victim, query_embeddings=[list(row.vector)])
        return self.attempts(read, row, [request], self.plant(attacker))

    def _written(self, tenant: str, *rows: Canary) -> dict[str, Any]:
        field, value = self.target.tenant_field, self.target.value(tenant)
        return {
            "ids": [row.id for row in rows],
            "documents": [row.text for row in rows],
            "metadatas": [row.metadata(field, value) for row in rows],
            "embeddings": [row.vector for row in rows],
        }

    def _filters(self, attacker: str, victim: str) -> Iterator[Probe]:
        own, target = self._at(attacker), self.target
        given = conditions(target.tenant_field, target.value(attacker), target.value(victim))
        for name, filters in given.items():
            yield Probe(name, "filter", IDEAS[name], each(
                request for where in filters for request in (
                    self._query(attacker, victim, where=where),
                    json_request(attacker, f"{own}/get", {"where": where, "include": _INCLUDE}),
                )
            ))  # fmt: skip
        pair = [json.dumps({target.tenant_field: target.value(one)}) for one in (attacker, victim)]
        vector = json.dumps(self.near(victim))
        yield Probe("filter-duplicate-key", "filter", IDEAS["filter-duplicate-key"], each(
            Request(attacker, "POST", f"{own}/query",
                    f'{{"query_embeddings": [{vector}], "n_results": {target.top_k}, '
                    f'"where": {first}, "where": {second}}}')
            for first, second in (pair, pair[::-1])
        ))  # fmt: skip
        documents = [
            {"$contains": "canary"}, {"$not_contains": "\u0000"}, {"$regex": ".*"},
            {"$or": [{"$contains": "canary"}, {"$contains": "Ragaudit"}]}, {"$contains": ""},
        ]  # fmt: skip
        yield Probe("where-document", "document-filter", "A filter on texts.", each(
            request for where in documents for request in (
                self._query(attacker, victim, where_document=where),
                json_request(attacker, f"{own}/get",
                             {"where_document": where, "include": _INCLUDE}),
            )
        ))  # fmt: skip

    def _own_collection(self, attacker: str, victim: str) -> Iterator[Probe]:
        own = self._at(attacker)
        ids = [canary.id for canary in self.scene.planted(victim)]
        pages: list[dict[str, Any]] = [
            {}, {"limit": 10**6}, {"limit": 10**6, "offset": 0}, {"offset": -1}, {"limit": -1},
            {"limit": 0}, {"offset": 1}, {"limit": 10**18}, {"limit": "1000"}, {"ids": []},
            {"ids": None},
        ]  # fmt: skip

        def get(**more: Any) -> Request:
            return json_request(attacker, f"{own}/get", {"include": _INCLUDE, **more})

        yield Probe("nearest", "filter", "A question whose nearest rows are another's.",
                    each([self._query(attacker, victim)]))  # fmt: skip
        yield Probe("get-all", "enumeration", "Reading a collection without naming rows.",
                    each([get(), get(where={}), get(where=None)]))  # fmt: skip
        yield Probe("paging", "paging", "Limits and offsets beyond the own rows.",
                    each(get(**page) for page in pages))  # fmt: skip
        yield Probe("top-k-overrun", "paging", "More results than the tenant has rows.", each(
            self._query(attacker, victim, n_results=count) for count in (10**4, 10**9, -1, 0)
        ))  # fmt: skip
        yield Probe("get-ids", "id", "Ids of another tenant's rows.", each(
            [get(ids=ids), *(get(ids=[name]) for name in ids[:3]),
             get(ids=[name.upper() for name in ids])]
        ))  # fmt: skip
        yield Probe("query-ids", "id", "A question among ids of another tenant's rows.",
                    each([self._query(attacker, victim, ids=ids)]))  # fmt: skip
        numbers: dict[str, Any] = {"where": {TAG: {"$gt": 1}}}
        yield Probe("error-texts", "error", FAILING, each([
            get(**numbers), self._query(attacker, victim, **numbers),
            self._query(attacker, victim, query_embeddings=[[1.0]]),
            self._query(attacker, victim, n_results="many"), get(ids=[1]),
            get(include=["nothing"]), get(where_document={"$regex": "("}),
        ]))  # fmt: skip
        batch = [self.near(attacker), self.near(victim), self.near(victim)]
        yield Probe("batch-member", "batch", "Another question behind a lawful one.", each(
            [self._query(attacker, attacker, query_embeddings=batch)]
        ))  # fmt: skip
        search = {
            "limit": {"limit": self.target.top_k},
            "select": {"keys": ["#document", "#metadata"]},
        }
        yield Probe("search", "enumeration", "The search interface, forgotten by checks.", each(
            json_request(attacker, f"{place}/search", {"searches": [{**search, **filters}]})
            for place in (own, self._stolen(attacker, victim))
            for filters in ({}, {"filter": {"query_ids": ids}})
        ))  # fmt: skip
        yield Probe("identity-header", "identity", "A header that names the other tenant.", each(
            Request(attacker, "POST", f"{own}/query", self._query(attacker, victim).body,
                    {header: self.target.value(victim)}) for header in IDENTITY_HEADERS
        ))  # fmt: skip

    def _collections(self, attacker: str, victim: str) -> Iterator[Probe]:
        own, body = self._at(attacker), {"include": _INCLUDE}
        places = list(dict.fromkeys(
            [self._stolen(attacker, victim), self._at(victim), self._at(victim).upper()
             .replace("/API/V2/TENANTS", "/api/v2/tenants").replace("/DATABASES/", "/databases/")
             .replace("/COLLECTIONS/", "/collections/")]
        ))  # fmt: skip
        places = [place for place in places if place != own]
        yield Probe("cross-collection", "collection", "The id of its collection.", each(
            request for place in places for request in (
                json_request(attacker, f"{place}/get", body),
                Request(attacker, "POST", f"{place}/query", self._query(attacker, victim).body),
                Request(attacker, "GET", place),
            )
        ))  # fmt: skip
        name = self.target.tenants[victim].collection
        if name == self.target.tenants[attacker].collection:
            return
        collections = f"{self._base(attacker)}/collections"
        spellings = [quote(name, safe=""), *name_variants(name)]
        yield Probe("collection-name", "name", "Its collection by name, variously spelled.", each(
            request for spelling in spellings for request in (
                json_request(attacker, f"{collections}/{spelling}/get", body),
                Request(attacker, "GET", f"{collections}/{spelling}"),
            )
        ))  # fmt: skip
        names = tuple(dict.fromkeys([self._ids[victim], name]))
        databases = self._base(attacker).rpartition("/")[0]
        listing = Probe("listing", "enumeration", "Lists of collections and of databases.", each(
            Request(attacker, "GET", path) for path in (
                collections, f"{collections}?limit=1000", f"{collections}?limit=1000&offset=0",
                databases, "/api/v2/tenants", "/api/v1/collections")), names)  # fmt: skip
        yield listing
        identifier = quote(self._ids[victim], safe="")
        yield Probe("path-traversal", "name", "A path that leads out of the own collection.", each(
            json_request(attacker, f"{own}/{way}{identifier}/get", body)
            for way in ("../", "%2e%2e/", "..%2f", "%2e%2e%2f", "..%252f", "..;/", "./../", "..\\")
        ))  # fmt: skip

    def _caches(self, attacker: str, victim: str) -> Iterator[Probe]:
        question = self._query(victim, victim)
        for name, path, idea in (
            ("cache", self._at(victim), "A question that its owner asked before."),
            ("cache-body", self._at(attacker), "The same, to the own collection."),
        ):
            again = Request(attacker, "POST", f"{path}/query", question.body)
            yield Probe(name, "cache", idea, ((question, again, again),))
        if question.path != self._query(attacker, victim).path:
            yield conditional(question, attacker)

    def _query(self, tenant: str, about: str, /, **more: Any) -> Request:
        body = {
            "query_embeddings": [self.near(about)],
            "n_results": self.target.top_k,
            "include": [*_INCLUDE, "distances"],
            **more,
        }
        return json_request(tenant, f"{self._at(tenant)}/query", body)

    def _base(self, tenant: str) -> str:
        settings = self.target.tenants[tenant]
        tenants = f"/api/v2/tenants/{quote(settings.chroma_tenant, safe='')}"
        return f"{tenants}/databases/{quote(settings.database, safe='')}"

    def _at(self, tenant: str) -> str:
        return f"{self._base(tenant)}/collections/{quote(self._ids[tenant], safe='')}"

    def _stolen(self, attacker: str, victim: str) -> str:
        return f"{self._base(attacker)}/collections/{quote(self._ids[victim], safe='')}"
