"""``ragaudit attack``: cheating providers, and attacks on stores, RAGs and mechanisms."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.lab.attacks.mechanism import command as mechanism
from ragaudit.lab.attacks.membership import command as membership
from ragaudit.lab.attacks.scope.command import CANARIES_EXAMPLE, SCOPE_EXAMPLE, canaries, scope

if TYPE_CHECKING:
    from ragaudit.lab.attacks.catalogue import Staged
    from ragaudit.lab.attacks.cheat import Attempt, Cheat, Intrusion

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Cheating providers and how the audit finds them; attacks on stores and mechanisms.",
)
app.command("membership", epilog=membership.EXAMPLE)(membership.command)
app.command("mechanism", epilog=mechanism.EXAMPLE)(mechanism.command)
app.command("canaries", epilog=CANARIES_EXAMPLE)(canaries)
app.command("scope", epilog=SCOPE_EXAMPLE)(scope)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list", epilog="Example: ragaudit attack list --json")
def list_cheats(as_json: AsJson = False) -> None:
    """List every cheat with its family, its staging and the checks that catch it."""
    from ragaudit.lab.attacks.catalogue import CATALOGUE
    from ragaudit.lab.attacks.serve import show_list

    if as_json:
        typer.echo(json.dumps([_described(each) for each in CATALOGUE]))
    else:
        show_list()


@app.command(epilog="Example: ragaudit attack run half-the-sigma")
def run(
    name: Annotated[str, typer.Argument(help="A name of the list.")], as_json: AsJson = False
) -> None:
    """Stage a cheat on a small window in this process and show what the verifier concludes.

    Exit code: 0 it was caught by exactly the checks that the list names, or repelled by the
    verifier's service with the reason that it names; 1 it was not.
    """
    from ragaudit.lab.attacks.catalogue import find, intrude, stage
    from ragaudit.lab.attacks.cheat import Intrusion

    with failing(as_json), tempfile.TemporaryDirectory(prefix="ragaudit-attack-") as folder:
        cheat = find(name)
        if isinstance(cheat, Intrusion):
            attempt = intrude(cheat, Path(folder))
            caught, value, text = _repelled(cheat, attempt)
        else:
            staged = stage(cheat, Path(folder))
            caught, value, text = staged.caught, _concluded(staged), _shown(staged)
    typer.echo(json.dumps(value) if as_json else text)
    if not caught:
        raise typer.Exit(ExitCode.FALSE)


def _described(cheat: "Cheat") -> dict[str, Any]:
    from ragaudit.lab.attacks.cheat import ConstructedCheat

    return {
        "name": cheat.name,
        "family": cheat.family,
        "description": cheat.description,
        "staging": cheat.staging,
        "why_constructed": cheat.why if isinstance(cheat, ConstructedCheat) else None,
        "result": cheat.result,
        "checks": list(cheat.checks),
        "reason": cheat.reason,
        "complaint": cheat.complaint or None,
    }


def _repelled(cheat: "Intrusion", attempt: "Attempt") -> tuple[bool, dict[str, Any], str]:
    """Whether it was, as JSON, and for people."""
    repelled = cheat.repelled(attempt)
    result = cheat.result if repelled else "THROUGH"
    value = {
        "cheat": _described(cheat),
        "result": result,
        "caught": repelled,
        "said": attempt.said,
    }
    lines = [f"{cheat.name} ({cheat.family}): {cheat.description}", ""]
    lines += [f"    the verifier: {attempt.said}", "", result]
    return repelled, value, "\n".join(lines)


def _concluded(staged: "Staged") -> dict[str, Any]:
    checks = [
        {
            "number": each.number,
            "id": each.id,
            "status": str(each.status),
            "reason": each.reason,
            "evidence": list(each.evidence),
        }
        for each in staged.outcome.checks
    ]
    return {
        "cheat": _described(staged.cheat),
        "result": staged.outcome.result,
        "caught": staged.caught,
        "checks": checks,
        "complaints": list(staged.complaints),
    }


def _shown(staged: "Staged") -> str:
    cheat, outcome = staged.cheat, staged.outcome
    lines = [f"{cheat.name} ({cheat.family}): {cheat.description}", ""]
    lines += [
        f"{each.number:>3} {each.id:<14} {each.status:<15} {each.reason}" for each in outcome.checks
    ]
    lines += [f"    an account's library: {each}" for each in staged.complaints]
    return "\n".join([*lines, "", f"{outcome.result}"])
