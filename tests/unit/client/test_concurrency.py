"""One implementation for tasks and threads: a queue per account, a pool over accounts."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import (
    AsyncClient,
    AsyncPool,
    BudgetExhausted,
    Client,
    Pool,
    PromiseUnanswered,
    StateConflict,
)
from ragaudit.client.blocking import run

API_KEY = "secret-api-key"
Options = Callable[..., dict[str, Any]]


def test_the_asynchronous_client_asks_checks_and_submits(options: Options, verifier: Any) -> None:
    async def story() -> None:
        async with AsyncClient("http://provider", API_KEY, **options()) as client:
            await client.register()
            result = await client.search("what is it?", top_k=3)
            assert [each.id for each in result.documents] == ["doc 1", "doc 4"]
            assert {each.name for each in result.receipt.not_done} == {"inclusion", "embedder"}
            await result.receipt.complete()
            assert result.receipt.completed
            assert (await client.submit([result.receipt])).accepted == 1
            assert await client.resume() is None
            assert (await client.window()).name == "w1"
            assert (await client.account()).counter == 1
            assert API_KEY not in repr(client)

    asyncio.run(story())
    assert [call for call, _ in verifier.received] == ["statements", "receipts"]


@pytest.mark.parametrize("anchored", [True, False])
def test_tasks_of_one_account_form_a_queue(options: Options, anchored: bool) -> None:
    async def story() -> list[int]:
        async with AsyncClient("http://provider", API_KEY, **options(anchored=anchored)) as client:
            asked = [client.search(f"question {n}") for n in range(6)]
            return [each.receipt.counter for each in await asyncio.gather(*asked)]

    assert asyncio.run(story()) == list(range(6))


def test_a_blocking_client_serves_several_threads(opened: Callable[..., Client]) -> None:
    client = opened()
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda n: client.search(f"question {n}"), range(6)))
    assert sorted(each.receipt.counter for each in results) == list(range(6))
    assert {each.receipt.file.request.query for each in results} == {
        f"question {n}" for n in range(6)
    }


def test_blocking_clients_share_one_thread(opened: Callable[..., Client], tmp_path: Path) -> None:
    for number in range(3):
        opened(anchored=False, state_dir=None).account()
        assert number is not None
    names = [each.name for each in threading.enumerate()]
    assert names.count("ragaudit-client") == 1


def test_an_interrupted_caller_leaves_nothing_running() -> None:
    started, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    class Interrupted(BaseException):
        pass

    def interrupt(*_: Any) -> Any:
        assert started.wait(10)
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concurrent.futures.Future.result", interrupt)
        with pytest.raises(Interrupted):
            run(endless())
    assert ended.wait(10)


def test_an_interrupt_ends_a_blocking_call_at_once() -> None:
    """By a real signal: a main thread that waits for the loop's is not deaf meanwhile."""
    started, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupt() -> None:
        assert started.wait(10)
        main = threading.main_thread().ident
        assert main is not None
        # Once it waits, as it does for all but an instant of a call.
        while sys._current_frames()[main].f_code.co_name != "wait":
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)  # to the process, as from a terminal

    # Jobs in the background of a shell ignore the signal, and so would this process.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(endless())
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert ended.wait(10)


def test_a_blocking_client_answers_inside_a_running_loop(opened: Callable[..., Client]) -> None:
    """It holds that loop up, as any blocking call does, and needs nothing of it."""

    async def story() -> int:
        return opened().search("question").receipt.counter

    assert asyncio.run(story()) == 0


FORKING = """
import os
from ragaudit.client.blocking import run

async def done():
    return 7

assert run(done()) == 7
child = os.fork()
if not child:
    os._exit(run(done()))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == run(done()) == 7
"""


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def providers(provider: Any, verifier: Any) -> list[Any]:
    """Three accounts, each alone with its provider: what a pool sees of three accounts of one."""
    return [provider, *(type(provider)(now=provider.now) for _ in range(2))]


def accounts(providers: list[Any], options: Options, tmp_path: Path) -> list[dict[str, Any]]:
    return [
        options(transport=httpx.MockTransport(each.handle), state_dir=tmp_path / f"state {number}")
        for number, each in enumerate(providers)
    ]


def test_a_pool_spreads_queries_until_every_budget_is_used(
    providers: list[Any], options: Options, tmp_path: Path
) -> None:
    clients = [
        Client("http://provider", API_KEY, **each)
        for each in accounts(providers, options, tmp_path)
    ]
    with Pool(clients) as pool, ThreadPoolExecutor(5) as threads:
        pool.register()
        results = list(threads.map(lambda n: pool.search(f"question {n}"), range(18)))
        assert len({each.receipt.file.request.query for each in results}) == 18
        assert [each.counter for each in providers] == [6, 6, 6]
        with pytest.raises((BudgetExhausted, StateConflict)):
            pool.search("one more")
        for each in providers:  # what it says from now on keeps nothing from the verifier
            each.interfere = lambda call, reply: httpx.Response(500) if call == "account" else reply
        assert pool.submit([each.receipt for each in results]).accepted == 18
        results[0].receipt.complete()


def test_a_pool_waits_for_an_account_that_is_free(
    providers: list[Any], options: Options, tmp_path: Path
) -> None:
    async def story() -> None:
        chosen = accounts(providers[:2], options, tmp_path)
        clients = [AsyncClient("http://provider", API_KEY, **each) for each in chosen]
        async with AsyncPool(clients) as pool:
            await asyncio.gather(*(pool.search(f"question {n}") for n in range(8)))

    asyncio.run(story())
    # Which of the two is free first is chance; neither is left out.
    used = [each.counter for each in providers]
    assert sum(used) == 8 and used[2] == 0 and min(used[:2]) > 0


def test_a_budget_that_others_used_moves_the_query_on(
    providers: list[Any], options: Options, tmp_path: Path
) -> None:
    async def story() -> None:
        chosen = accounts(providers[:2], options, tmp_path)
        clients = [
            AsyncClient("http://provider", API_KEY, **{**each, "state_dir": None})
            for each in chosen
        ]
        async with AsyncPool(clients) as pool:
            await pool.register()
            providers[0].counter = 6
            result = await pool.search("question")
            assert result.receipt.counter == 0
            await asyncio.gather(*(pool.search(f"question {n}") for n in range(5)))
            with pytest.raises(BudgetExhausted):
                await pool.search("one more")

    asyncio.run(story())


def test_what_one_account_complains_about_is_the_callers_to_see(
    providers: list[Any], options: Options, tmp_path: Path, verifier: Any
) -> None:
    async def story() -> None:
        chosen = accounts(providers, options, tmp_path)
        clients = [AsyncClient("http://provider", API_KEY, **each) for each in chosen]
        async with AsyncPool(clients) as pool:
            await pool.register()
            closed = httpx.Response(409, json={"title": "Closed"})
            providers[0].interfere = lambda call, reply: closed if call == "reveal" else reply
            with pytest.raises(PromiseUnanswered):
                await pool.search("question 0")
            assert (await pool.search("question 1")).receipt.counter == 0
            assert await pool.claim() == 1

    asyncio.run(story())
    assert [call for call, _ in verifier.received].count("claims") == 1


def test_a_pool_of_nobody_says_so() -> None:
    with pytest.raises(StateConflict):
        Pool([]).search("question")
    with pytest.raises(StateConflict):
        Pool([]).submit([])
