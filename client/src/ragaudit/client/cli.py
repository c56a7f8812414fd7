"""`ragaudit receipt`: check receipts, complete them, give their public halves to the verifier."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.client import (
    blocking,
    chain_commands,
    complete_command,
    count_commands,
    erased_command,
    key_commands,
    missing_commands,
    offline,
    offline_words,
    owner_proofs,
)
from ragaudit.client.command_window import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    Prover,
    SavedWindow,
    load,
    load_named,
    pins_of,
)
from ragaudit.client.disputing import registration_statement, signs_for
from ragaudit.client.options import system_clock
from ragaudit.client.quorum import QUORUM_EXAMPLES, quorum
from ragaudit.client.stamping import STAMP_EXAMPLES, STAMPED_EXAMPLES, stamp, stamped
from ragaudit.encoding.commands import ExitCode, exit_code, failing
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import InvalidArgumentError, RagauditError, RejectedError
from ragaudit.encoding.options import digest
from ragaudit.ledger.messages.bodies import DisputesBody
from ragaudit.ledger.messages.disputes import Dispute
from ragaudit.ledger.messages.public_halves import is_words
from ragaudit.ledger.messages.receipt_check import StepResult
from rich.markup import escape
from rich.table import Table

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Check receipts; give their public halves to the verifier."
)
app.command("erased", epilog=erased_command.EXAMPLES)(erased_command.erased)
for commands in (complete_command, missing_commands, count_commands, chain_commands, key_commands):
    commands.add_to(app)

_CHECK_EXAMPLES = """Examples:

  ragaudit receipt check answer.json --prover https://rag.example --verifier-key 3b6a...

  ragaudit receipt check answer.json --window window.json --policy policy.json
  --account account.json --promise promise.json --strict

  ragaudit receipt check row.json --policy policy.json --text faq-17.txt

Exit status: 0 no check failed; 1 REJECTED, the provider signed something false; 2 not a receipt
file, or another input that is unusable; 3 a service does not answer; 4 a service declines;
5 with --strict, nothing failed and a check could not be done."""

_PROMISE_EXAMPLES = """Example:

  ragaudit receipt promise promise.json --request request.json --account account.json
  --window window.json --verifier-key 3b6a...

