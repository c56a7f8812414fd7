"""Accounts that ask one service again and again, and never take no for an answer."""

import threading
import time
from typing import Any

import httpx
from prover_process import ANCHORED, PATIENCE, Setting, body_of
from ragaudit.ledger.messages.entries import Record

_PAUSE = 0.2


class Asking(threading.Thread):
    """An account that asks until it is told to stop, and repeats what was cut off.

    Attributes:
        public: halves of the receipts that arrived.
        wrong: the first refusal that no repetition mends.
    """

    def __init__(self, setting: Setting, account: str, pause: float = _PAUSE) -> None:
        super().__init__()
        self.account = account
        self.public: list[dict[str, Any]] = []
        self.wrong = ""
        self._setting = setting
        self._pause = pause
        self._over = threading.Event()

    def run(self) -> None:
        while not (self._over.is_set() or self.wrong):
            self.ask()
            time.sleep(self._pause)

    def ask(self) -> None:
        """Ask one question until it is answered."""
        number = len(self.public)
        while not self.wrong:
            try:
                reply = self._send(number)
            except httpx.HTTPError:
                time.sleep(PATIENCE)
                continue
            if reply.status_code == 200:
                self.public.append(reply.json()["public"])
                return
            if reply.status_code < 500 and reply.status_code != 429:
                self.wrong = reply.text
            time.sleep(PATIENCE)

    def end(self) -> None:
        """Stop after the question at hand."""
        self._over.set()
        self.join()

    def check(self) -> None:
        """Check that each question has one record, in order, and a repetition none."""
        assert self.wrong == ""
        records = [Record.parse(bytes.fromhex(each["body"])) for each in self.public]
        assert [each.counter for each in records] == list(range(len(records)))

    def _send(self, number: int) -> httpx.Response:
        if self.account != ANCHORED:
            return self._post("query", body_of(number))
        promised = self._post("promise", {**body_of(number), "counter": number})
        # The answer may be logged already: then only the nonce is asked for again.
        if promised.status_code not in {200, 409}:
            return promised
        assert self._setting.chain is not None
        nonce = self._setting.chain.nonce(number).hex()
        return self._post("reveal", {"counter": number, "nonce": nonce})

    def _post(self, path: str, body: Any) -> httpx.Response:
        headers = {
            "Authorization": f"Bearer {self._setting.keys[self.account]}",
            "Idempotency-Key": f"{self.account} {len(self.public)}",
        }
        http = self._setting.prover.http
        return http.post(f"/v1/windows/w1/{path}", json=body, headers=headers)
