"""Between two windows: retries are answered from the store, all else is told when to come back."""

from typing import Any

import pytest
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store.states import State
from ragaudit.prover.surfaces.chroma import collection_id
from scenario import ProverScenario
from surface_window import CHROMA, SURFACES, VECTOR, WINDOW, logged, start
from whole_windows import verdict

ENABLED = ["openai", "chroma", "qdrant", "dify"]


def ask(
    scenario: ProverScenario, surface: str, n: int = 3, account: str = "ada", key: str = ""
) -> Any:
    """A question on a surface with what each leaves to a default left out."""
    body: dict[str, Any]
    idempotent = {"Idempotency-Key": key} if key else {}
    match surface:
        case "openai":
            path, body = "/v1/vector_stores/handbook/search", {"query": "bread"}
            body |= {"max_num_results": n} if n != 3 else {}
        case "dify":
            path = "/retrieval"
            body = {"knowledge_id": "handbook", "query": "bread"}
            body["retrieval_setting"] = {"top_k": n, "score_threshold": 0.0}
        case "chroma":
            path = f"{CHROMA}/{collection_id('handbook')}/query"
            body = {"query_embeddings": [VECTOR], "n_results": n}
        case _:
            path = "/collections/handbook/points/query"
            body = {"query": VECTOR, "limit": n}
    return scenario.api.post(path, json=body, headers={**scenario.headers(account), **idempotent})


def no_window(surface: str, answer: Any) -> str:
    """The text of a 503 in the surface's own shape."""
    assert answer.status_code == 503, answer.text
    body = answer.json()
    match surface:
        case "openai":
            text = body["error"]["message"]
        case "dify":
            text = body["error_msg"]
        case "chroma":
            text = body["message"]
        case _:
            text = body["status"]["error"]
    assert isinstance(text, str) and "no window is open" in text
    return str(answer.headers["Retry-After"])


def end(scenario: ProverScenario) -> None:
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().end)


@pytest.mark.parametrize("surface", ENABLED)
def test_a_retry_is_answered_after_the_end(scenario: ProverScenario, surface: str) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    first = ask(scenario, surface)
    assert first.status_code == 200, first.text
    count = logged(scenario)
    end(scenario)
    # Some moments behind: the state says that it is open.
    for state in (State.OPEN, State.CLOSED):
        scenario.drive(state)
        again = ask(scenario, surface)
        assert again.status_code == 200, again.text
        assert again.json() == first.json()
        assert again.headers["Ragaudit-Receipt"] == first.headers["Ragaudit-Receipt"]
        assert no_window(surface, ask(scenario, surface, 2)) == "60"
    assert logged(scenario) == count


def test_a_retry_is_answered_after_the_verdict(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    first = {surface: ask(scenario, surface) for surface in ENABLED}
    own = {"query": "rolls", "kind": "text", "top_k": 2}
    key = {**scenario.headers("ada"), "Idempotency-Key": "k1"}
    file = scenario.api.post("/v1/windows/w1/query", json=own, headers=key)
    assert file.status_code == 200
    assert verdict(scenario)["result"] == "PASS"
    assert scenario.state() is State.ARCHIVED
    for surface, answer in first.items():
        assert ask(scenario, surface).json() == answer.json()
        assert no_window(surface, ask(scenario, surface, 2)) == "60"
    again = scenario.api.post("/v1/windows/w1/query", json=own, headers=key)
    assert (again.status_code, again.content) == (200, file.content)
    other = scenario.api.post("/v1/windows/w1/query", json={**own, "top_k": 1}, headers=key)
    assert other.status_code == 409 and "used for another request" in other.text
    del key["Idempotency-Key"]
    new = scenario.api.post("/v1/windows/w1/query", json={**own, "top_k": 1}, headers=key)
    assert new.status_code == 409 and "refusal" in new.json()


def test_a_retry_that_is_too_late_is_none(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 60})
    assert ask(scenario, "openai").status_code == 200
    end(scenario)
    scenario.drive(State.CLOSED)
    assert no_window("openai", ask(scenario, "openai")) == "60"


def test_a_retry_by_key_is_known_however_late(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 0})
    first = ask(scenario, "chroma", key="first")
    end(scenario)
    scenario.drive(State.CLOSED)
    again = ask(scenario, "chroma", key="first")
    assert (again.status_code, again.content) == (200, first.content)


def test_nobody_gets_the_answer_of_another(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    assert ask(scenario, "openai", account="ada").status_code == 200
    end(scenario)
    scenario.drive(State.CLOSED)
    assert no_window("openai", ask(scenario, "openai", account="bob")) == "60"


@pytest.mark.parametrize("surface", ENABLED)
def test_the_next_window_is_announced(scenario: ProverScenario, surface: str) -> None:
    start(scenario, WINDOW)
    end(scenario)
    scenario.drive(State.CLOSED)
    scenario.service.create_window("w2", WINDOW)
    soon = scenario.service.policy_of("w2").start - scenario.policy().end
    assert no_window(surface, ask(scenario, surface)) == str(soon)
    scenario.clock.at(scenario.service.policy_of("w2").start - 7)
    assert no_window(surface, ask(scenario, surface)) == "7"


def test_a_window_that_was_stopped_is_none(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "retry_seconds": 3600})
    first = ask(scenario, "openai")
    scenario.service.stop_window("w1")
    assert ask(scenario, "openai").json() == first.json()
    assert no_window("openai", ask(scenario, "openai", 2)) == "60"


@pytest.mark.parametrize("surface", ENABLED)
def test_before_the_first_window(scenario: ProverScenario, surface: str) -> None:
    given = SurfaceSettings.model_validate(SURFACES)
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    assert no_window(surface, ask(scenario, surface)) == "60"
    scenario.service.create_window("w1", WINDOW)
    scenario.clock.at(scenario.service.policy_of("w1").start - 30)
    assert no_window(surface, ask(scenario, surface)) == "30"
