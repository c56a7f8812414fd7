"""`ragaudit receipt prove-missing` and `verify-missing`: a receipt against its log (6.11)."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import offline
from ragaudit.client.command_window import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    Prover,
    SavedWindow,
    load,
    pins_of,
)
from ragaudit.client.errors import StateConflict
from ragaudit.client.published_log import PublishedLog
from ragaudit.client.state import write_durably
from ragaudit.encoding.commands import failing, of_file
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, verify_checkpoint
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.generated import GeneratedReceipt
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.missing import MissingEntry, MissingRecord, read_missing

__all__ = ["add_to"]

_PROVE_EXAMPLES = """Examples:

  ragaudit receipt prove-missing answer.json --prover https://rag.example --verifier-key 3b6a...
  -o missing.json

  ragaudit receipt prove-missing answer.json --window window.json --policy policy.json
  --log published-log --entries bundle/public/entries.json -o missing.json

Exit status: 0 the entry is missing, and the proof is written; 1 the receipt is not signed by the
provider, or the log shows what it did not sign; 2 an input that is unusable; 3 the log does not
answer; 4 nothing is proven: the entry is in the log, or may still come."""

_VERIFY_EXAMPLES = """Example:

  ragaudit receipt verify-missing missing.json --policy policy.json

Exit status: 0 it is proven that the provider signed a receipt for an entry that its log has not;
1 it is not; 2 an input that is unusable."""


def add_to(app: typer.Typer) -> None:
    """Add both commands to a group.

    Args:
        app: `ragaudit receipt`.
    """
    app.command("prove-missing", epilog=_PROVE_EXAMPLES)(prove)
    app.command("verify-missing", epilog=_VERIFY_EXAMPLES)(verify)


def prove(
    file: Annotated[Path, typer.Argument(help="Receipt file, or its public half alone.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the proof to.")],
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    log: Annotated[
        str | None,
        typer.Option("--log", help="URL or folder of the published log; else the provider's."),
    ] = None,
    entries: Annotated[
        Path | None,
        typer.Option(
            "--entries",
            help="public/entries.json of the verifier's bundle: shows that the log has ended.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that an entry of a receipt is not in the log, from what the log publishes.

    The entry is a record, or the charge or the answer of an answer in words. The proof needs
    nothing else to be checked: it shows the public half of the receipt only.
    """
    with failing(as_json):
        value = offline.read_file(file)
        target = load(value, file, window, prover, pins_of(policy, verifier_key, allow_unpinned))
        published = PublishedLog.at(_log(log, prover, target.name))
        signed = verify_checkpoint(published.checkpoint(), target.view.policy.keys.log)
        hashes = published.hashes(signed.head.size)
        last = None if entries is None else _last(entries)
        proof: MissingRecord | MissingEntry | None
        public = offline.public_half(value, file)
        if isinstance(public, GeneratedReceipt):
            at, proof = public.answer.index, MissingEntry.find(public, signed, hashes, last)
        else:
            at, proof = public.index, MissingRecord.find(public, signed, hashes, last)
        if proof is None:
            raise _unproven(at, signed)
        # By the rules of whoever is shown it: a wrong tile must not become an accusation.
        proof.verify(target.view.policy)
        write_durably(out, proof.encode())
    _say(proof, signed, as_json)


def verify(
    file: Annotated[Path, typer.Argument(help="Proof, as prove-missing wrote it.")],
    policy: Annotated[Path, typer.Option("--policy", help="The policy of the window.")],
    as_json: AsJson = False,
) -> None:
    """Check offline that a receipt and the log of its window contradict each other.

    All keys are the policy's.
    """
    with failing(as_json):
        with of_file(file):
            proof = read_missing(offline.read_bytes(file))
        signed = proof.verify(offline.read_policy(policy))
    _say(proof, signed, as_json)


def _log(log: str | None, prover: str | None, window: str) -> str:
    if log is not None:
        return log
    if prover is None:
        raise InvalidArgumentError("where is the log?", expected="--log or --prover")
    return f"{prover.rstrip('/')}/v1/windows/{window}/log"


def _last(path: Path) -> Entry:
    with of_file(path):
        entries = Entries.parse(offline.read_bytes(path)).messages
    if not entries:
        raise MalformedError("no entries", where=str(path), expected="public/entries.json")
    return entries[-1]


def _unproven(index: int, signed: SignedCheckpoint) -> StateConflict:
    if index < signed.head.size:
        return StateConflict("the entry is in the log", where=f"leaf {index}")
    return StateConflict(
        f"the log has {signed.head.size} entries: the entry may still come",
        where=f"leaf {index}",
        expected="a longer log, or its close entry (--entries)",
    )


def _say(proof: MissingRecord | MissingEntry, signed: SignedCheckpoint, as_json: bool) -> None:
    index, size, origin = proof.index, signed.head.size, proof.receipt.origin
    ended = proof.shown.leaf is None
    if as_json:
        shown = "the end of the log" if ended else "another leaf"
        typer.echo(json.dumps({"origin": origin, "index": index, "size": size, "shown": shown}))
        return
    what = f"{proof.entry} " if isinstance(proof, MissingEntry) else ""
    typer.echo(f"The provider signed a receipt for the {what}entry {index} of {origin}.")
    if ended:
        typer.echo(f"Its log was closed with {size} entries.")
    else:
        typer.echo(f"Its log, of {size} entries, has another one there.")
