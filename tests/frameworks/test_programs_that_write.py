"""Programs that add, replace and delete documents through the sidecar, word for word as without it.

A write reaches the store at once. What changed is withdrawn from answers until the next version of
the index has taken it up.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import framework_scene
import httpx
import numpy as np
import pytest
import wordnet
from exact_windows import later
from framework_corpus import BASE, TENANTS, Corpus
from framework_scene import PYTHON, Scene
from framework_selection import selection
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.embedders import registry
from ragaudit.ledger.messages.receipts import ReceiptFile

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.is_file(), reason=framework_scene.MISSING),
]

PROGRAMS = ("langchain_chroma", "llama_chroma", "haystack_chroma")
INTEGRITY: dict[str, Any] = {**framework_scene.INTEGRITY, "versions": True}
PRIVATE: dict[str, Any] = {**framework_scene.PRIVATE, "versions": True}
STEP = int(str(framework_scene.WINDOW["activation_every_seconds"]))
DROPPED = range(540, 600)  # of the corpus, by a filter on what is no public column
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


def _gone(corpus: Corpus) -> set[str]:
    """The ids that all programs' writes take away, if only until the next version."""
    dropped = {corpus.rows["one"][at].id for at in DROPPED}
    return dropped.union(*(_ids(corpus, name)[1:] for name in PROGRAMS))


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


@pytest.fixture(scope="module", params=["integrity", "private"])
def window(request: pytest.FixtureRequest) -> dict[str, Any]:
    return INTEGRITY if request.param == "integrity" else PRIVATE


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, window: dict[str, Any]) -> Iterator[Scene]:
    if not wordnet.installed():
        pytest.skip("WordNet is not installed: make setup-servers")
    folder, corpus = tmp_path_factory.mktemp("writing"), Corpus()
    accounts = [_account(name) for name in PROGRAMS]
    with (
        framework_scene.store_server(corpus) as store,
        framework_scene.scene(folder, corpus, store.url, window, accounts) as made,
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
    scene.scenario.clock.at(policy.start + STEP - 30)
    assert service.refresher.step("w1")
    assert service.open_windows.get("w1").versions.latest("one").version == 2
    later(scene.scenario, STEP + 10)
    return Written(before, after, rows_directly, printed, directly, between, receipts, _ask(scene))


def _account(name: str) -> str:
    return name.replace("_", "-")


def _ask(scene: Scene) -> dict[str, Any]:
    return {
        name: scene.ask(f"ask_{name}", _account(name), _asked(scene.corpus, name))
        for name in PROGRAMS
    }


def test_writes_reach_the_store_as_they_do_without_the_sidecar(
    scene: Scene, written: Written
) -> None:
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
    # Of each one more and one less; a memo and a note.
    assert len(texts) == len(written.before) + 2 - len(DROPPED)
    assert "A memo on coffee." in texts and "A note to be kept." in texts
    assert not {"A memo about tea.", "A draft about milk.", "A note to be draft."} & set(texts)
    assert not {scene.corpus.rows["one"][at].id for at in DROPPED} & written.after.keys()
    for identifier in written.after.keys() & written.directly.keys():
        ours, theirs = written.after[identifier][2], written.directly[identifier][2]
        assert np.allclose(ours, theirs, atol=1e-6)


def _selected(
    scene: Scene, rows: Rows, questions: list[str], files: list[ReceiptFile]
) -> list[list[str]]:
    """The ids that each question's answer would have if nothing were withdrawn, by an obvious
    route: without noise the K best rows, with noise those of its receipt, recomputed."""
    if not scene.scenario.policy().noised:
        return [_best(rows, question, 10) for question in questions]
    metadata = {name: row[1] for name, row in rows.items()}
    integers = {
        tuple(quantise(vector, 127).tolist()): n
        for n, vector in enumerate(registry.load().embed(questions))
    }
    found: list[list[str]] = [[]] * len(questions)
    for file in files:
        selected = [name for _, name in selection(scene, file, metadata)]
        served = [document.id for document in file.answer.documents]
        withdrawn = {row.id for row in file.private.withdrawn}
        assert served == [name for name in selected if name not in withdrawn]
        n = integers.get(tuple(file.private.openings.embedding))
        if n is not None and file.request.top_k == 10 and not file.request.filter:
            found[n] = selected
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changed_is_withdrawn_until_the_next_version(
    scene: Scene, written: Written, name: str
) -> None:
    found, files = written.between[name], written.between_receipts[name]
    gone = _gone(scene.corpus)
    selected = _selected(scene, written.before, _asked(scene.corpus, name), files)
    assert found["nearest"] == [[each for each in ids if each not in gone] for ids in selected]
    for file in files:
        assert not gone & {document.id for document in file.answer.documents}
        assert {row.id for row in file.private.withdrawn} <= gone
    withdrawn = {row.id for file in files for row in file.private.withdrawn}
    # With noise, by chance: of the rows that ten answers select, a tenth is gone.
    assert withdrawn
    if not scene.scenario.policy().noised:
        # The rows that the first two questions are about are the best ones.
        own = {selected[0][0], selected[1][0]}
        assert own == set(_ids(scene.corpus, name)[1:]) and own <= withdrawn
    assert {file.public.query.version for file in files} == {1}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_next_version_takes_the_writes_up(scene: Scene, written: Written, name: str) -> None:
    found = written.later[name]
    new, changed, deleted = _ids(scene.corpus, name)
    files = [
        file
        for file in map(ReceiptFile.parse, scene.files(_account(name)).values())
        if file.public.query.version == 2
    ]
    selected = _selected(scene, written.after, _asked(scene.corpus, name), files)
    # What a deleted document leaves is never served; with noise it may be selected.
    live = [[each for each in ids if each in written.after] for ids in selected]
    assert found["nearest"] == live
    assert all(deleted not in ids for ids in live)
    if not scene.scenario.policy().noised:
        assert live == selected and not any(file.private.withdrawn for file in files)
        assert selected[2][0] == new and selected[3][0] == changed
    texts = dict(zip((new, changed), _texts(name), strict=True))
    for identifier in texts.keys() & found["rows"].keys():
        assert found["rows"][identifier][0] == texts[identifier]


def test_every_receipt_verifies(scene: Scene, written: Written) -> None:
    scene.scenario.service.driver.checkpoint("w1")
    for name in PROGRAMS:
        assert len(scene.check_receipts(_account(name))) > len(written.between_receipts[name])


def test_the_window_passes(scene: Scene, written: Written) -> None:
    predicate = scene.verdict()
    assert predicate["result"] == "PASS", framework_scene.failed(predicate)
    claims = {name: claim["result"] for name, claim in predicate["claims"].items()}
    noised = scene.scenario.policy().noised
    assert claims == {"integrity": "PASS", "privacy": "PASS" if noised else "NOT CLAIMED"}
