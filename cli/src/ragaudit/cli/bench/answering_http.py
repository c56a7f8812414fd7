"""Answering over HTTP: a real prover and verifier on loopback, as the demonstration starts them."""

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from ragaudit.cli.bench.measure import Measurement, summarise
from ragaudit.cli.bench.scenario import Task
from ragaudit.cli.bench.workload import Sizes
from ragaudit.cli.demo.corpus import Passage, load_corpus
from ragaudit.cli.demo.operator import Operator
from ragaudit.cli.demo.plan import WindowPlan, measure_pace
from ragaudit.cli.demo.processes import ServiceFailed
from ragaudit.cli.demo.questions import candidates
from ragaudit.cli.demo.services import prepare
from ragaudit.embedders import registry
from ragaudit.encoding.errors import UnsupportedError

__all__ = ["answer_http"]

WINDOW, TENANT = "bench", "bench"
_PER_ACCOUNT = 40
_WARM_UP = 3
_POLL_SECONDS = 0.02
_OPEN_SECONDS = 120.0


def answer_http(task: Task) -> list[Measurement]:
    """Answering one plain query, entry durable, signed receipt included, and its completion by a
    cosigned checkpoint; beside embedding the query and NumPy's exact search.

    Raises:
        UnsupportedError: another dimension than the embedder's.
        ServiceFailed: a service did not start, or the window did not open.
    """
    sizes, runs = task.work.sizes, task.runs
    embedder = registry.load()
    if sizes.dimension != embedder.dimension:
        raise UnsupportedError(
            f"d = {sizes.dimension}",
            where="--dim",
            expected=f"{embedder.dimension}, the embedder's",
        )
    passages = _passages(sizes.rows)
    questions = list(candidates(passages))
    vectors = embedder.embed([each.text for each in passages])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    turn = itertools.cycle(questions)

    def search() -> Any:
        similarity = vectors @ embedder.embed([next(turn)])[0]
        return np.argpartition(similarity, -sizes.top_k)[-sizes.top_k :]

    baseline = task.measure("embed the query, NumPy exact search", search)
    task.stage("window over HTTP")
    with ExitStack() as stack:
        answered, completed = _serve(stack, sizes, passages, questions, runs)
    first = summarise("answer over HTTP, durable, signed", answered)
    return [baseline, first.beside(baseline), summarise("until its cosigned proof", completed)]


def _serve(
    stack: ExitStack, sizes: Sizes, passages: list[Passage], questions: list[str], runs: int
) -> tuple[list[float], list[float]]:
    """Seconds of each answer, and from each answer to its proof."""
    folder = tempfile.TemporaryDirectory(prefix="ragaudit-bench-", ignore_cleanup_errors=True)
    work = Path(stack.enter_context(folder))
    with ThreadPoolExecutor(2) as pool:
        services = prepare(work, pool)
    services.ingest({TENANT: passages})
    services.start_verifier(stack)
    services.start_prover(stack, None)
    operator = Operator(services.prover_url, services.operator_token)
    stack.callback(operator.close)
    keys = _open(operator, sizes, runs)
    answered, completed = [], []
    with httpx.Client(base_url=services.prover_url, timeout=30.0) as http:
        for number, (key, question) in enumerate(_turns(http, keys, questions, runs)):
            begun = time.perf_counter()
            reply = _query(http, key, question, sizes.top_k)
            seconds = time.perf_counter() - begun
            _await_proof(http, reply["public"]["index"])
            if number >= _WARM_UP:
                answered.append(seconds)
                completed.append(time.perf_counter() - begun - seconds)
    return answered, completed


def _passages(count: int) -> list[Passage]:
    """``count`` passages of Python's documentation, from the beginning again if need be."""
    known = [each for passages in load_corpus(10**9).values() for each in passages]
    rounds = range(-(-count // len(known)))
    many = [Passage(f"{n}/{each.id}", each.text) for n in rounds for each in known]
    return many[:count]


def _open(operator: Operator, sizes: Sizes, runs: int) -> list[str]:
    """Create window and accounts; return their API keys. The window opens later."""
    accounts = -(-(runs + _WARM_UP) // _PER_ACCOUNT)
    terms = {
        "sigma": sizes.sigma, "epsilon_acc": None, "top_k_max": sizes.top_k,
        "queries_per_account": _PER_ACCOUNT, "slots": accounts, "coalition_max": 1,
        "activation_every_seconds": 10**6,
    }  # fmt: skip
    window = WindowPlan(WINDOW, "A", 8 + sizes.rows // 500, 60 + runs, 10, terms)
    operator.create_window(window, measure_pace())
    return [operator.create_account(TENANT, f"account-{n}") for n in range(accounts)]


def _turns(
    http: httpx.Client, keys: list[str], questions: list[str], runs: int
) -> Iterator[tuple[str, str]]:
    """Register the accounts, wait for the start, then yield who asks what."""
    for key in keys:
        _await("registration", partial(_register, http, key), 0.2)
    _await("start", lambda: http.get(f"/v1/windows/{WINDOW}").json()["state"] == "open", 0.2)
    turns = zip(itertools.cycle(questions), range(runs + _WARM_UP), strict=False)
    for question, number in turns:
        yield keys[number // _PER_ACCOUNT], question


def _register(http: httpx.Client, key: str) -> bool:
    path, headers = f"/v1/windows/{WINDOW}/registration", {"Authorization": f"Bearer {key}"}
    return http.post(path, json={"anchor": None}, headers=headers).status_code in (200, 201)


def _await(what: str, ready: Callable[[], bool], pause: float) -> None:
    deadline = time.monotonic() + _OPEN_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise ServiceFailed(f"no {what} in time", where=f"window {WINDOW}")
        time.sleep(pause)


def _query(http: httpx.Client, key: str, question: str, top_k: int) -> Any:
    path, headers = f"/v1/windows/{WINDOW}/query", {"Authorization": f"Bearer {key}"}
    body = {"query": question, "top_k": top_k, "filter": ""}
    reply = http.post(path, json=body, headers=headers)
    if reply.status_code != 200:
        raise ServiceFailed(f"HTTP {reply.status_code}: {reply.text}", where=path)
    return reply.json()


def _await_proof(http: httpx.Client, index: int) -> None:
    path = f"/v1/windows/{WINDOW}/receipts/{index}/proof"
    _await("proof", lambda: http.get(path).status_code == 200, _POLL_SECONDS)
