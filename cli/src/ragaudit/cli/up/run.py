"""`ragaudit up` from its settings to the report: both parties, their clock, and one window.

A window lasts until its end, and is sampled some time after it. Whoever tries the software alone
is both parties, and need not wait: both services read from one file how far their clocks are
ahead, and are moved on together, by the same amount and at once, so that no party sees a step.
Nothing that two parties run reads such a file.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import httpx
from ragaudit.cli.processes import ServiceFailed, ServiceProcess, free_port
from ragaudit.cli.up.store import Found
from ragaudit.encoding.commands import loading
from ragaudit.encoding.problems import reason
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.http import HttpClient
from ragaudit.serving.clock import EvenClock, Rule, steady_clock, system_clock

if TYPE_CHECKING:
    from ragaudit.ledger.messages.verdict import Verdict

_DIGITS = 20


class SharedClock:
    """The system's clock, ahead by the milliseconds that a file says."""

    def __init__(self, path: Path) -> None:
        """Open the file, which is made with nothing ahead if it is missing."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    @property
    def ahead(self) -> int:
        """Milliseconds by which it is ahead."""
        return int(os.pread(self._descriptor, _DIGITS, 0) or b"0")

    def __call__(self) -> int:
        """Return the time, Unix milliseconds."""
        return system_clock() + self.ahead

    def steady(self) -> int:
        """Return milliseconds of a clock that nobody sets, and that is moved on like the other."""
        return steady_clock() + self.ahead

    def reach(self, instant: int) -> None:
        """Move on to an instant; one that has passed changes nothing.

        Args:
            instant: Unix milliseconds.
        """
        missing = instant - self()
        if missing > 0:
            # In one write, at a fixed width: a reader sees the old number or the new one.
            text = f"{self.ahead + missing:0{_DIGITS}d}"
            os.pwrite(self._descriptor, text.encode(), 0)

    def even(self, rule: Rule) -> EvenClock:
        """Return the clock of a service, which follows and sees no step.

        Args:
            rule: the service's, for steps of the system's clock.
        """
        return EvenClock(rule, self, self.steady)


PROVIDER = "up.example"
VERIFIER = "up.example/verifier"
WINDOW = "up"
MOST_K = 100
# One application asks for all of its users, and nobody else reaches the address.
LIMITS = {"account_per_second": 10_000, "peer_per_second": 10_000, "waiting": 1000}
_DAY = 86_400


@dataclass(frozen=True)
class Parties:
    """What was set up, nothing of it running yet.

    Attributes:
        folder: of both parties; what they write stays in it.
        keys: API key by tenant, of its application.
        more_keys: of further accounts, which were asked for.
        writes: whether what the applications write is passed on to the store.
        operator_token, auditor_token: of prover and verifier.
        verdict_key: under which the verdict must be signed, hexadecimal.
    """

    folder: Path
    prover_url: str
    verifier_url: str
    keys: Mapping[str, str] = field(repr=False)
    operator_token: str = field(repr=False)
    auditor_token: str = field(repr=False)
    verdict_key: str
    more_keys: tuple[str, ...] = field(default=(), repr=False)
    writes: bool = False

    @property
    def clock(self) -> Path:
        """The file of the shared clock."""
        return clock_file(self.folder)

    @property
    def stream(self) -> Path:
        """The prover's audit stream."""
        return self.folder / "prover" / "audit.jsonl"


def clock_file(folder: Path) -> Path:
    """Return where the shared clock of both parties is.

    Args:
        folder: of both parties.
    """
    return folder / "clock"


def start(folder: Path, service: str) -> ServiceProcess:
    """Return a service that was started, and will run once it is told to go; its log in the folder.

    Args:
        folder: of both parties, which need not be set up yet.
        service: ``prover`` or ``verifier``.
    """
    settings = folder / service / f"{service}.yaml"
    return ServiceProcess(
        service,
        [*SERVE, service, str(settings), str(clock_file(folder))],
        log=folder / f"{service}.log",
        held=True,
    )


def account(tenant: str) -> str:
    """Return the name of a tenant's application.

    Args:
        tenant: that it belongs to.
    """
    return f"{tenant}-app"


