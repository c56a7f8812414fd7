"""``ragaudit prover window`` and ``index``: what an operator asks of the running service.

Options and output are here that all commands have in common.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.encoding.errors import (
    MalformedError,
    MalformedRequest,
    RagauditError,
    RefusedError,
    UnavailableError,
)
from ragaudit.encoding.printable import one_line
from ragaudit.encoding.problems import family_of, reason
from ragaudit.encoding.settings import service_url
from ragaudit.encoding.text import b64_encode
from ragaudit.prover.store.states import FINAL, State

if TYPE_CHECKING:
    from ragaudit.prover.settings import ServerSettings

SETTINGS_VARIABLE = "RAGAUDIT_PROVER_SETTINGS"
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SettingsOption = Annotated[
    Path, typer.Option(envvar=SETTINGS_VARIABLE, help="The YAML file that `init` wrote.")
]
POLL_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0
SHOWN_INSTANTS = 5
DEFAULT_SETTINGS = Path("prover/prover.yaml")
# A proof about millions of rows takes minutes.
REFRESH_SECONDS = 3600.0


class ServiceUnreachable(UnavailableError):
    """The running prover service does not answer."""


def emit(value: Mapping[str, Any], as_json: bool, note: str = "") -> None:
    """Print a result: one JSON object, or a line for each member and the note on standard error.

    Args:
        value: members in the order in which they are shown.
        as_json: whether a program reads it.
        note: for people only.
    """
    from ragaudit.encoding.console import Console

    if as_json:
        sys.stdout.write(json.dumps(value) + "\n")
        return
    for name, member in value.items():
        text = member if isinstance(member, str) else json.dumps(member)
        # A member may hold the words of others: they draw no line of their own.
        sys.stdout.write(f"{name}: {one_line(text)}\n")
    # Beside standard output, which is the result and nothing else.
    if note:
        Console(stderr=True).print(note, markup=False)


def emit_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print a list: JSON, or a table.

    Args:
        rows: all with the same members, which head the table.
        as_json: whether a program reads it.
    """
    from ragaudit.encoding.console import Console
    from rich.markup import escape
    from rich.table import Table

    if as_json:
        sys.stdout.write(json.dumps(list(rows)) + "\n")
        return
    if not rows:
        sys.stdout.write("none\n")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(escape(one_line(str(value))) for value in row.values()))
    Console().print(table)


