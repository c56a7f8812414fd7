"""The accounts at work: they register, ask, check, submit, crash, complain, go to the arbiter."""

import json
import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ragaudit.client import Client, Receipt, SearchResult
from ragaudit.client.errors import AnswerRejected, PromiseUnanswered
from ragaudit.encoding.errors import RefusedError
from ragaudit.encoding.options import public_key
from ragaudit.http import HttpClient
from ragaudit.lab.demo.crashing_client import EXIT_CRASHED
from ragaudit.lab.demo.plan import TOP_K, AccountPlan, Plan
from ragaudit.serving.clock import system_clock
from ragaudit.verifier.arbiter import Arbiter, read_window
from ragaudit.verifier.engines import fastest_engine


def arbitrate(
    folder: Path, file: dict[str, Any], *, window: str, verifier_key: str, prover: str,
    verifier: str,
) -> None:  # fmt: skip
    """Take a receipt file to the arbiter in ``folder``, and its finding to the verifier.

    Args:
        folder: of the arbiter, which shares nothing with the verifier.
        file: the receipt file as JSON.
        window: its name.
        verifier_key: public, in hex, known from elsewhere and not from the provider.
        prover, verifier: addresses.

    Raises:
        RefusedError: the verifier does not take the finding.
    """
    with HttpClient(prover, timeout=60) as http:
        shown = http.request("GET", f"/v1/windows/{window}").json()
    view = read_window(shown, public_key(verifier_key))
    finding, public = Arbiter(folder).judge(file, view, fastest_engine(), system_clock)
    told = {"finding": finding.to_json(), "public": public.to_json()}
    with HttpClient(verifier, timeout=60) as http:
        answer = http.request("POST", f"/v1/windows/{window}/findings", json=told)
    if not answer.is_success:
        raise RefusedError(f"finding not taken: {answer.status_code}", where=window)


_RECEIPT_FILE = "ragaudit/v1/receipt/file"
_WORKERS = 4
_CRASH_AFTER = 3
_CRASH_SECONDS = 60


@contextmanager
def quiet_clients() -> Iterator[None]:
    """Keep back that accounts hardly have time to hand in: so a demonstration stays short."""
    log = logging.getLogger("ragaudit.client")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@dataclass(frozen=True)
class Complaint:
    """What a client library noticed by itself, long before the audit."""

    account: str
    window: str
    error: str


@dataclass
class Outcome:
    """What became of one account in one window."""

    until: float
    answered: int = 0
    unasked: int = 0
    submitted: int = 0
    resumed: bool = False
    disputed: bool = False
    checks: Counter[tuple[str, str]] = field(default_factory=Counter)


