"""The surfaces before a real window: exact answers, receipts, end users, and what is charged."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import jwt
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.errors import BackendUnavailable, MalformedQuery, UnknownAccount
from ragaudit.prover.lifecycle.retention import Export
from ragaudit.prover.settings import DelegationSettings, LimitSettings
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.caller import named_user, names_user
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.surfaces.prover_port import ServicePort
from ragaudit.prover.surfaces.queries import PRIVATE_DISTANCE
from ragaudit.prover.window.registrations import find
from scenario import ProverScenario
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface_app import serving
from surface_window import CHROMA, NOISED, SURFACES, VECTOR, WINDOW, logged, start, texts


def receipt(scenario: ProverScenario, answer: Any, account: str = "ada") -> ReceiptFile:
    name = answer.headers["Ragaudit-Receipt"]
    found = scenario.api.get(f"/v1/receipts/{name}", headers=scenario.headers(account))
    assert found.status_code == 200, found.text
    return ReceiptFile.parse(found.content)


def ask(scenario: ProverScenario, surface: str, account: str = "ada", **headers: str) -> Any:
    """The same question on a surface: three rows in English; a vector, or a text."""
    where = [{"name": ["lang"], "comparison_operator": "is", "value": "en"}]
    body: dict[str, Any]
    match surface:
        case "openai":
            path, body = "/v1/vector_stores/handbook/search", {
                "query": "bread", "max_num_results": 3,
                "filters": {"type": "eq", "key": "lang", "value": "en"},
            }  # fmt: skip
        case "dify":
            path, body = "/retrieval", {
                "knowledge_id": "handbook", "query": "bread",
                "retrieval_setting": {"top_k": 3, "score_threshold": 0.0},
                "metadata_condition": {"conditions": where},
            }  # fmt: skip
        case "chroma":
            path, body = f"{CHROMA}/{collection_id('handbook')}/query", {
                "query_embeddings": [VECTOR], "n_results": 3, "where": {"lang": "en"},
                "include": ["distances", "metadatas", "documents", "embeddings"],
            }  # fmt: skip
        case _:
            path, body = "/collections/handbook/points/query", {
                "query": VECTOR, "limit": 3, "with_payload": True, "with_vector": True,
                "filter": {"must": [{"key": "metadata.lang", "match": {"value": "en"}}]},
            }  # fmt: skip
    return scenario.api.post(path, json=body, headers={**scenario.headers(account), **headers})


def rows_of(surface: str, answer: Any) -> list[tuple[str, float]]:
    """Ids and scores of what came back."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    match surface:
        case "openai":
            return [(row["file_id"], row["score"]) for row in body["data"]]
        case "dify":
            return [(row["title"], row["score"]) for row in body["records"]]
        case "chroma":
            distances = [1 - distance for distance in body["distances"][0]]
            return list(zip(body["ids"][0], distances, strict=True))
        case _:
            return [(row["id"], row["score"]) for row in body["result"]["points"]]


def exact(scenario: ProverScenario, file: ReceiptFile) -> list[tuple[str, float]]:
    """The best rows in English over the committed integers, by an obvious route."""
    index = scenario.service.open_windows.get("w1").indexes["one"]
    e = np.array(file.private.openings.embedding, dtype=np.int64)
    scores = index.vectors.astype(np.int64) @ e
    english = [at for at, name in enumerate(index.ids) if int(name.split("-")[1]) % 2]
    ranked = sorted((-int(scores[at]), at) for at in english)[:3]
    return [(index.ids[at], -score / scenario.policy().squared_norm) for score, at in ranked]


def test_every_surface_answers_the_exact_top_k(scenario: ProverScenario) -> None:
    start(scenario, WINDOW)
    for surface in SURFACES["enabled"]:
        before = logged(scenario)
        answer = ask(scenario, surface)
        rows, file = rows_of(surface, answer), receipt(scenario, answer)
        wanted = exact(scenario, file)
        assert [name for name, _ in rows] == [name for name, _ in wanted]
        assert [score for _, score in rows] == pytest.approx([score for _, score in wanted])
        # The same question through another interface is the same request: a retry.
        assert logged(scenario) == before + (surface in ("openai", "chroma"))
        # Nobody else's, of whatever tenant.
        name = answer.headers["Ragaudit-Receipt"]
        other = scenario.api.get(f"/v1/receipts/{name}", headers=scenario.headers("cyd"))
        assert other.status_code == 404


