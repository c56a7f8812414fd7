"""``ragaudit verifier test-results``: signed results that a window's verdict refers to."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding import canonical_json
from ragaudit.encoding.commands import failing, of_file
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.bodies import ReferenceBody
from ragaudit.ledger.messages.dsse import Envelope
from ragaudit.ledger.messages.signed_results import MAX_RESULT_BYTES
from ragaudit.verifier.command.evidence import TokenFile, Url, Whose, Window, remote_of
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, SettingsPath

app = typer.Typer(
    no_args_is_help=True,
    help="Signed test results that a verdict refers to, by digest. They are no part of it.",
)


@app.command(
    epilog="Example: ragaudit verifier test-results attach 2026-w48 membership "
    "result.dsse.json --key 3f2c..."
)
def attach(
    window: Window,
    name: Annotated[
        str, typer.Argument(help="Name of the result in this verdict: a-z, 0-9, hyphen.")
    ],
    result: Annotated[Path, typer.Argument(help="The signed result: a DSSE envelope.")],
    key: Annotated[
        PublicKey,
        typer.Option(parser=public_key, metavar="HEX", help="Public key of whoever made the test."),
    ],
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Url = None,
    token_file: TokenFile = None,
    whose: Whose = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reference.")] = False,
) -> None:
    """Have the verdict refer to a test result, before the audit begins; it cannot be taken back.

    The verifier checks the signature, and that the result is about this window. It does not judge
    what was found.
    """
    with failing(as_json):
        envelope = read_file(result)
        with of_file(result):
            Envelope.parse(envelope)
        body = ReferenceBody(key, canonical_json.loads(envelope))
        with remote_of(settings, url, token_file, whose) as remote:
            reference = remote.attach(window, name, body)
        if as_json:
            typer.echo(json.dumps(reference.to_json()))
        else:
            typer.echo(f"{reference.name} {reference.digest.hex()}")


@app.command("list", epilog="Example: ragaudit verifier test-results list 2026-w48 --json")
def list_results(
    window: Window,
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Url = None,
    token_file: TokenFile = None,
    whose: Whose = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the references.")] = False,
) -> None:
    """Show the test results that a window's verdict refers to, or will."""
    with failing(as_json), remote_of(settings, url, token_file, whose) as remote:
        found = remote.test_results(window)
        if as_json:
            typer.echo(json.dumps([each.to_json() for each in found]))
            return
        for each in found:
            typer.echo(f"{each.name} {each.digest.hex()} key {each.key.raw.hex()}")


def read_file(path: Path) -> bytes:
    """Return the bytes of a signed result.

    Raises:
        MalformedError: it cannot be read, or is longer than any.
    """
    try:
        with path.open("rb") as file:
            found = file.read(MAX_RESULT_BYTES + 1)
    except OSError as error:
        raise MalformedError("cannot be read", where=str(path)) from error
    if len(found) > MAX_RESULT_BYTES:
        raise MalformedError("too long", where=str(path), expected=f"{MAX_RESULT_BYTES} bytes")
    return found
