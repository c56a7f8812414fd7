"""``ragaudit verifier evidence verify-...``: what a verifier says of its evidence, offline."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.encoding.canonical_json import loads_any
from ragaudit.encoding.commands import failing, of_file
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.deletion import Deletion, ProviderDeletion
from ragaudit.ledger.messages.evidence_access import EvidenceAccess
from ragaudit.verifier.command.options import AsJson, VerdictKey

__all__ = ["add_to"]

Bundle = Annotated[Path, typer.Argument(help="The window's bundle; its public part will do.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to a group.

    Args:
        app: `ragaudit verifier evidence`.
    """
    app.command(
        "verify-deletion",
        epilog="Example: ragaudit verifier evidence verify-deletion deletion.json bundle "
        "--verdict-key 3b6a...",
    )(verify_deletion)
    app.command(
        "verify-accesses",
        epilog="Example: ragaudit verifier evidence verify-accesses accesses.json bundle "
        "--verdict-key 3b6a... --shown 2",
    )(verify_accesses)


def verify_deletion(
    statement: Annotated[
        Path, typer.Argument(help="GET /v1/windows/{w}/deletion of verifier or prover, as it came.")
    ],
    bundle: Bundle,
    verdict_key: VerdictKey,
    as_json: AsJson = False,
) -> None:
    """Check what was deleted, when, and under which checkpoint it had been evidence.

    The statement must be about the verdict of the bundle, name all of its confidential items and no
    other (a prover's: as many entries as are not public), and be signed with the key of its policy.
    Exit code: 1 it is not.
    """
    from ragaudit.verifier.later_statements import Judged  # noqa: PLC0415

    with failing():
        with of_file(statement):
            found = _deletion(_json(statement))
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


def verify_accesses(
    accesses: Annotated[
        Path,
        typer.Argument(
            help="`ragaudit verifier evidence accesses --json`, as it came; or of a prover, "
            "`ragaudit prover account accesses --json`."
        ),
    ],
    bundle: Bundle,
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
    from ragaudit.verifier.later_statements import Judged  # noqa: PLC0415

    with failing():
        with of_file(accesses):
            listed = _json(accesses)
            if not isinstance(listed, list):
                raise MalformedError("not a list of accesses")
            found = [EvidenceAccess.from_json(each) for each in listed]
        judged = Judged.read(bundle, verdict_key)
        judged.verify_accesses(found, shown, by_provider=by_provider)
        typer.echo(f"{len(found)} accesses, none of them missing or changed")


def _deletion(value: Any) -> Deletion | ProviderDeletion:
    if isinstance(value, dict) and value.get("format") == ProviderDeletion.FORMAT:
        return ProviderDeletion.from_json(value)
    return Deletion.from_json(value)


def _json(path: Path) -> Any:
    try:
        return loads_any(path.read_bytes())
    except OSError as error:
        raise MalformedError("cannot be read", where=str(path)) from error
