"""Windows without noise: exact answers, filters, vectors, withdrawn documents, retries."""

import json
from typing import Any

import numpy as np
import pytest
from databases import ON_EACH_ENGINE
from exact_windows import COLUMNS, EXACT, ask, change, exact, shown, start, texts
from ragaudit.circuits.quantise import quantise
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request, float32_bytes
from ragaudit.prover.answering import mechanism
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import MalformedDocument, NoWindowOpen, UnknownRecord
from ragaudit.prover.lifecycle.asking import receipt_id
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import Place, ties_of
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE


class TestAnswers:
    """What is answered is the exact top K of the committed integers."""

    def test_best_first_with_scores(self, scenario: ProverScenario) -> None:
        start(scenario)
        for query, top_k in (("bread", 1), ("water and salt", 3), ("x", 4)):
            file = ask(scenario, query, top_k)
            assert shown(file) == exact(scenario, file, lambda _: True)
            assert file.private.ties is None and not file.private.withdrawn
            first = file.answer.documents[0]
            assert first.attributes == texts()[first.position].attributes
            assert json.loads(first.columns).keys() <= COLUMNS.keys()

    def test_filters_are_masks(self, scenario: ProverScenario) -> None:
        start(scenario)
        policy = scenario.policy()
        years = [json.loads(each.attributes or "{}").get("year") for each in texts()]
        for value, passes in (
            ({"op": "ge", "key": "year", "value": 2021}, lambda at: (years[at] or 0) >= 2021),
            ({"op": "ne", "key": "year", "value": 2020}, lambda at: years[at] != 2020),
            ({"op": "eq", "key": "year", "value": 1999}, lambda _: False),
        ):
            text = Filter.from_json(value, policy.retrieval.public_columns).text
            file = ask(scenario, "bread", 4, filter=text)
            assert shown(file) == exact(scenario, file, passes)
            assert file.private.openings.filter == text

    def test_vectors_are_quantised_exactly(self, scenario: ProverScenario) -> None:
        start(scenario)
        values = np.random.default_rng(4).standard_normal(16).astype(np.float32)
        body = {"vector": b64_encode(float32_bytes(values.tolist())), "top_k": 3}
        answer = scenario.post("/v1/windows/w1/query", "ada", body)
        assert answer.status_code == 200, answer.text
        file = ReceiptFile.parse(answer.content)
        assert list(file.private.openings.embedding) == quantise(values, 4095).tolist()
        assert shown(file) == exact(scenario, file, lambda _: True)

    def test_ties_are_all_selected_and_opened(self, scenario: ProverScenario) -> None:
        same = [Document(f"same-{n}", "one text for all") for n in range(6)]
        start(scenario, [*same, *texts(4)])
        file = ask(scenario, "one text for all", 2)
        assert shown(file) == exact(scenario, file, lambda _: True)
        assert len(file.private.selected) == 6
        assert file.private.ties is not None and len(file.private.ties.rows) == 4

    @pytest.mark.parametrize(
        ("limit", "words"), [("MAX_SELECTED", "too many rows tie"), ("MAX_UNSERVED_BYTES", "hold")]
    )
    def test_more_ties_than_a_receipt_can_hold_are_refused_and_cost_nothing(
        self, scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch, limit: str, words: str
    ) -> None:
        same = [Document(f"same-{n}", "one text for all") for n in range(6)]
        start(scenario, [*same, *texts(4)])
        monkeypatch.setattr(mechanism, limit, 5)
        log = scenario.service.open_windows.get("w1").log.entries
        before = log.head().size
        body = {"query": "one text for all", "top_k": 2}
        answer = scenario.post("/v1/windows/w1/query", "ada", body)
        assert answer.status_code in {400, 422} and words in answer.text, answer.text
        assert log.head().size == before

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"query": "x", "top_k": 5}, "1..4"),
            ({"query": "x", "top_k": 1, "filter": "{}"}, "not a node"),
            (
                {"query": "x", "top_k": 1, "filter": '{"key":"colour","op":"eq","value":1}'},
                "undeclared column",
            ),
            (
                {"query": "x", "top_k": 1, "filter": '{"key":"year","op":"eq","value":"x"}'},
                "another type",
            ),
            ({"vector": "AAAA", "top_k": 1}, "entries"),
            ({"vector": b64_encode(bytes(64)), "top_k": 1}, "zero"),
            ({"vector": b64_encode(b"\0\0\xc0\x7f" * 16), "top_k": 1}, ""),
            ({"vector": "*", "top_k": 1}, "base64"),
            ({"query": "x", "vector": "AAAA", "top_k": 1}, "one of them"),
            ({"top_k": 1}, "one of them"),
        ],
    )
    def test_bad_requests_cost_nothing(
        self, open_exact: ProverScenario, body: dict[str, Any], words: str
    ) -> None:
        before = open_exact.service.open_windows.get("w1").log.entries.head().size
        answer = open_exact.post("/v1/windows/w1/query", "ada", body)
        assert answer.status_code in {400, 422} and words in answer.text, answer.text
        assert open_exact.service.open_windows.get("w1").log.entries.head().size == before

    def test_no_anchors(self, open_exact: ProverScenario) -> None:
        answer = open_exact.post("/v1/windows/w1/registration", "bob", {"anchor": "00" * 32})
        assert answer.status_code == 409 and "without noise" in answer.text

    def test_a_column_of_another_type_is_refused(self, scenario: ProverScenario) -> None:
        bad = Document("bad-7", "some words", attributes_text({"year": "2020"}, "d"))
        StoredDocuments(scenario.service.store).add("one", [*texts(), bad], replace=True)
        scenario.service.create_window("w1", EXACT)
        with pytest.raises(MalformedDocument, match=r"bad-7.*year"):
            scenario.service.driver.step("w1")


