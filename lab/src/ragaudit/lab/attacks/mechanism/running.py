"""Audits of mechanisms as `ragaudit attack mechanism` runs and shows them."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import typer
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.attacks.mechanism.auditing import (
    Audit,
    Repeated,
    Result,
    Verdict,
    audit,
    repeat,
    test_by,
)
from ragaudit.lab.attacks.mechanism.subjects import Claim, Subject, Terms, subject
from ragaudit.lab.risk.estimation import AdvantageEstimate
from ragaudit.lab.risk_command.show import advancing, as_json, down, up

_CODES = {
    Verdict.NOT_REFUTED: ExitCode.DONE,
    Verdict.REFUTED: ExitCode.FALSE,
    Verdict.INCONCLUSIVE: ExitCode.INCOMPLETE,
}


def chosen(name: str, terms: Terms, generator: str | None, claim: Claim | None) -> Subject:
    """Return the subject of a name or, for a name with a colon, of the caller's own objects.

    Raises:
        MalformedError: an object of the caller's own without generator or claim, or that cannot be
            loaded.
        UnsupportedError: no such name.
    """
    if ":" not in name:
        found = subject(name, terms)
        found = found if claim is None else replace(found, claim=claim)
        # The evidence speaks of our own data sets.
        return (
            replace(found, generator=loaded(generator, "--generator"), evidence=None)
            if generator
            else found
        )
    if generator is None or claim is None:
        raise MalformedError(
            "a mechanism of your own", where=name, expected="--generator and --claim-epsilon"
        )
    return Subject(name, loaded(name, "NAME"), loaded(generator, "--generator"), claim)


def loaded(name: str, option: str) -> Any:
    """Return an object by its name.

    Args:
        name: module:object.
        option: that names it, for errors.

    Raises:
        MalformedError: it cannot be loaded.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise MalformedError(
            f"cannot be loaded: {error}", where=f"{option} {name}", expected="module:object"
        ) from error


def by_many(make: Callable[[int], Subject], how: Audit, runs: int, json: bool) -> ExitCode:
    """Audit again and again, show how often the claim is refuted, and return the exit code.

    Args:
        make: returns the subject of a seed.
        json: whether JSON is shown.
    """
    with advancing(runs * how.samples, "samples", json) as done:
        found = repeat(make, how, runs, done)
    subject = make(how.seed)
    if json:
        counts = {"runs": found.runs, "refuted": found.refuted, "chance": found.chance}
        as_json(_judged(subject, found, found.pooled, how, counts))
    else:
        typer.echo(f"{subject.name}, claimed to be {subject.claim.guarantee}")
        typer.echo(
            f"{found.refuted} of {found.runs} audits refuted the claim; if it is true, as many do "
            f"with probability {found.chance:.2g} at most"
        )
        typer.echo(f"{_gained(found, found.pooled)}\n\n{found.verdict}")
    return _CODES[found.verdict]


def _judged(
    subject: Subject, found: Repeated | Result, estimate: AdvantageEstimate, how: Audit,
    said: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    return {
        "mechanism": subject.name,
        "claim": str(subject.claim.guarantee),
        "verdict": found.verdict,
        **said,
        "trials": estimate.trials,
        "successes": found.successes,
        "advantage": estimate.advantage,
        "advantage_lower_bound": estimate.lower,
        "advantage_allowed": found.allowed,
        "confidence": how.confidence,
        "seed": how.seed,
    }


def _gained(found: Repeated | Result, estimate: AdvantageEstimate) -> str:
    return (
        f"{found.successes} of {estimate.trials} guesses right; advantage "
        f"{estimate.advantage:.6f}, at least {down(estimate.lower)} with confidence "
        f"{estimate.confidence:g}; the claim allows {up(found.allowed)}"
    )


def by_tester(found: Subject, tester: str, how: Audit, json: bool) -> ExitCode:
    """Have the caller's own tester judge a subject, show what it finds, return the exit code.

    Args:
        tester: module:object, DP-Auditorium's PropertyTester.
        json: whether JSON is shown.
    """
    judge = loaded(tester, "--tester")
    with advancing(how.samples + how.trials, "samples", json) as done:
        lower, rejected = test_by(found, judge, how, done)
    said = Verdict.REFUTED if rejected else Verdict.NOT_REFUTED
    if json:
        as_json({"mechanism": found.name, "tester": tester, "lower": lower, "verdict": said})
    else:
        typer.echo(f"{found.name}: {tester} finds a divergence of at least {down(lower)}\n{said}")
    return _CODES[said]


def by_attack(found: Subject, how: Audit, json: bool) -> ExitCode:
    """Audit a subject, show the result and return the exit code.

    Args:
        json: whether JSON is shown.
    """
    with advancing(how.samples, "samples", json) as done:
        result = audit(found, how, done)
    if json:
        as_json(_report(found, result, how))
    else:
        _show(found, result)
    return _CODES[result.verdict]


def _report(found: Subject, result: Result, how: Audit) -> dict[str, Any]:
    said = {"why": result.why, "attack": result.attack}
    return {
        **_judged(found, result, result.estimate, how, said),
        "comparisons": [
            {"delta": each.delta, "claimed_epsilon": each.claimed, "certified": each.certified}
            for each in result.comparisons
        ],
    }


def _show(found: Subject, result: Result) -> None:
    estimate = result.estimate
    typer.echo(f"{found.name}, claimed to be {found.claim.guarantee}")
    typer.echo(f"attack: {result.attack}")
    typer.echo(_gained(result, estimate))
    for each in result.comparisons:
        typer.echo(
            f"  at delta {each.delta:.6g}: epsilon at least {down(each.certified)}, "
            f"claimed {up(each.claimed)}"
        )
    typer.echo(f"\n{result.verdict} (confidence {estimate.confidence:g}): {result.why}")
