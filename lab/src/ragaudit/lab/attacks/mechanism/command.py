"""`ragaudit attack mechanism`."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.attacks.mechanism.auditing import (
    Audit,
    Repeated,
    Result,
    Verdict,
    audit,
    repeat,
    test_by,
)
from ragaudit.lab.attacks.mechanism.subjects import (
    SUBJECTS,
    Claim,
    Subject,
    Terms,
    subject,
)
from ragaudit.lab.risk.estimation import AdvantageEstimate
from ragaudit.lab.risk_command.show import advancing, as_json, down, up
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import exact

EXAMPLE = """Examples:

  ragaudit attack mechanism retrieval --sigma 1

  ragaudit attack mechanism half-the-sigma --sigma 1 --trials 5000 --json

  ragaudit attack mechanism voting --runs 1000 --trials 50 --pairs 1 --confidence 0.99999

  ragaudit attack mechanism my_code:mechanism --generator my_code:pairs --claim-epsilon 1

Exit code: 0 the claim was not refuted, 1 it was, 2 the input is not usable, 5 inconclusive."""

_CODES = {
    Verdict.NOT_REFUTED: ExitCode.DONE,
    Verdict.REFUTED: ExitCode.FALSE,
    Verdict.INCONCLUSIVE: ExitCode.INCOMPLETE,
}


def command(
    name: Annotated[
        str,
        typer.Argument(help=f"{', '.join(SUBJECTS)}; or module:object, of your own."),
    ],
    sigma: Annotated[str, typer.Option(help="Noise of the retrieval, as in a policy.")] = "1",
    questions: Annotated[
        int, typer.Option(min=1, max=10_000, help="Questions of one account to the retrieval.")
    ] = 1,
    epsilon: Annotated[str, typer.Option(help="Epsilon of the private vote.")] = "1",
    trials: Annotated[int, typer.Option(help="Number of attacks, fixed beforehand.")] = 2000,
    confidence: Annotated[float, typer.Option(help="Confidence of the bound, one-sided.")] = 0.999,
    pairs: Annotated[int, typer.Option(help="Pairs of data sets to try in training.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of keys and coins.")] = 0,
    generator: Annotated[
        str | None, typer.Option(help="module:object, DP-Auditorium's DatasetGenerator.")
    ] = None,
    tester: Annotated[
        str | None, typer.Option(help="module:object, DP-Auditorium's PropertyTester.")
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(
            help="module:object, of outputs a number each, by which worlds are told apart; with "
            "--tester, what it sees of each."
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Audits, one seed after another: how many refute the claim?")
    ] = 1,
    claim_epsilon: Annotated[
        str | None, typer.Option(help="Claim other than the mechanism's own; replace-one.")
    ] = None,
    claim_delta: Annotated[str, typer.Option(help="Delta of that claim.")] = "0",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attack a mechanism as a black box; certify a lower bound of epsilon beside its claim."""
    with failing():
        how = Audit(trials, confidence, pairs, seed)
        terms = Terms(sigma, questions=questions, epsilon=exact(epsilon, "epsilon"), seed=seed)
        claim = None
        if claim_epsilon is not None:
            claim = Claim(
                ApproximateDp.of(
                    exact(claim_epsilon, "--claim-epsilon"), exact(claim_delta, "--claim-delta"),
                    NeighboringRelation.REPLACE,
                )
            )  # fmt: skip
        evidence = _loaded(attack, "--attack") if attack else None
        if tester and runs > 1:
            raise MalformedError("a tester is asked once", where="--tester", expected="no --runs")

        def make(seed: int) -> Subject:
            found = _subject(name, replace(terms, seed=seed), generator, claim)
            return found if evidence is None else replace(found, evidence=lambda _pair: evidence)

        if tester:
            code = _by_tester(make(seed), tester, how, json)
        elif runs > 1:
            code = _by_many(make, how, runs, json)
        else:
            code = _by_attack(make(seed), how, json)
    raise typer.Exit(code)


def _subject(name: str, terms: Terms, generator: str | None, claim: Claim | None) -> Subject:
    if ":" not in name:
        found = subject(name, terms)
        found = found if claim is None else replace(found, claim=claim)
        # The evidence speaks of our own data sets.
        return (
            replace(found, generator=_loaded(generator, "--generator"), evidence=None)
            if generator
            else found
        )
    if generator is None or claim is None:
        raise MalformedError(
            "a mechanism of your own", where=name, expected="--generator and --claim-epsilon"
        )
    return Subject(name, _loaded(name, "NAME"), _loaded(generator, "--generator"), claim)


def _loaded(name: str, option: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise MalformedError(
            f"cannot be loaded: {error}", where=f"{option} {name}", expected="module:object"
        ) from error


def _by_many(make: Callable[[int], Subject], how: Audit, runs: int, json: bool) -> ExitCode:
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


def _by_tester(found: Subject, tester: str, how: Audit, json: bool) -> ExitCode:
    judge = _loaded(tester, "--tester")
    with advancing(how.samples + how.trials, "samples", json) as done:
        lower, rejected = test_by(found, judge, how, done)
    said = Verdict.REFUTED if rejected else Verdict.NOT_REFUTED
    if json:
        as_json({"mechanism": found.name, "tester": tester, "lower": lower, "verdict": said})
    else:
        typer.echo(f"{found.name}: {tester} finds a divergence of at least {down(lower)}\n{said}")
    return _CODES[said]


def _by_attack(found: Subject, how: Audit, json: bool) -> ExitCode:
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
