"""One caller's connections against another's, over the network: everybody is served in turn."""

import threading
import time

import httpx
import pytest
from prover_process import Setting, body_of

CONNECTIONS = 60
QUESTIONS = 15


class Flood:
    """Connections that ask again as soon as they are answered, whatever the answer."""

    def __init__(self, setting: Setting, key: str | None, path: str) -> None:
        self._url = f"{setting.prover.http.base_url}".rstrip("/") + path
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._stop = threading.Event()
        self.statuses: list[int] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(CONNECTIONS)]

    def __enter__(self) -> "Flood":
        for each in self._threads:
            each.start()
        time.sleep(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def _ask(self) -> None:
        with httpx.Client(timeout=30, trust_env=False, headers=self._headers) as http:
            while not self._stop.is_set():
                try:
                    answer = http.post(self._url, json=body_of(0))
                except httpx.HTTPError:
                    continue
                self.statuses.append(answer.status_code)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_others_are_served_while_one_caller_floods(setting: Setting) -> None:
    """Every question of the other account is answered, and the flood waits.

    In turn, a flooding account gets about as many answers as the one that asks politely; in the
    order of arrival it had dozens for each of the other's. Nothing is said about seconds.
    """
    setting.open(length_seconds=900, queries_per_account=400)
    keys = {"an account": setting.keys["ada"], "wrong keys": "x" * 43, "nobody": None}
    for flooding, key in keys.items():
        with Flood(setting, key, "/v1/windows/w1/query") as flood:
            before = len(flood.statuses)
            answers = [setting.post("bea", "query", body_of(n)) for n in range(QUESTIONS)]
            during = flood.statuses[before:]
        assert [each.status_code for each in answers] == [200] * QUESTIONS, flooding
        expected = {200, 429} if flooding == "an account" else {401, 429}
        assert set(flood.statuses) == expected, flooding
        if flooding == "an account":
            assert during.count(200) <= 10 * QUESTIONS
