"""What clients of others do by themselves: they ask again after an answer that was lost, and wait
where they are told to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ragaudit.prover.settings import LimitSettings
from scenario import ProverScenario
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface_app import serving
from surface_window import VECTOR, WINDOW, logged, start


class Gateway:
    """Passes requests on, notes what was answered to POST, and loses the first answers to it.

    Attributes:
        cut: whether the connection ends within a lost answer; otherwise it becomes a 502.
    """

    def __init__(self, app: ASGIApp, lost: int, *, cut: bool = False) -> None:
        self.app = app
        self.lost = lost
        self.cut = cut
        self.receipts: list[str] = []
        self.told: list[tuple[int, str | None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def passed(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["method"] == "POST":
                headers = {name.lower(): value.decode() for name, value in message["headers"]}
                if b"ragaudit-receipt" in headers:
                    self.receipts.append(headers[b"ragaudit-receipt"])
                if self.lost and message["status"] < 300:
                    self.lost -= 1
                    message = {**message, "status": 502}
                    if self.cut:
                        self.told.append((0, None))
                        # The server ends the connection of an application that fails in an answer.
                        await send({**message, "status": 200})
                        raise ConnectionAbortedError
                wait = headers.get(b"retry-after")
                self.told.append((message["status"], wait))
            await send(message)

        await self.app(scope, receive, passed)


@contextmanager
def openai_client(scenario: ProverScenario, lost: int) -> Iterator[tuple[Any, Gateway]]:
    openai = pytest.importorskip("openai", reason="openai is missing")
    gateway = Gateway(scenario.api.app, lost)
    with (
        serving(gateway, lifespan="off") as port,
        openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=scenario.keys["ada"]) as it,
    ):
        yield it, gateway


@pytest.mark.slow
def test_openais_library_gets_the_answer_that_was_lost(scenario: ProverScenario) -> None:
    """It repeats by itself, twice, and names no key for it."""
    start(scenario, WINDOW)
    before = logged(scenario)
    with openai_client(scenario, lost=2) as (client, gateway):
        page = client.vector_stores.search("handbook", query="bread", max_num_results=3)
    assert [status for status, _ in gateway.told] == [502, 502, 200]
    assert len(page.data) == 3
    assert gateway.receipts == [page.model_extra["ragaudit_receipts"][0]] * 3
    assert logged(scenario) == before + 1


@pytest.mark.slow
def test_openais_library_waits_and_is_answered(scenario: ProverScenario) -> None:
    """Whoever asks too often hears when to come again, and its program sees nothing of it."""
    limits = LimitSettings(account_per_second=1)
    scenario.settings = scenario.settings.model_copy(update={"limits": limits})
    start(scenario, WINDOW)
    before = logged(scenario)
    with openai_client(scenario, lost=0) as (client, gateway):
        # One of three within a second is too many, however slow the machine is.
        for text in ("bread", "butter", "salt", "honey"):
            assert client.vector_stores.search("handbook", query=text).data
    waits = [wait for status, wait in gateway.told if status == 429]
    assert set(waits) <= {"1"} and logged(scenario) == before + 4


def test_a_budget_that_is_used_up_says_when_to_come_again(scenario: ProverScenario) -> None:
    start(scenario, {**WINDOW, "queries_per_account": 1})
    openai = pytest.importorskip("openai", reason="openai is missing")
    with openai_client(scenario, lost=0) as (client, gateway):
        assert client.vector_stores.search("handbook", query="bread").data
        with pytest.raises(openai.RateLimitError) as caught:
            client.with_options(max_retries=0).vector_stores.search("handbook", query="butter")
        # What was answered is answered again, whatever is left.
        assert client.vector_stores.search("handbook", query="bread").data
    assert gateway.told[1][0] == 429 and int(str(gateway.told[1][1])) > 1
    assert "used up" in caught.value.body["message"]


def chroma(port: int, key: str) -> Any:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is missing")
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    headers = {"x-chroma-token": key}
    client = chromadb.HttpClient(host="127.0.0.1", port=port, headers=headers, settings=settings)
    return client.get_collection("handbook", embedding_function=None)


def ask_chroma(port: int, key: str) -> Callable[[list[float]], list[str]]:
    collection = chroma(port, key)
    return lambda vector: list(
        collection.query(query_embeddings=[vector], n_results=3)["ids"][0]
    )  # fmt: skip


def ask_qdrant(port: int, key: str) -> Callable[[list[float]], list[str]]:
    qdrant_client = pytest.importorskip("qdrant_client", reason="qdrant-client is missing")
    client = qdrant_client.QdrantClient(
        url=f"http://127.0.0.1:{port}", api_key=key, check_compatibility=False
    )
    return lambda vector: [
        point.payload["page_content"]
        for point in client.query_points("handbook", query=vector, limit=3).points
    ]


# The whole answer as the text of an error, its status, or the end of the connection.
LOST = r"ids|502|peer closed"
# Chroma's client leaves its connections to the collector of garbage, Qdrant's warns of plain HTTP.
QUIET = pytest.mark.filterwarnings("ignore")


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("library", [ask_chroma, ask_qdrant])
def test_clients_of_stores_leave_it_to_the_program_to_ask_again(
    scenario: ProverScenario, library: Any, cut: bool
) -> None:
    start(scenario, WINDOW)
    before = logged(scenario)
    gateway = Gateway(scenario.api.app, lost=1, cut=cut)
    with serving(gateway, lifespan="off") as port:
        ask = library(port, scenario.keys["ada"])
        with pytest.raises(Exception, match=LOST):
            ask(VECTOR)
        # Nothing was sent twice; what the program asks again is answered from the record.
        assert len(gateway.told) == 1 and logged(scenario) == before + 1
        assert len(ask(VECTOR)) == 3
    assert len(gateway.told) == 2 and len(set(gateway.receipts)) == 1
    assert logged(scenario) == before + 1


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("library", [ask_chroma, ask_qdrant])
def test_clients_of_stores_raise_when_the_budget_is_used_up(
    scenario: ProverScenario, library: Any
) -> None:
    start(scenario, {**WINDOW, "queries_per_account": 1})
    gateway = Gateway(scenario.api.app, lost=0)
    with serving(gateway, lifespan="off") as port:
        ask = library(port, scenario.keys["ada"])
        assert len(ask(VECTOR)) == 3
        with pytest.raises(Exception, match=r"used up|Too Many") as caught:
            ask(VECTOR[::-1])
        assert len(ask(VECTOR)) == 3
    # They neither wait nor repeat. Qdrant's says how long the program should wait.
    assert [status for status, _ in gateway.told] == [200, 429, 200]
    wait = int(str(gateway.told[1][1]))
    assert wait > 1
    if library is ask_chroma:
        assert type(caught.value).__name__ == "RateLimitError" and "used up" in str(caught.value)
    else:
        assert type(caught.value).__name__ == "ResourceExhaustedResponse"
        assert caught.value.retry_after_s == wait  # type: ignore[attr-defined]
