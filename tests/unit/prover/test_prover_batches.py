"""Batches on the surfaces: all of their queries are charged, or none is."""

import threading
from typing import Any

import pytest
from ragaudit.prover.surfaces.chroma import collection_id
from scenario import ProverScenario
from surface_window import CHROMA, VECTOR, WINDOW, logged, start

FOUR = {**WINDOW, "queries_per_account": 4}


def vectors(count: int, first: int = 0) -> list[list[float]]:
    """As many different questions."""
    return [[float(number + 1), *VECTOR[1:]] for number in range(first, first + count)]


def ask(scenario: ProverScenario, queries: list[list[float]], **headers: str) -> Any:
    body = {"query_embeddings": queries, "n_results": 2, "include": ["distances"]}
    path = f"{CHROMA}/{collection_id('handbook')}/query"
    return scenario.api.post(path, json=body, headers={**scenario.headers("ada"), **headers})


def remaining(scenario: ProverScenario) -> int:
    answer = scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("ada"))
    return int(answer.json()["remaining"])


def test_a_batch_beyond_the_budget_is_refused_whole(scenario: ProverScenario) -> None:
    start(scenario, FOUR)
    assert ask(scenario, vectors(2)).status_code == 200
    before = logged(scenario)
    answer = ask(scenario, vectors(3, first=10))
    assert answer.status_code == 429, answer.text
    assert "a batch of 3 queries" in answer.text and "at most 2" in answer.text
    assert (logged(scenario), remaining(scenario)) == (before, 2)
    # What is left is there for a batch that fits, and only then is the budget used up.
    assert ask(scenario, vectors(2, first=10)).status_code == 200
    assert remaining(scenario) == 0
    assert ask(scenario, vectors(2, first=20)).status_code == 429


def test_other_surfaces_refuse_it_in_their_shape(scenario: ProverScenario) -> None:
    start(scenario, FOUR)
    before = logged(scenario)
    texts = [f"question {number}" for number in range(5)]
    openai = scenario.post("/v1/vector_stores/handbook/search", "ada", {"query": texts})
    assert openai.status_code == 429 and "a batch of 5" in openai.json()["error"]["message"]
    searches = [{"query": vector, "limit": 2} for vector in vectors(5)]
    path = "/collections/handbook/points/query/batch"
    qdrant = scenario.post(path, "ada", {"searches": searches})
    assert qdrant.status_code == 429 and "a batch of 5" in qdrant.json()["status"]["error"]
    assert (logged(scenario), remaining(scenario)) == (before, 4)


def test_what_was_answered_before_needs_no_room(scenario: ProverScenario) -> None:
    """A retry of a batch, also with new questions beside old ones, and one question twice."""
    start(scenario, FOUR)
    first = ask(scenario, vectors(3))
    assert ask(scenario, vectors(3)).content == first.content
    assert remaining(scenario) == 1
    twice = vectors(1, first=30)
    assert ask(scenario, [*vectors(3), *twice, *twice]).status_code == 200
    assert remaining(scenario) == 0
    assert ask(scenario, vectors(3)).content == first.content


def test_the_same_question_twice_counts_twice_where_there_are_no_retries(
    scenario: ProverScenario,
) -> None:
    start(scenario, {**FOUR, "retry_seconds": 0})
    assert ask(scenario, vectors(1)).status_code == 200
    before = logged(scenario)
    assert ask(scenario, [*vectors(1), *vectors(1), *vectors(2)]).status_code == 429
    assert logged(scenario) == before
    keyed = ask(scenario, vectors(3), **{"Idempotency-Key": "one batch"})
    assert keyed.status_code == 200 and remaining(scenario) == 0
    again = ask(scenario, vectors(3), **{"Idempotency-Key": "one batch"})
    assert again.content == keyed.content


def test_batches_at_once_do_not_share_what_is_left(scenario: ProverScenario) -> None:
    """Two of three queries each, four are left: one is answered whole, the other not at all."""
    start(scenario, FOUR)
    before, codes = logged(scenario), []

    def run(first: int) -> None:
        codes.append(ask(scenario, vectors(3, first=first)).status_code)

    threads = [threading.Thread(target=run, args=(10 * number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200, 429]
    assert (logged(scenario) - before, remaining(scenario)) == (3, 1)


def test_no_refusal_is_signed_of_a_budget_that_is_not_used_up(scenario: ProverScenario) -> None:
    """Check 14 would hold it against the provider."""
    start(scenario, FOUR)
    answer = ask(scenario, vectors(5))
    assert answer.status_code == 429 and "refusal" not in answer.json()


@pytest.mark.parametrize("count", [1, 4])
def test_a_batch_that_fits_exactly_is_answered(scenario: ProverScenario, count: int) -> None:
    start(scenario, FOUR)
    assert ask(scenario, vectors(count)).status_code == 200
    assert remaining(scenario) == 4 - count
