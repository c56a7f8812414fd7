"""Programs as people write them, before the store and behind the sidecar, word for word the same.

They live in an environment of their own and know nothing of ragaudit: only address and key change.
"""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import chroma_server
import framework_scene
import pytest
import wordnet
from framework_corpus import Corpus
from framework_scene import PYTHON, Scene
from ragaudit.cli.up.shadow import ROUNDING
from ragaudit.lab.demo.services import command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.is_file(), reason=framework_scene.MISSING),
]

OF_CHROMA = ("langchain_chroma", "llama_chroma", "haystack_chroma")
OF_QDRANT = ("langchain_qdrant", "llama_qdrant")
OF_TEXTS = ("openai", "litellm", "mcp", "ogx")
OF_NEWER_PYTHON = ("newest_ogx", "llama_stack")
WITH_STORE = (*OF_CHROMA, *OF_QDRANT)
NEWER = framework_scene.NEWER_PYTHON.is_file()
EVERY = (*WITH_STORE, *OF_TEXTS, *(OF_NEWER_PYTHON if NEWER else ()))
# One of each library and each interface; the others talk to the same ones, and do so at night.
ONE_OF_EACH = ("langchain_chroma", "llama_qdrant", "haystack_chroma", "openai", "mcp")
BY_COMMAND = ("langchain_chroma", "openai", "mcp")
# Programs that try what is refused, and the errors that their libraries raise.
ERRORS = {
    "chroma": ("chromadb.errors.", "haystack.document_stores.errors."),
    "qdrant": ("qdrant_client.http.exceptions.UnexpectedResponse",),
    "texts": ("openai.", "ogx_client.", "litellm.exceptions.", "mcp.", "__main__.ToolError"),
}
OTHER = "curious"
# Each program has questions of its own; those without a store to compare with have a few.
NUMBERS = {
    **{name: range(20 * n, 20 * n + 20) for n, name in enumerate(WITH_STORE)},
    **{name: range(30 * n, 30 * n + 6) for n, name in enumerate(OF_TEXTS[:3])},
    # Those of OpenAI's client, whose answers they must get.
    **dict.fromkeys(("ogx", *OF_NEWER_PYTHON), range(6)),
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(ONE_OF_EACH, id="one of each"),
        pytest.param(EVERY, id="every", marks=pytest.mark.nightly),
    ],
)
def names(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The programs."""
    return tuple(request.param)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus()


@pytest.fixture(scope="module")
def store(corpus: Corpus) -> Iterator[chroma_server.ChromaServer]:
    if not wordnet.installed():
        pytest.skip("WordNet is not installed: make setup-servers")
    with framework_scene.store_server(corpus) as server:
        yield server


@pytest.fixture(scope="module")
def integrity(
    tmp_path_factory: pytest.TempPathFactory,
    corpus: Corpus,
    store: chroma_server.ChromaServer,
    names: tuple[str, ...],
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("integrity")
    accounts = [*(name.replace("_", "-") for name in names), OTHER]
    with framework_scene.scene(
        folder, corpus, store.url, framework_scene.INTEGRITY, accounts
    ) as made:
        yield made


@pytest.fixture(scope="module")
def answers(integrity: Scene, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What each program prints behind the sidecar."""
    return {
        name: integrity.ask(
            f"ask_{name.removeprefix('newest_')}",
            name.replace("_", "-"),
            NUMBERS[name],
            python=framework_scene.NEWER_PYTHON if name in OF_NEWER_PYTHON else PYTHON,
        )
        for name in names
    }


@pytest.fixture(scope="module")
def before(integrity: Scene, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What those with a store print before it; Qdrant's is its client's local mode."""
    folder = integrity.folder / "points"
    integrity.corpus.fill_points(folder)
    places = {**dict.fromkeys(OF_CHROMA, integrity.store_url), **dict.fromkeys(OF_QDRANT, folder)}
    return {
        name: integrity.run(f"ask_{name}", str(place), "none", NUMBERS[name])
        for name, place in places.items()
        if name in names
    }


def test_the_answers_are_exact(integrity: Scene, answers: dict[str, dict[str, Any]]) -> None:
    rows = {row.id: [row.text, row.metadata] for row in integrity.corpus.rows["one"]}
    for name, found in answers.items():
        for number, ids in zip(NUMBERS[name], found["nearest"], strict=True):
            assert ids == integrity.exact(number, 10), name
        for number, ids in zip(NUMBERS[name], found["filtered"], strict=False):
            assert ids == integrity.exact(number, 5, filtered=True), name
        assert len(found["rows"]) >= 10, name
        for identifier, row in found["rows"].items():
            assert row == rows[identifier], name


def _lines(value: Any) -> Any:
    # A prompt lists metadata as they came: from Chroma's server in another order each time.
    return sorted(value.splitlines()) if isinstance(value, str) else value


def test_a_program_does_not_see_the_difference(
    answers: dict[str, dict[str, Any]], before: dict[str, dict[str, Any]]
) -> None:
    for name, theirs in before.items():
        ours = answers[name]
        assert ours.keys() == theirs.keys(), name
        assert ours["scores"] == pytest.approx(theirs["scores"], abs=2e-3), name
        for each in ours.keys() - {"nearest", "filtered", "rows", "scores"}:
            assert _lines(ours[each]) == _lines(theirs[each]), (name, each)


@pytest.mark.nightly
@pytest.mark.parametrize("names", [pytest.param(EVERY, id="every")], indirect=True)
@pytest.mark.parametrize(
    "name",
    [
        "ogx",
        *(
            pytest.param(name, marks=pytest.mark.skipif(not NEWER, reason=framework_scene.NO_NEWER))
            for name in OF_NEWER_PYTHON
        ),
    ],
)
def test_clients_of_the_same_interface_get_the_same(
    answers: dict[str, dict[str, Any]], name: str
) -> None:
    ours, openai = answers[name], answers["openai"]
    assert ours == {each: openai[each] for each in ours}


def test_integers_rank_as_the_stores_floats_do(
    integrity: Scene,
    answers: dict[str, dict[str, Any]],
    before: dict[str, dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = whole = 0
    cases = []
    for name in before:
        for kind in ("nearest", "filtered"):
            pairs = zip(answers[name][kind], before[name][kind], strict=True)
            for number, (ours, theirs) in zip(NUMBERS[name], pairs, strict=False):
                found += len(set(ours) & set(theirs))
                whole += len(theirs)
                if ours != theirs:
                    cases.append((name, kind, number, integrity.gap(number, ours, theirs)))
    with capsys.disabled():
        print(f"\nrecall of the stores' own rankings: {found} of {whole}; in another order or set:")
        for case in cases:
            print("  {}, {}, question {}: cosines differ by {:.1e}".format(*case))
        print(f"  rounding moves rows only where cosines are closer than {ROUNDING:.1e}")
    assert found >= 0.999 * whole
    # Rounding, not another ranking: what changed places is nearer than integers can tell.
    assert all(gap <= ROUNDING for *_, gap in cases)


@pytest.mark.parametrize("name", ERRORS)
def test_there_is_no_way_around_a_query(integrity: Scene, name: str) -> None:
    scenario, corpus = integrity.scenario, integrity.corpus
    entries, receipts = integrity.entries(), len(integrity.recorder.receipts)
    refused, said = len(integrity.recorder.refused), len(integrity.recorder.said)
    told = json.dumps([corpus.rows["one"][5].id, corpus.rows["two"][5].id])
    found = integrity.run(f"refuse_{name}", integrity.url, scenario.keys[OTHER], UNSERVED=told)
    assert found["served"] == {}
    assert not any(found["hidden"].values()), found["hidden"]
    # It was the sidecar that said no, and no client by itself; MCP's errors have status 200.
    by_status = {each for each in found["refused"] if not each.startswith("mcp")}
    assert len(integrity.recorder.refused) - refused >= len(by_status), found["refused"]
    texts = integrity.recorder.said[said:]
    for each, message in found["refused"].items():
        assert "Traceback" not in message and str(integrity.folder) not in message
        # Each library understood: it raised an error of its own, with the words of ours.
        kind, _, heard = message.partition(": ")
        assert kind.startswith(ERRORS[name]), message
        if each in by_status:
            assert any(text in heard.replace("\\", "") for text in texts), message
    assert integrity.entries() == entries and len(integrity.recorder.receipts) == receipts


def test_every_receipt_verifies(integrity: Scene, answers: dict[str, dict[str, Any]]) -> None:
    integrity.scenario.service.driver.checkpoint("w1")
    for name in answers:
        paths = integrity.check_receipts(name.replace("_", "-"))
        assert len(paths) >= len(NUMBERS[name])
        if name in BY_COMMAND:
            shown, policy = integrity.save()
            pins = ["--window", str(shown), "--policy", str(policy), "--json"]
            words = command("receipt", "check", str(paths[0]), *pins)
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert json.loads(done.stdout)["result"] == "accepted"


def test_the_window_passes(integrity: Scene, answers: dict[str, dict[str, Any]]) -> None:
    predicate = integrity.verdict()
    assert predicate["result"] == "PASS", framework_scene.failed(predicate)
    assert predicate["claims"]["integrity"]["result"] == "PASS"
    assert predicate["claims"]["privacy"]["result"] == "NOT CLAIMED"
