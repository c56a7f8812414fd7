"""`ragaudit receipt complete`: inclusion proofs for receipts that were handed out without."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.client import blocking, offline
from ragaudit.client.command_window import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    load,
    pins_of,
)
from ragaudit.client.quorum import cosignatures
from ragaudit.client.state import write_durably
from ragaudit.client.window import Window
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.commands import failing
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt, LoggedEntry
from ragaudit.ledger.messages.generated_check import check_generated_inclusion
from ragaudit.ledger.messages.public_halves import is_words
from ragaudit.ledger.messages.receipt_check import check_inclusion, check_quorum
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile

__all__ = ["add_to"]

_EXAMPLES = """Example:

  ragaudit receipt complete answer.json --prover https://rag.example --verifier-key 3b6a..."""

Fetch = Callable[[Window, int], TlogProof]


def add_to(app: typer.Typer) -> None:
    """Add the command to a group.

    Args:
        app: `ragaudit receipt`.
    """
    app.command("complete", epilog=_EXAMPLES)(complete)


def complete(
    files: Annotated[list[Path], typer.Argument(help="Receipt files.")],
    prover: Annotated[str, typer.Option("--prover", help="URL of the provider.")],
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also replace proofs by ones with more cosignatures.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the inclusion proofs that are outstanding, check them, and add them to the files.

    An answer in words has two, of its charge and of its answer.
    """
    count = 0

    def fetch(target: Window, index: int) -> TlogProof:
        return TlogProof.parse(blocking.proof(prover, target.name, index).encode())

    with failing(as_json):
        for path in files:
            value = offline.read_file(path)

            # For each file by itself: they may be of different windows.
            def window(value: dict[str, Any] = value, path: Path = path) -> Window:
                pins = pins_of(policy, verifier_key, allow_unpinned)
                return load(value, path, None, prover, pins)

            public: PublicReceipt | GeneratedReceipt | None
            if is_words(value):
                public = _words(GeneratedFile.from_json(value).public, window, fetch, again)
            else:
                public = _documents(ReceiptFile.from_json(value).public, window, fetch, again)
            if public is None:
                continue
            # Only after its check: a false proof must not replace a file without one.
            write_durably(path, dumps({**value, "public": public.to_json()}))
            count += 1
    typer.echo(json.dumps({"completed": count}) if as_json else f"{count} completed")


def _documents(
    public: PublicReceipt, window: Callable[[], Window], fetch: Fetch, again: bool
) -> PublicReceipt | None:
    """Return the public half with a better proof, checked; None if it has no need of one."""
    if public.proof is not None and not again:
        return None
    target = window()
    found = public.with_proof(fetch(target, public.index))
    check_inclusion(found, target.view)
    check_quorum(found, target.view.policy)
    return found if cosignatures(found.proof) > cosignatures(public.proof) else None


def _words(
    public: GeneratedReceipt, window: Callable[[], Window], fetch: Fetch, again: bool
) -> GeneratedReceipt | None:
    """Return as `_documents`; one of the two proofs may be better alone."""
    entries = [entry for _, entry in public.entries]
    if not again and all(entry.proof is not None for entry in entries):
        return None
    target = window()

    def proof(entry: LoggedEntry) -> TlogProof:
        held = None if entry.proof is None else TlogProof.parse(entry.proof.encode())
        if held is not None and not again:
            return held
        new = fetch(target, entry.index)
        better = cosignatures(new.encode().decode()) > cosignatures(entry.proof)
        return new if held is None or better else held

    found = public.with_proofs(*map(proof, entries))
    check_generated_inclusion(found, target.view)
    check_quorum(found, target.view.policy)
    return found if found != public else None
