"""``ragaudit verifier evidence`` and ``test-results``: confidential evidence, and test results.

What opens evidence says who and why; the service keeps both before it hands anything out. What a
verifier says of its evidence is checked offline by ``verify-...``. Test results are signed, and a
window's verdict refers to them.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from ragaudit.encoding.commands import failing, new_file, of_file
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.options import digest, public_key
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import rfc3339
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, AsJson, SettingsPath, VerdictKey

if TYPE_CHECKING:
    from ragaudit.ledger.messages.bodies import AccessBody
    from ragaudit.ledger.messages.custody import Deletion, ProviderDeletion
    from ragaudit.verifier.service.remote import Remote
    from ragaudit.verifier.settings import Settings

app = typer.Typer(
    no_args_is_help=True, help="Confidential evidence: open it for a reason, see who did."
)

BundlePath = Annotated[Path, typer.Argument(help="The window's bundle; its public part will do.")]


@app.command(
    "verify-deletion",
    epilog="Example: ragaudit verifier evidence verify-deletion deletion.json bundle "
    "--verdict-key 3b6a...",
)
def verify_deletion(
    statement: Annotated[
        Path, typer.Argument(help="GET /v1/windows/{w}/deletion of verifier or prover, as it came.")
    ],
    bundle: BundlePath,
    verdict_key: VerdictKey,
    as_json: AsJson = False,
) -> None:
    """Check what was deleted, when, and under which checkpoint it had been evidence.

    The statement must be about the verdict of the bundle, name all of its confidential items and no
    other (a prover's: as many entries as are not public), and be signed with the key of its policy.
    Exit code: 1 it is not.
    """
    from ragaudit.ledger.messages.custody import ProviderDeletion
    from ragaudit.verifier.later_statements import Judged

    with failing():
        with of_file(statement):
            found = _deletion(_read_json(statement))
        Judged.read(bundle, verdict_key).verify_deletion(found)
        if as_json:
            typer.echo(json.dumps(found.to_json()))
            return
        head = found.checkpoint
        under = (
            "no checkpoint" if head is None else f"checkpoint {head.size} {head.root_hash.hex()}"
        )
        if isinstance(found, ProviderDeletion):
            if head is None:
                under = "no checkpoint, so how many entries it had is its word alone"
            typer.echo(
                f"{found.origin}: the provider states that it deleted at {rfc3339(found.time)} all "
                f"it had beyond the public part, of {found.entries} entries too, under {under}"
            )
            return
        typer.echo(
            f"{found.origin}: all {len(found.items)} confidential items of verdict "
            f"{found.verdict.hex()} were deleted at {rfc3339(found.time)}; "
            f"they had been evidence under {under}"
        )
        for name, digest in sorted(found.items.items()):
            typer.echo(f"{digest} {name}")


@app.command(
    "verify-accesses",
    epilog="Example: ragaudit verifier evidence verify-accesses accesses.json bundle "
    "--verdict-key 3b6a... --shown 2",
)
def verify_accesses(
    accesses: Annotated[
        Path,
        typer.Argument(
            help="`ragaudit verifier evidence accesses --json`, as it came; or of a prover, "
            "`ragaudit prover account accesses --json`."
        ),
    ],
    bundle: BundlePath,
    verdict_key: VerdictKey,
    shown: Annotated[
        int,
        typer.Option(
            min=0,
            help="counts.accesses of GET /v1/windows/{w}, shown to anyone; of a prover, accesses "
            "of its window status.",
        ),
    ],
    by_provider: Annotated[
        bool, typer.Option("--by-provider", help="The list is a prover's.")
    ] = False,
) -> None:
    """Check a list of who opened confidential evidence: whole, in order, as it was written down.

    Exit code: 1 an access is missing, changed or out of order, or of another window.
    """
    from ragaudit.ledger.messages.custody import EvidenceAccess
    from ragaudit.verifier.later_statements import Judged

    with failing():
        with of_file(accesses):
            listed = _read_json(accesses)
            if not isinstance(listed, list):
                raise MalformedError("not a list of accesses")
            found = [EvidenceAccess.from_json(each) for each in listed]
        judged = Judged.read(bundle, verdict_key)
        judged.verify_accesses(found, shown, by_provider=by_provider)
        typer.echo(f"{len(found)} accesses, none of them missing or changed")


def _deletion(value: Any) -> "Deletion | ProviderDeletion":
    from ragaudit.ledger.messages.custody import Deletion, ProviderDeletion

    if isinstance(value, dict) and value.get("format") == ProviderDeletion.FORMAT:
        return ProviderDeletion.from_json(value)
    return Deletion.from_json(value)


def _read_json(path: Path) -> Any:
    from ragaudit.encoding.canonical_json import loads_any

    try:
        return loads_any(path.read_bytes())
    except OSError as error:
        raise MalformedError("cannot be read", where=str(path)) from error


def service(path: Path, url: str | None, token_file: Path | None) -> tuple[str, str]:
    """Return address and token of the service, from the settings where they are not given.

    Args:
        path: of the settings; not read where both others are given.
        url: where the service listens.
        token_file: that holds the auditor's token.

    Raises:
        MalformedError: settings or token that cannot be read.
    """
    from ragaudit.verifier import keys as key_files
    from ragaudit.verifier import settings as settings_files

    if url is not None and token_file is not None:
        return url, key_files.read_token(token_file)
    settings = settings_files.load(path)
    token = key_files.read_token(token_file or settings.secrets / key_files.TOKEN)
    return url or _address(settings), token


def _address(settings: "Settings") -> str:
    scheme = "http" if settings.listen.tls_certificate is None else "https"
    return f"{scheme}://{settings.listen.host}:{settings.listen.port}"


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
    from ragaudit.verifier.service.remote import Opened

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
) -> "Iterator[Remote]":
    """Yield the service of a verifier.

    Args:
        settings: has what the next two leave out.
        url, token_file: of the service, and of its auditor.
        whose: the provider, where several have a window of a name.
    """
    from ragaudit.verifier.service.remote import Remote

    address, token = service(settings, url, token_file)
    with Remote(address, token, whose) as remote:
        yield remote


def _said(reader: str, reason: str) -> "AccessBody":
    from ragaudit.ledger.messages.bodies import AccessBody

    return AccessBody.from_json({"reader": reader, "reason": reason})


@contextmanager
def _partial_file(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file of mode 0600 beside ``path``, which it becomes once it is whole, and its note.

    While the service is away both stay, for the next call; after any other failure they are gone.
    """
    from ragaudit.verifier import keys as key_files
    from ragaudit.verifier.service.remote import ServiceAway

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
    from ragaudit.verifier import keys as key_files

    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, key_files.PRIVATE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


test_results = typer.Typer(
    no_args_is_help=True,
    help="Signed test results that a verdict refers to, by digest. They are no part of it.",
)


@test_results.command(
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
    from ragaudit.encoding import canonical_json
    from ragaudit.ledger.messages.bodies import ReferenceBody
    from ragaudit.ledger.messages.signed import Envelope

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


@test_results.command("list", epilog="Example: ragaudit verifier test-results list 2026-w48 --json")
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
    from ragaudit.ledger.messages.signed_results import MAX_RESULT_BYTES

    try:
        with path.open("rb") as file:
            found = file.read(MAX_RESULT_BYTES + 1)
    except OSError as error:
        raise MalformedError("cannot be read", where=str(path)) from error
    if len(found) > MAX_RESULT_BYTES:
        raise MalformedError("too long", where=str(path), expected=f"{MAX_RESULT_BYTES} bytes")
    return found