def test_what_an_answer_shows_is_what_its_receipt_shows(scenario: ProverScenario) -> None:
    start(scenario, WINDOW)
    answer = ask(scenario, "chroma")
    body, file = answer.json(), receipt(scenario, answer)
    documents = file.answer.documents
    assert body["documents"] == [[each.content for each in documents]]
    assert body["metadatas"] == [[json.loads(each.attributes or "") for each in documents]]
    shown = np.array(body["embeddings"][0]) * scenario.policy().norm_bound
    assert shown == pytest.approx(np.array([row.vector for row in file.private.rows]))
    names = body["ids"][0]
    fetch = f"{CHROMA}/{collection_id('handbook')}/get"
    every = {"ids": [each.id for each in texts("one")], "include": ["documents", "embeddings"]}
    found = scenario.post(fetch, "ada", every).json()
    assert sorted(found["ids"]) == sorted(names)
    assert {*found["documents"]} == {*body["documents"][0]}
    assert found["embeddings"][0] in body["embeddings"][0]


def test_a_private_window_shows_constants_in_the_order_of_rows(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, **NOISED})
    for surface in SURFACES["enabled"]:
        rows = rows_of(surface, ask(scenario, surface))
        # In steps of a bit: 1 - distance is not exactly what was sent.
        constant = 1 - PRIVATE_DISTANCE if surface == "chroma" else 1.0
        assert [score for _, score in rows] == [constant] * 3
        places = [int(name.split("-")[1]) for name, _ in rows]
        order = [
            each.position for each in receipt(scenario, ask(scenario, surface)).answer.documents
        ]
        assert len(places) == 3 and order == sorted(order)


def test_a_retry_is_the_same_answer_and_costs_nothing(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, **NOISED})
    first = ask(scenario, "qdrant")
    before = logged(scenario)
    again = ask(scenario, "qdrant")
    assert again.content == first.content and again.headers == first.headers
    assert logged(scenario) == before


def test_bad_input_is_neither_logged_nor_charged(scenario: ProverScenario) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    search, query = "/v1/vector_stores/handbook/search", "/collections/handbook/points/query"
    batch = {"searches": [{"query": VECTOR}, {"query": [0.0] * 16}]}
    for path, body in (
        (search, {"query": "bread", "max_num_results": 5}),
        (search, {"query": ["bread", ""]}),
        (search, {"query": "bread", "filters": {"type": "eq", "key": "n", "value": 1}}),
        (search, {"query": "x" * 9000}),
        (query, {"query": VECTOR[:-1]}),
        (f"{query}/batch", batch),
        (f"{CHROMA}/{collection_id('handbook')}/query", {"query_embeddings": [VECTOR, [0.0] * 16]}),
        ("/v1/vector_stores/manual/search", {"query": "bread"}),
    ):
        answer = scenario.post(path, "ada", body)
        assert answer.status_code in (400, 404), answer.text
    assert logged(scenario) == before
    assert scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("ada")).json()[
        "remaining"
    ] == 30  # fmt: skip


def test_long_bodies_are_answered_in_the_surfaces_shape(scenario: ProverScenario) -> None:
    start(scenario, WINDOW, max_body_bytes=100_000)
    path = "/v1/vector_stores/handbook/search"
    # Longer than a message of the prover's own interface may be.
    answer = scenario.post(path, "ada", {"query": "x" * 80_000})
    assert answer.status_code == 400
    answer = scenario.post(path, "ada", {"query": "x" * 120_000})
    assert answer.status_code == 413 and set(answer.json()) == {"error"}
    answer = scenario.post("/v1/windows/w1/query", "ada", {"query": "x" * 80_000})
    assert answer.status_code == 413 and answer.json()["status"] == 413