Exit status: 0 it may be revealed under; 1 false: reveal nothing; 4 not of now, or too late."""

_SUBMIT_EXAMPLES = """Example:

  ragaudit receipt submit state/w1/5f3a.../receipts/*.json state/w1/5f3a.../answers/*.json
  --state state/w1/5f3a... --verifier https://regulator.example"""

_DISPUTE_EXAMPLES = """Examples:

  ragaudit receipt dispute state/w1/5f3a.../rejected/3-1a2b3c4d.json --state state/w1/5f3a...
  --verifier https://regulator.example

  ragaudit receipt dispute answer.json --key dispute.key --account account.json
  --verifier https://regulator.example"""

_SETTLE_EXAMPLES = """Examples:

  ragaudit receipt settle answer.json --verifier https://regulator.example

  ragaudit receipt settle answer.json --verifier https://regulator.example
  --arbiter https://arbiter.example --window window.json --verifier-key 3b6a..."""

Files = Annotated[list[Path], typer.Argument(help="Receipt files.")]
State = Annotated[
    Path | None, typer.Option("--state", help="Folder with registration.json: the library's.")
]
Key = Annotated[
    Path | None, typer.Option("--key", help="The dispute key, made by `ragaudit key make`.")
]
Account = Annotated[
    Path | None, typer.Option("--account", help="Saved reply of GET .../account, with --key.")
]


@app.command("check", epilog=_CHECK_EXAMPLES)
def check(
    file: Annotated[Path, typer.Argument(help="Receipt file, both halves; or proof.")],
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    account: Annotated[
        Path | None, typer.Option("--account", help="Saved reply of GET .../account.")
    ] = None,
    promise: Annotated[
        Path | None, typer.Option("--promise", help="Saved reply of POST .../promise.")
    ] = None,
    anchor: Annotated[
        bytes | None,
        typer.Option("--anchor", parser=digest, metavar="HEX", help="Anchor of the nonce chain."),
    ] = None,
    text: Annotated[
        Path | None, typer.Option("--text", help="Of a row proof: the document's text.")
    ] = None,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="Of a row proof: its metadata, JSON.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a check cannot be done.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the checks of a receipt and say of each whether it was done.

    Also of a row proof or a document proof, for which the policy alone is enough, offline; and how
    many documents of the answer were withheld, since they changed or went meanwhile.
    """
    steps: Sequence[StepResult] = []
    withdrawn: int | None = None
    disputable: bool | None = None
    failure: RagauditError | None = None
    try:
        # Which of two anchors counts is not guessed.
        if account is not None and anchor is not None:
            raise InvalidArgumentError(
                "the account names its anchor", where="--anchor", expected="one of the two"
            )
        value = offline.read_file(file)
        pins = pins_of(policy, verifier_key, allow_unpinned)
        if owner_proofs.is_proof(value):
            source = owner_proofs.Source(window, prover, policy, pins)
            steps = owner_proofs.check_file(file, source, text, attributes)
        elif text is not None or attributes is not None:
            raise InvalidArgumentError("not a row proof", where=str(file), expected="no --text")
        else:
            target = load(value, file, window, prover, pins)
            steps = [offline.pinning(target)]
            owner = None if account is None else offline.read_account(account)
            disputable = None if owner is None else owner.dispute_key is not None
            facts = offline.Facts(
                owner,
                anchor,
                None if promise is None else offline.read_promise(promise),
                offline.load_embedder(target),
            )
            if is_words(value):
                steps = offline_words.check(value, target, facts, file).checks
            else:
                checked = offline.check(value, target, facts, file)
                steps, withdrawn = checked.checks, checked.withdrawn
    except RagauditError as error:
        failure = error
    # The failure is raised below: the report shows the checks that were done before it.
    incomplete = strict and any(step.status == "not done" for step in steps)
    _report(file, steps, (withdrawn, disputable), failure, as_json)
    if failure is not None:
        raise typer.Exit(int(exit_code(failure)))
    if incomplete:
        raise typer.Exit(int(ExitCode.INCOMPLETE))


@app.command("promise", epilog=_PROMISE_EXAMPLES)
def promised(
    file: Annotated[Path, typer.Argument(help="Saved reply of POST .../promise.")],
    request: Annotated[Path, typer.Option("--request", help="The JSON that was posted.")],
    account: Annotated[Path, typer.Option("--account", help="Saved reply of GET .../account.")],
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Check a promise, before the value of the nonce chain is revealed under it.

    It must have been made between the writing of the two files, by this machine's clock.
    """
    with failing(as_json):
        name = offline.read_promise(file).promised.window
        target = load_named(name, window, prover, pins_of(policy, verifier_key, allow_unpinned))
        facts = offline.Facts(offline.read_account(account), embedder=offline.load_embedder(target))
        limit = offline.check_promised(file, request, target, facts, system_clock())
    # Rounded down: a nonce that leaves in the last fraction could not be claimed.
    seconds = int(limit)
    typer.echo(
        json.dumps({"reveal_within_seconds": seconds}) if as_json else f"reveal within {seconds} s"
    )


@app.command("submit", epilog=_SUBMIT_EXAMPLES)
def submit(
    files: Annotated[list[Path], typer.Argument(help="Receipt files, or public halves alone.")],
    verifier: Annotated[str, typer.Option("--verifier", help="URL of the verifier.")],
    state: State = None,
    key: Key = None,
    account: Account = None,
    as_json: AsJson = False,
) -> None:
    """Give the verifier the public halves of receipts, of answers in words too.

    Private halves stay here.

    With --state, or --key and --account, the account signs for its own receipts, so that the
    verifier keeps them whatever others submit, and says that the registration is its own.
    """
    # By window, and by whose they are: one request is of one log, signed for by one account.
    halves: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    accepted = already_known = 0
    with failing(as_json):
        holder = None
        if state is not None or key is not None or account is not None:
            holder = offline.read_holder(state, key, account)
        for path in files:
            public = offline.public_half(offline.read_file(path), path)
            own = holder is not None and public.pseudonym == holder.account.pseudonym
            halves.setdefault((public.origin, own), []).append(public.to_json())
        for (origin, own), batch in halves.items():
            signs = None
            if holder is not None and own:
                blocking.tell(
                    verifier, origin, "statements", registration_statement(holder, origin)
                )
                signs = signs_for(holder, origin)
            result = blocking.submit(verifier, origin, batch, signs)
            accepted, already_known = accepted + result.accepted, already_known + result.known
    if as_json:
        typer.echo(json.dumps({"accepted": accepted, "known": already_known}))
    else:
        typer.echo(f"{accepted} accepted, {already_known} known already")


@app.command("dispute", epilog=_DISPUTE_EXAMPLES)
def dispute(
    file: Annotated[Path, typer.Argument(help="Receipt file, as the service sent it.")],
    verifier: Annotated[str, typer.Option("--verifier", help="URL of the verifier.")],
    state: State = None,
    key: Key = None,
    account: Account = None,
    as_json: AsJson = False,
) -> None:
    """Dispute an answer before the sampling instant. The verifier learns a digest of the file."""
    with failing(as_json):
        value = offline.read_file(file)
        holder = offline.read_holder(state, key, account)
        # Of the file as it came: its digest is what the verifier compares a file with later.
        entry = Dispute.issue(holder.key, pseudonym=holder.account.pseudonym, receipt_file=value)
        origin = offline.public_half(value, file).origin
        body = DisputesBody((entry.to_json(),), holder.registration).to_json()
        blocking.tell(verifier, origin, "disputes", body)
    typer.echo(entry.encode().decode() if as_json else f"entry {entry.index} is disputed")


@app.command("settle", epilog=_SETTLE_EXAMPLES)
def settle(
    file: Annotated[Path, typer.Argument(help="Disputed receipt file.")],
    verifier: Annotated[str, typer.Option("--verifier", help="URL of the verifier.")],
    arbiter: Annotated[
        str | None,
        typer.Option("--arbiter", help="URL: have it judge what the verifier must not see."),
    ] = None,
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """After the sampling instant: have a disputed file judged.

    The verifier judges it if its record was not sampled, otherwise the arbiter of the policy does,
    which needs the window.
    """
    with failing(as_json):
        value = offline.read_file(file)
        origin = offline.public_half(value, file).origin
        judge = None
        if arbiter is not None:
            pins = pins_of(policy, verifier_key, allow_unpinned)
            judge = (arbiter, load(value, file, window, prover, pins))
        outcome = blocking.settle(verifier, origin, value, judge)
    if as_json:
        typer.echo(json.dumps({"sampled": outcome["sampled"], "step": outcome["step"]}))
    elif outcome["step"] is not None:
        typer.echo(f"upheld: step {outcome['step']} fails" if outcome["step"] else "dismissed")
    else:
        typer.echo("sampled: the verifier must not see it, take it to the arbiter (--arbiter)")


app.command("quorum", epilog=QUORUM_EXAMPLES)(quorum)
app.command("stamp", epilog=STAMP_EXAMPLES)(stamp)
app.command("stamped", epilog=STAMPED_EXAMPLES)(stamped)


def _report(
    path: Path,
    steps: Sequence[StepResult],
    about: tuple[int | None, bool | None],
    failure: RagauditError | None,
    as_json: bool,
) -> None:
    result, (withdrawn, disputable) = _result(failure), about
    if as_json:
        document = {
            "file": str(path),
            "result": result,
            "error": None if failure is None else str(failure),
            "checks": [
                {"number": s.number, "name": s.name, "status": s.status, "detail": s.detail}
                for s in steps
            ],
            "withdrawn": withdrawn,
            "disputable": disputable,
        }
        typer.echo(json.dumps(document))
        return
    if failure is None:
        table = Table(
            "no.", "check", "status", "detail", title=escape(str(path)), title_justify="left"
        )
        for step in steps:
            # A detail may hold text of the provider's: it must not style itself as another result.
            style = "green" if step.status == "done" else "yellow"
            table.add_row(
                str(step.number), step.name, f"[{style}]{step.status}[/]", escape(step.detail)
            )
        console = Console()
        console.print(table)
        console.print("No check failed.")
        if withdrawn:
            console.print(f"{withdrawn} withdrawn: selected, and withheld as changed or gone.")
        if disputable is False:
            console.print("warning: the account registered no dispute key: nobody could dispute.")
    # In red only where the provider signed it: a damaged file accuses nobody.
    elif result == "rejected":
        Console(stderr=True).print("REJECTED", style="bold red", end=" ")
        typer.echo(str(failure), err=True)
    else:
        typer.echo(f"error: {failure}", err=True)


def _result(failure: RagauditError | None) -> str:
    """Return "rejected" for what the provider signed; any other failure judges nothing."""
    if failure is None:
        return "accepted"
    return "rejected" if isinstance(failure, RejectedError) else "not judged"
