"""`ragaudit receipt`: check receipts, complete them, give their public parts to the verifier."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.client import log_commands, owner_commands
from ragaudit.client.command_options import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    Prover,
    SavedWindow,
)
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.commands import ExitCode, exit_code, failing
from ragaudit.encoding.errors import InvalidArgumentError, RagauditError, RejectedError
from ragaudit.encoding.options import digest
from ragaudit.encoding.signing import PublicKey

if TYPE_CHECKING:
    from ragaudit.client.transport import Service
    from ragaudit.client.verifier import Holder
    from ragaudit.client.window import AccountState, Pins, Window
    from ragaudit.ledger.log.tlog_proof import TlogProof
    from ragaudit.ledger.messages.bodies import Submission
    from ragaudit.ledger.messages.receipt_check import StepResult
    from ragaudit.ledger.messages.receipts import PublicPart

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Check receipts; give their public parts to the verifier."
)

_CHECK_EXAMPLES = """Examples:

  ragaudit receipt check answer.json --prover https://rag.example --verifier-key 3b6a...

  ragaudit receipt check answer.json --window window.json --policy policy.json
  --account account.json --promise promise.json --strict

  ragaudit receipt check row.json --policy policy.json --text faq-17.txt

Exit code: 0 no check failed; 1 REJECTED, the provider signed something false; 2 not a receipt
file, or another input that is unusable; 3 a service does not answer; 4 a service declines;
5 with --strict, nothing failed and a check could not be done."""

_PROMISE_EXAMPLES = """Example:

  ragaudit receipt promise promise.json --request request.json --account account.json
  --window window.json --verifier-key 3b6a...

Exit code: 0 it may be revealed under; 1 false: reveal nothing; 4 not of now, or too late."""

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

_COMPLETE_EXAMPLES = """Example:

  ragaudit receipt complete answer.json --prover https://rag.example --verifier-key 3b6a..."""

_KEY_EXAMPLES = """Example:

  RAGAUDIT_API_KEY=... ragaudit receipt key dispute.key --prover https://rag.example
  --verifier-key 3b6a...

Exit code: 0 the provider keeps the public key, and no window that is served registered the
account with another or none; 1 something shown is false; 2 an input that is unusable; 3 the
provider does not answer; 4 the provider has another key of the account; 5 it keeps the key, and a
window that is served registered the account without it: ask nothing there that you could not
dispute."""

_KEPT = "registered with this key"
_UNPROVEN = "registered with this key; no cosigned checkpoint has it yet"
_LATER = "not registered yet: it will be with this key"
_NONE = "registered WITHOUT a dispute key: nobody could dispute the answers"
_OTHER = "registered with ANOTHER dispute key: somebody else could dispute, you cannot"

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
    file: Annotated[Path, typer.Argument(help="Receipt file, or proof.")],
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
        Path | None, typer.Option("--text", help="With a row proof: the document's text.")
    ] = None,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="With a row proof: its metadata, JSON.")
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
    from ragaudit.client import offline, owner_proofs
    from ragaudit.client.checks import Facts, check_pin
    from ragaudit.client.results import CheckedReceipt
    from ragaudit.ledger.messages.promises import Promise

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
        source = offline.Source(window, prover, policy, verifier_key, allow_unpinned)
        if owner_proofs.is_proof(value):
            steps = owner_proofs.check_file(file, source, text, attributes)
        elif text is not None or attributes is not None:
            raise InvalidArgumentError("not a row proof", where=str(file), expected="no --text")
        else:
            target = source.of_receipt(value, file)
            steps = [check_pin(target)]
            facts = Facts(
                anchor=anchor,
                promise=None if promise is None else offline.read_as(promise, Promise.parse),
                embed=offline.embed_of(target),
            )
            if account is not None:
                owner = offline.read_account(account)
                disputable = owner.dispute_key is not None
                view = offline.account_view(owner, target)
                facts = replace(facts, account=view, anchor=owner.anchor)
            checked = offline.check(value, target, facts, file)
            steps = checked.checks
            withdrawn = checked.withdrawn if isinstance(checked, CheckedReceipt) else None
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
    from ragaudit.client import offline
    from ragaudit.client.checks import Facts
    from ragaudit.client.session import system_clock
    from ragaudit.ledger.messages.promises import Promise

    with failing(as_json):
        name = offline.read_as(file, Promise.parse).promised.window
        target = offline.Source(window, prover, policy, verifier_key, allow_unpinned).load(name)
        view = offline.account_view(offline.read_account(account), target)
        facts = Facts(view, embed=offline.embed_of(target))
        limit = offline.check_promised(file, request, target, facts, system_clock())
    # Rounded down: a nonce that leaves in the last fraction could not be claimed.
    seconds = int(limit)
    typer.echo(
        json.dumps({"reveal_within_seconds": seconds}) if as_json else f"reveal within {seconds} s"
    )


