"""What is written to a vector store behind the prover's back: withdrawn, noticed, taken up."""

import json
import logging
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import pytest
from exact_windows import EXACT, later
from fake_chroma import FakeChroma
from ragaudit.embedders.base import NoEmbedder
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backend_settings import BackendSettings, ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.background import Background
from ragaudit.prover.index.committed import IndexForm
from ragaudit.prover.lifecycle.refreshing import Watcher
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store.database import marks_of, taken_marks
from ragaudit.prover.store.states import State
from scenario import ProverScenario

D = 8
QUERY = np.random.default_rng(4).normal(size=D).astype(np.float32)


class Watched:
    """An open window over a collection that a test changes, and the watcher of its store."""

    def __init__(
        self, make_scenario: Callable[..., ProverScenario], *, versions: bool = True, **more: Any
    ) -> None:
        rows = np.random.default_rng(3).normal(size=(12, D)).astype(np.float32)
        self.server = FakeChroma(
            {f"d{n}": (f"row {n}", {"n": n}, row.tolist()) for n, row in enumerate(rows)}
        )
        options = ChromaSettings(url="http://chroma", collections={"one": "docs"}, **more)
        self.store = ChromaStore(options, self.server)
        self.scenario = make_scenario(
            backend=lambda *_: self.store, embedder=lambda _: NoEmbedder(self.store.dimension)
        )
        self.told: list[tuple[str, str, str]] = []
        service = self.scenario.service
        window = {"query_kinds": ["vector"], "filters": False, "public_columns": {}}
        service.create_window("w1", {**EXACT, **window, "versions": versions})
        self.scenario.drive(State.COUNTERSIGNED)
        self.scenario.register("ada")
        service.driver.checkpoint("w1")
        self.scenario.clock.at(self.scenario.policy().start)
        self.scenario.drive(State.OPEN)
        self.watcher = Watcher(
            store=service.store,
            windows=service.windows,
            open_windows=service.open_windows,
            backend=self.store,
            page_rows=5,
            tell=lambda *what: self.told.append(what),
        )

    def outcomes(self) -> list[str]:
        """How the comparisons of the next turn end."""
        self.told.clear()
        self.watcher.step()
        assert all(each[:2] == ("w1", "one") for each in self.told)
        return [outcome for _, _, outcome in self.told]

    @property
    def marks(self) -> int:
        """Changes that no version has taken up yet."""
        with self.scenario.service.store.read() as connection:
            return marks_of(connection, "one") - taken_marks(connection, "w1", "one")

    def ask(self, vector: npt.NDArray[np.float32]) -> ReceiptFile:
        body = {"vector": b64_encode(float32_bytes(vector.tolist())), "top_k": 3}
        answer = self.scenario.post("/v1/windows/w1/query", "ada", body)
        assert answer.status_code == 200, answer.text
        return ReceiptFile.parse(answer.content)


@pytest.fixture
def watched(make_scenario: Callable[..., ProverScenario]) -> Watched:
    return Watched(make_scenario)


def turned(row: tuple[Any, Any, list[float]]) -> tuple[Any, Any, list[float]]:
    return (*row[:2], [-x for x in row[2]])


class TestAnswers:
    """A row is served only while text, metadata and vector are those of its commitment."""

    def test_a_changed_vector_is_withdrawn(self, watched: Watched) -> None:
        first = watched.ask(QUERY)
        best = first.answer.documents[0].id
        watched.server.rows[best] = turned(watched.server.rows[best])
        second = watched.ask(QUERY * np.float32(2))
        assert [row.id for row in second.private.withdrawn] == [best]
        assert best not in {row.id for row in second.answer.documents}

    @pytest.mark.parametrize("vector", [[0.0] * D, [1.0] * (D - 1), None, [None] * D])
    def test_a_vector_that_nobody_can_commit_to_is_withdrawn(
        self, watched: Watched, vector: Any
    ) -> None:
        best = watched.ask(QUERY).answer.documents[0].id
        watched.server.rows[best] = (*watched.server.rows[best][:2], vector)
        second = watched.ask(QUERY * np.float32(2))
        assert [row.id for row in second.private.withdrawn] == [best]

    def test_the_last_bits_of_floats_are_no_change(self, watched: Watched) -> None:
        noise = 1 + 2e-7 * np.random.default_rng(8).choice([-1, 1], size=D)
        for name, (content, metadata, vector) in watched.server.rows.items():
            moved = (np.array(vector) * noise).astype(np.float32).tolist()
            watched.server.rows[name] = (content, metadata, moved)
        assert watched.ask(QUERY).private.withdrawn == ()
        assert watched.outcomes() == ["same"]

    def test_where_vectors_are_not_compared_they_are_not_fetched(
        self, make_scenario: Callable[..., ProverScenario]
    ) -> None:
        watched = Watched(make_scenario, verify_vectors=False)
        best = watched.ask(QUERY).answer.documents[0].id
        watched.server.rows[best] = turned(watched.server.rows[best])
        assert watched.ask(QUERY * np.float32(2)).private.withdrawn == ()
        asked = json.loads(watched.server.requests[-1].content)
        assert asked["include"] == ["documents", "metadatas"]


def test_few_entries_may_move_by_one_unit() -> None:
    form = IndexForm(norm_bound=4095)
    vector = np.random.default_rng(1).normal(size=256).astype(np.float32)
    row = form.integers(vector[np.newaxis])[0]
    assert form.same_vector(row, vector)
    for count, same in ((4, True), (5, False)):
        moved = row.copy()
        moved[:count] += 1
        assert form.same_vector(moved, vector) is same
    moved = row.copy()
    moved[7] += 2
    assert not form.same_vector(moved, vector)
    assert not form.same_vector(row, vector[:-1])


