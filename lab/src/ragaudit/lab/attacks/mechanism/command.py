"""`ragaudit attack mechanism`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.attacks.mechanism.names import SubjectName
from ragaudit.privacy.guarantees import ApproximateDp
from ragaudit.privacy.numbers import exact

if TYPE_CHECKING:
    from ragaudit.lab.attacks.mechanism.subjects import Subject

EXAMPLE = """Examples:

  ragaudit attack mechanism retrieval --sigma 1

  ragaudit attack mechanism half-the-sigma --sigma 1 --trials 5000 --json

  ragaudit attack mechanism voting --runs 1000 --trials 50 --pairs 1 --confidence 0.99999

  ragaudit attack mechanism my_code:mechanism --generator my_code:pairs --claim-epsilon 1

Exit code: 0 the claim was not refuted, 1 it was, 2 the input is not usable, 5 inconclusive."""


def command(
    name: Annotated[
        str,
        typer.Argument(help=f"{', '.join(SubjectName)}; or module:object, of your own."),
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
    from ragaudit.lab.attacks.mechanism import running  # loads scipy
    from ragaudit.lab.attacks.mechanism.auditing import Audit
    from ragaudit.lab.attacks.mechanism.subjects import Claim, Terms

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
        evidence = running.loaded(attack, "--attack") if attack else None
        if tester and runs > 1:
            raise MalformedError("a tester is asked once", where="--tester", expected="no --runs")

        def make(seed: int) -> "Subject":
            found = running.chosen(name, replace(terms, seed=seed), generator, claim)
            return found if evidence is None else replace(found, evidence=lambda _pair: evidence)

        if tester:
            code = running.by_tester(make(seed), tester, how, json)
        elif runs > 1:
            code = running.by_many(make, how, runs, json)
        else:
            code = running.by_attack(make(seed), how, json)
    raise typer.Exit(code)
