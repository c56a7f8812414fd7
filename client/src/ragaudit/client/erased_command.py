"""`ragaudit receipt erased` and `ragaudit owner erased`: whether a document is gone (spec 5.16)."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import owner_proofs
from ragaudit.client.blocking import run
from ragaudit.client.command_window import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    Prover,
    SavedWindow,
    load_named,
    pins_of,
)
from ragaudit.client.owner_proofs import Erased
from ragaudit.client.owner_service import OwnerService
from ragaudit.client.window import Window
from ragaudit.encoding.commands import ExitCode, failing, new_file
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.ledger.messages.document_proof import DocumentProof

__all__ = ["EXAMPLES", "ask", "erased", "keep", "say"]

EXAMPLES = """Examples:

  ragaudit receipt erased erased.json --policy policy.json

  ragaudit receipt erased faq-17 --prover https://rag.example --window-name 2026-11
  --verifier-key 3b6a...

Exit status: 0 it is gone, or never was there; 1 it is still there, or the proof is false; 2 an
input that is unusable; 3 the provider does not answer; 4 it declines, as while the window is
open."""


def erased(
    what: Annotated[str, typer.Argument(metavar="FILE|ID", help="Document proof, or an id.")],
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    window_name: Annotated[
        str | None, typer.Option("--window-name", help="Name of the window, of an id.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option("--api-key", envvar="RAGAUDIT_OWNER_API_KEY", help="The owner's, of an id."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say in one sentence whether a document is gone from its index, and since when.

    Of a file the policy alone is enough, offline; with the window the time is exact.
    """
    with failing(as_json):
        if Path(what).exists():
            proof = owner_proofs.read(Path(what))
            if not isinstance(proof, DocumentProof):
                raise MalformedError("not a document proof", where=what, expected="one of `erased`")
            pins = pins_of(policy, verifier_key, allow_unpinned)
            terms, shown = owner_proofs.Source(window, prover, policy, pins).open(proof)
            _, place = owner_proofs.check(proof, terms, owner_proofs.Given())
            found = owner_proofs.described(proof, terms, place, shown)
        else:
            if prover is None or window_name is None or api_key is None:
                expected = "--prover, --window-name and --api-key, or the file of a proof"
                raise InvalidArgumentError("no such file", where=what, expected=expected)
            pins = pins_of(policy, verifier_key, allow_unpinned)
            target = load_named(window_name, None, prover, pins)
            _, found = run(ask(prover, api_key, target, what))
    say(found, as_json)


async def ask(url: str, api_key: str, window: Window, name: str) -> tuple[DocumentProof, Erased]:
    """Return the checked proof of a document, and what it says.

    Args:
        url: of the provider.
        api_key: of the owner.
        window: authenticated.
        name: id of the document.

    Raises:
        RagauditError: as `OwnerService.document`.
    """
    async with OwnerService(url, api_key, window) as service:
        proof, place = await service.document(name)
    return proof, owner_proofs.described(proof, window.view.policy, place, window)


def say(found: Erased, as_json: bool) -> None:
    """Print what was found; exit code 1 for a document that is there.

    Args:
        found: of a verified proof.
        as_json: one object instead of the sentence.
    """
    if as_json:
        document = {
            "gone": found.gone, "since": found.since, "version": found.version,
            "sentence": found.sentence,
        }  # fmt: skip
        typer.echo(json.dumps(document))
    else:
        typer.echo(found.sentence)
    if not found.gone:
        raise typer.Exit(int(ExitCode.FALSE))


def keep(proof: DocumentProof, out: Path | None) -> None:
    """Write a proof to a new file, if one is wanted; raises as `new_file`."""
    if out is not None:
        with new_file(out) as file:
            file.write(proof.encode())
