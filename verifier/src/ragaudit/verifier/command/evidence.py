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
from ragaudit.encoding.commands import failing, new_file
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.options import digest
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.verifier import keys as key_files
from ragaudit.verifier.command import evidence_checks
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, SettingsPath
from ragaudit.verifier.command.service import service
from ragaudit.verifier.service.download import Opened, ServiceAway
from ragaudit.verifier.service.remote import Remote

app = typer.Typer(
    no_args_is_help=True, help="Confidential evidence: open it for a reason, see who did."
)
evidence_checks.add_to(app)

Window = Annotated[str, typer.Argument(help="The window.")]
Url = Annotated[str | None, typer.Option(help="The service; from the settings if absent.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="The auditor's token; in the secrets folder if absent.")
]
Whose = Annotated[
    str | None,
    typer.Option("--provider", help="Provider of the window, where several have one of this name."),
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
    """Write the bundle of all evidence of a window; who did so, and why, is recorded.

    A download that breaks off goes on by itself for a while; after that the same command goes on
    from what there is, within a day and without another access.
    """
    with failing(), remote_of(settings, url, token_file, whose) as remote:
        said = _said(reader, reason)
        with _partial_file(output) as (file, note):
            if note.exists():
                remote.resume(window, Opened.decode(note.read_text(encoding="utf-8")), file)
            else:
                remote.bundle(window, said, file, lambda opened: _write(note, opened.encode()))


@app.command(
    epilog="Example: ragaudit verifier evidence account 2026-w48 9f2c... --reader 'A. Ito' "
    "--reason 'request of the account' --output account.jsonl"
)
def account(
    window: Window,
    pseudonym: Annotated[
        bytes, typer.Argument(parser=digest, metavar="HEX", help="Pseudonym of the account.")
    ],
    reader: Reader,
    reason: Reason,
    output: Output,
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Url = None,
    token_file: TokenFile = None,
    whose: Whose = None,
) -> None:
    """Write everything that the evidence holds of one account; who did so, and why, is recorded.

    A line of JSON each. Nothing in it opens the noise of an answer: it can be given to the account.
    """
    with failing(), remote_of(settings, url, token_file, whose) as remote:
        said = _said(reader, reason)
        # Made first: an access of what then cannot be written would be one for nothing.
        with new_file(output) as file:
            remote.account(window, pseudonym.hex(), said, file)


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
    with failing(), remote_of(settings, url, token_file, whose) as remote:
        found = remote.accesses(window)
        if as_json:
            typer.echo(json.dumps([access.to_json() for access in found]))
            return
        for access in found:
            said = f"{access.what} {access.reader}: {access.reason}"
            typer.echo(f"{access.number} {rfc3339(access.time)} {said}")


@contextmanager
def remote_of(
    settings: Path, url: str | None, token_file: Path | None, whose: str | None
) -> Iterator[Remote]:
    """Yield the service of a verifier.

    Args:
        settings: has what the next two leave out.
        url, token_file: of the service, and of its auditor.
        whose: the provider, where several have a window of a name.
    """
    address, token = service(settings, url, token_file)
    with Remote(address, token, whose) as remote:
        yield remote


def _said(reader: str, reason: str) -> AccessBody:
    return AccessBody.from_json({"reader": reader, "reason": reason})


@contextmanager
def _partial_file(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file of mode 0600 beside ``path``, which it becomes once it is whole, and its note.

    While the service is away both stay, for the next call; after any other failure they are gone.
    """
    if path.exists():
        raise RefusedError("the file exists", where=str(path), expected="a new file")
    partial, note = (path.with_name(f"{path.name}.{end}") for end in ("partial", "note"))
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT, key_files.PRIVATE_MODE)
    except OSError as error:
        raise MalformedError("cannot be written", where=str(partial)) from error
    try:
        with os.fdopen(descriptor, "r+b") as file:
            if not note.exists():
                file.truncate()  # of a call that ended before it opened anything
            yield file, note
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, path)  # refuses a file that was made meanwhile
    except ServiceAway:
        if not note.exists():
            partial.unlink(missing_ok=True)
        raise
    except FileExistsError:
        raise RefusedError("the file exists", where=str(path), expected="a new file") from None
    except Exception:
        _remove(partial, note)
        raise
    _remove(partial, note)


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, key_files.PRIVATE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