class TestEndUsers:
    """Keys that name their end users."""

    def test_by_a_header(self, scenario: ProverScenario) -> None:
        delegation = {"accounts": ["ada"], "register_tenants": ["one"]}
        start(scenario, WINDOW, delegation=delegation)
        user = {"Ragaudit-User": "grace@example.org"}
        waiting = ask(scenario, "openai", **user)
        # Registered now, and active from the next instant on, which the refusal names.
        assert waiting.status_code == 503 and int(waiting.headers["Retry-After"]) >= 1
        assert set(waiting.json()) == {"error", "refusal"}
        scenario.service.driver.checkpoint("w1")
        scenario.clock.at(scenario.policy().start + 101)
        scenario.service.driver.step("w1")
        answer = ask(scenario, "openai", **user)
        assert answer.status_code == 200, answer.text
        name = answer.headers["Ragaudit-Receipt"]
        path = f"/v1/receipts/{name}"
        assert scenario.api.get(path, headers=scenario.headers("ada")).status_code == 404
        headers = {**scenario.headers("ada"), **user}
        file = ReceiptFile.parse(scenario.api.get(path, headers=headers).content)
        live = scenario.service.open_windows.get("w1")
        assert file.public.query.pseudonym == live.pseudonym_of("ada", "grace@example.org")

    def test_the_application_disputes_for_them(self, scenario: ProverScenario) -> None:
        """They hold no API key: its dispute key is theirs, unless they have one of their own."""
        delegation = {"accounts": ["ada"], "register_tenants": ["one"]}
        start(scenario, WINDOW, delegation=delegation)
        shared, own = (PrivateKey.from_seed(bytes([n]) * 32).public.raw.hex() for n in (1, 2))
        accounts = scenario.service.accounts
        for user in ("alan", "mary"):  # before the application had a key
            accounts.add_end_user("ada", user, tenant="one")

        def keep(key: str, **user: str) -> int:
            headers, body = {**scenario.headers("ada"), **user}, {"dispute_key": key}
            return scenario.api.put("/v1/dispute-key", json=body, headers=headers).status_code

        assert (keep(shared), keep(own, **{"Ragaudit-User": "mary"})) == (200, 200)
        found = {}
        for name in ("grace", "alan"):
            asked = ask(scenario, "openai", **{"Ragaudit-User": name})
            assert asked.status_code == 503  # registered just now
            headers = {**scenario.headers("ada"), "Ragaudit-User": name}
            account = scenario.api.get("/v1/windows/w1/account", headers=headers).json()
            found[name] = account["dispute_key"]
        assert found == {"grace": shared, "alan": shared}
        kept = {each.user: each.dispute_key for each in accounts.all() if each.name == "ada"}
        assert {user: key and key.hex() for user, key in kept.items()} == {
            None: shared, "grace": shared, "alan": shared, "mary": own,
        }  # fmt: skip

    def test_unknown_ones_are_refused_unless_the_tenant_allows_it(
        self, scenario: ProverScenario
    ) -> None:
        start(scenario, WINDOW, delegation={"accounts": ["ada"], "register_tenants": ["two"]})
        before = logged(scenario)
        answer = ask(scenario, "openai", **{"Ragaudit-User": "grace"})
        assert answer.status_code == 403 and "unknown end user" in answer.text
        assert logged(scenario) == before
        assert [each.name for each in scenario.service.accounts.all()] == ["ada", "bob", "cyd"]

    def test_a_key_without_the_right_names_nobody(self, scenario: ProverScenario) -> None:
        delegation = {"accounts": ["ada"], "register_tenants": ["one", "two"]}
        start(scenario, WINDOW, delegation=delegation)
        for name in ("bob", "cyd"):
            answer = ask(scenario, "openai", name, **{"Ragaudit-User": "ada"})
            assert answer.status_code == 403

    def test_nobody_shares_a_name_with_an_end_user(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation={"accounts": ["ada", "bob"]})
        accounts = scenario.service.accounts
        # Neither an account of the operator's, however it is called, nor another one's end user.
        for name in ("grace", "one+grace", "ada+grace"):
            accounts.add("one", name)
        accounts.add_end_user("bob", "grace", tenant="one")
        answer = ask(scenario, "openai", **{"Ragaudit-User": "grace"})
        assert answer.status_code == 403 and "unknown end user" in answer.text
        accounts.add_end_user("ada", "grace", tenant="one")
        assert ask(scenario, "openai", **{"Ragaudit-User": "grace"}).status_code == 503
        accounts.add_end_user("ada", "bob", tenant="one")
        waiting = ask(scenario, "openai", **{"Ragaudit-User": "bob"})
        assert waiting.status_code == 503, "an end user had the registration of an account"
        with scenario.service.store.read() as connection:
            rows = [find(connection, "w1", each.id) for each in accounts.all()]
        seen = [row.pseudonym for row in rows if row is not None]
        assert len(set(seen)) == len(seen) == 4
        # An account of the operator's has a key, an end user none.
        for account in accounts.all():
            if account.user is None:
                accounts.rotate_key(account.name)
            with pytest.raises(UnknownAccount):
                accounts.rotate_key(Account("ada", "one", "grace").id)

    def test_by_a_token(self, make_scenario: Callable[..., ProverScenario], tmp_path: Path) -> None:
        scenario, key = make_scenario(), ec.generate_private_key(ec.SECP256R1())
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
        keys = {"keys": [{**public, "kid": "k1", "alg": "ES256", "use": "sig"}]}
        (tmp_path / "jwks.json").write_text(json.dumps(keys))
        tokens = {
            "issuer": "https://login.example", "audience": "rag",
            "jwks_file": tmp_path / "jwks.json",
        }  # fmt: skip
        delegation = {"accounts": ["ada"], "header": None, "jwt": tokens}
        start(scenario, WINDOW, delegation=delegation)
        scenario.service.accounts.add_end_user("ada", "grace", tenant="one")
        now = scenario.clock() // 1000
        good = {
            "sub": "grace", "iss": "https://login.example", "aud": "rag", "exp": now + 60,
        }  # fmt: skip

        def answered(claims: dict[str, Any], signer: Any = key, kid: str = "k1") -> Any:
            token = jwt.encode(claims, signer, "ES256", headers={"kid": kid})
            return ask(scenario, "openai", **{"Ragaudit-User-Token": token})

        assert answered(good).status_code == 503  # registered just now
        for wrong in (
            {**good, "exp": now - 60},
            {**good, "nbf": now + 60},
            {**good, "exp": "never"},
            {**good, "iss": "https://other.example"},
            {**good, "aud": "other"},
            {**good, "sub": ""},
            {name: value for name, value in good.items() if name != "exp"},
            {name: value for name, value in good.items() if name != "sub"},
        ):
            assert answered(wrong).status_code == 401, wrong
        assert answered(good, ec.generate_private_key(ec.SECP256R1())).status_code == 401
        assert answered(good, kid="k2").status_code == 401
        unsigned = jwt.encode(good, "", "none", headers={"kid": "k1"})
        shared = jwt.encode(good, "s" * 32, "HS256", headers={"kid": "k1"})
        for token in (unsigned, shared, "x", "x.y.z"):
            answer = ask(scenario, "openai", **{"Ragaudit-User-Token": token})
            assert answer.status_code == 401 and token not in answer.text
        # The header that these settings do not name means nothing.
        assert ask(scenario, "openai", **{"Ragaudit-User": "grace"}).status_code == 200


