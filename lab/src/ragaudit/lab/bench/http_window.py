"""A window of running services on loopback: a real prover and verifier, asked over HTTP."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from ragaudit.cli.corpus import Passage
from ragaudit.cli.processes import ServiceFailed
from ragaudit.lab.demo.operator import Auditor, Operator
from ragaudit.lab.demo.plan import COALITION_MAX, WindowPlan, measure_pace
from ragaudit.lab.demo.services import prepare

__all__ = ["POLL_SECONDS", "HttpWindow", "window_plan"]

POLL_SECONDS = 0.02
_WINDOW = "bench"
_OPEN_SECONDS = 120.0
_REGISTER_SECONDS = 0.2
_NOT_OPEN = ("refused", "abandoned")


def window_plan(accounts: int, rows: int, terms: Mapping[str, Any], seconds: int) -> WindowPlan:
    """Return the window that is opened.

    Args:
        accounts, rows: of all tenants.
        terms, seconds: as of `HttpWindow`.
    """
    shared = {
        "slots": accounts,
        "coalition_max": COALITION_MAX,
        "activation_every_seconds": 10**6,
        # Nobody asks by promises here, and a window may be shorter than the usual margin.
        "claim_margin_seconds": 1,
    }
    opens_after = 8 + rows // 500 + accounts // 20
    return WindowPlan(_WINDOW, "A", opens_after, seconds, 10, {**terms, **shared})


class HttpWindow:
    """An open window, and accounts that are registered in it.

    Attributes:
        url: of the prover.
        pid: of its process.
        keys: API keys of the accounts, by tenant.
    """

    def __init__(
        self,
        stack: ExitStack,
        passages: Mapping[str, Sequence[Passage]],
        accounts: Mapping[str, int],
        terms: Mapping[str, Any],
        seconds: int,
    ) -> None:
        """Start the services and open the window; the stack ends them.

        Args:
            stack: of what has to be ended.
            passages: by tenant.
            accounts: how many of each tenant.
            terms: of the window's policy, beside those that follow.
            seconds: that the window is open, on an idle machine of the usual speed.

        Raises:
            ServiceFailed: a service did not start, or the window did not open.
        """
        folder = tempfile.TemporaryDirectory(prefix="ragaudit-bench-", ignore_cleanup_errors=True)
        work = Path(stack.enter_context(folder))
        with ThreadPoolExecutor(2) as pool:
            services = prepare(work, pool)
        services.ingest(passages)
        services.start_verifier(stack)
        self.pid = services.start_prover(stack, None).pid
        self.url = services.prover_url
        self._operator = Operator(services.prover_url, services.operator_token)
        stack.callback(self._operator.close)
        self._auditor = Auditor(services.verifier_url, services.auditor_token)
        stack.callback(self._auditor.close)
        self.http = stack.enter_context(httpx.Client(base_url=self.url, timeout=30.0))
        plan = window_plan(sum(accounts.values()), sum(map(len, passages.values())), terms, seconds)
        self._operator.create_window(plan, measure_pace())
        self.keys = {
            tenant: [
                self._operator.create_account(tenant, f"{tenant}-{number}")
                for number in range(count)
            ]
            for tenant, count in accounts.items()
        }
        for keys in self.keys.values():
            for key in keys:
                self.wait_for("registration", partial(self._register, key), _REGISTER_SECONDS)
        path = f"/v1/windows/{_WINDOW}"
        opened = partial(self._opened, path)
        self.wait_for("start", opened, _REGISTER_SECONDS)

    def ask(self, http: httpx.Client, key: str, question: str, top_k: int) -> Any:
        """Ask one query and return the receipt file.

        Args:
            http: a client of this prover.
            key: of the account.
            question: its text.
            top_k: K.

        Raises:
            ServiceFailed: it was not answered.
        """
        path, headers = f"/v1/windows/{_WINDOW}/query", {"Authorization": f"Bearer {key}"}
        body = {"query": question, "top_k": top_k, "filter": ""}
        reply = http.post(path, json=body, headers=headers)
        if reply.status_code != 200:
            raise ServiceFailed(f"HTTP {reply.status_code}: {reply.text}", where=path)
        return reply.json()

    def await_proof(self, index: int) -> None:
        """Wait for the cosigned proof of a record.

        Args:
            index: of the record in the log.

        Raises:
            ServiceFailed: there is none in time.
        """
        path = f"/v1/windows/{_WINDOW}/receipts/{index}/proof"
        self.wait_for("proof", lambda: self.http.get(path).status_code == 200, POLL_SECONDS)

    def wait_for(self, what: str, ready: Callable[[], bool], pause: float) -> None:
        """Wait until something is ready.

        Args:
            what: its name.
            ready: asked again and again.
            pause: between two times, in seconds.

        Raises:
            ServiceFailed: it was not ready in time.
        """
        deadline = time.monotonic() + _OPEN_SECONDS
        while not ready():
            if time.monotonic() > deadline:
                raise ServiceFailed(f"no {what} in time", where=f"window {_WINDOW}")
            time.sleep(pause)

    def _opened(self, path: str) -> bool:
        return bool(self.http.get(path).json()["state"] == "open")

    def _register(self, key: str) -> bool:
        path, headers = f"/v1/windows/{_WINDOW}/registration", {"Authorization": f"Bearer {key}"}
        reply = self.http.post(path, json={"anchor": None}, headers=headers)
        if reply.status_code in (200, 201):
            return True
        state = self._operator.status(_WINDOW)["state"]
        if state in _NOT_OPEN:
            raise ServiceFailed(f"{state}: {self._why_refused()}", where=f"window {_WINDOW}")
        return False

    def _why_refused(self) -> str:
        verdict = self._auditor.verdict(_WINDOW)
        checks = [] if verdict is None else verdict["checks"]
        return "; ".join(each["reason"] for each in checks if each["status"] == "FAIL")
