"""What is written to a vector store behind the prover's back: withdrawn, noticed, taken up."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import pytest
from exact_windows import EXACT, later
from fake_chroma import ADDRESS, UUID_TEXT, FakeChroma
from ragaudit.embedders.base import NoEmbedder
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.backend_settings import BackendSettings, ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.opening import check_metric
from ragaudit.prover.background import Background
from ragaudit.prover.errors import BackendUnavailable, MalformedDocument
from ragaudit.prover.index.committed import IndexForm
from ragaudit.prover.lifecycle.refreshing import Watcher
from ragaudit.prover.settings import TimingSettings
from ragaudit.prover.store.database import marks_of, taken_marks
from ragaudit.prover.store.states import State
from ragaudit.serving.exchange import Exchange, begun
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


# Chroma as a backend: what it returns is committed, what moved or is odd is refused.


def fake(**changes: Any) -> FakeChroma:
    rows: dict[str, Any] = {
        "d10": ("ten", {"year": 2010, "x": 1.5}, [1.0, 0.0]),
        "d9": ("nine", None, [0.1, 0.2]),
        "é": (None, {"b": True}, [0.0, -1.0]),
        "Z": ("zed", {}, [3.0, 4.0]),
    }
    return FakeChroma({**rows, **changes})


def store(server: FakeChroma, **settings: Any) -> ChromaStore:
    options = ChromaSettings(url=ADDRESS, collections={"acme": "docs"}, **settings)
    return ChromaStore(options, server)


def read(backend: ChromaStore, rows: int = 3) -> list[Document]:
    return [document for page in backend.pages("acme", rows) for document in page]


def test_documents_come_as_returned_and_rising_by_id() -> None:
    backend = store(fake())
    assert [len(page) for page in backend.pages("acme", 3)] == [3, 1]
    documents = read(backend)
    assert [document.id for document in documents] == ["Z", "d10", "d9", "é"]
    by_id = {document.id: document for document in documents}
    assert by_id["d10"].attributes == '{"x":1.5,"year":2010}'
    assert by_id["d9"].attributes == by_id["Z"].attributes == by_id["é"].content == ""
    vector = by_id["d9"].vector
    assert vector is not None and vector.dtype == np.float32
    assert vector.tolist() == np.array([0.1, 0.2], dtype=np.float32).tolist()
    assert (backend.tenants(), backend.count("acme"), backend.dimension()) == (["acme"], 4, 2)
    backend.check()


def test_fetched_documents_come_in_the_order_asked_and_missing_ones_are_none() -> None:
    backend = store(fake())
    found = backend.fetch("acme", ["é", "gone", "d10", "Z"])
    assert [document and document.id for document in found] == ["é", None, "d10", "Z"]
    vectors = [document.vector for document in found if document]
    assert [None if vector is None else vector.tolist() for vector in vectors] == [
        [0.0, -1.0], [1.0, 0.0], [3.0, 4.0]
    ]  # fmt: skip
    assert backend.fetch("acme", []) == []
    unread = store(fake(), verify_vectors=False).fetch("acme", ["Z"])[0]
    assert unread is not None and unread.vector is None


def test_a_document_that_became_uncommittable_is_gone_for_an_answer() -> None:
    server = fake()
    backend = store(server)
    server.rows["Z"] = ("x" * 70_000, None, [3.0, 4.0])
    assert backend.fetch("acme", ["Z", "d9"])[0] is None


@pytest.mark.parametrize(
    ("moment", "change"),
    # While the ids are first listed, a swap is as good as one before.
    [
        ("listing", "add"), ("listing", "delete"),
        ("reading", "add"), ("reading", "delete"), ("reading", "swap"),
        ("after", "add"), ("after", "delete"), ("after", "swap"),
    ],
)  # fmt: skip
def test_a_collection_that_moves_while_it_is_read_is_refused(moment: str, change: str) -> None:
    server = fake()
    pages = 0

    def move(request: httpx.Request) -> None:
        nonlocal pages
        if not request.url.path.endswith("/get"):
            return
        reading = "ids" in json.loads(request.content)
        pages += reading
        due = {"listing": not reading, "reading": reading, "after": not reading and pages == 2}
        if due[moment]:
            server.before = lambda request: None
            if change != "add":
                del server.rows["d9"]
            if change != "delete":
                server.rows["new"] = ("new", None, [1.0, 1.0])

    server.before = move
    with pytest.raises(BackendUnavailable, match=r"acme: the collection changed while it was read"):
        read(store(server))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("x", None, [None, 1.0]), "document bad: vector (is not numbers|with NaN or infinity)"),
        (("x", None, [1e39, 1.0]), "document bad: vector with NaN or infinity"),
        (("x", None, [1.0]), "document bad: no vector, or one of another length .*2 entries"),
        (("x", None, None), "document bad: no vector"),
        (("x", None, ["1", "b"]), "document bad: vector is not numbers"),
        (("x", None, [[1.0], [1.0]]), "document bad: vector"),
        (("x", {"n": 2**60}, [1.0, 1.0]), "document bad: attributes have no canonical JSON"),
        (("x", ["list"], [1.0, 1.0]), "document bad: content or metadata of another type"),
        ((5, None, [1.0, 1.0]), "document bad: content or metadata of another type"),
        (("x" * 65_537, None, [1.0, 1.0]), "document bad: content too long"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_what_cannot_be_committed_is_refused_with_its_id(row: Any, words: str) -> None:
    with pytest.raises(MalformedDocument, match=words):
        read(store(fake(bad=row)))


@pytest.mark.parametrize("dimension", [0, 3073])
def test_other_lengths_of_vectors_are_refused(dimension: int) -> None:
    server = fake()
    server.dimension = dimension
    with pytest.raises(MalformedDocument, match=f"vectors of {dimension} entries"):
        store(server).dimension()


def test_an_empty_collection_has_no_vectors() -> None:
    with pytest.raises(MalformedDocument, match="tenant acme: no vectors"):
        store(FakeChroma({})).dimension()


@pytest.mark.parametrize(
    ("space", "metric"), [("cosine", "cosine"), ("ip", "inner-product"), ("l2", "l2")]
)
def test_the_collection_must_rank_as_the_policy(space: str, metric: str) -> None:
    backend = store(FakeChroma(fake().rows, space=space))
    check_metric(backend, metric)
    other = "l2" if metric != "l2" else "cosine"
    with pytest.raises(MalformedSettings, match=f"tenant acme ranks by {metric}"):
        check_metric(backend, other)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>"), httpx.Response(200, json=[]),
        httpx.Response(200, text='{"ids": NaN}'), httpx.Response(200, json={"ids": ["d9", 5]}),
        httpx.Response(200, json={"ids": ["d9"], "documents": [], "metadatas": []}),
        httpx.Response(200, json={"ids": ["another"], "documents": ["x"], "metadatas": [{}]}),
        httpx.Response(200, json={"ids": ["d9"] * 2, "documents": [""] * 2, "metadatas": [{}] * 2}),
        httpx.Response(500, json={"error": "InternalError", "message": ADDRESS}),
        httpx.Response(429), httpx.Response(302, headers={"location": "http://elsewhere"}),
        httpx.Response(403, text="no"), httpx.Response(200, text="[" * 100_000),
        httpx.Response(200, headers={"content-encoding": "br"}, content=b"x"),
    ],
)  # fmt: skip
def test_odd_answers_are_unavailable_and_name_no_address(answer: httpx.Response) -> None:
    server = fake()
    backend = store(server)
    backend.check()
    server.before = lambda request: answer if request.url.path.endswith("/get") else None
    with pytest.raises(BackendUnavailable) as caught:
        backend.fetch("acme", ["d9"])
    assert "chroma.internal" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_unreachable_store_is_named_to_the_operator_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused")

    server = fake()
    server.before = refuse
    with caplog.at_level(logging.WARNING), pytest.raises(BackendUnavailable) as caught:
        store(server).check()
    assert str(caught.value) == "the vector store cannot be reached"
    assert ADDRESS in caplog.text


def test_a_collection_that_was_made_anew_is_found_again() -> None:
    server = fake()
    backend = store(server)
    backend.check()
    gone = [httpx.Response(404, json={"error": "NotFoundError", "message": ""})]
    server.before = lambda request: gone.pop() if UUID_TEXT in request.url.path and gone else None
    assert backend.fetch("acme", ["d9"])[0] is not None
    server.name = "renamed"
    server.before = lambda request: (
        httpx.Response(404, json={}) if UUID_TEXT in request.url.path else None
    )
    with pytest.raises(BackendUnavailable, match="does not show the collection"):
        backend.fetch("acme", ["d9"])


def test_an_unmapped_tenant_is_refused_without_asking() -> None:
    server = fake()
    with pytest.raises(BackendUnavailable, match="other: no collection in the settings"):
        store(server).count("other")
    assert server.requests == []


@pytest.mark.parametrize("operation", ["add", "upsert", "update", "delete"])
def test_writes_are_passed_on_byte_for_byte_and_once(operation: str) -> None:
    server = fake()
    backend = store(server)
    body = b'{ "ids":["n"], "embeddings":[[1e0, 0.10]] }'
    forwarded = backend.forward_write("acme", operation, body)
    assert (forwarded.status, forwarded.body) == (201, b"{}")
    assert server.requests[-1].content == body
    assert server.requests[-1].url.path.endswith(f"/{UUID_TEXT}/{operation}")
    server.before = lambda request: httpx.Response(503)
    asked = len(server.requests)
    with pytest.raises(BackendUnavailable):
        backend.forward_write("acme", operation, body)
    assert len(server.requests) == asked + 1


def test_a_refused_write_comes_back_as_the_store_said_it() -> None:
    server = fake()
    error = {"error": "InvalidArgumentError", "message": "Collection expecting dimension of 2"}
    server.before = lambda request: (
        httpx.Response(400, json=error) if request.url.path.endswith("/add") else None
    )
    forwarded = store(server).forward_write("acme", "add", b"{}")
    assert (forwarded.status, json.loads(forwarded.body)) == (400, error)
    # What the store has against us is no answer to the application: it names its own ids.
    for status in (401, 403, 404):
        server.before = lambda request, status=status: (  # type: ignore[misc]
            httpx.Response(status, json=error) if request.url.path.endswith("/add") else None
        )
        with pytest.raises(BackendUnavailable, match=f"status {status}"):
            store(server).forward_write("acme", "add", b"{}")
    for read_path in ("get", "query", "search", "../x"):
        with pytest.raises(ValueError, match="no write"):
            store(server).forward_write("acme", read_path, b"{}")


@pytest.mark.parametrize(
    ("header", "value"), [("x-chroma-token", "s3cret"), ("authorization", "Bearer s3cret")]
)
def test_the_token_is_sent_and_shown_nowhere(tmp_path: Path, header: str, value: str) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    file.chmod(0o600)
    server = fake()
    backend = store(server, token_file=file, token_header=header)
    backend.check()
    assert server.requests[0].headers[header] == value
    assert "s3cret" not in repr(backend) + repr(vars(backend))
    file.chmod(0o644)
    with pytest.raises(MalformedSettings, match="others may read"):
        store(server, token_file=file)


def test_authorities_must_be_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("none")
    with pytest.raises(MalformedSettings, match="no certificates"):
        store(fake(), ca_file=file)


def test_the_trace_is_passed_on() -> None:
    server, parent = fake(), f"00-{'a' * 32}-{'b' * 16}-01"
    backend = store(server)
    backend.check()
    assert "traceparent" not in server.requests[-1].headers
    with begun(Exchange.of({"traceparent": parent, "tracestate": "v=1"})):
        backend.fetch("acme", ["Z"])
    sent = server.requests[-1].headers
    assert (sent["traceparent"], sent["tracestate"]) == (parent, "v=1")