# What an application could try against the surfaces of a real window.

BATCH = "/collections/handbook/points/query/batch"


class Store:
    """Takes writes, and notes in which order they and the marks come."""

    def __init__(self, *, fails: bool = False, full: bool = False) -> None:
        self.events: list[str] = []
        self._fails, self._full = fails, full
        self.backend = self.refresher = self

    def mark_stale(self, tenant: str) -> None:
        if self._full:
            raise BackendUnavailable("no room")
        self.events.append(f"{tenant} is stale")

    def forward_write(self, tenant: str, operation: str, body: bytes) -> Any:
        self.events.append("write")
        if self._fails:
            raise BackendUnavailable("the answer is lost")
        return SimpleNamespace(status=201, body=body)


def port(store: Store) -> ServicePort:
    return ServicePort(store)  # type: ignore[arg-type]


class TestWrites:
    """A write is marked before it is passed on, so that no end of the process hides it."""

    def test_marked_before_and_after(self) -> None:
        store = Store()
        assert port(store).forward("one", "add", b"{}").status == 201
        # After, too: a version that is read between mark and write has the mark, not the write.
        assert store.events == ["one is stale", "write", "one is stale"]

    def test_marked_whatever_comes_of_it(self) -> None:
        store = Store(fails=True)
        with pytest.raises(BackendUnavailable):
            port(store).forward("one", "add", b"{}")
        assert store.events == ["one is stale", "write", "one is stale"]

    def test_without_a_mark_nothing_is_written(self) -> None:
        store = Store(full=True)
        with pytest.raises(BackendUnavailable):
            port(store).forward("one", "add", b"{}")
        assert store.events == []