def added(rows: dict[str, Any]) -> None:
    rows["new"] = ("a new row", {}, [1.0] * D)


def removed(rows: dict[str, Any]) -> None:
    del rows["d3"]


def swapped(rows: dict[str, Any]) -> None:
    del rows["d3"]
    added(rows)


def retold(rows: dict[str, Any]) -> None:
    rows["d11"] = ("another text", *rows["d11"][1:])


def relabelled(rows: dict[str, Any]) -> None:
    rows["d0"] = (rows["d0"][0], {"n": 99}, rows["d0"][2])


def moved(rows: dict[str, Any]) -> None:
    rows["d5"] = turned(rows["d5"])


def blanked(rows: dict[str, Any]) -> None:
    rows["d5"] = (*rows["d5"][:2], None)


class TestWatching:
    """Whatever changes in the store makes its index stale, once."""

    def test_an_untouched_store(self, watched: Watched) -> None:
        assert watched.outcomes() == ["same"]
        assert watched.marks == 0

    @pytest.mark.parametrize(
        "change", [added, removed, swapped, retold, relabelled, moved, blanked]
    )
    def test_every_change_is_noticed_once(
        self, watched: Watched, change: Callable[[dict[str, Any]], None]
    ) -> None:
        change(watched.server.rows)
        assert watched.outcomes() == ["changed"]
        assert watched.outcomes() == []
        assert watched.marks == 1

    def test_the_next_version_takes_it_up(self, watched: Watched) -> None:
        removed(watched.server.rows)
        added(watched.server.rows)
        assert watched.outcomes() == ["changed"]
        watched.scenario.clock.at(watched.scenario.policy().start + 60)
        assert watched.scenario.service.refresher.step("w1")
        assert watched.scenario.service.open_windows.get("w1").versions.latest("one").version == 2
        # The row that is gone stays behind, and is not missed.
        assert watched.outcomes() == ["same"]
        later(watched.scenario, 140)
        assert watched.ask(QUERY).public.query.version == 2
        # The one that comes back is a change again.
        watched.server.rows["d3"] = ("row 3", {"n": 3}, [1.0] * D)
        assert watched.outcomes() == ["changed"]

    def test_a_store_that_is_written_to_meanwhile_is_stale(self, watched: Watched) -> None:
        reads = 0

        def write(request: httpx.Request) -> None:
            nonlocal reads
            reads += b"embeddings" in request.content
            if reads == 1:
                watched.server.rows.setdefault("new", ("a new row", {}, [1.0] * D))

        watched.server.before = write
        assert watched.outcomes() == ["changed"]

    def test_one_that_does_not_answer_is_tried_again(
        self, watched: Watched, caplog: pytest.LogCaptureFixture
    ) -> None:
        watched.server.before = lambda request: httpx.Response(503)
        with caplog.at_level(logging.WARNING, "ragaudit.prover.lifecycle.refreshing"):
            assert watched.outcomes() == watched.outcomes() == ["failed"]
        [line] = [r.message for r in caplog.records if r.name.endswith("refreshing")]
        assert line.startswith("window w1: the store of one is not compared: ")
        watched.server.before = lambda request: None
        moved(watched.server.rows)
        assert watched.outcomes() == ["changed"]

    def test_a_window_without_versions_is_told_once(
        self, make_scenario: Callable[..., ProverScenario], caplog: pytest.LogCaptureFixture
    ) -> None:
        watched = Watched(make_scenario, versions=False)
        retold(watched.server.rows)
        with caplog.at_level(logging.WARNING):
            assert watched.outcomes() == ["changed"]
            assert watched.outcomes() == []
        assert (
            "the documents of one changed in their store: a document is another one" in caplog.text
        )
        assert "another text" not in caplog.text


class TestBackground:
    """A thread of its own compares from time to time, whatever happens to it."""

    def background(self, watcher: Any, poll_seconds: float) -> Background:
        return Background(
            windows=SimpleNamespace(unfinished=list),  # type: ignore[arg-type]
            open_windows=SimpleNamespace(),  # type: ignore[arg-type]
            driver=SimpleNamespace(),  # type: ignore[arg-type]
            refresher=SimpleNamespace(),  # type: ignore[arg-type]
            cosigning=SimpleNamespace(),  # type: ignore[arg-type]
            retention=SimpleNamespace(step=lambda: None),  # type: ignore[arg-type]
            timing=TimingSettings(),
            watcher=watcher,
            poll_seconds=poll_seconds,
        )

    def test_it_goes_on_after_an_error(self) -> None:
        turns: list[int] = []
        done = Event()

        def step() -> None:
            turns.append(1)
            if len(turns) == 3:
                done.set()
            raise OSError("the database is away")

        background = self.background(SimpleNamespace(step=step), 0.001)
        background.start()
        assert done.wait(60)
        background.stop()

    def test_zero_seconds_are_never(self) -> None:
        background = self.background(SimpleNamespace(), 0)
        background.start()
        assert [each.name for each in background._threads] == ["retention"]
        background.stop()

    @pytest.mark.parametrize(("kind", "threads"), [("store", 0), ("chroma", 1)])
    def test_only_a_store_of_others_is_watched(
        self, make_scenario: Callable[..., ProverScenario], kind: str, threads: int
    ) -> None:
        scenario = make_scenario()
        chroma = {"url": "http://chroma", "collections": {"one": "docs"}}
        section = {"kind": kind, **({"chroma": chroma} if kind == "chroma" else {})}
        scenario.settings = scenario.settings.model_copy(
            update={"backend": BackendSettings.model_validate(section)}
        )
        scenario.restart()
        background = scenario.service.succession.new_background()
        background.start()
        try:
            names = [each.name for each in background._threads]
            assert names.count("watcher") == threads
        finally:
            background.stop()
