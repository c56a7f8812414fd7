"""OpenAI's vector stores, and services of their shape."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from ragaudit.lab.attacks.scope.exchange import Request, json_request
from ragaudit.lab.attacks.scope.probes import (
    FAILING,
    TAG,
    Attempt,
    Oracle,
    Probe,
    Write,
    conditional,
    each,
    name_variants,
    question,
)
from ragaudit.lab.attacks.scope.stores.store import IDENTITY_HEADERS, Store


class OpenAi(Store):
    """Search in a vector store by text, and the files behind it."""

    restores: ClassVar[bool] = True

    def control(self, tenant: str) -> Request:
        return self._search(tenant, tenant)

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        return [*self._filters(attacker, victim), *self._stores(attacker, victim)]

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        own = self._at(attacker)
        return [
            Oracle("existence-by-id", "id", "A file of the other tenant in the own store.", "id",
                   lambda value: Request(attacker, "GET", f"{own}/files/{value}")),
            Oracle("existence-of-file", "id", "A file of the other tenant.", "id",
                   lambda value: Request(attacker, "GET", f"/v1/files/{value}")),
            Oracle("existence-by-tag", "filter", "A filter that only one row of another passes.",
                   "tag", lambda value: self._search(attacker, victim, filters={
                       "type": "eq", "key": TAG, "value": value})),
        ]  # fmt: skip

    def writes(self, attacker: str, victim: str) -> list[Write]:
        own, other = self._at(attacker), self._at(victim)
        known, row = self.scene.planted(victim)[0], self.own_row(attacker)
        taken = self.forged(victim, known)
        field, mine = self.target.tenant_field, self.target.value(attacker)
        theirs = self.target.value(victim)
        read = self._search(victim, victim)
        files = [f"{place}/files/{known.id}" for place in dict.fromkeys([own, other])]
        metadata = known.metadata(field, theirs)
        attached = {"file_id": known.id, "attributes": metadata}
        found = [
            Write("write-id", "Attributes of another's file, overwritten.", self.attempts(
                read, replace(taken, marker=taken.tag),
                (json_request(attacker, one, {"attributes": taken.metadata(field, value)})
                 for one in files for value in (theirs, mine)),
                [json_request(victim, files[-1], {"attributes": metadata})])),
            Write("delete", "Another's file, taken out of a store.", self.attempts(
                read, known, (Request(attacker, "DELETE", one) for one in files),
                [json_request(victim, f"{other}/files", attached)], loses=known.marker)),
        ]  # fmt: skip
        found += self._whole(attacker, victim)
        if row is None:
            return found
        # In a store that tenants share, a search about the attacker is one for what it wrote.
        about = self._search(victim, attacker)
        place, back = f"{own}/files/{row.id}", {"attributes": row.metadata(field, mine)}
        renamed = json_request(attacker, place, {"attributes": row.metadata(field, theirs)})
        found.append(Write("write-tenant", "An own file whose attributes say it is another's.",
                           self.attempts(about, row, [renamed],
                                         [json_request(attacker, place, back)])))  # fmt: skip
        if own != other:
            given = row.metadata(field, theirs)
            added = f"{other}/files/{row.id}"
            requests = [
                json_request(attacker, f"{other}/files", {"file_id": row.id, "attributes": given}),
                json_request(attacker, f"{other}/file_batches", {"file_ids": [row.id]}),
            ]
            undo = [Request(tenant, "DELETE", added) for tenant in (attacker, victim)]
            # A store in which a removal reaches further has taken it out of the own one too.
            undo.append(json_request(attacker, f"{own}/files", {"file_id": row.id, **back}))
            found.append(Write("write-collection", "An own file, attached to another's store.",
                               self.attempts(about, row, requests, undo)))  # fmt: skip
        return found

    def _whole(self, attacker: str, victim: str) -> list[Write]:
        """A store and a file that the victim makes for the test: another deletes or renames it."""
        name, mark = self.disposable(), self.forged(victim).marker
        boundary = f"{name}-boundary"
        parts = (
            'name="purpose"\r\n\r\nassistants',
            f'name="file"; filename="{name}.txt"\r\ncontent-type: text/plain\r\n\r\n{name}',
        )
        body = "".join(
            f"--{boundary}\r\ncontent-disposition: form-data; {part}\r\n" for part in parts
        )
        form = {"content-type": f"multipart/form-data; boundary={boundary}"}
        upload = Request(victim, "POST", "/v1/files", f"{body}--{boundary}--\r\n", form)
        stores, files = "/v1/vector_stores/{created}", "/v1/files/{created}"

        def attempt(request: Request, place: str, setup: Request) -> Attempt:
            undo = (Request(victim, "DELETE", place),)
            return Attempt(request, Request(victim, "GET", place), mark, name, undo, (setup,))

        made = json_request(victim, "/v1/vector_stores", {"name": name})
        return [
            Write("whole-store", "Another's store, deleted or renamed.", (
                attempt(Request(attacker, "DELETE", stores), stores, made),
                attempt(json_request(attacker, stores, {"name": f"{name} {mark}"}), stores, made),
            )),
            Write("whole-file", "Another's uploaded file, deleted.",
                  (attempt(Request(attacker, "DELETE", files), files, upload),)),
        ]  # fmt: skip

    def _filters(self, attacker: str, victim: str) -> Iterator[Probe]:
        field, target = self.target.tenant_field, self.target
        own, other = target.value(attacker), target.value(victim)

        def leaf(kind: str, value: Any) -> dict[str, Any]:
            return {"type": kind, "key": field, "value": value}

        mine, yours = leaf("eq", own), leaf("eq", other)
        filters: dict[str, tuple[str, list[Any]]] = {
            "filter-tenant": ("A filter that names the other tenant.", [yours]),
            "filter-or": ("An alternative beside the condition that keeps tenants apart.",
                          [{"type": "or", "filters": [mine, yours]},
                           {"type": "or", "filters": [mine, leaf("ne", own)]},
                           {"type": "and", "filters": [{"type": "or", "filters": [yours, mine]}]}]),
            "filter-not": ("A negation that holds for the rows of others.",
                           [leaf("ne", own), leaf("nin", [own]), leaf("ne", ""), leaf("gte", "")]),
            "filter-list": ("A list of tenants where one is expected.",
                            [leaf("in", [own, other]), leaf("eq", [own, other])]),
            "filter-null": ("No condition, or a null.",
                            [None, {}, leaf("eq", None), {"type": "and", "filters": []}]),
            "filter-type": ("A value of another type than the checks expect.",
                            [[], [yours], True, "x", leaf("eq", True), leaf("EQ", other),
                             {"type": ["eq"], "key": field, "value": other}]),
            "filter-nested": ("Conditions within conditions, and members that replace others.",
                              [{"type": "and", "filters": [{"type": "and", "filters": [yours]}]},
                               {**mine, "filters": [yours]}, {**yours, "type": "or", "filters": []},
                               leaf("eq", {"$ne": own})]),
            "filter-sql": ("SQL within names and values.",
                           [leaf("eq", f"{own}' OR '1'='1"), leaf("eq", f"{own}' OR 1=1 --"),
                            {"type": "eq", "key": f"{field}' OR '1'='1", "value": own}]),
        }  # fmt: skip
        for name, (idea, given) in filters.items():
            yield Probe(name, "filter", idea, each(
                self._search(attacker, victim, filters=condition) for condition in given
            ))  # fmt: skip

    def _stores(self, attacker: str, victim: str) -> Iterator[Probe]:
        name, ids = self.target.tenants[victim].collection, self._ids(victim)
        own, other, body = self._at(attacker), self._at(victim), self._search(victim, victim).body
        yield Probe("nearest", "filter", "A question whose nearest rows are another's.",
                    each([self._search(attacker, victim)]))  # fmt: skip
        yield Probe("batch-member", "batch", "Another question behind a lawful one.", each([
            self._search(attacker, victim, query=[question(attacker), question(victim)])
        ]))  # fmt: skip
        yield Probe("top-k-overrun", "paging", "More results than are allowed.", each(
            self._search(attacker, victim, max_num_results=count) for count in (10**4, -1, 0, "50")
        ))  # fmt: skip
        yield Probe("error-texts", "error", FAILING, each([
            *(self._search(attacker, victim, filters={"type": kind, "key": TAG, "value": value})
              for kind, value in (("gt", 1), ("lte", 1), ("eq", {}), ("between", "x"))),
            self._search(attacker, victim, query={"text": question(victim)}),
            self._search(attacker, victim, ranking_options={"ranker": "nothing"}),
        ]))  # fmt: skip
        yield Probe("extra-member", "collection", "Members that name another store or rows.", each(
            self._search(attacker, victim, **more) for more in (
                {"vector_store_ids": [name]}, {"vector_store_id": name}, {"store": name},
                {"file_ids": ids}, {"tenant": victim}, {"user": victim}, {"rewrite_query": True},
            )
        ))  # fmt: skip
        yield Probe("identity-header", "identity", "A header that names the other tenant.", each(
            Request(attacker, "POST", f"{own}/search", self._search(attacker, victim).body,
                    {header: victim})
            for header in (*IDENTITY_HEADERS, "openai-organization", "openai-project")
        ))  # fmt: skip
        yield Probe("files", "enumeration", "The files behind a store.", each([
            Request(attacker, "GET", path) for path in (
                f"{own}/files?limit=100", f"{other}/files?limit=100", "/v1/files",
                "/v1/vector_stores", other,
                *(f"{place}/files/{one}/content" for place in (own, other) for one in ids[:2]),
                *(f"/v1/files/{one}/content" for one in ids[:2]),
            )
        ]))  # fmt: skip
        search = Request(attacker, "POST", f"{own}/search", body)
        yield Probe("attach-file", "id", "Another's file, attached to the own store.", tuple(
            (json_request(attacker, f"{own}/files", {"file_id": one}), search,
             Request(attacker, "DELETE", f"{own}/files/{one}")) for one in ids[:2]
        ))  # fmt: skip
        asked = Request(victim, "POST", f"{other}/search", body)
        again, mine = (Request(attacker, "POST", f"{place}/search", body) for place in (other, own))
        yield Probe("cache", "cache", "A question that its owner asked before.",
                    ((asked, again, again), (asked, mine, mine)))  # fmt: skip
        if own == other:
            return
        yield Probe("listing", "enumeration", "Lists of stores.", each(
            Request(attacker, "GET", path) for path in (
                "/v1/vector_stores", "/v1/vector_stores?limit=100", "/vector_stores")
        ), (name,))  # fmt: skip
        yield conditional(asked, attacker)
        yield Probe("cross-collection", "collection", "Another tenant's store by its id.",
                    each([again]))  # fmt: skip
        yield Probe("collection-name", "name", "The same, variously spelled.", each(
            Request(attacker, "POST", f"/v1/vector_stores/{spelling}/search", body)
            for spelling in name_variants(name)
        ))  # fmt: skip
        yield Probe("path-traversal", "name", "A path that leads out of the own store.", each(
            Request(attacker, "POST", f"{own}/{way}{quote(name)}/search", body)
            for way in ("../", "%2e%2e/", "..%2f", "%2e%2e%2f", "..%252f", "..;/", "files/../../")
        ))  # fmt: skip

    def _ids(self, tenant: str) -> list[str]:
        return [canary.id for canary in self.scene.planted(tenant)]

    def _search(self, tenant: str, about: str, /, **more: Any) -> Request:
        body = {"query": question(about), "max_num_results": self.target.top_k, **more}
        return json_request(tenant, f"{self._at(tenant)}/search", body)

    def _at(self, tenant: str) -> str:
        return f"/v1/vector_stores/{quote(self.target.tenants[tenant].collection, safe='')}"