@pytest.fixture
def open_exact(scenario: ProverScenario) -> ProverScenario:
    """An open window without noise."""
    start(scenario)
    return scenario


class TestWithdrawn:
    """A document that changed or is gone is served in neither form."""

    @pytest.mark.parametrize("content", [None, "another text"])
    def test_it_is_left_out_and_named(
        self, open_exact: ProverScenario, content: str | None
    ) -> None:
        first = ask(open_exact)
        gone = first.answer.documents[1]
        change(open_exact, gone.id, content)
        open_exact.clock.at(open_exact.policy().start + 70)
        again = ask(open_exact)
        assert shown(again) == [row for row in shown(first) if row[0] != gone.position]
        assert again.private.selected == first.private.selected
        assert [(row.position, row.id) for row in again.private.withdrawn] == [
            (gone.position, gone.id)
        ]

    def test_its_receipt_stays_as_it_was(self, open_exact: ProverScenario) -> None:
        first = ask(open_exact)
        for document in first.answer.documents:
            change(open_exact, document.id, None)
        assert ask(open_exact) == first
        account = open_exact.account("ada")
        receipt = receipt_id(first)
        assert open_exact.service.asking.receipt(account, receipt) == first

    def test_with_ties_its_score_is_shown(self, scenario: ProverScenario) -> None:
        same = [Document(f"same-{n}", "one text for all") for n in range(6)]
        start(scenario, [*same, *texts(4)])
        change(scenario, "same-0", None)
        file = ask(scenario, "one text for all", 2)
        assert [position for position, _ in shown(file)] == [1]
        [row] = file.private.withdrawn
        assert (row.position, row.score) == (0, file.answer.documents[0].score)
        assert file.private.ties is not None and len(file.private.ties.rows) == 5
        assert ask(scenario, "one text for all", 2) == file