@app.command("submit", epilog=_SUBMIT_EXAMPLES)
def submit(
    files: Annotated[list[Path], typer.Argument(help="Receipt files, or public parts alone.")],
    verifier: Annotated[str, typer.Option("--verifier", help="URL of the verifier.")],
    state: State = None,
    key: Key = None,
    account: Account = None,
    as_json: AsJson = False,
) -> None:
    """Give the verifier the public parts of receipts, of generated answers too.

    Private parts stay here.

    With --state, or --key and --account, the account signs for its own receipts, so that the
    verifier keeps them whatever others submit, and says that the registration is its own.
    """
    from ragaudit.client import offline
    from ragaudit.client.blocking import call

    halves: dict[str, list[PublicPart]] = defaultdict(list)
    with failing(as_json):
        holder = None
        if state is not None or key is not None or account is not None:
            holder = offline.read_holder(state, key, account)
        for path in files:
            public = offline.public_half(offline.read_file(path), path)
            halves[public.origin].append(public)
        result = call(verifier, lambda service: _submitted(service, halves, holder))
    if as_json:
        typer.echo(json.dumps({"accepted": result.accepted, "known": result.known}))
    else:
        typer.echo(f"{result.accepted} accepted, {result.known} known already")


async def _submitted(
    service: "Service", halves: "Mapping[str, Sequence[PublicPart]]", holder: "Holder | None"
) -> "Submission":
    """Hand in public parts by the log that they are of; a holder signs where some are its own."""
    from ragaudit.client.verifier import VerifierService
    from ragaudit.ledger.messages.bodies import Submission

    replies = []
    for origin, batch in halves.items():
        own = holder and any(half.pseudonym == holder.account.pseudonym for half in batch)
        signer = holder if own else None
        replies.append(await VerifierService(service).submit(origin, batch, signer))
    return Submission.total(replies)


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
    from ragaudit.client import offline
    from ragaudit.client.blocking import call
    from ragaudit.client.verifier import VerifierService

    with failing(as_json):
        value = offline.read_file(file)
        holder = offline.read_holder(state, key, account)
        origin = offline.public_half(value, file).origin
        entry = call(
            verifier, lambda service: VerifierService(service).dispute(origin, value, holder)
        )
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
    from ragaudit.client import offline
    from ragaudit.client.blocking import call
    from ragaudit.client.transport import Service
    from ragaudit.client.verifier import Arbiter, VerifierService

    with failing(as_json):
        value = offline.read_file(file)
        origin = offline.public_half(value, file).origin
        if arbiter is None:
            outcome = call(verifier, lambda told: VerifierService(told).settle(origin, value))
        else:
            source = offline.Source(window, prover, policy, verifier_key, allow_unpinned)
            judged = source.of_receipt(value, file)

            async def settled(told: Service) -> Mapping[str, Any]:
                async with Service(arbiter) as judge:
                    return await VerifierService(told).settle(origin, value, Arbiter(judge, judged))

            outcome = call(verifier, settled)
    if as_json:
        typer.echo(json.dumps({"sampled": outcome["sampled"], "step": outcome["step"]}))
    elif outcome["step"] is not None:
        typer.echo(f"upheld: step {outcome['step']} fails" if outcome["step"] else "dismissed")
    else:
        typer.echo("sampled: the verifier must not see it, take it to the arbiter (--arbiter)")