@contextmanager
def progress_bar(as_json: bool, what: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error that work is going on; yield a function that changes the text.

    Args:
        as_json: no bar then: a program's log has no use for it.
    """
    from ragaudit.encoding.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=as_json) as progress:
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=escape(text))


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


class Until(StrEnum):
    """How far `window start --wait` waits."""

    COUNTERSIGNED = State.COUNTERSIGNED.value
    OPEN = State.OPEN.value


class ServiceRefused(RefusedError):
    """The service declined."""


@windows.command("start")
def start(
    window: str,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the window, as sigma=2.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option(help="Derive all randomness from this text: worthless evidence.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until accounts can register, or as --until says.")
    ] = False,
    until: Annotated[
        Until, typer.Option(help="With --wait: countersigned (accounts can register) or open.")
    ] = Until.COUNTERSIGNED,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a window; the service commits, has it countersigned and opens it by itself.

    An account that registers before the first activation instant can ask from the start on, one
    that registers later from the next instant on; `instants` shows them.

    Example: ragaudit prover window start 2026-11 --set sigma=2 --set audit.mode=A --wait
    """
    with failing(as_json):
        overrides = read_overrides(override or [])
        if seed is not None:
            overrides["experiment_seed"] = seed
        operator = Operator(settings, url, token_file)
        status = operator.call("POST", "/windows", {"window": window, "overrides": overrides})
        if wait:
            with progress_bar(as_json, _waiting_for(status)) as show:
                status = operator.wait(window, State(until.value), show)
        emit(_readable(status, as_json), as_json)
        if status["state"] in {State.REFUSED, State.ABANDONED} or status["unusable"] is not None:
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
        operator = Operator(settings, url, token_file)
        emit(_readable(operator.call("POST", f"/windows/{window}/close"), as_json), as_json)


@windows.command("abandon")
def abandon(
    window: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a window that the verifier has not countersigned; its documents are free again.

    Example: ragaudit prover window abandon 2026-11
    """
    with failing(as_json):
        operator = Operator(settings, url, token_file)
        status = operator.call("POST", f"/windows/{window}/abandon")
        emit(_readable(status, as_json), as_json)


@windows.command("delete")
def delete(
    window: str,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every row is gone.")] = False,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete everything but the public part of a finished window, for good.

    Questions, answers, documents as they were given, indexes and seeds go; policy, log and verdict
    stay. The signed statement of it is at GET /v1/windows/{window}/deletion once it is done.

    Example: ragaudit prover window delete 2026-11 --wait
    """
    with failing(as_json):
        operator = Operator(settings, url, token_file)
        status = operator.call("POST", f"/windows/{window}/delete")
        while wait and not status["deleted"]["done"]:
            time.sleep(POLL_SECONDS)
            status = operator.call("GET", f"/windows/{window}")
        emit(_readable(status, as_json), as_json)


@windows.command("list")
def list_windows(
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the windows with their states and instants.

    Example: ragaudit prover window list
    """
    with failing(as_json):
        listed: Any = Operator(settings, url, token_file).call("GET", "/windows")
        columns = ("window", "state", "start", "end", "sampling_instant", "accounts", "records")
        rows = [{name: _readable(row, as_json)[name] for name in columns} for row in listed]
        emit_rows(listed if as_json else rows, as_json)


@windows.command("status")
def status(
    window: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a window's state, instants and numbers.

    Example: ragaudit prover window status 2026-11 --json
    """
    with failing(as_json):
        operator = Operator(settings, url, token_file)
        emit(_readable(operator.call("GET", f"/windows/{window}"), as_json), as_json)


def read_overrides(assignments: list[str]) -> dict[str, Any]:
    """Return assignments as nested settings: ``["audit.mode=A"]`` as ``{"audit": {"mode": "A"}}``.

    An integer is a number, ``null`` is None, and everything else is text.

    Args:
        assignments: each ``name=value`` or ``section.name=value``; of one name the last counts.

    Raises:
        MalformedRequest: not of the form name=value.
    """
    overrides: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise MalformedRequest(
                f"not an assignment: {assignment!r}", where="--set", expected="name=value"
            )
        # Decimals stay text: a float would not be the number that was typed.
        value: Any = int(text) if text.isascii() and text.isdecimal() else text
        value = None if text == "null" else value
        section, dot, member = name.partition(".")
        if dot:
            overrides.setdefault(section, {})[member] = value
        else:
            overrides[name] = value
    return overrides


class Operator:
    """The operator's calls to the running service."""

    def __init__(
        self,
        settings: Path,
        url: str | None,
        token_file: Path | None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Read the operator's token.

        Args:
            settings: the service's YAML file.
            url, token_file: where they are not what the settings say.
            timeout: seconds to wait for an answer.
        """
        from ragaudit.prover.keys import read_secret_file
        from ragaudit.prover.settings import load_settings

        options = load_settings(settings)
        self._timeout = timeout
        # The service has the digest only; the token may lie on the operator's own machine.
        path = token_file or options.keys.operator_digest_file.with_name("operator.token")
        self._url = service_url(url or _own_address(options.server), "--url")
        self._headers = {"Authorization": f"Bearer {read_secret_file(path)}"}

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON of the service's answer.

        Args:
            path: below ``/v1/operator``.
            body: a JSON object; None for no body.

        Raises:
            ServiceUnreachable: nothing, or something else, answers there, or it cannot now.
            MalformedRequest: the service does not take it: an unknown setting, say.
            ServiceRefused: the service declined.
        """
        import httpx
        from ragaudit.http import HttpClient

        try:
            with HttpClient(self._url, timeout=self._timeout, headers=self._headers) as http:
                response = http.request(method, f"/v1/operator{path}", json=body)
            value = response.json()
        except httpx.TimeoutException:
            raise ServiceUnreachable(
                f"no answer within {self._timeout:g} s", where=self._url
            ) from None
        except httpx.HTTPError:
            raise ServiceUnreachable(
                "no service can be reached there",
                where=self._url,
                expected="ragaudit prover serve",
            ) from None
        except ValueError:
            raise ServiceUnreachable("something else answers there", where=self._url) from None
        if not response.is_success:
            raise _refusal(response.status_code, reason(value), self._url)
        answer: dict[str, Any] = value
        return answer

    def wait(self, window: str, state: State, show: Callable[[str], None]) -> dict[str, Any]:
        """Return the status once the window has reached ``state``, is finished, or is unusable.

        It does not wait for ever: a window that is not countersigned before its start ends.

        Args:
            state: the one to wait for, or any later one.
            show: called with a line for people before each pause.
        """
        # In the order of their declaration, which is that of a window's life.
        order = list(State)
        while True:
            status = self.call("GET", f"/windows/{window}")
            reached = order.index(State(status["state"])) >= order.index(state)
            if reached or status["state"] in FINAL or status["unusable"] is not None:
                return status
            show(_waiting_for(status))
            time.sleep(POLL_SECONDS)


def _refusal(status: int, said: str, url: str) -> RagauditError:
    kind = family_of(status)
    # As the operator wrote it: the service knows no options.
    said = said.replace("overrides: ", "--set ", 1) or f"status {status}"
    if kind is UnavailableError:
        return ServiceUnreachable(said, where=url)
    return MalformedRequest(said) if kind is MalformedError else ServiceRefused(said)


def _own_address(server: "ServerSettings") -> str:
    """Return where the service of these settings is reached from this machine."""
    # The addresses that mean "all of mine" are none to connect to.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)  # noqa: S104
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


def _waiting_for(status: Mapping[str, Any]) -> str:
    """Return what a window waits for, its next instant and the last error, in one line."""
    text = f"{status['window']} is {status['state']}; it starts at {_time(status['start'])}"
    if status["busy"] is not None:
        text += f"; {status['busy']['with']} {status['busy']['percent']} %"
    return text if status["last_error"] is None else f"{text}; last error: {status['last_error']}"


def _readable(status: dict[str, Any], as_json: bool) -> dict[str, Any]:
    """Return a status for people: instants as times, and only the first few."""
    if as_json:
        return status
    times = {name: _time(status[name]) for name in ("start", "end", "sampling_instant")}
    first = [_time(instant) for instant in status["instants"][:SHOWN_INSTANTS]]
    more = len(status["instants"]) - len(first)
    instants = ", ".join(first) + (f" and {more} more" if more else "")
    return status | times | {"instants": instants}


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


indexes = typer.Typer(
    help="Indexes of open windows.\n\nExample: ragaudit prover index refresh 2026-11 shop",
    no_args_is_help=True,
)


@indexes.callback()
def _group_of_refresh() -> None:
    """Keep ``refresh`` a command of its own, also while it is the only one."""


@indexes.command("refresh")
def refresh(
    window: str,
    tenant: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Commit to a tenant's documents as they are now; in force from the next instant on.

    Example: ragaudit prover index refresh 2026-11 shop
    """
    with failing(as_json):
        operator = Operator(settings, url, token_file, REFRESH_SECONDS)
        path = f"/windows/{quote(window, safe='')}/tenants/{quote(tenant, safe='')}/refresh"
        with progress_bar(as_json, f"committing to the documents of {tenant}"):
            answer = operator.call("POST", path)
        emit(answer, as_json)


@windows.command("publish")
def publish_window(
    window: str,
    folder: Annotated[Path, typer.Argument(help="Folder for this window's log alone.")],
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Write what the last cosigned checkpoint covers as static files (C2SP tlog-tiles).

    Beside the running service, as often as wanted: only what is new is written, `checkpoint` last.

    Example: ragaudit prover window publish 2026-11 /srv/www/logs/2026-11
    """
    from ragaudit.ledger.log.published_files import publish
    from ragaudit.ledger.messages.policy import Policy
    from ragaudit.prover.lifecycle.committing import read_log
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.database import Store
    from ragaudit.prover.window.windows import Windows

    with failing(as_json):
        with closing(Store.open(load_settings(settings).store.url)) as store:
            policy = Policy.parse(Windows(store).get(window).policy)
            head = publish(read_log(store.engine, policy).checkpoints, folder)
        emit({"window": window, "size": head.size, "root": b64_encode(head.root_hash)}, as_json)