class TestAnswersWithoutReceipts:
    """Surfaces answer with a receipt's id; the receipt is made later and is the same."""

    def test_the_receipt_is_that_of_a_query(self, open_exact: ProverScenario) -> None:
        service, account = open_exact.service, open_exact.account("ada")
        request = Request.of(open_exact.policy(), "bread", 3)
        asked = service.asking.ask(account, request)
        file = service.asking.receipt(account, asked.receipt)
        assert service.asking.query(account, request) == file and file.answer == asked.answer
        file.public.verify(open_exact.policy().keys.provider)
        assert [tuple(row) for row in asked.vectors.tolist()] == [
            row.vector for row in file.private.rows
        ]
        assert asked.norm_bound == open_exact.policy().norm_bound

    def test_a_ties_opening_is_stored_before_the_answer_leaves(
        self, scenario: ProverScenario
    ) -> None:
        start(scenario, [*(Document(f"same-{n}", "one text") for n in range(6)), *texts(4)])
        service, account = scenario.service, scenario.account("ada")
        asked = service.asking.ask(account, Request.of(scenario.policy(), "one text", 2))
        window, _, position = asked.receipt.rpartition(".")
        with service.store.read() as connection:
            stored = ties_of(connection, Place(window, int(position)))
        ties = service.asking.receipt(account, asked.receipt).private.ties
        assert ties is not None and ties.proof == stored


class TestRetries:
    """The same request is answered once."""

    def test_within_the_time_of_the_policy(self, open_exact: ProverScenario) -> None:
        first = ask(open_exact)
        assert ask(open_exact) == first
        assert ask(open_exact, top_k=2) != first
        start = open_exact.policy().start
        open_exact.clock.at(start + 59)
        assert ask(open_exact) == first
        open_exact.clock.at(start + 90)
        assert ask(open_exact).public.index != first.public.index

    def test_by_key(self, open_exact: ProverScenario) -> None:
        service, account = open_exact.service, open_exact.account("ada")
        request = Request.of(open_exact.policy(), "bread", 2)
        first = service.asking.query(account, request, idempotency_key="k1")
        open_exact.clock.at(open_exact.policy().start + 300)
        assert service.asking.query(account, request, idempotency_key="k1") == first
        other = service.asking.query(account, request, idempotency_key="k2")
        assert other.public.index > first.public.index
        headers = {**open_exact.headers("ada"), "Idempotency-Key": "k1"}
        body = {"query": "bread", "top_k": 2}
        answer = open_exact.api.post("/v1/windows/w1/query", json=body, headers=headers)
        assert answer.content == first.encode()
        wrong = open_exact.api.post(
            "/v1/windows/w1/query", json={**body, "top_k": 1}, headers=headers
        )
        assert wrong.status_code == 409 and "bread" not in wrong.text
        # Another account's key is its own.
        cyd = open_exact.account("cyd")
        assert (
            service.asking.query(cyd, request, idempotency_key="k1").public.index
            > first.public.index
        )

    def test_a_key_that_came_with_a_retry(self, open_exact: ProverScenario) -> None:
        service, account = open_exact.service, open_exact.account("ada")
        request = Request.of(open_exact.policy(), "bread", 2)
        first = service.asking.query(account, request)
        assert service.asking.query(account, request, idempotency_key="late") == first
        open_exact.clock.at(open_exact.policy().start + 300)
        assert service.asking.query(account, request, idempotency_key="late") == first

    @pytest.mark.parametrize("key", ["", "k" * 256])
    def test_keys_of_another_form(self, open_exact: ProverScenario, key: str) -> None:
        headers = {**open_exact.headers("ada"), "Idempotency-Key": key}
        body = {"query": "bread", "top_k": 2}
        answer = open_exact.api.post("/v1/windows/w1/query", json=body, headers=headers)
        assert answer.status_code == 400, answer.text

    def test_after_a_restart(self, open_exact: ProverScenario) -> None:
        first = ask(open_exact)
        open_exact.restart()
        assert ask(open_exact) == first


