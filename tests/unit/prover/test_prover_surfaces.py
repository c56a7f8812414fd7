"""The surfaces before a real window: exact answers, receipts, end users, and what is charged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.errors import UnknownAccount
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.chroma import collection_id
from ragaudit.prover.surfaces.queries import PRIVATE_DISTANCE
from ragaudit.prover.window.registrations import find
from scenario import ProverScenario
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
