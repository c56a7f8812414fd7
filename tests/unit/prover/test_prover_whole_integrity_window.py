"""A window without noise against the real verifier, receipts and verdict included."""

from typing import Any

import numpy as np
from exact_windows import ask, change, later, start, texts
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.accounts import AccountProof
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.lifecycle.asking import receipt_id
from ragaudit.prover.store import tables
from scenario import ProverScenario
from sqlalchemy import update
from whole_windows import checked, verdict


class TestWholeWindow:
    """From the opening to the verdict, with everything that a window without noise can have."""

    def test_it_passes(self, make_scenario: Any, embedder: Any) -> None:
        scenario = make_scenario(embedder=lambda _: embedder)
        same = [Document(f"same-{n}", "the same text for all") for n in range(5)]
        documents = [*texts(), *same]
        start(scenario, documents, versions=True, length_seconds=300)
        columns = scenario.policy().retrieval.public_columns
        wanted = Filter.from_json({"op": "ge", "key": "year", "value": 2021}, columns).text
        none = Filter.from_json({"op": "eq", "key": "year", "value": 1}, columns).text
        vector = np.random.default_rng(1).standard_normal(256).astype(np.float32)
        ties = "the same text for all"
        files = [
            ask(scenario, "bread", 3),
            ask(scenario, "bread", 3, filter=wanted),
            ask(scenario, "bread", 3, filter=none),
            ask(scenario, ties, 2),
            vector_asked(scenario, vector, 4),
        ]
        change(scenario, files[0].answer.documents[0].id, "another text")
        change(scenario, "same-1", None)
        scenario.service.driver.checkpoint("w1")
        scenario.clock.at(scenario.policy().start + 70)
        files += [ask(scenario, "bread", 3), ask(scenario, ties, 2)]
        assert files[5].private.withdrawn and files[6].private.withdrawn
        scenario.service.refresher.mark_stale("one")
        assert scenario.service.refresher.refresh("w1", "one") == 2
        later(scenario, 140)
        files += [ask(scenario, "another text", 3), ask(scenario, ties, 2, filter=none)]
        files.append(ask(scenario, ties, 4))
        assert {file.public.query.version for file in files} == {1, 2}
        scenario.service.driver.checkpoint("w1")
        checked(scenario, files, embedder)
        early = count(scenario, "ada")
        assert (early.status_code, early.json()["type"]) == (425, "urn:ragaudit:problem:too-early")
        found = verdict(scenario)
        bad = [each for each in found["checks"] if each["status"] in {"FAIL", "NOT RUN"}]
        assert found["result"] == "PASS", bad
        assert found["claims"]["integrity"]["result"] == "PASS"
        assert found["claims"]["privacy"]["result"] == "NOT CLAIMED"
        assert found["counts"]["records"] == len(files)
        assert [check["id"] for check in found["checks"]][21:] == ["accounts"]
        # Of the finished window, and again of what is kept: the same bytes.
        shown = [count(scenario, name).content for name in ("ada", "bob", "ada")]
        assert shown[0] == shown[2]
        proofs = [AccountProof.parse(data) for data in shown]
        for proof in proofs:
            proof.verify(scenario.policy())
        assert proofs[0].records == tuple(file.public.index for file in files)
        # bob is an account of the service that never registered in this window.
        assert proofs[1].records is None
        # Receipts of a finished window are the account's as before.
        receipt = receipt_id(files[3])
        assert scenario.service.asking.receipt(scenario.account("ada"), receipt) == files[3]
        # As if the process had ended between the record and its hand-over.
        with scenario.service.store.write() as connection:
            connection.execute(update(tables.entry).values(ties=None))
        again = scenario.service.asking.receipt(scenario.account("ada"), receipt)
        assert again.private.ties is not None and again.answer == files[3].answer
        assert scenario.service.asking.receipt(scenario.account("ada"), receipt) == again


def count(scenario: ProverScenario, name: str) -> Any:
    return scenario.api.get("/v1/windows/w1/account/count", headers=scenario.headers(name))


def test_a_policy_without_the_index_has_no_such_proofs(make_scenario: Any) -> None:
    scenario = make_scenario()
    start(scenario, texts(), account_index=False)
    assert b"account_index" not in scenario.policy().canonical
    refused = count(scenario, "ada")
    assert (refused.status_code, refused.json()["type"]) == (
        409,
        "urn:ragaudit:problem:wrong-state",
    )
    assert "no account index" in refused.json()["detail"]


def vector_asked(scenario: ProverScenario, vector: Any, top_k: int) -> ReceiptFile:
    body = {"kind": "vector", "vector": b64_encode(float32_bytes(vector.tolist())), "top_k": top_k}
    answer = scenario.post("/v1/windows/w1/query", "ada", body)
    assert answer.status_code == 200, answer.text
    return ReceiptFile.parse(answer.content)
