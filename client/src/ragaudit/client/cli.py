"""`ragaudit receipt`: check receipts, and give their public halves to the verifier."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.client import offline
from ragaudit.client.transport import Service
from ragaudit.client.verifier import VerifierService
from ragaudit.client.window import Pins, Window
from ragaudit.encoding.errors import MalformedError, RagauditError, RefusedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.receipt_check import StepResult
from ragaudit.ledger.receipts import PublicReceipt, ReceiptFile
from rich.console import Console
from rich.table import Table

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Check receipts; give their public halves to the verifier."
)

EXIT_REJECTED = 1
EXIT_INCOMPLETE = 3

_CHECK_EXAMPLES = """Examples:

  ragaudit receipt check answer.json --prover https://rag.example --verifier-key 3b6a...

  ragaudit receipt check answer.json --window window.json --policy policy.json --json

Exit status: 0 no check failed, 1 a check failed or the input is unusable, 3 with --strict, a
check could not be done."""

_SUBMIT_EXAMPLES = """Example:

  ragaudit receipt submit state/*/*/receipts/*.json --verifier https://regulator.example"""


@app.command("check", epilog=_CHECK_EXAMPLES)
def check(
    file: Annotated[Path, typer.Argument(help="Receipt file, both halves.")],
    window: Annotated[
        Path | None, typer.Option("--window", help="Saved reply of GET /v1/windows/{window}.")
    ] = None,
    prover: Annotated[
        str | None, typer.Option("--prover", help="Ask this provider for it.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="Pin: the policy that you agreed to.")
    ] = None,
    verifier_key: Annotated[
        str | None,
        typer.Option("--verifier-key", help="Pin: the verifier's key (keys.verifier), hex."),
    ] = None,
    anchor: Annotated[
        str | None, typer.Option("--anchor", help="Anchor of the account's nonce chain, hex.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a check cannot be done.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the ten checks of a receipt and say of each whether it was done."""
    steps: list[StepResult] = []
    failure: RagauditError | None = None
    try:
        receipt = offline.read_receipt(file)
        pins = _pins(policy, verifier_key)
        shown = _window(receipt, window, prover, pins)
        steps.append(_pinning(shown))
        parsed_anchor = None if anchor is None else hex_decode(anchor, 32)
        steps += offline.check(receipt, shown, offline.load_embedder(shown), parsed_anchor)
    except RagauditError as error:
        failure = error
    _report(file, steps, failure, as_json)
    if failure is not None:
        raise typer.Exit(EXIT_REJECTED)
    if strict and any(each.status == "not done" for each in steps):
        raise typer.Exit(EXIT_INCOMPLETE)


@app.command("submit", epilog=_SUBMIT_EXAMPLES)
def submit(
    files: Annotated[list[Path], typer.Argument(help="Receipt files, or public halves alone.")],
    verifier: Annotated[str, typer.Option("--verifier", help="URL of the verifier.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Give the verifier the public halves of receipts. Private halves stay here."""
    halves: dict[str, list[dict[str, Any]]] = {}
    for path in files:
        public = _public_half(path)
        halves.setdefault(public.record.window, []).append(public.to_json())
    service = VerifierService(Service(verifier))
    try:
        accepted = known = 0
        for name, batch in halves.items():
            result = service.submit(name, batch)
            accepted, known = accepted + result.accepted, known + result.known
    finally:
        service.close()
    if as_json:
        typer.echo(json.dumps({"accepted": accepted, "known": known}))
    else:
        typer.echo(f"{accepted} accepted, {known} known already")


def _pins(policy: Path | None, verifier_key: str | None) -> Pins:
    return Pins(
        None if verifier_key is None else PublicKey.from_raw(hex_decode(verifier_key, 32)),
        None if policy is None else offline.read_policy_digest(policy),
    )


def _window(receipt: ReceiptFile, window: Path | None, prover: str | None, pins: Pins) -> Window:
    if (window is None) == (prover is None):
        raise RefusedError("one source of the window is needed", expected="--window or --prover")
    if window is not None:
        return offline.read_window(window, pins)
    return offline.fetch_window(str(prover), receipt, pins)


def _pinning(window: Window) -> StepResult:
    if window.pinned:
        return StepResult(0, "window", "done")
    return StepResult(0, "window", "not done", "neither --verifier-key nor --policy was given")


def _public_half(path: Path) -> PublicReceipt:
    try:
        return offline.read_receipt(path).public
    except MalformedError:
        return PublicReceipt.parse(path.read_bytes())


def _report(
    path: Path, steps: list[StepResult], failure: RagauditError | None, as_json: bool
) -> None:
    if as_json:
        document = {
            "file": str(path),
            "result": "rejected" if failure is not None else "accepted",
            "error": None if failure is None else str(failure),
            "checks": [
                {"number": s.number, "name": s.name, "status": s.status, "detail": s.detail}
                for s in steps
            ],
        }
        typer.echo(json.dumps(document, ensure_ascii=False))
        return
    console = Console()
    if failure is None:
        table = Table("no.", "check", "status", "detail", title=str(path), title_justify="left")
        for step in steps:
            style = "green" if step.status == "done" else "yellow"
            table.add_row(str(step.number), step.name, f"[{style}]{step.status}[/]", step.detail)
        console.print(table)
        console.print("No check failed.")
    else:
        Console(stderr=True).print("REJECTED", style="bold red", end=" ")
        typer.echo(str(failure), err=True)