class TestReceiptsAndServed:
    """An account sees its own receipts and documents again, and nobody else's."""

    def test_receipts_by_id(self, open_exact: ProverScenario) -> None:
        file = ask(open_exact)
        name = f"w1.{file.public.index}"
        get = open_exact.api.get
        assert get(f"/v1/receipts/{name}", headers=open_exact.headers("ada")).content == (
            file.encode()
        )
        for other in (name + "0", "w1.0", "w2.3", "w1.", "w1", "w1.-1", "w1.\u0663"):
            answer = get(f"/v1/receipts/{other}", headers=open_exact.headers("ada"))
            assert answer.status_code == 404, answer.text
        assert get(f"/v1/receipts/{name}", headers=open_exact.headers("cyd")).status_code == 404
        assert get(f"/v1/receipts/{name}").status_code == 401

    def test_served_documents(self, open_exact: ProverScenario) -> None:
        service, ada = open_exact.service, open_exact.account("ada")
        assert service.asking.served(ada, ["one-0", "one-1"]) == []
        file = ask(open_exact)
        ids = [document.id for document in file.answer.documents]
        everything = [f"one-{n}" for n in range(12)]
        found = service.asking.served(ada, everything)
        assert [each.id for each in found] == sorted(ids, key=everything.index)
        by_id = {document.id: document for document in file.answer.documents}
        for each in found:
            assert each.content == by_id[each.id].content
            assert each.attributes == by_id[each.id].attributes
            assert each.columns == json.loads(by_id[each.id].columns)
        assert service.asking.served(open_exact.account("cyd"), everything) == []
        change(open_exact, ids[0], "another text")
        assert [each.id for each in service.asking.served(ada, ids)] == ids[1:]

    def test_the_window_that_is_asked(self, open_exact: ProverScenario) -> None:
        service, ada = open_exact.service, open_exact.account("ada")
        assert service.asking.policy(ada).window == "w1"
        assert service.asking.register(ada).account == "ada"
        bob = service.asking.register(open_exact.account("bob"))
        assert bob.anchor is None and service.asking.register(open_exact.account("bob")) == bob
        service.stop_window("w1")
        open_exact.drive(State.CLOSED)
        with pytest.raises(NoWindowOpen):
            service.asking.policy(ada)
        with pytest.raises(UnknownRecord):
            service.asking.receipt(ada, "w1.99")


class TestFilteredNoise:
    """A window with noise takes filters and vectors, too: noise is drawn for all rows."""

    def test_filters_and_vectors(self, scenario: ProverScenario) -> None:
        noised = {
            name: value
            for name, value in EXACT.items()
            if name not in {"privacy", "queries_per_account"}
        }
        start_noised = {"privacy": "gaussian", "sigma": "40", "epsilon_acc": None}
        store = StoredDocuments(scenario.service.store)
        store.add("one", texts(), replace=True)
        settings = {**noised, **start_noised, "queries_per_account": 6, "coalition_max": 2}
        scenario.service.create_window("w1", settings)
        scenario.drive(State.COUNTERSIGNED)
        scenario.register("ada")
        scenario.service.driver.checkpoint("w1")
        scenario.clock.at(scenario.policy().start)
        scenario.drive(State.OPEN)
        columns = scenario.policy().retrieval.public_columns
        wanted = Filter.from_json({"op": "eq", "key": "lang", "value": "en"}, columns)
        file = ask(scenario, "bread", 3, filter=wanted.text)
        assert 1 <= len(file.answer.documents) <= 3
        for document in file.answer.documents:
            assert document.score is None and json.loads(document.columns)["lang"] == "en"
        positions = [document.position for document in file.answer.documents]
        assert positions == sorted(positions) == list(file.private.selected)
        values = np.random.default_rng(4).standard_normal(16).astype(np.float32)
        body = {"vector": b64_encode(float32_bytes(values.tolist())), "top_k": 3}
        answer = scenario.post("/v1/windows/w1/query", "ada", body)
        assert answer.status_code == 200, answer.text
