"""What an anchored account gets for a claimed promise: stored at the close, the same ever after."""

from typing import Any

import pytest
from exact_windows import EXACT, change, texts
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import BackendUnavailable
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import Place, delivery_of
from scenario import ProverScenario
from whole_windows import finish, verdict

NOISED = {
    "privacy": "gaussian",
    "sigma": "40",
    "epsilon_acc": None,
    "queries_per_account": 6,
    "coalition_max": 2,
    "promise_life_seconds": 120,
    "claim_margin_seconds": 30,
}


@pytest.fixture
def claimed(scenario: ProverScenario) -> ProverScenario:
    """A window whose only record was promised, and claimed at the verifier."""
    StoredDocuments(scenario.service.store).add("one", texts(), replace=True)
    scenario.service.create_window("w1", {**EXACT, **NOISED})
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("bob", anchored=True)
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)
    body = {"query": "bread", "top_k": 3, "counter": 0}
    promise = scenario.post("/v1/windows/w1/promise", "bob", body)
    assert promise.status_code == 200, promise.text
    scenario.service.driver.step("w1")  # hands the registrations over
    claim = {"promise": promise.json(), "nonce": scenario.chains["bob"].nonce(0).hex()}
    taken = scenario.verifier.post("/v1/windows/w1/claims", json=claim)
    assert taken.status_code == 200, taken.text
    return scenario


def place(scenario: ProverScenario) -> Place:
    """Where the record stands: behind the opening and one registration."""
    return Place("w1", 2)


def stored(scenario: ProverScenario) -> Any:
    with scenario.service.store.read() as connection:
        return delivery_of(connection, place(scenario))


def receipt(scenario: ProverScenario) -> Any:
    return scenario.api.get("/v1/receipts/w1.2", headers=scenario.headers("bob"))


def test_it_is_stored_at_the_close(claimed: ProverScenario) -> None:
    finish(claimed)
    served = stored(claimed)
    assert len(served.rows) == 3
    # Whatever becomes of the documents, and of the window.
    change(claimed, served.rows[0].document.id, "another text")
    file = ReceiptFile.parse(receipt(claimed).content)
    assert [row.id for row in file.answer.documents] == [row.document.id for row in served.rows]
    assert verdict(claimed)["result"] == "PASS"
    assert claimed.state() is State.ARCHIVED
    assert receipt(claimed).content == file.encode()


def test_a_backend_that_is_away_keeps_no_claim_out_of_the_log(
    claimed: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = claimed.service.backend
    with monkeypatch.context() as patched:

        def away(tenant: str, ids: Any) -> Any:
            raise BackendUnavailable("away")

        patched.setattr(backend, "fetch", away)
        finish(claimed)
        assert stored(claimed) is None
        assert receipt(claimed).status_code == 503
    # The first one that leaves is the one that stays.
    first = receipt(claimed)
    assert first.status_code == 200
    change(claimed, stored(claimed).rows[0].document.id, None)
    assert receipt(claimed).content == first.content
    assert verdict(claimed)["result"] == "PASS"
    assert receipt(claimed).content == first.content
