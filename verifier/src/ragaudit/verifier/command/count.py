"""``ragaudit verifier prove-count``: how many records an account has, from a whole bundle."""

from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.options import digest

__all__ = ["add_to"]

_EXAMPLE = "Example: ragaudit verifier prove-count window.zip 5f3a... -o count.json"


def add_to(app: typer.Typer) -> None:
    """Add the command to a group.

    Args:
        app: `ragaudit verifier`.
    """
    app.command("prove-count", epilog=_EXAMPLE)(prove_count)


def prove_count(
    bundle: Annotated[Path, typer.Argument(help="The evidence bundle, both parts.")],
    pseudonym: Annotated[
        bytes, typer.Argument(parser=digest, metavar="HEX", help="Pseudonym of the account.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the proof to.")],
) -> None:
    """Prove which records an account has in a window, or that it was not registered.

    Whoever is given the file checks it offline: ragaudit receipt verify-count. It counts with a
    verdict in which check 22 passed. Exit code: 1 the log has another index; 4 it has none, or the
    bundle is not whole.
    """
    from ragaudit.verifier.account_proofs import prove_account  # noqa: PLC0415
    from ragaudit.verifier.bundle import open_bundle  # noqa: PLC0415
    from ragaudit.verifier.engines import fastest_engine  # noqa: PLC0415

    with failing():
        if not bundle.is_file():
            raise MalformedError("no such file", where=str(bundle))
        with open_bundle(bundle) as opened:
            proof = prove_account(opened.evidence, pseudonym, engine=fastest_engine())
        out.write_bytes(proof.encode())
        counted = "not registered" if proof.records is None else f"{len(proof.records)} records"
        typer.echo(f"{pseudonym.hex()}: {counted}")
