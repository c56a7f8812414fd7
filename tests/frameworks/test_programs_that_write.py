"""Programs that add, replace and delete documents through the sidecar, word for word as without it.

A write reaches the store at once. What changed is withdrawn from answers until the next version of
the index has taken it up.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import chroma_server
import framework_scene
import httpx
import numpy as np
import pytest
import wordnet
from exact_windows import later
from framework_corpus import BASE, TENANTS, Corpus
from framework_scene import PYTHON, Scene
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.embedders import registry
from ragaudit.ledger.messages.receipts import ReceiptFile

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.is_file(), reason=framework_scene.MISSING),
]

PROGRAMS = ("langchain_chroma", "llama_chroma", "haystack_chroma")
WINDOW: dict[str, Any] = {**framework_scene.INTEGRITY, "versions": True}
Rows = dict[str, tuple[str, dict[str, Any], list[float]]]


def _texts(name: str) -> list[str]:
    return [
        f"The lighthouse keeper whom {name} describes paints the spiral stairs blue.",
        f"An accordion that {name} mentions was mended with sailcloth and honey.",
    ]


def _ids(corpus: Corpus, name: str) -> list[str]:
    """A new document's id, that of one to replace and that of one to delete."""
    at = 100 * (1 + PROGRAMS.index(name))
    rows = corpus.rows["one"]
    return [str(uuid.uuid5(uuid.NAMESPACE_URL, name)), rows[at].id, rows[at + 1].id]


def _asked(corpus: Corpus, name: str) -> list[str]:
    """The texts that a program's writes take away, and those that they bring."""
    at = 100 * (1 + PROGRAMS.index(name))
    return [row.text for row in corpus.rows["one"][at : at + 2]] + _texts(name)


