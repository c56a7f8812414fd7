"""The prover as a process: killed at random moments, out of disk; no answer is ever lost."""

import random
import signal
import threading
import time
from typing import Any

import httpx
import pytest
from databases import SERVER_AT_NIGHT
from postgresql_server import Server
from prover_process import ANCHORED, PATIENCE, PATIENT, PLAIN, WORDS, Setting, body_of, check_log
from ragaudit.ledger.messages.entries import Record


class Asking(threading.Thread):
    """An account that goes on asking; connection errors are retried as its kind may."""

    def __init__(self, setting: Setting, account: str, count: int) -> None:
        super().__init__()
        self.setting, self.account, self.count = setting, account, count
        self.public: list[dict[str, Any]] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        while len(self.public) < self.count and not self.wrong:
            try:
                answer = self.ask(len(self.public))
            except httpx.HTTPError:
                time.sleep(PATIENCE)
                continue
            if answer.status_code == 200:
                self.public.append(answer.json()["public"])
            elif answer.status_code < 500:
                self.wrong.append(answer.text)

    def ask(self, number: int) -> httpx.Response:
        query = f"{WORDS[number % len(WORDS)]} {number}"
        body: dict[str, Any] = {"query": query, "top_k": 3, "filter": ""}
        if self.account != ANCHORED:
            return self.setting.post(self.account, "query", body)
        promised = self.setting.post(self.account, "promise", {**body, "counter": number})
        # After a kill the answer may be logged already: then only the nonce is asked for again.
        if promised.status_code not in {200, 409}:
            return promised
        assert self.setting.chain is not None
        nonce = self.setting.chain.nonce(number).hex()
        return self.setting.post(self.account, "reveal", {"counter": number, "nonce": nonce})


@pytest.mark.parametrize(
    ("each", "kills", "seconds"),
    [
        pytest.param(15, 3, 60, marks=pytest.mark.slow),
        pytest.param(50, 6, 126, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.timeout(900)
@SERVER_AT_NIGHT
@pytest.mark.usefixtures("on_each_engine")
def test_killed_at_random_points_of_queries(
    setting: Setting, each: int, kills: int, seconds: int
) -> None:
    setting.open(length_seconds=seconds, **PATIENT)
    threads = [Asking(setting, account, each) for account in (*PLAIN, ANCHORED)]
    for thread in threads:
        thread.start()
    moments = random.Random(20_261_120)
    for _ in range(kills):
        time.sleep(moments.uniform(0.05, 1.5))
        setting.prover.kill()
        setting.prover.start()
    for thread in threads:
        thread.join()
    assert [thread.wrong for thread in threads] == [[]] * 4
    public = [one for thread in threads for one in thread.public]
    assert len(public) == 4 * each
    counters = [Record.parse(bytes.fromhex(one["body"])).counter for one in threads[-1].public]
    assert counters == list(range(each))
    setting.prover.wait_for(lambda: setting.prover.state() == "archived", 400)
    setting.prover.kill(signal.SIGTERM)
    check_log(setting, public)
    shown = httpx.get(f"{setting.verifier.url}/v1/windows/w1", trust_env=False).json()
    assert shown["result"] == "PASS"


KILLED = """
import os, signal, time
from ragaudit.ledger.log import database, fence
from ragaudit.prover.window import log_transaction
honest, attempt = fence.Fence.advance_all, log_transaction._attempt
members = 0
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def counted(member, transaction):
    global members
    attempt(member, transaction)
    members += 1
    if {step!r} == "in the transaction" and members == 2:
        die()
def advance(self, head, counts):
    time.sleep(0.2)  # meanwhile the others come, and share the next one
    if {step!r} == "before the fence" and len(counts) > 1:
        die()
    honest(self, head, counts)
    if {step!r} == "after the fence" and len(counts) > 1:
        die()
fence.Fence.advance_all, log_transaction._attempt = advance, counted
"""
"""A prelude: the process is killed at a step of a transaction that several answers share."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_while_several_answers_share_a_transaction(setting: Setting) -> None:
    setting.open(length_seconds=600)
    public: list[dict[str, Any]] = []
    next_counter = dict.fromkeys(PLAIN, 0)
    for step in ("in the transaction", "before the fence", "after the fence"):
        setting.prover.kill(signal.SIGTERM)
        setting.prover.prelude = KILLED.format(step=step)
        setting.prover.start()
        threads = [Asking(setting, account, 8) for account in PLAIN]
        for thread in threads:
            thread.start()
        assert setting.prover.process is not None
        assert setting.prover.process.wait(120) == -signal.SIGKILL, step
        setting.prover.prelude = ""
        setting.prover.start()
        for thread in threads:
            thread.join()
        assert [thread.wrong for thread in threads] == [[]] * len(PLAIN), step
        for thread in threads:
            found = [Record.parse(bytes.fromhex(each["body"])).counter for each in thread.public]
            # A record whose answer was lost stays logged: its counter is skipped, and used once.
            assert found == sorted(set(found)) and len(found) == 8, step
            first = next_counter[thread.account]
            assert first <= found[0] and found[-1] <= first + 8, step
            next_counter[thread.account] = found[-1] + 1
            public += thread.public
    setting.prover.kill()
    check_log(setting, public)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_full_disk_answers_with_a_problem_and_loses_nothing(setting: Setting) -> None:
    setting.open(length_seconds=600)
    answered = [setting.post("ada", "query", body_of(0)).json()["public"]]
    files = setting.made.settings.parent.glob("prover.db*")
    setting.prover.limit_files(max(file.stat().st_size for file in files) + 40_000)
    refused = []
    for number in range(1, 60):
        answer = setting.post("ada", "query", body_of(number))
        if answer.status_code == 200:
            answered.append(answer.json()["public"])
        else:
            refused.append(answer)
            if len(refused) == 3:
                break
    assert len(refused) == 3
    for answer in refused:
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text and "INSERT" not in answer.text
    setting.prover.limit_files()
    answer = setting.post("ada", "query", body_of(99))
    assert answer.status_code == 200, answer.text
    answered.append(answer.json()["public"])
    setting.prover.kill()
    check_log(setting, answered)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine_name", ["postgresql"])
@pytest.mark.usefixtures("on_each_engine")
def test_a_server_that_turned_read_only_answers_with_a_problem_and_loses_nothing(
    setting: Setting, postgresql: Server
) -> None:
    """As a standby after a failover, or a server whose disk is full."""
    setting.open(length_seconds=600)
    answered = [setting.post("ada", "query", body_of(0)).json()["public"]]
    name = setting.settings.store.url.partition("@/")[2].partition("?")[0]

    def turn(how: str) -> None:
        postgresql.execute(f"ALTER DATABASE {name} {how}")
        # Sessions keep the setting that they began with: they are ended and waited for, at most
        # 10,000 ms each. That of the lock goes on.
        postgresql.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            f" WHERE datname = '{name}'"
            " AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
        )

    turn("SET default_transaction_read_only TO on")
    for number in range(1, 4):
        answer = setting.post("ada", "query", body_of(number))
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text and "INSERT" not in answer.text
    assert setting.prover.http.get("/readyz").status_code == 503
    turn("RESET default_transaction_read_only")
    setting.prover.wait_for(lambda: setting.prover.http.get("/readyz").is_success)
    answer = setting.post("ada", "query", body_of(99))
    assert answer.status_code == 200, answer.text
    answered.append(answer.json()["public"])
    setting.prover.kill()
    check_log(setting, answered)
