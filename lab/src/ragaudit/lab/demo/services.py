"""The two services: set up with their own commands, started, and asked by operator and auditor."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ragaudit.cli.corpus import Passage
from ragaudit.cli.processes import ServiceFailed, ServiceProcess, free_port
from ragaudit.client.blocking import run
from ragaudit.client.errors import ProviderRefusal
from ragaudit.client.transport import Service
from ragaudit.lab.demo.plan import WindowPlan
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.arbiter import Arbiter
from ragaudit.verifier.terms import Terms

PROVIDER = "provider.example"
VERIFIER = "regulator.example/ragaudit"
TERMS = Terms.of(
    {
        "least_coalition_max": 2,
        "most_epsilon_acc": "1000",
        "most_generation_epsilon": "40",
        "least_sampling_delay_seconds": 0,
        "least_claim_margin_seconds": 1,
    }
)
"""Of the demo's regulator: a coalition of two, any noise that a visitor tries, nobody waits."""
_ATTEMPTS = 3
_COMMAND_SECONDS = 120


@dataclass
class Services:
    """Folders, addresses and tokens of a prover and a verifier that are not running yet.

    Attributes:
        work: folder of both services' data and logs.
        operator_token: of the prover; auditor_token: of the verifier.
        keys: the verifier's public keys by role, which the prover pins.
        environment: of both services and of every command, beside the usual.
    """

    work: Path
    operator_token: str = field(repr=False)
    auditor_token: str = field(repr=False)
    keys: Mapping[str, str] = field(default_factory=dict)
    arbiter_key: str = ""
    prover_url: str = ""
    verifier_url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def prover_settings(self) -> Path:
        return self.work / "prover" / "prover.yaml"

    @property
    def verifier_settings(self) -> Path:
        return self.work / "verifier" / "verifier.yaml"

    def ingest(self, corpus: Mapping[str, Sequence[Passage]]) -> None:
        """Give every tenant's passages to the prover, as JSON Lines.

        Args:
            corpus: passages by tenant.

        Raises:
            ServiceFailed: the command failed.
        """
        for tenant, passages in corpus.items():
            path = self.work / "documents" / f"{tenant}.jsonl"
            path.parent.mkdir(exist_ok=True)
            lines = [json.dumps({"id": each.id, "text": each.text}) for each in passages]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            words = ("prover", "ingest", tenant, str(path))
            _run(*words, "--settings", str(self.prover_settings), environment=self.environment)

    def start_verifier(self, stack: ExitStack) -> ServiceProcess:
        """Start `ragaudit verifier serve` on a free port; its address is kept for the prover.

        Args:
            stack: ends the process.

        Raises:
            ServiceFailed: the service did not become ready.
        """
        arguments = ["verifier", "serve", "--settings", str(self.verifier_settings)]
        process = start_service(
            stack, "verifier", command(*arguments), self.work,
            lambda port: {
                **self.environment,
                "RAGAUDIT_VERIFIER__LISTEN__PORT": str(port),
                "RAGAUDIT_VERIFIER__TICK_SECONDS": "0.25",
                "RAGAUDIT_VERIFIER__ARBITER_KEY": self.arbiter_key,
                "RAGAUDIT_VERIFIER__TERMS": str(self.work / "verifier" / "terms.toml"),
            },
        )  # fmt: skip
        self.verifier_url = process.url
        return process

    def start_prover(self, stack: ExitStack, cheat: str | None) -> ServiceProcess:
        """Start `ragaudit prover serve`, or a cheating one; the verifier must run.

        Args:
            stack: ends the process.
            cheat: name of the one to stage; None for the honest service.

        Raises:
            ServiceFailed: the service did not become ready.
        """
        settings = str(self.prover_settings)
        arguments = command("prover", "serve", "--settings", settings)
        if cheat is not None:
            program = [sys.executable, "-m", "ragaudit.lab.attacks.serve"]
            arguments = [*program, cheat, "--config", settings]
        process = start_service(
            stack, "prover", arguments, self.work,
            lambda port: {
                **self.environment,
                "RAGAUDIT_PROVER__SERVER__PORT": str(port),
                "RAGAUDIT_PROVER__VERIFIER__URL": self.verifier_url,
                "RAGAUDIT_PROVER__VERIFIER__ARBITER_KEY": self.arbiter_key,
                **{
                    f"RAGAUDIT_PROVER__VERIFIER__{role.upper()}_KEY": key
                    for role, key in self.keys.items()
                },
            },
        )  # fmt: skip
        self.prover_url = process.url
        return process