@pytest.mark.parametrize("length", [253, 254, 255])
def test_a_batch_whose_keys_become_too_long_costs_nothing(
    scenario: ProverScenario, length: int
) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    searches = [{"query": [1.0 + n, *VECTOR[1:]], "limit": 1} for n in range(11)]
    headers = {**scenario.headers("ada"), "Idempotency-Key": "k" * length}
    answer = scenario.api.post(BATCH, json={"searches": searches}, headers=headers)
    # The eleventh key has two digits: ten queries would be charged before it is refused.
    assert answer.status_code == 400 and logged(scenario) == before


class TestEndUsersWhoAttack:
    """Names of end users are invented by whoever sends them."""

    DELEGATION: ClassVar[dict[str, Any]] = {"accounts": ["ada"], "register_tenants": ["one", "two"]}

    def search(self, scenario: ProverScenario, *users: bytes, account: str = "ada") -> Any:
        given = [
            (name.encode(), value.encode()) for name, value in scenario.headers(account).items()
        ]
        return scenario.api.post(
            "/v1/vector_stores/handbook/search",
            json={"query": "bread", "max_num_results": 1},
            headers=[*given, *((b"Ragaudit-User", user) for user in users)],
        )

    def accounts(self, scenario: ProverScenario) -> list[str | tuple[str, str]]:
        return [
            each.name if each.user is None else (each.name, each.user)
            for each in scenario.service.accounts.all()
        ]

    def test_no_more_of_them_than_slots(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        for n in range(2):
            assert self.search(scenario, b"user%d" % n).status_code == 503
        # Four slots, two of which were taken before.
        for n in range(2, 5):
            answer = self.search(scenario, b"user%d" % n)
            assert answer.status_code == 409 and "no slot is left" in answer.text
        assert self.accounts(scenario) == ["ada", ("ada", "user0"), ("ada", "user1"), "bob", "cyd"]

    def test_paths_that_ask_nothing_make_no_more_of_them(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        for n in range(5):
            headers = {**scenario.headers("ada"), "Ragaudit-User": f"user{n}"}
            for path in (
                "/collections",
                "/collections/handbook/points/scroll",
                "/v1/receipts/w1.0",
            ):
                scenario.api.get(path, headers=headers)
        assert len(self.accounts(scenario)) == 5

    def test_two_of_them_are_refused(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        before = logged(scenario)
        answer = self.search(scenario, b"grace", b"hedy")
        assert answer.status_code == 400 and "twice" in answer.text
        assert self.search(scenario, b"grace", b"grace").status_code == 400
        assert self.search(scenario, b"grace", account="bob").status_code == 403
        assert logged(scenario) == before and len(self.accounts(scenario)) == 3

    def test_asked_by_the_provers_own_path_too(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        before = logged(scenario)
        for account, status in (("ada", 503), ("bob", 409)):
            answer = scenario.api.post(
                "/v1/windows/w1/query",
                json={"query": "bread", "kind": "text", "top_k": 1},
                headers={**scenario.headers(account), "Ragaudit-User": "grace"},
            )
            # Neither asks in its own name: grace waits to be activated, and bob may name nobody.
            assert answer.status_code == status, answer.text
        # Her registration, and no record.
        assert logged(scenario) == before + 1 and ("ada", "grace") in self.accounts(scenario)

    def test_its_account_and_registration_are_its_own(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        named = {"Ragaudit-User": "grace"}
        shown = {}
        for account, more in (("ada", {}), ("ada", named), ("bob", named)):
            headers = {**scenario.headers(account), **more}
            if account == "bob":
                proof = scenario.api.get("/v1/windows/w1/account/count", headers=headers)
                assert proof.status_code == 409, "an account that may name nobody did"
            answers = [
                scenario.api.get("/v1/windows/w1/account", headers=headers),
                scenario.api.post("/v1/windows/w1/registration", json={}, headers=headers),
            ]
            if account == "bob":
                assert [each.status_code for each in answers] == [409, 409]
                continue
            assert [each.status_code for each in answers] == [200, 200], answers[1].text
            own, registered = (each.json() for each in answers)
            assert own["pseudonym"] == registered["pseudonym"]
            shown[len(more)] = own["pseudonym"]
        live = scenario.service.open_windows.get("w1")
        assert shown == {
            0: live.pseudonym_of("ada").hex(),
            1: live.pseudonym_of("ada", "grace").hex(),
        }

    def test_its_lines_of_the_audit_stream_and_its_export_are_its_own(
        self, scenario: ProverScenario, tmp_path: Path
    ) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        stream = tmp_path / "audit.jsonl"
        settings = scenario.settings
        operation = settings.operation.model_copy(update={"audit_file": stream})
        scenario.settings = settings.model_copy(update={"operation": operation})
        scenario.restart()
        with scenario.service.observer:
            for account, user in (("ada", b"grace"), ("ada", b""), ("bob", b"grace")):
                self.search(scenario, *([user] if user else []), account=account)
        users = [json.loads(line)["user"] for line in stream.read_text().splitlines()]
        grace = {"name": "ada", "effective": {"name": "grace"}}
        # Who tries to name somebody, and may not, is in it too.
        assert users == [grace, {"name": "ada"}, {"name": "bob"}]
        file = io.BytesIO()
        said = AccessBody.from_json({"reader": "B. Ito", "reason": "a test"})
        key, clock = scenario.service.retention.key, scenario.clock
        Export(scenario.service.store, key, clock).write("ada", (), said, file, user="grace")
        live = scenario.service.open_windows.get("w1")
        assert live.pseudonym_of("ada", "grace").hex() in file.getvalue().decode()
        with pytest.raises(UnknownAccount, match="end user"):
            Export(scenario.service.store, key, clock).write("bob", (), said, file, user="grace")

    def test_one_of_them_by_any_way(self, scenario: ProverScenario) -> None:
        start(scenario, WINDOW, delegation=self.DELEGATION)
        self.search(scenario, "Zoë".encode())
        assert ("ada", "Zoë") in self.accounts(scenario)


def test_two_idempotency_keys_are_refused(scenario: ProverScenario) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    given = [*scenario.headers("ada").items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = scenario.api.post(
        "/v1/vector_stores/handbook/search", json={"query": "bread"}, headers=given
    )
    assert answer.status_code == 400 and logged(scenario) == before


@pytest.mark.parametrize(
    "raw",
    [
        [(b"ragaudit-user", b"\xff")],
        [(b"ragaudit-user", b"a"), (b"ragaudit-user", b"a")],
        [(b"ragaudit-user", b"a"), (b"ragaudit-user-token", b"t")],
        [(b"ragaudit-user-token", b"t"), (b"ragaudit-user-token", b"t")],
    ],
)
def test_a_user_has_one_name(raw: list[tuple[bytes, bytes]]) -> None:
    keys = {"issuer": "i", "audience": "a", "jwks_url": "http://keys.example"}
    settings = DelegationSettings.model_validate(
        {"accounts": ("ada",), "jwt": keys, "header": "Ragaudit-User"}
    )
    with pytest.raises(MalformedQuery):
        named_user(settings, Headers(raw=raw), lambda token: token)
    good = Headers(raw=[(b"ragaudit-user", "Zoë".encode())])
    assert named_user(settings, good, lambda token: token) == "Zoë"
    token = Headers(raw=[(b"ragaudit-user-token", b"t")])
    assert named_user(settings, token, lambda given: f"of {given}") == "of t"


def test_beside_tokens_a_bare_name_counts_only_where_it_was_asked_for() -> None:
    keys = {"issuer": "i", "audience": "a", "jwks_url": "http://keys.example"}
    for given, header in (
        ({}, "Ragaudit-User"),
        ({"jwt": None}, "Ragaudit-User"),
        ({"jwt": keys}, None),
        ({"jwt": keys, "header": "X-User"}, "X-User"),
        ({"header": None}, None),
    ):
        settings = DelegationSettings.model_validate(given)
        assert settings.header == header, given
        # As settings are written and read again.
        assert DelegationSettings.model_validate(settings.model_dump()).header == header
    only_tokens = DelegationSettings.model_validate({"jwt": keys})
    assert not names_user(only_tokens, Headers({"Ragaudit-User": "grace"}))
    assert names_user(only_tokens, Headers({"Ragaudit-User-Token": "t"}))


# What clients of others do by themselves: they ask again after an answer that was lost, and wait
# where they are told to.


class Gateway:
    """Passes requests on, notes what was answered to POST, and loses the first answers to it.

    Attributes:
        cut: whether the connection ends within a lost answer; otherwise it becomes a 502.
    """

    def __init__(self, app: ASGIApp, lost: int, *, cut: bool = False) -> None:
        self.app = app
        self.lost = lost
        self.cut = cut
        self.receipts: list[str] = []
        self.told: list[tuple[int, str | None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def passed(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["method"] == "POST":
                headers = {name.lower(): value.decode() for name, value in message["headers"]}
                if b"ragaudit-receipt" in headers:
                    self.receipts.append(headers[b"ragaudit-receipt"])
                if self.lost and message["status"] < 300:
                    self.lost -= 1
                    message = {**message, "status": 502}
                    if self.cut:
                        self.told.append((0, None))
                        # The server ends the connection of an application that fails in an answer.
                        await send({**message, "status": 200})
                        raise ConnectionAbortedError
                wait = headers.get(b"retry-after")
                self.told.append((message["status"], wait))
            await send(message)

        await self.app(scope, receive, passed)


@contextmanager
def openai_client(scenario: ProverScenario, lost: int) -> Iterator[tuple[Any, Gateway]]:
    openai = pytest.importorskip("openai", reason="openai is missing")
    gateway = Gateway(scenario.api.app, lost)
    with (
        serving(gateway, lifespan="off") as port,
        openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=scenario.keys["ada"]) as it,
    ):
        yield it, gateway


@pytest.mark.slow
def test_openais_library_gets_the_answer_that_was_lost(scenario: ProverScenario) -> None:
    """It repeats by itself, twice, and names no key for it."""
    start(scenario, WINDOW)
    before = logged(scenario)
    with openai_client(scenario, lost=2) as (client, gateway):
        page = client.vector_stores.search("handbook", query="bread", max_num_results=3)
    assert [status for status, _ in gateway.told] == [502, 502, 200]
    assert len(page.data) == 3
    assert gateway.receipts == [page.model_extra["ragaudit_receipts"][0]] * 3
    assert logged(scenario) == before + 1


@pytest.mark.slow
def test_openais_library_waits_and_is_answered(scenario: ProverScenario) -> None:
    """Whoever asks too often hears when to come again, and its program sees nothing of it."""
    limits = LimitSettings(account_per_second=1)
    scenario.settings = scenario.settings.model_copy(update={"limits": limits})
    start(scenario, WINDOW)
    before = logged(scenario)
    with openai_client(scenario, lost=0) as (client, gateway):
        # One of three within a second is too many, however slow the machine is.
        for text in ("bread", "butter", "salt", "honey"):
            assert client.vector_stores.search("handbook", query=text).data
    waits = [wait for status, wait in gateway.told if status == 429]
    assert set(waits) <= {"1"} and logged(scenario) == before + 4


def test_a_budget_that_is_used_up_says_when_to_come_again(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "queries_per_account": 1})
    openai = pytest.importorskip("openai", reason="openai is missing")
    with openai_client(scenario, lost=0) as (client, gateway):
        assert client.vector_stores.search("handbook", query="bread").data
        with pytest.raises(openai.RateLimitError) as caught:
            client.with_options(max_retries=0).vector_stores.search("handbook", query="butter")
        # What was answered is answered again, whatever is left.
        assert client.vector_stores.search("handbook", query="bread").data
    assert gateway.told[1][0] == 429 and int(str(gateway.told[1][1])) > 1
    assert "used up" in caught.value.body["message"]


def chroma(port: int, key: str) -> Any:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is missing")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    headers = {"x-chroma-token": key}
    client = chromadb.HttpClient(host="127.0.0.1", port=port, headers=headers, settings=settings)
    return client.get_collection("handbook", embedding_function=None)


def ask_chroma(port: int, key: str) -> Callable[[list[float]], list[str]]:
    collection = chroma(port, key)
    return lambda vector: list(
        collection.query(query_embeddings=[vector], n_results=3)["ids"][0]
    )  # fmt: skip


def ask_qdrant(port: int, key: str) -> Callable[[list[float]], list[str]]:
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    client = qdrant_client.QdrantClient(
        url=f"http://127.0.0.1:{port}", api_key=key, check_compatibility=False
    )
    return lambda vector: [
        point.payload["page_content"]
        for point in client.query_points("handbook", query=vector, limit=3).points
    ]


# The whole answer as the text of an error, its status, or the end of the connection.
LOST = r"ids|502|peer closed"
# Chroma's client leaves its connections to the collector of garbage, Qdrant's warns of plain HTTP.
QUIET = pytest.mark.filterwarnings("ignore")


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("library", [ask_chroma, ask_qdrant])
def test_clients_of_stores_leave_it_to_the_program_to_ask_again(
    scenario: ProverScenario, library: Any, cut: bool
) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    gateway = Gateway(scenario.api.app, lost=1, cut=cut)
    with serving(gateway, lifespan="off") as port:
        ask = library(port, scenario.keys["ada"])
        with pytest.raises(Exception, match=LOST):
            ask(VECTOR)
        # Nothing was sent twice; what the program asks again is answered from the record.
        assert len(gateway.told) == 1 and logged(scenario) == before + 1
        assert len(ask(VECTOR)) == 3
    assert len(gateway.told) == 2 and len(set(gateway.receipts)) == 1
    assert logged(scenario) == before + 1


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("library", [ask_chroma, ask_qdrant])
def test_clients_of_stores_raise_when_the_budget_is_used_up(
    scenario: ProverScenario, library: Any
) -> None:
    start(scenario, {**WINDOW, "queries_per_account": 1})
    gateway = Gateway(scenario.api.app, lost=0)
    with serving(gateway, lifespan="off") as port:
        ask = library(port, scenario.keys["ada"])
        assert len(ask(VECTOR)) == 3
        with pytest.raises(Exception, match=r"used up|Too Many") as caught:
            ask(VECTOR[::-1])
        assert len(ask(VECTOR)) == 3
    # They neither wait nor repeat. Qdrant's says how long the program should wait.
    assert [status for status, _ in gateway.told] == [200, 429, 200]
    wait = int(str(gateway.told[1][1]))
    assert wait > 1
    if library is ask_chroma:
        assert type(caught.value).__name__ == "RateLimitError" and "used up" in str(caught.value)
    else:
        assert type(caught.value).__name__ == "ResourceExhaustedResponse"
        assert caught.value.retry_after_s == wait  # type: ignore[attr-defined]
