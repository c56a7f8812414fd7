"""Two prover processes on one PostgreSQL: killed, stopped and cut off under load."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import postgresql_server
import pytest
from databases import prover_tables
from prover_process import PATIENCE, PATIENT, PLAIN, Prover, Setting, body_of, check_log
from ragaudit.ledger.messages.entries import Record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LONGEST = 300  # seconds: beyond the end of every window below


def ready(prover: Prover) -> bool:
    return prover.http.get("/readyz").is_success


class Several(Setting):
    """A second prover process beside the first one, on the same settings and database."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shown = self.verifier.keys.public()
        pins = {role: str(shown[role]) for role in ("cosigner", "verifier", "verdict")}
        self.second = Prover(self.made, pins)
        self.second.log = self.second.log.with_name("second.txt")

    @property
    def both(self) -> tuple[Prover, Prover]:
        return self.prover, self.second

    def join(self) -> None:
        self.second.start()
        for each in self.both:
            each.wait_for(partial(ready, each))

    def leader(self) -> Prover:
        """The process that leads; waits until one does."""
        found: list[Prover] = []

        def leads() -> bool:
            for each in self.both:
                try:
                    if each.operator("GET", "/windows/w1")["leads"]:
                        found.append(each)
                except (httpx.HTTPError, AssertionError):
                    continue
            return bool(found)

        self.prover.wait_for(leads)
        assert len(found) == 1
        return found[0]

    def other(self, than: Prover) -> Prover:
        return self.second if than is self.prover else self.prover

    def checkpoints(self) -> int:
        """The size of the last checkpoint that was signed and cosigned."""
        for each in self.both:
            try:
                shown = each.http.get("/v1/windows/w1/log/checkpoint", timeout=2)
            except httpx.HTTPError:
                continue
            return int(shown.text.splitlines()[1])
        raise AssertionError("no process answers")

    def stop(self) -> None:
        process = self.second.process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            self.second.kill(signal.SIGTERM)
        self.second.http.close()
        if self.prover.process is not None:
            self.prover.process.send_signal(signal.SIGCONT)
        super().stop()


@pytest.fixture
def setting(
    tmp_path: Path, make_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Several]:
    url = make_database("postgresql", prover_tables)
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", url)
    made = Several(tmp_path)
    yield made
    made.stop()


class Asking(threading.Thread):
    """An account that asks both processes at random, and repeats what failed with its key.

    At ``count`` answers it waits for a higher one, or for `enough`.
    """

    def __init__(self, setting: Several, account: str, count: int) -> None:
        super().__init__(daemon=True)
        self.setting, self.account, self.count = setting, account, count
        self.public: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.failed = 0
        self.last = ""
        self.enough = threading.Event()
        self._choose = random.Random(account)

    def run(self) -> None:
        with httpx.Client(timeout=20, trust_env=False) as client:
            while not self.wrong:
                number = len(self.public)
                if number >= self.count:
                    if self.enough.wait(PATIENCE):
                        return
                    continue
                prover = self._choose.choice(self.setting.both)
                try:
                    answer = client.post(
                        f"http://127.0.0.1:{prover.port}/v1/windows/w1/query",
                        json=body_of(number),
                        headers={
                            "Authorization": f"Bearer {self.setting.keys[self.account]}",
                            "Idempotency-Key": f"{self.account} {number}",
                        },
                    )
                except httpx.HTTPError as error:
                    self.failed, self.last = self.failed + 1, repr(error)
                    time.sleep(PATIENCE)
                    continue
                if answer.status_code == 200:
                    self.public.append(answer.json()["public"])
                elif answer.status_code >= 500:
                    self.failed, self.last = self.failed + 1, answer.text
                    time.sleep(PATIENCE)
                else:
                    self.wrong.append(answer.text)


def load(setting: Several, count: int) -> list[Asking]:
    threads = [Asking(setting, account, count) for account in PLAIN]
    for thread in threads:
        thread.start()
    return threads


def more(threads: list[Asking], count: int) -> None:
    """Let them go on, to a count that they have not reached yet."""
    for thread in threads:
        thread.count = count


def until_answered(threads: list[Asking], count: int) -> None:
    while any(len(thread.public) < count for thread in threads if not thread.wrong):
        time.sleep(PATIENCE)


def check_answers(setting: Several, threads: list[Asking], count: int) -> None:
    """Every answer is one record, under every counter of its account; a retry made none."""
    for thread in threads:
        thread.enough.set()
    for thread in threads:
        thread.join(LONGEST)
        assert not thread.is_alive(), thread.last
    assert [thread.wrong for thread in threads] == [[]] * len(threads)
    for thread in threads:
        decoded = [Record.parse(bytes.fromhex(each["body"])) for each in thread.public]
        assert [each.counter for each in decoded] == list(range(count))
    check_log(setting, [each for thread in threads for each in thread.public])


def check_audit(setting: Several, prover: Prover) -> None:
    prover.wait_for(
        lambda: prover.operator("GET", "/windows/w1")["state"] == "archived", seconds=400
    )
    shown = httpx.get(f"{setting.verifier.url}/v1/windows/w1", trust_env=False).json()
    report = httpx.get(f"{setting.verifier.url}/v1/windows/w1/report.txt", trust_env=False).text
    assert shown["result"] == "PASS", report


def test_processes_die_stand_still_and_lose_their_server_under_load(
    setting: Several, postgresql: postgresql_server.Server
) -> None:
    """In one window, one after the other; every answer stays, and the window passes."""
    setting.open(length_seconds=246, **PATIENT)
    setting.join()
    threads = load(setting, 10)
    until_answered(threads, 5)
    _is_killed(setting)
    more(threads, 30)
    until_answered(threads, 15)
    _stands_still(setting, threads)
    more(threads, 50)
    for count in (35, 45):
        until_answered(threads, count)
        postgresql.crash()
        time.sleep(1)
        postgresql.start()
    check_answers(setting, threads, 50)
    check_audit(setting, setting.leader())
    assert [each.state() for each in setting.both] == ["archived", "archived"]


def _is_killed(setting: Several) -> None:
    leader = setting.leader()
    leader.kill()
    assert setting.leader() is setting.other(leader)
    leader.start()


def _stands_still(setting: Several, threads: list[Asking]) -> None:
    """Past the take-over: the leader signs nothing once it goes on, and shows the other's log."""
    leader = setting.leader()
    other = setting.other(leader)
    assert leader.process is not None
    leader.process.send_signal(signal.SIGSTOP)
    other.wait_for(lambda: other.operator("GET", "/windows/w1")["leads"])
    size = setting.checkpoints()
    more(threads, 40)
    other.wait_for(lambda: setting.checkpoints() > size)
    leader.process.send_signal(signal.SIGCONT)
    leader.wait_for(lambda: not leader.operator("GET", "/windows/w1")["leads"])
    assert setting.leader() is other
    assert leader.operator("GET", "/windows/w1")["state"] == "open"