def command(*arguments: str) -> list[str]:
    """Return the `ragaudit` command of this environment with arguments."""
    return [sys.executable, "-m", "ragaudit.cli", *arguments]


def prepare(work: Path, pool: Executor, environment: Mapping[str, str] | None = None) -> Services:
    """Run `ragaudit verifier init`, `prover init`, `verifier provider add`, and make an arbiter.

    Args:
        work: an empty folder, in which each party gets one of its own.
        pool: in which the verifier's keys are made meanwhile.
        environment: as of `Services`; the databases' URLs, for one.

    Raises:
        ServiceFailed: a command failed.
    """
    run = partial(_run, environment=environment)
    directory = ("--directory", str(work / "verifier"))
    verifier = pool.submit(run, "verifier", "init", "--name", VERIFIER, *directory)
    folder = ("--folder", str(work / "prover"))
    made = json.loads(run("prover", "init", "--provider", PROVIDER, *folder, "--json"))
    keys = dict(line.split(": ", 1) for line in verifier.result().splitlines())
    settings = ("--settings", str(work / "verifier" / "verifier.yaml"))
    (work / "verifier" / "terms.toml").write_text(TERMS.to_toml(), encoding="utf-8")
    run("verifier", "provider", "add", PROVIDER, "--key", made["provider_key"], *settings)
    return Services(
        work,
        operator_token=_read(Path(made["operator_token_file"])),
        auditor_token=_read(work / "verifier" / "secrets" / "auditor-token"),
        keys={role: keys[role] for role in ("cosigner", "verifier", "verdict")},
        arbiter_key=Arbiter.create(work / "arbiter").public.raw.hex(),
        environment=environment or {},
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _run(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a `ragaudit` command; return what it prints, ServiceFailed with its complaint."""
    done = subprocess.run(  # noqa: S603 - our own command line
        command(*arguments), capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    if done.returncode != 0:
        shown = (done.stderr or done.stdout).strip()
        words = " ".join(("ragaudit", *arguments))
        raise ServiceFailed(f"ended with status {done.returncode}\n{shown}", where=words)
    return done.stdout


def start_service(
    stack: ExitStack,
    name: str,
    arguments: Sequence[str],
    work: Path,
    environment: Callable[[int], Mapping[str, str]],
) -> ServiceProcess:
    """Start a service on a free port; once more on another if that one was taken meanwhile.

    Args:
        stack: ends the process.
        name: of the service and its log.
        arguments: of its command.
        work: folder of the log.
        environment: of the process, by the port.

    Raises:
        ServiceFailed: it did not become ready.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        port = free_port()
        process = ServiceProcess(
            name,
            arguments,
            url=f"http://127.0.0.1:{port}",
            log=work / f"{name}.log",
            environment=environment(port),
        )
        stack.enter_context(process)
        try:
            process.wait_ready()
            return process
        except ServiceFailed:
            process.stop()
            if attempt == _ATTEMPTS or "address already in use" not in process.tail().lower():
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


class _Asking:
    """Whoever asks a service with a token."""

    def __init__(self, url: str, token: str) -> None:
        self._service = Service(url, api_key=token)

    def close(self) -> None:
        run(self._service.aclose())

    def _shown(self, path: str) -> dict[str, Any]:
        return dict(run(self._service.get(path)))


class Operator(_Asking):
    """Accounts and windows of the prover."""

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
        return self._shown(f"/v1/operator/windows/{window}")

    def window(self, window: str) -> dict[str, Any]:
        """Return the window as everybody sees it."""
        return self._shown(f"/v1/windows/{window}")


class Auditor(_Asking):
    """What the auditor sees of the verifier."""

    def keys(self) -> ShownKeys:
        """Return the verifier's public keys."""
        return ShownKeys.from_json(run(self._service.get("/v1/keys")))

    def status(self, window: str) -> dict[str, Any]:
        """Return state, times and counts of the window."""
        return self._shown(f"/v1/windows/{window}")

    def progress(self, window: str) -> dict[str, Any]:
        """Return where the audit stands: state, step, done, total."""
        return self._shown(f"/v1/windows/{window}/progress")

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