def _stored(url: str) -> Rows:
    """All rows of the store, as it returns them."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        place = http.get(f"{BASE}/{TENANTS['one']}").raise_for_status().json()["id"]
        body = {"include": ["documents", "metadatas", "embeddings"]}
        found = http.post(f"{BASE}/{place}/get", json=body).raise_for_status().json()
    rows = zip(found["documents"], found["metadatas"], found["embeddings"], strict=True)
    return dict(zip(found["ids"], rows, strict=True))


def _best(rows: Rows, question: str, top_k: int) -> list[str]:
    """The ids of the K best rows by their integers, by an obvious route."""
    ids = sorted(rows)
    integers = quantise_rows(np.array([rows[each][2] for each in ids]), 4095).astype(np.int64)
    e = quantise(registry.load().embed([question])[0], 4095).astype(np.int64)
    order = np.argsort(-(integers @ e), kind="stable")
    return [ids[at] for at in order[:top_k]]


def _write(corpus: Corpus, scene: Scene, url: str, key: Callable[[str], str]) -> list[Any]:
    return [
        scene.run(
            f"write_{name}", url, key(name), _texts(name), ROWS=json.dumps(_ids(corpus, name))
        )
        for name in PROGRAMS
    ]


@dataclass
class Written:
    """What the programs wrote and were answered, through the sidecar and without it."""

    before: Rows
    after: Rows
    directly: Rows
    printed: list[Any]
    printed_directly: list[Any]
    between: dict[str, Any]
    between_receipts: dict[str, list[ReceiptFile]]
    later: dict[str, Any]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if chroma_server.program() is None:
        pytest.skip("Chroma's server is not installed: make setup")
    if not wordnet.installed():
        pytest.skip("WordNet is not installed: make setup-servers")
    folder, corpus = tmp_path_factory.mktemp("writing"), Corpus()
    accounts = [_account(name) for name in PROGRAMS]
    with (
        framework_scene.store_server(corpus) as store,
        framework_scene.scene(folder, corpus, store.url, WINDOW, accounts) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def written(scene: Scene) -> Written:
    corpus, keys = scene.corpus, scene.scenario.keys
    with framework_scene.store_server(corpus) as other:
        directly = _write(corpus, scene, other.url, lambda _: "none")
        rows_directly = _stored(other.url)
    before = _stored(scene.store_url)
    printed = _write(corpus, scene, scene.url, lambda name: keys[_account(name)])
    after = _stored(scene.store_url)
    between = _ask(scene)
    receipts = {
        name: [ReceiptFile.parse(data) for data in scene.files(_account(name)).values()]
        for name in PROGRAMS
    }
    # Shortly before the next instant the prover takes up what its own mark says is stale.
    policy, service = scene.scenario.policy(), scene.scenario.service
    assert service.refresher.step("w1")
    assert service.open_windows.get("w1").versions.latest("one").version == 1
    service.driver.checkpoint("w1")
    scene.scenario.clock.at(policy.start + WINDOW["activation_every_seconds"] - 30)
    assert service.refresher.step("w1")
    assert service.open_windows.get("w1").versions.latest("one").version == 2
    later(scene.scenario, WINDOW["activation_every_seconds"] + 10)
    return Written(before, after, rows_directly, printed, directly, between, receipts, _ask(scene))


def _account(name: str) -> str:
    return name.replace("_", "-")


def _ask(scene: Scene) -> dict[str, Any]:
    return {
        name: scene.ask(f"ask_{name}", _account(name), _asked(scene.corpus, name))
        for name in PROGRAMS
    }


def test_writes_reach_the_store_as_they_do_without_the_sidecar(written: Written) -> None:
    def comparable(rows: Rows) -> list[Any]:
        # Nodes that LlamaIndex makes of a document have new random ids each time.
        own = {"_node_content"}
        return sorted(
            (text, sorted((k, v) for k, v in metadata.items() if k not in own))
            for text, metadata, _ in rows.values()
        )

    assert written.printed == written.printed_directly
    assert comparable(written.after) == comparable(written.directly)
    texts = [text for text, _, _ in written.after.values()]
    assert len(texts) == len(written.before) + 1  # of each one more, one less; and one memo
    assert "A memo on coffee." in texts
    assert "A memo about tea." not in texts and "A draft about milk." not in texts
    for identifier in written.after.keys() & written.directly.keys():
        ours, theirs = written.after[identifier][2], written.directly[identifier][2]
        assert np.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changed_is_withdrawn_until_the_next_version(
    scene: Scene, written: Written, name: str
) -> None:
    found = written.between[name]
    gone = {each for name in PROGRAMS for each in _ids(scene.corpus, name)[1:]}
    questions = _asked(scene.corpus, name)
    selected = [_best(written.before, question, 10) for question in questions]
    # The rows that the two questions are about are the best ones, and are not served.
    assert selected[0][0] in gone and selected[1][0] in gone
    assert found["nearest"] == [[each for each in ids if each not in gone] for ids in selected]
    assert len(found["nearest"][0]) < 10
    withdrawn = {
        row.id for file in written.between_receipts[name] for row in file.private.withdrawn
    }
    assert {selected[0][0], selected[1][0]} <= withdrawn <= gone
    assert {file.public.record.version for file in written.between_receipts[name]} == {1}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_next_version_takes_the_writes_up(scene: Scene, written: Written, name: str) -> None:
    found = written.later[name]
    new, changed, deleted = _ids(scene.corpus, name)
    questions = _asked(scene.corpus, name)
    for question, ids in zip(questions, found["nearest"], strict=True):
        assert ids == _best(written.after, question, 10)
        assert deleted not in ids
    assert found["nearest"][2][0] == new and found["nearest"][3][0] == changed
    text, another = _texts(name)
    assert found["rows"][new][0] == text and found["rows"][changed][0] == another


def test_every_receipt_verifies(scene: Scene, written: Written) -> None:
    scene.scenario.service.driver.checkpoint("w1")
    for name in PROGRAMS:
        assert len(scene.check_receipts(_account(name))) > len(written.between_receipts[name])


def test_the_window_passes(scene: Scene, written: Written) -> None:
    predicate = scene.verdict()
    assert predicate["result"] == "PASS", framework_scene.failed(predicate)
    assert predicate["claims"]["integrity"]["result"] == "PASS"
