"""`ragaudit receipt verify-count`: the records that an account has in a window (spec 5.14)."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import offline
from ragaudit.client.command_window import AsJson
from ragaudit.encoding.commands import failing, of_file
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.account_proof import AccountProof
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicReceipt

__all__ = ["add_to"]

_EXAMPLES = """Examples:

  ragaudit receipt verify-count count.json --policy policy.json

  ragaudit receipt verify-count count.json --policy policy.json --receipt answer-1.json
  --receipt answer-2.json

Exit status: 0 the window's log says so, and counts all receipts that are given; 1 it does not say
so, or does not count one of them: that receipt and the proof contradict each other; 2 an input that
is unusable."""


def add_to(app: typer.Typer) -> None:
    """Add the command to a group.

    Args:
        app: `ragaudit receipt`.
    """
    app.command("verify-count", epilog=_EXAMPLES)(verify)


def verify(
    file: Annotated[
        Path, typer.Argument(help="Saved reply of GET /v1/windows/{window}/account/count.")
    ],
    policy: Annotated[Path, typer.Option("--policy", help="The policy of the window.")],
    receipt: Annotated[
        list[Path] | None,
        typer.Option("--receipt", help="Receipt file of the account that must be counted."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check offline which records the log of a closed window has of an account, or that of none.

    All keys are the policy's. That nothing is left out of the index is what check 22 of the
    window's verdict says.
    """
    with failing(as_json):
        terms = offline.read_policy(policy)
        with of_file(file):
            proof = AccountProof.parse(offline.read_bytes(file))
        proof.verify(terms)
        for path in receipt or []:
            _check_counted(of_record(path), proof, terms, path)
    who, records = proof.pseudonym.hex(), proof.records
    if as_json:
        listed = None if records is None else list(records)
        typer.echo(json.dumps({"origin": proof.origin, "pseudonym": who, "records": listed}))
    elif records is None:
        typer.echo(f"{who} was not registered and has no record in {proof.origin}.")
    else:
        places = f": {', '.join(map(str, records))}" if records else ""
        typer.echo(f"{who} has exactly {len(records)} records in {proof.origin}{places}.")


def of_record(path: Path) -> PublicReceipt:
    """Return the public half of a receipt of a record.

    Args:
        path: of a receipt file, or of a public half alone.

    Raises:
        UnsupportedError: it is of an answer in words.
        MalformedError: not a receipt.
    """
    public = offline.public_half(offline.read_file(path), path)
    # By the half itself: what the file around it says of its form is anybody's word.
    if not isinstance(public, PublicReceipt):
        raise UnsupportedError(
            "a receipt of an answer in words",
            where=str(path),
            expected="one of a record, which alone an account index counts; else `prove-missing`",
        )
    return public


def _check_counted(public: PublicReceipt, proof: AccountProof, policy: Policy, path: Path) -> None:
    # First whether it accuses anybody: whose receipt it is, and that the provider signed it.
    if public.origin != policy.origin or public.record.pseudonym != proof.pseudonym:
        raise MalformedError("of another account or log", where=str(path), expected="its receipt")
    public.verify(policy.keys.provider)
    if public.index not in (proof.records or ()):
        raise ReceiptRejected(
            f"entry {public.index} is not counted, and the provider signed a receipt for it",
            where=str(path),
        )
