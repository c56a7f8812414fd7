"""``ragaudit verifier evidence``: confidential evidence, and who opened it.

What opens it says who and why; the service keeps both before it hands anything out.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.verifier import keys as key_files
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, SettingsPath
from ragaudit.verifier.command.service import service
from ragaudit.verifier.service.remote import Remote

app = typer.Typer(
    no_args_is_help=True, help="Confidential evidence: open it for a reason, see who did."
)

Window = Annotated[str, typer.Argument(help="The window.")]
Url = Annotated[str | None, typer.Option(help="The service; from the settings if absent.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="The auditor's token; in the secrets folder if absent.")
]
Whose = Annotated[
    str | None,
    typer.Option("--provider", help="Whose window, where several have one of this name."),
]
Reader = Annotated[str, typer.Option(help="Who opens it: a name, kept with the reason.")]
Reason = Annotated[str, typer.Option(help="Why it is opened: one line, kept for good.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write, mode 0600.")]


@app.command(
    "open",
    epilog="Example: ragaudit verifier evidence open 2026-w48 --reader 'A. Ito' "
    "--reason 'complaint 17' --output all.zip",
)
def open_bundle(
    window: Window,
    reader: Reader,
    reason: Reason,
    output: Output,
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Url = None,
    token_file: TokenFile = None,
    whose: Whose = None,
) -> None:
    """Write the bundle of all evidence of a window; that you opened it, and why, is kept."""
    with failing(), _remote(settings, url, token_file, whose) as remote:
        said = _said(reader, reason)
        with _new_file(output) as file:
            remote.bundle(window, said, file)


@app.command(
    epilog="Example: ragaudit verifier evidence account 2026-w48 9f2c... --reader 'A. Ito' "
    "--reason 'request of the account' --output account.json"
)
def account(
    window: Window,
    pseudonym: Annotated[str, typer.Argument(help="Of the account, 64 hexadecimal digits.")],
    reader: Reader,
    reason: Reason,
    output: Output,
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Url = None,
    token_file: TokenFile = None,
    whose: Whose = None,
) -> None:
    """Write everything that the evidence holds of one account; that you did, and why, is kept."""
    with failing(), _remote(settings, url, token_file, whose) as remote:
        said = _said(reader, reason)
        with _new_file(output) as file:
            file.write(remote.account(window, pseudonym, said))


@app.command(epilog="Example: ragaudit verifier evidence accesses 2026-w48 --json")
def accesses(
    window: Window,
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Url = None,
    token_file: TokenFile = None,
    whose: Whose = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the signed list.")] = False,
) -> None:
    """Show who opened confidential evidence of a window, when and why."""
    with failing(), _remote(settings, url, token_file, whose) as remote:
        found = remote.accesses(window)
        if as_json:
            typer.echo(json.dumps([access.to_json() for access in found]))
            return
        for access in found:
            said = f"{access.what} {access.reader}: {access.reason}"
            typer.echo(f"{access.number} {rfc3339(access.time)} {said}")


@contextmanager
def _remote(
    settings: Path, url: str | None, token_file: Path | None, whose: str | None
) -> Iterator[Remote]:
    address, token = service(settings, url, token_file)
    with Remote(address, token, whose) as remote:
        yield remote


def _said(reader: str, reason: str) -> AccessBody:
    return AccessBody.from_json({"reader": reader, "reason": reason})


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """A file of mode 0600 that did not exist; gone again unless all of it was written.

    Made before anything is asked for: an access of what then cannot be written is one for nothing.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, key_files.PRIVATE_MODE)
    except FileExistsError:
        raise RefusedError("the file exists", where=str(path), expected="a new file") from None
    except OSError as error:
        raise MalformedError("cannot be written", where=str(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