def prepare(
    folder: Path,
    found: Found,
    backend: Mapping[str, Any],
    *,
    port: int,
    host: str = "127.0.0.1",
    overrides: Mapping[str, Any] | None = None,
    accounts: int = 1,
) -> Parties:
    """Set both parties up.

    Args:
        folder: empty.
        found: what is served.
        backend: the settings' section.
        port: of the prover; 0 takes a free one.
        host: of the prover.
        overrides: sections of the prover's settings, merged into ours.
        accounts: of each tenant.

    Raises:
        RagauditError: the folder cannot be written, or settings that are malformed.
    """
    with loading():
        import yaml
        from ragaudit.prover.command.set_up import set_up
        from ragaudit.prover.settings import load_settings
        from ragaudit.prover.store.accounts import Accounts
        from ragaudit.prover.store.database import Store
        from ragaudit.verifier import keys as verifier_keys
        from ragaudit.verifier import settings as verifier_settings
        from ragaudit.verifier.service import providers
        from ragaudit.verifier.service.database import Database, create_tables

    own = port or free_port()
    keys = verifier_keys.create(folder / "verifier" / "secrets", VERIFIER)
    public = {role: key for role, key in keys.public().items() if key is not None}
    listening = free_port()
    verifier = verifier_settings.write(
        folder / "verifier" / "verifier.yaml",
        {
            "name": VERIFIER,
            "data": "data",
            "secrets": "secrets",
            "tick_seconds": 0.2,
            "listen": {"port": listening},
        },
    )
    verifier_url = f"http://127.0.0.1:{listening}"
    made = set_up(folder / "prover", provider=PROVIDER, verifier=verifier_url)
    document: dict[str, Any] = {
        "provider": PROVIDER,
        "server": {"host": host, "port": own},
        "verifier": {
            "url": verifier_url,
            **{f"{role}_key": public[role] for role in ("cosigner", "verifier", "verdict")},
        },
        "backend": dict(backend),
        "embedder": {"name": "none"},
        "window": _window(found, accounts),
        "limits": LIMITS,
        "timing": {"driver_seconds": 0.1},
        "operation": {"audit_file": "audit.jsonl"},
        "surfaces": {
            "enabled": ["chroma", "qdrant"],
            "collections": {each.name: each.tenant for each in found.served},
            # Whoever has a key of this run has it from whoever may write to the store anyway.
            "writes": {"accounts": [account(each.tenant) for each in found.served]},
        },
    }
    for section, members in (overrides or {}).items():
        document[section] = {**document.get(section, {}), **members}
    made.settings.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    settings = load_settings(made.settings)
    verifier_settings.make_data_folder(verifier)
    create_tables(verifier.database_url)
    with closing(Database(verifier.database_url, system_clock)) as database:
        providers.add(database, PROVIDER, made.provider_key)
    with closing(Store.open(settings.store.url)) as store:
        register = Accounts(store)
        register.ensure_tenants(each.tenant for each in found.served)
        api_keys = {
            each.tenant: register.add(
                each.tenant, account(each.tenant), _dispute_key(folder, each.tenant)
            )
            for each in found.served
        }
        more = tuple(
            register.add(each.tenant, f"{account(each.tenant)}-{number}")
            for each in found.served
            for number in range(2, accounts + 1)
        )
    return Parties(
        folder,
        prover_url=f"http://{host}:{own}",
        verifier_url=verifier_url,
        keys=api_keys,
        operator_token=made.operator_token.read_text(encoding="ascii").strip(),
        auditor_token=verifier_keys.read_token(verifier.secrets / verifier_keys.TOKEN),
        verdict_key=public["verdict"],
        more_keys=more,
        writes=bool(settings.surfaces.writes) and settings.backend.kind == "chroma",
    )


def dispute_key_file(folder: Path, tenant: str) -> Path:
    """Return where the dispute key of a tenant's application is.

    Args:
        folder: of both parties.
        tenant: that it belongs to.
    """
    return folder / "applications" / f"{tenant}.dispute.key"


def _dispute_key(folder: Path, tenant: str) -> bytes:
    """Make the dispute key of an application, outside the prover's folder; return its public key.

    Raises:
        StoreUnavailable: its folder cannot be written.
    """
    from ragaudit.prover.keys import write_secret_file

    key = PrivateKey.generate()
    write_secret_file(dispute_key_file(folder, tenant), key.seed().hex())
    return key.public.raw


def _window(found: Found, accounts: int) -> dict[str, Any]:
    """Return the window: a day, of which what nobody asks in is skipped."""
    return {
        "privacy": "none",
        "metric": found.metric,
        "query_kinds": ["vector"],
        "opens_after_seconds": _DAY,
        "length_seconds": _DAY,
        "activation_every_seconds": _DAY,
        "sampling_after_seconds": 3600,
        "release_seconds": 1,
        "top_k_max": min(MOST_K, found.least_rows - 1),
        "queries_per_account": 100_000,
        "slots": max(2, accounts * len(found.served)),
        "audit": {"mode": "B", "tenants": {"eta": "0.05"}},
    }


STATE_POLL_SECONDS = 0.05
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
        self._http = HttpClient(parties.prover_url, timeout=TIMEOUT_SECONDS)
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

    def close(self, told: Told) -> "Verdict":
        """End the window now, have it audited, and return the verdict, whose signature is checked.

        Args:
            told: is told what is being done.

        Raises:
            ServiceFailed: a service ended, or did not do its part in time.
        """
        from ragaudit.ledger.messages.bodies import AccessBody
        from ragaudit.ledger.messages.verdict import Verdict
        from ragaudit.verifier.service.remote import Remote

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
            # With the bundle beside the verdict anybody can judge again.
            with (self._parties.folder / "bundle.zip").open("wb") as file:
                said = AccessBody("ragaudit up", "kept beside the verdict")
                auditor.bundle(WINDOW, said, file)
        return Verdict.verify(signed, key)

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
        answer = self._http.request("GET", f"/v1/windows/{WINDOW}/receipts/{last}/proof")
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
            time.sleep(STATE_POLL_SECONDS)


