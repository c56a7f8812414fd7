"""`ragaudit receipt verify-windows`: the chain of a provider's windows (spec 8.11)."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import blocking, offline
from ragaudit.client.command_window import AllowUnpinned, AsJson, pins_of
from ragaudit.encoding.commands import ExitCode, failing, of_file
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.window_chain import Link, WindowChain

__all__ = ["add_to"]

_EXAMPLES = """Examples:

  ragaudit receipt verify-windows --prover https://rag.example --verifier-key 3b6a...

  ragaudit receipt verify-windows chain.json --verifier-key 3b6a... --json

Exit status: 0 every window but the first continues an earlier one; 1 something shown is false; 2 an
input that is unusable; 3 the provider does not answer; 5 nothing is false, and a later window
begins anew, so that nobody can tell what came before it."""


def add_to(app: typer.Typer) -> None:
    """Add the command to a group.

    Args:
        app: `ragaudit receipt`.
    """
    app.command("verify-windows", epilog=_EXAMPLES)(verify)


def verify(
    file: Annotated[
        Path | None, typer.Argument(help="Saved reply of GET /v1/window-chain.")
    ] = None,
    prover: Annotated[
        str | None, typer.Option("--prover", help="URL: ask this provider for it.")
    ] = None,
    verifier_key: Annotated[
        list[PublicKey] | None,
        typer.Option(
            "--verifier-key",
            parser=public_key,
            metavar="HEX",
            help="Pin: a verifier's key (keys.verifier of the policy); repeatable.",
        ),
    ] = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Check that a provider's windows continue each other, each with a log key of its own."""
    with failing(as_json):
        given: list[PublicKey | None] = [*(verifier_key or [])] or [None]
        keys = [pins_of(None, key, allow_unpinned).verifier for key in given]
        chain = _chain(file, prover)
        links = chain.verify([key for key in keys if key is not None])
    if as_json:
        windows = [
            {
                "window": one.window,
                "log": one.log,
                "provider_key": one.provider_key.raw.hex(),
                "size": one.size,
                "continues": one.continues,
            }
            for one in links
        ]
        typer.echo(json.dumps({"provider": chain.provider, "windows": windows}))
    else:
        for before, link in zip([None, *links], links, strict=False):
            typer.echo(_line(link, before))
    if any(link.continues is None for link in links[1:]):
        raise typer.Exit(int(ExitCode.INCOMPLETE))


def _chain(file: Path | None, prover: str | None) -> WindowChain:
    # Not both: which of two replies counts would be a guess.
    if (file is None) == (prover is None):
        raise InvalidArgumentError("one chain is needed", expected="a file or --prover")
    if file is None:
        return WindowChain.from_json(blocking.window_chain(str(prover)))
    with of_file(file):
        return WindowChain.from_json(offline.read_json(file))


def _line(link: Link, before: Link | None) -> str:
    ended = "has not ended" if link.size is None else f"ended with {link.size} entries"
    continues = "begins anew" if link.continues is None else f"continues {link.continues}"
    # Receipts of each window verify under its own key alone: a reader must know where it changed.
    changed = before is not None and before.provider_key != link.provider_key
    signs = f"; new provider key {link.provider_key.raw.hex()}" if changed else ""
    return f"{link.window}: {continues}; {ended}; log key {link.log}{signs}"
