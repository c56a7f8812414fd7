"""One window from its creation to its verdict, with clocks that are moved on where nobody asks."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any

import httpx
from ragaudit.cli.processes import ServiceFailed
from ragaudit.cli.up.clock import SharedClock
from ragaudit.cli.up.prepare import WINDOW, Parties
from ragaudit.encoding.problems import reason
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.service.remote import Remote

__all__ = ["LocalWindow"]

POLL_SECONDS = 0.1
QUIET_SECONDS = 0.5
TIMEOUT_SECONDS = 120.0
# From the waits below: a store of a million rows takes half an hour to commit to.
MOST_SECONDS = 3600.0
_MARGIN_MS = 500
Told = Callable[[str], None]


class LocalWindow:
    """The window that `ragaudit up` opens; both services run meanwhile."""

    def __init__(self, parties: Parties, check_alive: Callable[[], None]) -> None:
        """Open the connection to the prover.

        Args:
            check_alive: raises if a service has ended; called in every wait.
        """
        self._parties = parties
        self._check_alive = check_alive
        self._clock = SharedClock(parties.clock)
        self._http = httpx.Client(
            base_url=parties.prover_url, trust_env=False, timeout=TIMEOUT_SECONDS
        )
        self._lines = 0
        self.policy: dict[str, Any] = {}

    def __enter__(self) -> "LocalWindow":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def open(self, told: Told, check: Callable[[], None]) -> None:
        """Create the window and return when the applications can ask.

        Args:
            told: is told what is being done.
            check: called in every wait; raises to give up.

        Raises:
            ServiceFailed: it was refused or abandoned, or a service ended.
        """
        self._call("POST", "/v1/operator/windows", {"window": WINDOW, "overrides": {}})

        def countersigned() -> bool:
            status = self.status()
            if status["state"] in {"refused", "abandoned"}:
                why = status["unusable"] or status["last_error"] or "see the verifier's log"
                raise ServiceFailed(f"{status['state']}: {why}", where=f"window {WINDOW}")
            if busy := status["busy"]:
                told(f"committing to the documents: {busy['with']}, {busy['percent']} %")
            elif status["last_error"]:
                # Perhaps mended meanwhile, as a row without a vector is.
                told(f"{status['last_error']}; trying again, Ctrl-C gives up")
            return status["state"] in {"countersigned", "activated", "open"}

        self._until(countersigned, "committing to the documents", check)
        told("registering the applications")
        keys = [*self._parties.keys.values(), *self._parties.more_keys]
        for key in keys:
            # As plain, with the dispute key that the prover was given for each application.
            self._call("POST", f"/v1/windows/{WINDOW}/registration", {}, key)
        # The clocks must not be moved on past a promise to cosign what was logged.
        for key in keys:
            cosigned = partial(self._is_cosigned, key)
            self._until(cosigned, "registering", check)
        self.policy = dict(self._call("GET", f"/v1/windows/{WINDOW}")["policy"])
        told("opening")
        self._clock.reach(1000 * int(self.policy["start"]) + _MARGIN_MS)
        self._until(lambda: self.status()["state"] == "open", "opening", check)

    def status(self) -> dict[str, Any]:
        """Return where the window stands, for its operator."""
        return dict(self._call("GET", f"/v1/operator/windows/{WINDOW}"))

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what was added to the audit stream since the last call."""
        with suppress(FileNotFoundError):
            lines = self._parties.stream.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]
            for line in whole[self._lines :]:
                yield json.loads(line)
            self._lines = len(whole)

    def close(self, told: Told) -> Verdict:
        """End the window now, have it audited, and return the verdict, whose signature is checked.

        Args:
            told: is told what is being done.

        Raises:
            ServiceFailed: a service ended, or did not do its part in time.
        """
        with suppress(ServiceFailed):  # it may have reached its end by itself
            self._call("POST", f"/v1/operator/windows/{WINDOW}/close")
        told("closing: the last answers are being cosigned")
        self._until(self._is_quiet, "closing")
        self._clock.reach(1000 * int(self.policy["end"]) + _MARGIN_MS)
        told("closing: the log goes to the verifier")
        self._until(lambda: bool(self.status()["handed_over"]), "handing over")
        self._clock.reach(1000 * int(self.policy["activation_instants"][-1]) + _MARGIN_MS)
        with Remote(self._parties.verifier_url, self._parties.auditor_token) as auditor:

            def show(step: str, done: int, total: int) -> None:
                self._check_alive()
                if trouble := self.status()["last_error"]:
                    told(f"the prover is stuck: {trouble}")
                else:
                    told(f"audit: {step} {done}/{total}" if total else f"audit: {step}")

            auditor.wait(WINDOW, show)
            key = PublicKey.from_raw(hex_decode(self._parties.verdict_key))
            signed = auditor.verdict(WINDOW)
        (self._parties.folder / "verdict.json").write_bytes(signed)
        self._keep_evidence()
        return Verdict.verify(signed, key)

    def _keep_evidence(self) -> None:
        """Store the evidence bundle beside the verdict: with it anybody can judge again."""
        url = f"{self._parties.verifier_url}/v1/windows/{WINDOW}/bundle/confidential"
        headers = {"Authorization": f"Bearer {self._parties.auditor_token}"}
        said = {"reader": "ragaudit up", "reason": "kept beside the verdict"}
        answer = httpx.post(
            url, json=said, headers=headers, trust_env=False, timeout=TIMEOUT_SECONDS
        )
        (self._parties.folder / "bundle.zip").write_bytes(answer.raise_for_status().content)

    def _is_cosigned(self, key: str) -> bool:
        shown = self._call("GET", f"/v1/windows/{WINDOW}/account", key=key)
        registration = shown["registration"]
        return registration is not None and registration["proof"] is not None

    def _is_quiet(self) -> bool:
        """Whether no answer is on its way, and all that was logged is cosigned."""
        before = self.status()["records"]
        time.sleep(QUIET_SECONDS)
        after = self.status()
        if after["records"] != before:
            return False
        # Opening, registrations and records: nothing else is in the log of an open window.
        last = int(after["accounts"]) + int(after["records"])
        answer = self._http.get(f"/v1/windows/{WINDOW}/receipts/{last}/proof")
        return answer.status_code == HTTPStatus.OK

    def _call(self, method: str, path: str, body: object = None, key: str | None = None) -> Any:
        token = self._parties.operator_token if key is None else key
        try:
            answer = self._http.request(
                method, path, json=body, headers={"Authorization": f"Bearer {token}"}
            )
            document = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ServiceFailed(f"no answer: {type(error).__name__}", where="prover") from None
        if answer.is_success:
            return document
        raise ServiceFailed(reason(document) or f"status {answer.status_code}", where="prover")

    def _until(
        self, true: Callable[[], bool], what: str, check: Callable[[], None] | None = None
    ) -> None:
        deadline = time.monotonic() + MOST_SECONDS
        while not true():
            (check or self._check_alive)()
            if time.monotonic() > deadline:
                raise ServiceFailed(f"not done in {MOST_SECONDS:.0f} s", where=what)
            time.sleep(POLL_SECONDS)
