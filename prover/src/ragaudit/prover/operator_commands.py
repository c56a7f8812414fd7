"""``ragaudit prover account`` works on the database; ``... window`` asks the running service."""

import time
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.encoding.errors import RefusedError
from ragaudit.prover.accounts import Accounts
from ragaudit.prover.console import (
    JsonOption,
    ServiceUnreachable,
    SettingsOption,
    emit,
    emit_rows,
    progress_bar,
)
from ragaudit.prover.errors import MalformedRequest
from ragaudit.prover.keys import read_secret_file
from ragaudit.prover.settings import load_settings
from ragaudit.prover.states import FINAL, State
from ragaudit.prover.store import Store

POLL_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0

DEFAULT_SETTINGS = Path("prover/prover.yaml")

accounts = typer.Typer(
    help="Accounts of the tenants.\n\nExample: ragaudit prover account add shop ada",
    no_args_is_help=True,
)
windows = typer.Typer(
    help="Windows of the running service.\n\nExample: ragaudit prover window start 2026-11 --wait",
    no_args_is_help=True,
)

TokenOption = Annotated[
    Path | None, typer.Option(help="File of the operator's token; beside the other keys if unset.")
]
UrlOption = Annotated[
    str | None, typer.Option(help="URL of the service; from the settings if unset.")
]


class ServiceRefused(RefusedError):
    """The service declined."""


@accounts.command("add")
def add(
    tenant: str,
    name: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Create an account and print its API key, this one time.

    Example: ragaudit prover account add shop ada --json
    """
    with failing(as_json):
        key = _with_accounts(settings, lambda each: each.add(tenant, name))
        emit({"tenant": tenant, "name": name, "key": key}, as_json)


@accounts.command("rotate-key")
def rotate_key(
    name: str, settings: SettingsOption = DEFAULT_SETTINGS, as_json: JsonOption = False
) -> None:
    """Replace an account's API key; the old one is dead at once.

    Example: ragaudit prover account rotate-key ada
    """
    with failing(as_json):
        key = _with_accounts(settings, lambda each: each.rotate_key(name))
        emit({"name": name, "key": key}, as_json)


@accounts.command("list")
def list_accounts(settings: SettingsOption = DEFAULT_SETTINGS, as_json: JsonOption = False) -> None:
    """List the accounts, without their keys.

    Example: ragaudit prover account list
    """
    with failing(as_json):
        found = _with_accounts(settings, lambda each: each.all())
        emit_rows([{"tenant": each.tenant, "name": each.name} for each in found], as_json)


@windows.command("start")
def start(
    window: str,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the window, as sigma=2.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option(help="Derive all randomness from this text: worthless evidence.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the window is open.")] = False,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a window; the service commits, has it countersigned and opens it by itself.

    Example: ragaudit prover window start 2026-11 --set sigma=2 --set audit.mode=A --wait
    """
    with failing(as_json):
        overrides = read_overrides(override or [])
        if seed is not None:
            overrides["experiment_seed"] = seed
        operator = _Operator(settings, url, token_file)
        status = operator.call("POST", "/windows", {"window": window, "overrides": overrides})
        if wait:
            with progress_bar(as_json, f"opening {window}"):
                status = operator.wait(window, State.OPEN)
        emit(status, as_json)
        if status["state"] == State.REFUSED:
            raise typer.Exit(ExitCode.REFUSED)


@windows.command("close")
def close(
    window: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop answering now; the log is closed at the window's end.

    Example: ragaudit prover window close 2026-11
    """
    with failing(as_json):
        operator = _Operator(settings, url, token_file)
        emit(operator.call("POST", f"/windows/{window}/close"), as_json)


@windows.command("status")
def status(
    window: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a window stands.

    Example: ragaudit prover window status 2026-11 --json
    """
    with failing(as_json):
        operator = _Operator(settings, url, token_file)
        emit(operator.call("GET", f"/windows/{window}"), as_json)


def read_overrides(assignments: list[str]) -> dict[str, Any]:
    """Return ``["sigma=2", "audit.mode=A"]`` as nested settings; integers are numbers.

    Raises:
        MalformedRequest: not of the form name=value.
    """
    overrides: dict[str, Any] = {}
    for each in assignments:
        name, equals, text = each.partition("=")
        if not equals or not name:
            raise MalformedRequest("not an assignment", where=each, expected="name=value")
        value: Any = int(text) if text.isascii() and text.isdecimal() else text
        value = None if text == "null" else value
        section, dot, member = name.partition(".")
        if dot:
            overrides.setdefault(section, {})[member] = value
        else:
            overrides[name] = value
    return overrides


class _Operator:
    """The operator's calls to the running service."""

    def __init__(self, settings: Path, url: str | None, token_file: Path | None) -> None:
        loaded = load_settings(settings)
        path = token_file or loaded.keys.operator_digest_file.with_name("operator.token")
        self._http = httpx.Client(
            base_url=url or f"http://{loaded.server.host}:{loaded.server.port}",
            headers={"Authorization": f"Bearer {read_secret_file(path)}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            response = self._http.request(method, f"/v1/operator{path}", json=body)
            value = response.json()
        except (httpx.HTTPError, ValueError):
            raise ServiceUnreachable(
                "the service does not answer", where=str(self._http.base_url)
            ) from None
        if not response.is_success:
            raise ServiceRefused(str(value.get("detail", value.get("title"))))
        found: dict[str, Any] = value
        return found

    def wait(self, window: str, state: State) -> dict[str, Any]:
        """Return the status once the window is in ``state``, or finished, or unusable."""
        while True:
            status = self.call("GET", f"/windows/{window}")
            done = status["state"] == state or status["state"] in FINAL
            if done or status["unusable"] is not None:
                return status
            time.sleep(POLL_SECONDS)


def _with_accounts(settings: Path, work: Any) -> Any:
    store = Store.open(load_settings(settings).store.url)
    try:
        return work(Accounts(store))
    finally:
        store.close()
