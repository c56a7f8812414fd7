"""Answering over HTTP: a real prover and verifier on loopback, as the demonstration starts them."""

import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
from ragaudit.cli.corpus import Passage, candidates
from ragaudit.embedders import registry
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.bench.http_window import HttpWindow
from ragaudit.lab.bench.machine import processor_seconds
from ragaudit.lab.bench.measure import Measurement, summarise
from ragaudit.lab.bench.running import passages as corpus_passages
from ragaudit.lab.bench.task import Task
from ragaudit.lab.bench.workload import Sizes

__all__ = ["answer_http"]

TENANT = "bench"
_PER_ACCOUNT = 40
_WARM_UP = 3
_CLIENTS = (1, 8)


def answer_http(task: Task) -> list[Measurement]:
    """Measure answering one plain query over HTTP.

    The entry is durable and the signed receipt included; then its completion by a cosigned
    checkpoint; beside embedding the query and NumPy's exact search. Then what the prover's process
    spends on an answer while clients ask without a pause.

    Args:
        task: its dimension must be the embedder's; its rows are passages of Python's documentation.

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
    passages = corpus_passages(sizes.rows)
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
        window = _Window(stack, sizes, passages, questions, runs)
        answered, completed = window.answer(runs)
        busy = [found for each in _CLIENTS if (found := window.keep_busy(each, runs)) is not None]
    first = summarise("answer over HTTP, durable, signed", answered)
    return [
        baseline, first.beside(baseline), summarise("until its cosigned proof", completed), *busy
    ]  # fmt: skip


class _Window:
    """An open window of running services, and accounts with queries left."""

    def __init__(
        self, stack: ExitStack, sizes: Sizes, passages: list[Passage], questions: list[str],
        runs: int,
    ) -> None:  # fmt: skip
        """Start the services and open the window; the stack ends them."""
        self._top_k = sizes.top_k
        self._questions = itertools.cycle(questions)
        asked = [runs + _WARM_UP, *(runs for clients in _CLIENTS for _ in range(clients))]
        accounts = sum(-(-each // _PER_ACCOUNT) for each in asked)
        terms = {
            "sigma": sizes.sigma, "epsilon_acc": None, "top_k_max": sizes.top_k,
            "queries_per_account": _PER_ACCOUNT,
        }  # fmt: skip
        self._running = HttpWindow(
            stack, {TENANT: passages}, {TENANT: accounts}, terms, 60 + 2 * runs
        )
        self._keys = self._running.keys[TENANT]

    def answer(self, runs: int) -> tuple[list[float], list[float]]:
        """Ask one query after the other, each proven before the next.

        Args:
            runs: queries that count; a few before them warm the services up.

        Returns:
            Seconds of each answer, and seconds from each answer to its cosigned proof, which is
            asked for every `POLL_SECONDS`.
        """
        answered, completed = [], []
        [turns] = self._turns(1, runs + _WARM_UP)
        for number, (key, question) in enumerate(turns):
            begun = time.perf_counter()
            reply = self._query(self._running.http, key, question)
            seconds = time.perf_counter() - begun
            self._running.await_proof(reply["public"]["index"])
            if number >= _WARM_UP:
                answered.append(seconds)
                completed.append(time.perf_counter() - begun - seconds)
        return answered, completed

    def keep_busy(self, clients: int, runs: int) -> Measurement | None:
        """Measure user and system time of the prover's process while clients ask without a pause.

        Checkpoints are in it.

        Args:
            clients: how many ask at once, each in a thread of its own.
            runs: queries of each.

        Returns:
            The measurement; None where the system does not tell the time of a process.
        """
        turns = self._turns(clients, runs)
        begun = processor_seconds(self._running.pid)
        if begun is None:
            return None
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(self._ask, turns))
        spent = (processor_seconds(self._running.pid) or begun) - begun
        plural = "client asks" if clients == 1 else "clients ask"
        name = f"user and system time of the prover, {clients} {plural} without a pause"
        return replace(summarise(name, [spent]), warmed_up=True, records=clients * runs)

    def _ask(self, turns: Sequence[tuple[str, str]]) -> None:
        with httpx.Client(base_url=self._running.url, timeout=30.0) as http:
            for key, question in turns:
                self._query(http, key, question)

    def _turns(self, clients: int, each: int) -> list[list[tuple[str, str]]]:
        """Who asks what: a list for each client, whose accounts are its own."""
        accounts = -(-each // _PER_ACCOUNT)
        taken = [[self._keys.pop() for _ in range(accounts)] for _ in range(clients)]
        return [
            [(keys[number // _PER_ACCOUNT], next(self._questions)) for number in range(each)]
            for keys in taken
        ]

    def _query(self, http: httpx.Client, key: str, question: str) -> Any:
        return self._running.ask(http, key, question, self._top_k)