@app.command("complete", epilog=_COMPLETE_EXAMPLES)
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

    A generated answer has two, of its charge and of its answer.
    """
    from ragaudit.client import offline
    from ragaudit.client.state import write_durably
    from ragaudit.ledger.messages.receipts import read_receipt

    count = 0
    with failing(as_json):
        for path in files:
            value = offline.read_file(path)
            public = read_receipt(value).public
            if not again and None not in public.proofs:
                continue
            # For each file by itself: they may be of different windows.
            source = offline.Source(None, prover, policy, verifier_key, allow_unpinned)
            target = source.of_receipt(value, path)
            found = _with_proofs(public, target, prover, again)
            # Only after its check: a false proof must not replace a file without one.
            if found != public:
                write_durably(path, dumps({**value, "public": found.to_json()}))
                count += 1
    typer.echo(json.dumps({"completed": count}) if as_json else f"{count} completed")


def _with_proofs(public: "PublicPart", window: "Window", prover: str, again: bool) -> "PublicPart":
    """Return a public part with the proofs that are better than those it has, checked."""
    from ragaudit.client.checks import check_completed
    from ragaudit.ledger.log.tlog_proof import TlogProof

    proofs = []
    for (_, index, _), text in zip(public.leaves, public.proofs, strict=True):
        held = None if text is None else TlogProof.parse(text.encode())
        if held is None or again:
            new = _fetched(prover, window.name, index)
            if held is None or _cosignatures(new) > _cosignatures(held):
                held = new
        proofs.append(held)
    found = public.with_proofs(*proofs)
    check_completed(found, window.view)
    return found


def _fetched(prover: str, window: str, index: int) -> "TlogProof":
    from ragaudit.client.blocking import call
    from ragaudit.ledger.log.tlog_proof import TlogProof

    path = f"/v1/windows/{window}/receipts/{index}/proof"
    return TlogProof.parse(call(prover, lambda service: service.get_text(path)).encode())


def _cosignatures(proof: "TlogProof") -> int:
    """Return how many lines beside one stand under a proof; none of them need be verified."""
    from ragaudit.ledger.log.checkpoints import parse_checkpoint

    return len(parse_checkpoint(proof.checkpoint).note.signatures) - 1


@app.command("key", epilog=_KEY_EXAMPLES)
def keep(
    key: Annotated[Path, typer.Argument(help="The dispute key, made by `ragaudit key make`.")],
    prover: Annotated[str, typer.Option("--prover", help="URL of the provider.")],
    api_key: Annotated[
        str,
        typer.Option(
            envvar="RAGAUDIT_API_KEY", help="The account's API key; better in the environment."
        ),
    ],
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Give the provider the account's public dispute key, and see what became of it.

    For an account that its application, or the provider, registers in each window: whoever holds
    the private key can then dispute its answers. Ask again once a window is countersigned, before
    the first question: what is shown is what the window's log holds.
    """
    from ragaudit.client.blocking import call
    from ragaudit.client.offline import pins_of
    from ragaudit.client.state import read_key

    with failing(as_json):
        public = read_key(key).public
        pins = pins_of(None, verifier_key, allow_unpinned)
        found = call(prover, lambda service: _kept(service, public, pins), api_key)
    if as_json:
        typer.echo(json.dumps({"dispute_key": public.raw.hex(), "windows": found}))
    else:
        typer.echo(f"the provider keeps {public.raw.hex()}")
        for window, outcome in found.items():
            typer.echo(f"{window}: {outcome}")
    if {_NONE, _OTHER} & set(found.values()):
        raise typer.Exit(int(ExitCode.INCOMPLETE))


async def _kept(service: "Service", public: PublicKey, pins: "Pins") -> dict[str, str]:
    """Return what each window that is served shows of the account, by name."""
    from ragaudit.client.window import SERVED, AccountState, authenticate
    from ragaudit.ledger.messages.shown import WindowList

    await service.request("PUT", "/v1/dispute-key", {"dispute_key": public.raw.hex()})
    windows = WindowList.from_json(await service.get("/v1/windows?served=true")).windows
    served = [authenticate(each, pins) for each in windows if each.state in SERVED]
    shown = [await service.get(f"/v1/windows/{each.name}/account") for each in served]
    accounts = map(AccountState.from_json, shown)
    pairs = zip(served, accounts, strict=True)
    return {window.name: _outcome(window, account, public) for window, account in pairs}


def _outcome(window: "Window", account: "AccountState", public: PublicKey) -> str:
    from ragaudit.client.window import check_entry

    if account.slot is None or account.registration is None:
        return _LATER
    if account.dispute_key is None:
        return _NONE
    if account.dispute_key != public.raw:
        return _OTHER
    # What is shown beside the entry binds nobody: the log has to hold this key.
    proven = check_entry(account.registration, window, account.expected(window))
    return _KEPT if proven else _UNPROVEN


app.add_typer(log_commands.app)
app.add_typer(owner_commands.receipts)


def _report(
    path: Path,
    steps: "Sequence[StepResult]",
    about: tuple[int | None, bool | None],
    failure: RagauditError | None,
    as_json: bool,
) -> None:
    from ragaudit.encoding.console import Console
    from rich.markup import escape
    from rich.table import Table

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
