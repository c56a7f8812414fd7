"""``ragaudit verifier arbiter``: the role that judges what the verifier must not see."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.problems import family_of, reason
from ragaudit.encoding.signing import PublicKey

if TYPE_CHECKING:
    from ragaudit.ledger.messages.bodies import FindingBody
    from ragaudit.ledger.messages.policy import Policy

MAX_FILE_BYTES = 2**28  # the longest canonical JSON (docs/spec/01-encoding.md §1.4)

app = typer.Typer(
    no_args_is_help=True,
    help="The arbiter: judges receipt files of sampled records, with a key and store of its own.",
)

Directory = Annotated[Path, typer.Option(help="The arbiter's folder, apart from the verifier's.")]
VerifierKey = Annotated[
    PublicKey,
    typer.Option(parser=public_key, metavar="HEX", help="The verifier's key (keys.verifier)."),
]
DEFAULT = Path("arbiter")


@app.command(epilog="Example: ragaudit verifier arbiter init --directory arbiter")
def init(directory: Directory = DEFAULT) -> None:
    """Make a key pair; print the public key, which verifiers and policies name."""
    from ragaudit.verifier.arbiter import Arbiter

    with failing():
        typer.echo(Arbiter.create(directory).public.raw.hex())


@app.command(epilog="Example: ragaudit verifier arbiter key --directory arbiter")
def key(directory: Directory = DEFAULT) -> None:
    """Print the public key."""
    from ragaudit.verifier.arbiter import Arbiter

    with failing():
        typer.echo(Arbiter(directory).public.raw.hex())


@app.command(
    epilog="Example: ragaudit verifier arbiter judge receipt.json --window window.json "
    "--verifier-key 4f1c... --submit https://verifier.example"
)
def judge(
    receipt: Annotated[Path, typer.Argument(help="The disputed receipt file, not kept.")],
    window: Annotated[Path, typer.Option(help="Answer of the provider's GET /v1/windows/{w}.")],
    verifier_key: VerifierKey,
    directory: Directory = DEFAULT,
    submit: Annotated[str | None, typer.Option(help="URL of the verifier to tell.")] = None,
) -> None:
    """Judge a receipt file; print the signed finding. Exit code 1 if the dispute is upheld."""
    from ragaudit.ledger.messages.bodies import FindingBody
    from ragaudit.serving.clock import system_clock
    from ragaudit.verifier.arbiter import Arbiter, read_window
    from ragaudit.verifier.engines import fastest_engine

    with failing():
        arbiter = Arbiter(directory)
        view = read_window(_read(window), verifier_key)
        finding, public = arbiter.judge(_read(receipt), view, fastest_engine(), system_clock)
        found = FindingBody(finding.to_json(), public.to_json())
        if submit is not None:
            _submit(submit, view.policy, found)
        typer.echo(found.encode().decode())
    raise typer.Exit(ExitCode.FALSE if finding.upheld else ExitCode.DONE)


@app.command(
    epilog="Example: ragaudit verifier arbiter serve --verifier-key 4f1c... --port 8743 "
    "--tls-certificate arbiter.pem --tls-key arbiter.key"
)
def serve(
    verifier_key: VerifierKey,
    directory: Directory = DEFAULT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8743,
    tls_certificate: Annotated[Path | None, typer.Option(help="PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file.")] = None,
) -> None:
    """Take cases over HTTP (`POST /v1/findings`) until told to stop (SIGINT or SIGTERM)."""
    from ragaudit.serving import server
    from ragaudit.serving.clock import system_clock
    from ragaudit.verifier.arbiter import Arbiter, create_app
    from ragaudit.verifier.engines import fastest_engine

    with failing():
        arbiter = Arbiter(directory)
        server.run(
            lambda: create_app(arbiter, verifier_key, fastest_engine(), system_clock),
            host=host,
            port=port,
            certificate=tls_certificate,
            key=tls_key,
        )


@app.command(name="list", epilog="Example: ragaudit verifier arbiter list --directory arbiter")
def findings(directory: Directory = DEFAULT) -> None:
    """Print every finding so far, one JSON line each."""
    from ragaudit.verifier.arbiter import Arbiter

    with failing():
        for finding in Arbiter(directory).findings():
            typer.echo(finding.encode().decode())


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise MalformedError("too long", where=str(path), expected=f"{MAX_FILE_BYTES} bytes")
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MalformedError("not a JSON file", where=str(path)) from error
    if not isinstance(value, dict):
        raise MalformedError("not a JSON object", where=str(path))
    return value


def _submit(url: str, policy: "Policy", found: "FindingBody") -> None:
    """UnavailableError if the verifier cannot be asked; if it declines, by why (`family_of`)."""
    import httpx
    from ragaudit.http import HttpClient

    window = f"/v1/windows/{policy.window}/findings?provider={policy.provider}"
    target = url.rstrip("/") + window
    try:
        with HttpClient(timeout=60) as http:
            answer = http.request("POST", target, content=found.encode())
    except httpx.HTTPError as error:
        raise UnavailableError("the verifier cannot be reached", where=url) from error
    if not answer.is_success:
        try:
            said = reason(answer.json())
        except ValueError:
            said = ""
        kind = family_of(answer.status_code)
        raise kind(f"the verifier declined: {said or answer.status_code}", where=target)
