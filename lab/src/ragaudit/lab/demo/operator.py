"""What the provider's operator and the auditor do over HTTP."""

from typing import Any

from ragaudit.client.blocking import run
from ragaudit.client.errors import ProviderRefusal
from ragaudit.client.transport import Service
from ragaudit.lab.demo.plan import WindowPlan
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.ledger.messages.verdict import Verdict

__all__ = ["Auditor", "Operator"]


class Operator:
    """Accounts and windows of the prover."""

    def __init__(self, url: str, token: str) -> None:
        self._service = Service(url, api_key=token)

    def close(self) -> None:
        run(self._service.aclose())

    def create_account(self, tenant: str, name: str) -> str:
        """Create an account and return its API key, which is shown this one time.

        Args:
            tenant: of the account.
            name: new in this service.
        """
        body = {"tenant": tenant, "name": name}
        return str(run(self._service.post("/v1/operator/accounts", body, repeatable=False))["key"])

    def create_window(self, window: WindowPlan, pace: float) -> dict[str, Any]:
        """Create a window and return its status, its instants among it.

        Args:
            window: as it is planned.
            pace: how many times slower this machine is than an idle one of the usual speed.
        """
        return self.create(window.name, window.overrides(pace))

    def create(self, name: str, overrides: dict[str, Any]) -> dict[str, Any]:
        """Create a window and return its status.

        Args:
            name: of the window.
            overrides: of the service's settings for windows.
        """
        body = {"window": name, "overrides": overrides}
        status = run(self._service.post("/v1/operator/windows", body, repeatable=False))
        return dict(status)

    def status(self, window: str) -> dict[str, Any]:
        """Return where the window stands."""
        return dict(run(self._service.get(f"/v1/operator/windows/{window}")))

    def window(self, window: str) -> dict[str, Any]:
        """Return the window as everybody sees it."""
        return dict(run(self._service.get(f"/v1/windows/{window}")))


class Auditor:
    """What the auditor sees of the verifier."""

    def __init__(self, url: str, token: str) -> None:
        self._service = Service(url, api_key=token)

    def close(self) -> None:
        run(self._service.aclose())

    def keys(self) -> ShownKeys:
        """Return the verifier's public keys."""
        return ShownKeys.from_json(run(self._service.get("/v1/keys")))

    def status(self, window: str) -> dict[str, Any]:
        """Return state, times and counts of the window."""
        return dict(run(self._service.get(f"/v1/windows/{window}")))

    def progress(self, window: str) -> dict[str, Any]:
        """Return where the audit stands: state, step, done, total."""
        return dict(run(self._service.get(f"/v1/windows/{window}/progress")))

    def verdict(self, window: str) -> dict[str, Any] | None:
        """Return the predicate of a window's verdict; None while there is none.

        The signature is not checked here: the commands that the demonstration prints at its end do
        that.
        """
        try:
            envelope = run(self._service.request("GET", f"/v1/windows/{window}/verdict"))
        except ProviderRefusal as error:
            if error.status != 404:
                raise
            return None
        return Verdict.unverified(envelope).to_json()

    def download(self, window: str, what: str) -> bytes:
        """Return a file of the window.

        Args:
            window: its name.
            what: "verdict", "report.html", "report.txt" or "bundle".
        """
        return run(self._service.request("GET", f"/v1/windows/{window}/{what}"))

    def open_evidence(self, window: str, reason: str) -> bytes:
        """Return the bundle of all evidence of a window; the verifier keeps who and why.

        Args:
            window: its name.
            reason: what is kept.
        """
        body = {"reader": "the demonstration", "reason": reason}
        path = f"/v1/windows/{window}/bundle/confidential"
        return run(self._service.request("POST", path, body, repeatable=False))
