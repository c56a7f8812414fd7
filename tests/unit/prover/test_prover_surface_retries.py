"""What clients of others do by themselves: they ask again after an answer that was lost, and wait
where they are told to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ragaudit.prover.settings import LimitSettings
from scenario import ProverScenario
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface_app import serving
from surface_window import WINDOW, logged, start


class Gateway:
    """Passes requests on, notes what was answered, and loses the first answers of searches."""

    def __init__(self, app: ASGIApp, lost: int) -> None:
        self.app = app
        self.lost = lost
        self.receipts: list[str] = []
        self.told: list[tuple[int, str | None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def passed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = {name.lower(): value.decode() for name, value in message["headers"]}
                if b"ragaudit-receipt" in headers:
                    self.receipts.append(headers[b"ragaudit-receipt"])
                if self.lost and message["status"] == 200:
                    self.lost -= 1
                    message = {**message, "status": 502}
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
