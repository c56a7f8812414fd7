"""`ragaudit demo`: two services, twelve accounts, three windows, a verdict on each."""

import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode

if TYPE_CHECKING:
    from ragaudit.lab.demo.run import Report

app = typer.Typer(help="Watch a provider commit, answer, be sampled, prove, and be judged.")

_EXAMPLES = """Examples:

  ragaudit demo

  ragaudit demo --sigma 10

  ragaudit demo --cheat list

  ragaudit demo --words

Exit code: 0 the verdicts are as expected (PASS; with --cheat, FAIL or REFUSED by the checks that
catch it), 1 they are not, 3 a service failed or something was not done in time, 130 interrupted."""


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
    words: Annotated[bool, typer.Option("--words", help="One generation window instead.")] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Empty folder for all data, logs and evidence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run an audit on real text: two services, three tenants, twelve accounts, three windows.

    A prover and a verifier start as separate processes on loopback. The text is Python's own
    documentation; nothing is downloaded. One window is audited on a sample (mode B), a smaller
    one completely (mode A). The third one adds no noise: its verdict is about integrity alone.
    With --words a language model answers questions about invented records, privately, and all
    accounts together ask the same one.
    """
    if cheat == "list":
        _list_cheats(as_json)
        return
    if words:
        if (sigma, cheat, seed) != (None, None, None):
            raise typer.BadParameter("takes no --sigma, --cheat or --seed", param_hint="--words")
        _words(keep, as_json)
    if cheat is not None:
        _stage_here(cheat, as_json)
    # Being told to stop is being interrupted: the services are stopped too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from ragaudit.lab.demo.run import Demo, Options  # noqa: PLC0415 - imports every member

    # Bars go to standard error, so that standard output holds the results alone.
    report = Demo(Options(sigma, cheat, seed, keep), Console(stderr=True)).run()
    if as_json:
        typer.echo(json.dumps(_json(report)))
    else:
        _show(Console(), report, cheat)
    raise typer.Exit(0 if _as_expected(report, cheat) else ExitCode.FALSE)


def _words(keep: Path | None, as_json: bool) -> None:
    """Play the generation window, and exit."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from ragaudit.lab.demo.generation import GenerationDemo  # noqa: PLC0415
    from ragaudit.lab.demo.show import show_generation  # noqa: PLC0415 - imports every member

    report = GenerationDemo(keep, Console(stderr=True)).run()
    if as_json:
        typer.echo(json.dumps(report.to_json()))
    else:
        show_generation(Console(), report)
    raise typer.Exit(0 if report.verdict["result"] == "PASS" else ExitCode.FALSE)


def _list_cheats(as_json: bool) -> None:
    from ragaudit.lab.demo.run import cheats  # noqa: PLC0415 - imports every member

    found = cheats()
    if as_json:
        typer.echo(json.dumps({each.name: each.description for each in found}))
        return
    width = max(len(each.name) for each in found)
    for each in found:
        typer.echo(f"{each.family:<12} {each.name:<{width}}  {each.description}")


def _stage_here(name: str, as_json: bool) -> None:
    """Show a cheat that no running service can stage, and exit; return if one can."""
    from ragaudit.lab.attacks.catalogue import run  # noqa: PLC0415 - imports every member
    from ragaudit.lab.demo.run import find, is_service  # noqa: PLC0415

    cheat = find(name)
    if is_service(cheat):
        return
    outcome = run(name)
    checks = [
        {"number": each.number, "id": each.id, "status": str(each.status), "reason": each.reason}
        for each in outcome.checks
    ]
    shown: dict[str, Any] = {
        "window": name,
        "result": outcome.result,
        "checks": checks,
        "epsilon": {},
    }
    shown["worthless"] = False
    if as_json:
        typer.echo(json.dumps(shown))
    else:
        from ragaudit.encoding.console import Console  # noqa: PLC0415
        from ragaudit.lab.demo.show import show_verdict  # noqa: PLC0415

        console = Console()
        console.print(f"{name}: {cheat.description}; staged in this process on a small window")
        show_verdict(console, shown)
    raise typer.Exit(0 if outcome.result == cheat.result else ExitCode.FALSE)


def _as_expected(report: "Report", name: str | None) -> bool:
    """PASS everywhere; or, for a cheat, its result with exactly its checks in the main window."""
    main, *_ = report.verdicts.values()
    if name is None:
        return all(each["result"] == "PASS" for each in report.verdicts.values())
    from ragaudit.lab.demo.run import find  # noqa: PLC0415

    cheat = find(name)
    failed = [each["id"] for each in main["checks"] if each["status"] == "FAIL"]
    return main["result"] == cheat.result and set(failed) == set(cheat.checks)


def _show(console: Any, report: "Report", cheat: str | None) -> None:
    from ragaudit.lab.demo import show  # noqa: PLC0415
    from ragaudit.lab.demo.plan import TOP_K  # noqa: PLC0415

    assert report.traffic is not None
    for window, predicate in report.verdicts.items():
        show.show_accounts(console, report.traffic, window)
        show.show_verdict(console, predicate)
    show.show_complaints(console, report.traffic.complaints)
    # In the order in which the verdicts came; the window without noise may have been the first.
    sigma = next(each["sigma"] for each in report.policies.values() if each["sigma"] is not None)
    show.show_utility(console, report.utility, sigma, TOP_K)
    show.show_where_to_look(console, report.evidence, list(report.verdicts))
    if unasked := sum(each.unasked for each in report.traffic.outcomes.values()):
        console.print(
            f"{unasked} questions were not asked: this machine was too busy for the windows' length"
        )
    console.print("re-check the verdicts offline, from the bundles alone:")
    for line in report.recheck:
        console.print(f"  {line}", soft_wrap=True, highlight=False)
    if cheat is not None:
        from ragaudit.lab.demo.run import find  # noqa: PLC0415

        known = find(cheat)
        expected = ", ".join(known.checks)
        console.print(f"the provider cheated: {known.description}; caught by: {expected}")
    console.print(f"{report.seconds:.0f} s")


_TOLD = ("answered", "unasked", "submitted", "resumed", "disputed")


def _json(report: "Report") -> dict[str, Any]:
    assert report.traffic is not None
    return {
        "seconds": round(report.seconds, 1),
        "evidence": str(report.evidence),
        "verdicts": report.verdicts,
        "policies": report.policies,
        "complaints": [asdict(each) for each in report.traffic.complaints],
        "accounts": [
            {"account": name, "window": window, **{told: getattr(each, told) for told in _TOLD}}
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
