"""`ragaudit demo`."""

import importlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.errors import RagauditError, UnsupportedError

if TYPE_CHECKING:
    from ragaudit.cli.demo.run import Report

__all__ = ["app"]

app = typer.Typer(help="Watch a provider commit, answer, be sampled, prove, and be judged.")

EXIT_NOT_AS_EXPECTED = 4

_EXAMPLES = """Examples:

  ragaudit demo

  ragaudit demo --sigma 1

  ragaudit demo --cheat list

Exit status: 0 the verdicts are as expected (PASS; with --cheat, not PASS), 4 they are not, 1 the
demonstration could not be run to its end, 130 interrupted."""


@app.command(epilog=_EXAMPLES)
def demo(
    sigma: Annotated[
        str | None, typer.Option(help="Noise, a decimal; epsilon_acc is then restated.")
    ] = None,
    cheat: Annotated[
        str | None, typer.Option(help="A cheating provider, or 'list' to see their names.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option(help="Repeatable randomness; makes the verdicts worthless.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Empty folder for all data, logs and evidence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run an audit on real text: two services, three tenants, twelve accounts, two windows.

    A prover and a verifier start as separate processes on loopback. The text is Python's own
    documentation; nothing is downloaded. One window is audited on a sample (mode B), a smaller
    one completely (mode A).
    """
    if cheat == "list":
        _list_cheats(as_json)
        return
    if cheat is not None:
        _check_cheat(cheat)
    from ragaudit.cli.demo.run import Demo, Options  # noqa: PLC0415 - imports every member
    from rich.console import Console  # noqa: PLC0415

    # Bars go to standard error, so that standard output holds the results alone.
    report = Demo(Options(sigma, cheat, seed, keep), Console(stderr=True)).run()
    if as_json:
        typer.echo(json.dumps(_json(report)))
    else:
        _show(Console(), report, cheat)
    results = [each["result"] for each in report.verdicts.values()]
    expected = all(each == "PASS" for each in results) == (cheat is None)
    raise typer.Exit(0 if expected else EXIT_NOT_AS_EXPECTED)


def _catalogue() -> Any:
    """The cheating providers by name; UnsupportedError without the attacks member."""
    try:
        catalogue = importlib.import_module("ragaudit.attacks.catalogue").catalogue
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "the cheating providers are not installed", expected="the member ragaudit-attacks"
        ) from error
    return catalogue() if callable(catalogue) else catalogue


def _list_cheats(as_json: bool) -> None:
    cheats = {name: each.description for name, each in sorted(_catalogue().items())}
    if as_json:
        typer.echo(json.dumps(cheats))
        return
    width = max(map(len, cheats), default=0)
    for name, description in cheats.items():
        typer.echo(f"{name:<{width}}  {description}")


def _check_cheat(name: str) -> None:
    if name not in _catalogue():
        raise RagauditError(
            f"no cheating provider {name!r}", where="--cheat", expected="see --cheat list"
        )


def _show(console: Any, report: "Report", cheat: str | None) -> None:
    from ragaudit.cli.demo import show  # noqa: PLC0415
    from ragaudit.cli.demo.plan import TOP_K  # noqa: PLC0415

    assert report.traffic is not None
    for window, predicate in report.verdicts.items():
        show.show_accounts(console, report.traffic, window)
        show.show_verdict(console, predicate)
    show.show_complaints(console, report.traffic.complaints)
    sigma = next(iter(report.policies.values()))["sigma"]
    show.show_utility(console, report.utility, sigma, TOP_K)
    console.print(f"\nevidence: {report.evidence}", soft_wrap=True)
    console.print("re-check the verdicts offline, from the bundles alone:")
    for line in report.recheck:
        console.print(f"  {line}", soft_wrap=True, highlight=False)
    if cheat is not None:
        console.print(f"the provider cheated: {_catalogue()[cheat].description}")
    console.print(f"{report.seconds:.0f} s")


def _json(report: "Report") -> dict[str, Any]:
    assert report.traffic is not None
    return {
        "seconds": round(report.seconds, 1),
        "evidence": str(report.evidence),
        "verdicts": report.verdicts,
        "policies": report.policies,
        "complaints": [asdict(each) for each in report.traffic.complaints],
        "accounts": [
            {
                "account": name,
                "window": window,
                "answered": each.answered,
                "submitted": each.submitted,
                "resumed": each.resumed,
                "disputed": each.disputed,
            }
            for (name, window), each in sorted(report.traffic.outcomes.items())
        ],
        "utility": [
            {
                "sigma": row.sigma,
                "recall": f"{row.recall:.4f}",
                "epsilon_acc": None if row.epsilon_acc is None else str(row.epsilon_acc),
                "epsilon_audit": None if row.epsilon_audit is None else str(row.epsilon_audit),
            }
            for row in report.utility
        ],
        "recheck": report.recheck,
    }
