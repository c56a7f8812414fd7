"""The same programs before a window with noise: what they get is what the noise selected."""

import math
from collections.abc import Iterator
from typing import Any

import framework_scene
import pytest
import wordnet
from framework_corpus import Corpus
from framework_scene import Scene
from framework_selection import selection
from ragaudit.ledger.messages.receipts import ReceiptFile

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not framework_scene.PYTHON.is_file(), reason=framework_scene.MISSING),
]

# What each shows as every row's score: it says nothing, as a similarity or as a distance.
SIMILARITY, DISTANCE = 1.0, 2.0**-10
SCORES = {
    "langchain_chroma": {DISTANCE},
    "llama_chroma": {math.exp(-DISTANCE)},
    "haystack_chroma": {DISTANCE},
    "langchain_qdrant": {SIMILARITY},
    "llama_qdrant": {SIMILARITY},
    "openai": {SIMILARITY},
    "litellm": {SIMILARITY},
    "mcp": set(),
    "ogx": {SIMILARITY},
}
PROGRAMS = {name: range(10 * n, 10 * n + 4) for n, name in enumerate(SCORES)}


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if not wordnet.installed():
        pytest.skip("WordNet is not installed: make setup-servers")
    folder, corpus = tmp_path_factory.mktemp("private"), Corpus()
    accounts = [name.replace("_", "-") for name in PROGRAMS]
    with (
        framework_scene.store_server(corpus) as store,
        framework_scene.scene(folder, corpus, store.url, framework_scene.PRIVATE, accounts) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def answers(private: Scene) -> dict[str, dict[str, Any]]:
    return {
        name: private.ask(f"ask_{name}", name.replace("_", "-"), numbers)
        for name, numbers in PROGRAMS.items()
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_selection_is_the_recomputed_one(
    private: Scene, answers: dict[str, dict[str, Any]], name: str
) -> None:
    found, rows = answers[name], {row.id: row.metadata for row in private.positions()}
    asked: dict[tuple[str | bytes, int, str], list[str]] = {}
    for data in private.files(name.replace("_", "-")).values():
        file = ReceiptFile.parse(data)
        selected = selection(private, file, rows)
        assert [(each.position, each.id) for each in file.answer.documents] == selected
        request = file.request
        ids = [name for _, name in selected]
        asked[request.vector or request.query, request.top_k, request.filter] = ids
    shown = [tuple(ids) for ids in asked.values()]
    # The program printed the answers of those receipts, with the scores that say nothing.
    for ids in (*found["nearest"], *found["filtered"]):
        assert tuple(ids) in shown
    assert set(found.get("scores", ())) == SCORES[name]
    # Noise it is: not one after the other is the exact answer.
    exact = [private.exact(number, 10) for number in PROGRAMS[name]]
    assert [set(ids) for ids in found["nearest"]] != [set(ids) for ids in exact]


def test_every_receipt_verifies(private: Scene, answers: dict[str, dict[str, Any]]) -> None:
    private.scenario.service.driver.checkpoint("w1")
    for name, numbers in PROGRAMS.items():
        assert len(private.check_receipts(name.replace("_", "-"))) >= len(numbers)


def test_the_window_passes(private: Scene, answers: dict[str, dict[str, Any]]) -> None:
    predicate = private.verdict()
    assert predicate["result"] == "PASS", framework_scene.failed(predicate)
    claims = predicate["claims"]
    assert claims["integrity"]["result"] == claims["privacy"]["result"] == "PASS"