class Traffic:
    """All accounts of the plan in all windows; each account is one thread's at a time."""

    def __init__(
        self, plan: Plan, *, prover: str, verifier: str, verifier_key: str, keys: Mapping[str, str],
        work: Path, disputing: bool = True,
    ) -> None:  # fmt: skip
        """``keys`` are the accounts' API keys by name; ``disputing``: they dispute rejections."""
        self._plan = plan
        self._addresses = {"base_url": prover, "verifier_url": verifier}
        self._verifier_key = verifier_key
        self._keys = keys
        self._work = work
        self._disputing = disputing
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._disputed: list[tuple[AccountPlan, str, dict[str, Any]]] = []
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self.complaints: list[Complaint] = []

    def stop(self) -> None:
        """Ask nothing any more."""
        self._stopping.set()

    def anchored(self, account: str, window: str) -> bool:
        """Return whether an account asks through a nonce chain in a window."""
        return any(
            each.name == account and self._plan.anchored(each, window)
            for each in self._plan.accounts
        )

    def register(self, window: str, progress: Callable[[], object]) -> None:
        """Register every account that will ask something in the window.

        Args:
            window: its name.
            progress: called after each account.
        """

        def one(account: AccountPlan) -> None:
            with self._client(account, window) as client:
                client.register()
            progress()

        self._each(window, one)

    def ask(self, window: str, progress: Callable[[], object], *, until: float) -> None:
        """Ask every question of the window; ``progress`` is called after each.

        Args:
            until: Unix seconds; what would be asked later is left out and counted as such, so
                that a busy machine does not make the accounts knock at a closed window.
        """

        def one(account: AccountPlan) -> None:
            outcome = Outcome(until=until)
            with self._lock:
                self.outcomes[account.name, window] = outcome
            questions = list(account.questions[window])
            if account.crashes and len(questions) > 2 * _CRASH_AFTER:
                self._ask(account, window, questions[:_CRASH_AFTER], outcome, progress)
                self._crash(account, window, questions[_CRASH_AFTER])
                del questions[: _CRASH_AFTER + 1]
                progress()
            self._ask(account, window, questions, outcome, progress)

        self._each(window, one)

    def _ask(
        self, account: AccountPlan, window: str, questions: list[str], outcome: Outcome,
        progress: Callable[[], object],
    ) -> None:  # fmt: skip
        receipts: list[Receipt] = []
        with self._client(account, window) as client:
            attempt = partial(self._attempt, account, window, client)
            attempt(partial(self._resume, client, outcome, receipts))
            for question in questions:
                if self._stopping.is_set():
                    return
                if time.time() > outcome.until:
                    outcome.unasked += 1
                    progress()
                    continue
                attempt(partial(self._search, client, question, outcome, receipts))
                progress()
            for receipt in receipts:
                attempt(receipt.complete)
                outcome.checks.update((each.name, each.status) for each in receipt.checks)
            if account.disputes and receipts and not outcome.disputed:
                file = receipts[-1].file.to_json()
                attempt(partial(self._dispute, account, window, client, file))
                outcome.disputed = True
            if account.submits and receipts:
                attempt(partial(self._submit, client, receipts, outcome))

    def settle(self, window: str) -> None:
        """Have the verifier, or the arbiter, judge what was disputed, once the sample is drawn.

        The verifier is asked first: only files of records that it sampled go to the arbiter, since
        it holds the noise of those (docs/spec/08-services.md §8.9).

        Args:
            window: its name.
        """
        for account, of, file in self._disputed:
            if of != window:
                continue
            with self._client(account, window) as client:
                if client.settle(file)["sampled"]:
                    arbitrate(
                        self._work / "arbiter", file, window=window,
                        verifier_key=self._verifier_key, prover=self._addresses["base_url"],
                        verifier=self._addresses["verifier_url"],
                    )  # fmt: skip

    def _dispute(
        self, account: AccountPlan, window: str, client: Client, file: dict[str, Any]
    ) -> None:
        client.dispute(file)
        with self._lock:
            self._disputed.append((account, window, file))

    @staticmethod
    def _submit(client: Client, receipts: list[Receipt], outcome: Outcome) -> None:
        client.submit(receipts)
        outcome.submitted += len(receipts)

    @staticmethod
    def _search(client: Client, question: str, outcome: Outcome, receipts: list[Receipt]) -> None:
        receipts.append(client.search(question, TOP_K).receipt)
        outcome.answered += 1

    @staticmethod
    def _resume(client: Client, outcome: Outcome, receipts: list[Receipt]) -> None:
        result = client.resume()
        if isinstance(result, SearchResult):
            receipts.append(result.receipt)
            outcome.answered += 1
            outcome.resumed = True

    def _attempt(
        self, account: AccountPlan, window: str, client: Client, action: Callable[[], object]
    ) -> None:
        """Run an action; what the client complains about is noted, and disputed if it can be."""
        try:
            action()
        except (AnswerRejected, PromiseUnanswered, RefusedError) as error:
            with self._lock:
                self.complaints.append(Complaint(account.name, window, str(error)))
            received = error.received if isinstance(error, AnswerRejected) else None
            if not self._disputing:
                return
            if isinstance(received, dict) and received.get("format") == _RECEIPT_FILE:
                # A second dispute of the account, or one that comes too late, is refused; the
                # complaint stays.
                with suppress(RefusedError):
                    self._dispute(account, window, client, received)

    def _crash(self, account: AccountPlan, window: str, question: str) -> None:
        """Let a client of its own process store a promise and die before revealing the nonce."""
        arguments = {**self._arguments(account, window), "query": question, "top_k": TOP_K}
        done = subprocess.run(
            [sys.executable, "-m", "ragaudit.lab.demo.crashing_client"],
            input=json.dumps(arguments),
            capture_output=True,
            text=True,
            timeout=_CRASH_SECONDS,
            check=False,
        )
        if done.returncode != EXIT_CRASHED:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            with self._lock:
                self.complaints.append(Complaint(account.name, window, last))

    def _arguments(self, account: AccountPlan, window: str) -> dict[str, Any]:
        return {
            **self._addresses,
            "api_key": self._keys[account.name],
            "window": window,
            "verifier_key": self._verifier_key,
            "state_dir": str(self._work / "clients" / account.name),
            "anchored": self._plan.anchored(account, window),
        }

    def _client(self, account: AccountPlan, window: str) -> Client:
        return Client(embedder=self._plan.embedder, **self._arguments(account, window))

    def _each(self, window: str, action: Callable[[AccountPlan], None]) -> None:
        """Run an action for every account of a window, a few at a time; the first error is
        raised when all have ended."""
        accounts = [each for each in self._plan.accounts if each.questions.get(window)]
        # On a busy machine the last ones have no time left to ask: not those that show something.
        accounts.sort(key=lambda each: not (each.crashes or each.disputes))
        with ThreadPoolExecutor(_WORKERS) as pool:
            futures = [pool.submit(action, account) for account in accounts]
        errors = [each.exception() for each in futures]
        for error in errors:
            if error is not None:
                raise error
