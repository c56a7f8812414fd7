"""What clients see of a prover that is killed again and again: what spec 8.6 says, nothing else."""

import random
import threading
import time
from collections import Counter
from typing import Any

import httpx
import pytest
from prover_process import ANCHORED, PATIENCE, PLAIN, WORDS, Setting, check_log
from ragaudit.ledger.messages.entries import Record

# Of exchanges with a process that is away, or that was killed in the midst of them.
NOT_SENT = {"ConnectError", "ConnectTimeout"}
CUT_OFF = {"ReadError", "RemoteProtocolError", "WriteError"}
# Of a service that is there. 429: too many are asked of a machine that has no time for them.
ANSWERED = {
    ("query", 200, ""),
    ("promise", 200, ""),
    ("reveal", 200, ""),
    ("account", 200, ""),
    ("query", 429, "too-many-requests"),
    ("promise", 429, "too-many-requests"),
    ("reveal", 429, "too-many-requests"),
    ("account", 429, "too-many-requests"),
}


class Client(threading.Thread):
    """An account that asks as spec 8.6 tells it to, and notes everything that it sees.

    Attributes:
        seen: (call, status, name of the problem) of replies, (call, kind of exception) otherwise.
        public: the public parts that arrived; lost: counters of records whose answers did not.
    """

    def __init__(self, setting: Setting, account: str) -> None:
        super().__init__()
        self.setting, self.account = setting, account
        self.done = threading.Event()
        self.seen: Counter[tuple[Any, ...]] = Counter()
        self.public: list[dict[str, Any]] = []
        self.lost: list[int] = []
        self.http = httpx.Client(
            base_url=setting.prover.http.base_url,
            headers={"Authorization": f"Bearer {setting.keys[account]}"},
            timeout=60,
            trust_env=False,
        )

    def run(self) -> None:
        with self.http:
            while not self.done.is_set():
                self.ask(len(self.public) + len(self.lost))

    def ask(self, number: int) -> None:
        body = {"query": f"{WORDS[number % len(WORDS)]} {number}", "top_k": 3, "filter": ""}
        if self.account == ANCHORED:
            assert self.setting.chain is not None
            # Whatever was cut off: the same call again.
            self.until_answered("promise", {**body, "counter": number})
            nonce = self.setting.chain.nonce(number).hex()
            answer = self.until_answered("reveal", {"counter": number, "nonce": nonce})
            self.public.append(answer["public"])
            return
        answer = self.call("query", body)
        if answer is not None:
            self.public.append(answer["public"])
        elif self.until_answered("account")["counter"] > number:
            self.lost.append(number)

    def until_answered(self, call: str, body: Any = None) -> Any:
        while (answer := self.call(call, body)) is None:
            pass
        return answer

    def call(self, call: str, body: Any = None) -> Any:
        """The reply's content, None unless it is status 200; both are noted."""
        method = "GET" if body is None else "POST"
        try:
            reply = self.http.request(method, f"/v1/windows/w1/{call}", json=body)
        except httpx.HTTPError as error:
            self.seen[call, type(error).__name__] += 1
            time.sleep(PATIENCE)
            return None
        problem = "" if reply.is_success else reply.json()["type"].rpartition(":")[2]
        self.seen[call, reply.status_code, problem] += 1
        return reply.json() if reply.status_code == 200 else None


@pytest.mark.parametrize(
    "kills", [pytest.param(5, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.nightly)]
)
@pytest.mark.timeout(3000)
def test_what_clients_see_of_kills(setting: Setting, kills: int) -> None:
    setting.open(length_seconds=2400, queries_per_account=2000)
    clients = [Client(setting, account) for account in (*PLAIN, ANCHORED)]
    for each in clients:
        each.start()
    moments = random.Random(20_261_122)
    away = []
    for _ in range(kills):
        time.sleep(moments.uniform(0.05, 1.5))
        setting.prover.kill()
        killed = time.monotonic()
        setting.prover.start()
        setting.prover.wait_for(lambda: setting.prover.http.get("/readyz").is_success)
        away.append(time.monotonic() - killed)
    for each in clients:
        each.done.set()
    for each in clients:
        each.join()
    seen = sum((each.seen for each in clients), Counter[tuple[Any, ...]]())
    print(
        "seen:", *sorted(seen.items(), key=str), "seconds away:", sorted(away), sep="\n"
    )  # with -s

    replies = {key: count for key, count in seen.items() if len(key) == 3}
    broken = {key: count for key, count in seen.items() if len(key) == 2}
    assert set(replies) <= ANSWERED, replies
    assert {kind for _, kind in broken} <= NOT_SENT | CUT_OFF, broken
    # Each client has one exchange at a time, so that a kill cuts off at most one of each.
    assert 0 < sum(n for (_, kind), n in broken.items() if kind in CUT_OFF) <= kills * len(clients)
    # No answer is lost but those that were cut off, and none comes twice.
    for each in clients:
        cut = sum(n for (_, *kind), n in each.seen.items() if set(kind) & CUT_OFF)
        records = [Record.parse(bytes.fromhex(public["body"])) for public in each.public]
        counters = sorted([*(record.counter for record in records), *each.lost])
        assert counters == list(range(len(counters)))
        assert len(each.lost) <= cut
    assert clients[-1].account == ANCHORED and clients[-1].lost == []
    setting.prover.kill()
    check_log(setting, [public for each in clients for public in each.public])