SERVE = [sys.executable, "-m", "ragaudit.cli.up.serve"]
POLL_SECONDS = 0.25
START_SECONDS = 120.0  # a busy machine takes long to import what a service needs


@dataclass(frozen=True)
class Options:
    """What is wanted.

    Attributes:
        folder: empty; everything that both parties write.
        found: the collections to serve.
        backend: section of the prover's settings.
        host, port: of the prover; port 0 takes a free one.
        seconds: after which the window is closed by itself; None: when told to stop.
        overrides: sections of the prover's settings.
        accounts: of each tenant.
    """

    folder: Path
    found: Found
    backend: Mapping[str, Any]
    host: str = "127.0.0.1"
    port: int = 0
    seconds: float | None = None
    overrides: Mapping[str, Any] | None = None
    accounts: int = 1


class Shows(Protocol):
    """Who is shown how it goes."""

    def doing(self, what: str) -> None:
        """What is being done now."""

    def ready(self, parties: Parties, found: Found) -> None:
        """The applications can ask."""

    def event(self, event: Mapping[str, Any]) -> None:
        """A request was answered: an event of the audit stream."""


class Stop:
    """Set by SIGINT, SIGTERM or another thread."""

    def __init__(self) -> None:
        self._set = threading.Event()

    def __call__(self) -> None:
        """Stop."""
        self._set.set()

    def wait(self, seconds: float) -> bool:
        """Wait, and return whether it is time to stop.

        Args:
            seconds: at most.
        """
        return self._set.wait(seconds)


@contextmanager
def told_to_stop(stop: Stop) -> Iterator[None]:
    """Let SIGINT and SIGTERM set ``stop`` within the block; the second of them interrupts.

    Args:
        stop: that is set.
    """

    def told(number: int, _frame: FrameType | None) -> None:
        if stop.wait(0):
            raise KeyboardInterrupt
        stop()

    before = {each: signal.signal(each, told) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Running:
    """Both services, and the window between them."""

    parties: Parties
    window: LocalWindow
    prover: ServiceProcess
    check_alive: Callable[[], None]


@contextmanager
def running(options: Options, shows: Shows, stop: Stop | None = None) -> Iterator[Running]:
    """Set up and start both services, open the window, and end the services with the block.

    Args:
        shows: is shown how it goes.
        stop: interrupts until the window is open: there is nothing to audit yet.

    Raises:
        KeyboardInterrupt: told to stop before the window was open.
        ServiceFailed: a service ended, or did not do its part.
        RagauditError: the folder cannot be written, or the store is not as it was.
    """
    shows.doing("setting up prover and verifier")
    with ExitStack() as stack:
        # They load what they need while they are set up.
        processes = [
            stack.enter_context(start(options.folder, name)) for name in ("verifier", "prover")
        ]
        parties = prepare(
            options.folder,
            options.found,
            options.backend,
            host=options.host,
            port=options.port,
            overrides=options.overrides,
            accounts=options.accounts,
        )

        def check_alive() -> None:
            for process in processes:
                process.check_alive()

        def check_opening() -> None:
            check_alive()
            if stop is not None and stop.wait(0):
                raise KeyboardInterrupt

        shows.doing("starting prover and verifier")
        verifier, prover = processes
        verifier.go(parties.verifier_url)
        prover.go(parties.prover_url)
        for process in processes:
            process.wait_ready(START_SECONDS)
        window = stack.enter_context(LocalWindow(parties, check_alive))
        window.open(shows.doing, check_opening)
        yield Running(parties, window, prover, check_alive)


def run_integrity(options: Options, shows: Shows, stop: Stop) -> "Verdict":
    """Serve until told to stop; return the signed verdict of what was answered.

    Args:
        shows: is shown how it goes.
        stop: ends the serving.

    Raises:
        RagauditError: as `running`.
    """
    with running(options, shows, stop) as both:
        _show_events(both.window, shows)  # the registrations
        shows.ready(both.parties, options.found)
        _serve(both.window, shows, stop, options.seconds, both.check_alive)
        return both.window.close(shows.doing)


def _serve(
    window: LocalWindow,
    shows: Shows,
    stop: Stop,
    seconds: float | None,
    check_alive: Callable[[], None],
) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while not stop.wait(POLL_SECONDS) and (end is None or time.monotonic() < end):
        check_alive()
        _show_events(window, shows)
    _show_events(window, shows)


def _show_events(window: LocalWindow, shows: Shows) -> None:
    for event in window.events():
        shows.event(event)
