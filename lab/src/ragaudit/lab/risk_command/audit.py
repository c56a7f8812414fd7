"""`ragaudit risk audit`."""

import csv
import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk_command.options import (
    AsJson,
    EpsilonOption,
    EtaOption,
    Line,
    MechanismName,
    MechanismOption,
    MuOption,
    PriorOption,
    RecordsOption,
    SpanOption,
    SubsetOption,
    check_companions,
    check_mechanism,
    known_mechanism,
    named,
    prior_of,
    threat_of,
)
from ragaudit.lab.risk_command.show import advancing, as_json, counted, down, nearest, up

if TYPE_CHECKING:
    from ragaudit.lab.risk.estimation import AdvantageEstimate, ClaimCheck
    from ragaudit.lab.risk.general_bounds import Scenario
    from ragaudit.lab.risk.known_mechanisms import KnownMechanism
    from ragaudit.lab.risk.optimal_attack import Guesses
    from ragaudit.lab.risk.threat import ThreatModel
    from ragaudit.privacy.guarantees import ApproximateDp


LARGEST_FILE = 2**30
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


def read_guesses(path: Path) -> "Guesses":
    """Return the pairs of targets and guesses in a file.

    Args:
        path: CSV with the columns target and guess, or a JSON list of pairs; records are numbered
            from 0. At most 1 GiB.

    Raises:
        MalformedError: no such file, too large, or a row that is no pair of record numbers.
    """
    import numpy as np  # noqa: PLC0415
    from ragaudit.lab.risk.optimal_attack import Guesses  # noqa: PLC0415

    try:
        if path.stat().st_size > LARGEST_FILE:
            raise MalformedError("file too large", where=str(path), expected="at most 1 GiB")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError("not readable as text", where=str(path)) from error
    rows = _json(text, path) if text.lstrip().startswith("[") else _csv(text, path)
    if not rows:
        raise MalformedError("no pairs", where=str(path), expected="target,guess")
    table = np.array(rows, dtype=np.int64)
    return Guesses(table[:, 0], table[:, 1])


def _csv(text: str, path: Path) -> list[tuple[int, int]]:
    reader = csv.DictReader(text.splitlines())
    if reader.fieldnames is None or not {"target", "guess"} <= set(reader.fieldnames):
        raise MalformedError(
            "no such columns", where=f"{path} line 1", expected="target,guess as the first line"
        )
    try:
        return [
            _pair(row["target"], row["guess"], f"{path} line {number}")
            for number, row in enumerate(reader, start=2)
        ]
    except csv.Error as error:
        raise MalformedError("not CSV", where=str(path)) from error


def _json(text: str, path: Path) -> list[tuple[int, int]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON", where=str(path)) from error
    found = []
    for number, row in enumerate(rows):
        match row:
            case [target, guess] | {"target": target, "guess": guess}:
                found.append(_pair(target, guess, f"{path} entry {number}"))
            case _:
                raise MalformedError(
                    "not a pair", where=f"{path} entry {number}", expected="[target, guess]"
                )
    return found


def _pair(target: object, guess: object, where: str) -> tuple[int, int]:
    values = []
    for value in (target, guess):
        text = str(value).strip()
        if isinstance(value, bool | float) or not _NUMBER.fullmatch(text):
            raise MalformedError("no record number", where=where, expected="0 to 999999999")
        values.append(int(text))
    return values[0], values[1]


EXIT_REFUTED = ExitCode.FALSE

EXAMPLE = """Examples:

  ragaudit risk audit --mechanism blackbox --successes 412 --trials 1000 --records 2

  ragaudit risk audit --mechanism blackbox --guesses attack.csv --records 10 --claim-epsilon 0.5

  ragaudit risk audit --mechanism oue --epsilon 2 --records 3052 --runs 1000000 --seed 1

Exit code: 0 the claim (if any) stands, 1 the claim is refuted, 2 the input is not usable."""


def command(
    mechanism: MechanismOption,
    successes: Annotated[int | None, typer.Option(help="Number of correct guesses.")] = None,
    trials: Annotated[int | None, typer.Option(help="Independent attacks, fixed before.")] = None,
    guesses: Annotated[
        Path | None, typer.Option(help="CSV (target,guess) or JSON list of pairs, from 0.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Simulate the named mechanism under the optimal attack.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the simulation; 0 if unset.")
    ] = None,
    epsilon: EpsilonOption = None,
    mu: MuOption = None,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = None,
    span: SpanOption = None,
    subset: SubsetOption = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence of the lower bound, one-sided.")
    ] = 0.95,
    delta: Annotated[float, typer.Option(help="Delta of the guarantees to refute.")] = 0.0,
    absence: Annotated[
        NeighboringRelation | None,
        typer.Option(
            help="The two candidates are a document and its absence: add-remove or null-replace."
        ),
    ] = None,
    false_positives: Annotated[
        int | None,
        typer.Option(help="Namings of a value that was not there, of --trials: for LDP-Auditor."),
    ] = None,
    claim_epsilon: Annotated[float | None, typer.Option(help="A claim to test.")] = None,
    claim_delta: Annotated[
        float | None, typer.Option(help="Delta of the claim; 0 if unset.")
    ] = None,
    claim_relation: Annotated[
        NeighboringRelation | None, typer.Option(help="Relation of the claim; replace if unset.")
    ] = None,
    as_json_text: AsJson = False,
) -> None:
    """What an attack proves about epsilon: a certified lower bound, and apart from it an estimate.

    The attack's successes come from counts, from a file of pairs, or from simulating a mechanism
    that is known by name under its optimal attack. Targets must be drawn independently from the
    prior, and the number of trials and the attack be fixed beforehand, on other data.
    """
    check_companions(
        {
            "--successes": successes, "--trials": trials, "--runs": runs, "--seed": seed,
            "--claim-epsilon": claim_epsilon, "--claim-delta": claim_delta,
            "--claim-relation": claim_relation,
        },
    )  # fmt: skip
    _check_parameters(epsilon, mu, runs)
    check_mechanism(
        mechanism,
        {"--epsilon": epsilon, "--mu": mu, "--subset": subset, "--eta": eta, "--span": span},
    )
    if sum(source is not None for source in (successes, guesses, runs)) != 1:
        raise MalformedError(
            "no attack, or two", where="--successes, --guesses, --runs", expected="one of them"
        )
    line = Line.of(eta, span)
    threat = threat_of(prior_of(records, prior), line)
    known = (
        None
        if mechanism is MechanismName.BLACKBOX
        else known_mechanism(mechanism, threat.records, subset, line)
    )
    if successes is not None:
        estimate = _counted(successes, trials, threat, confidence)
    else:
        if guesses is not None:
            pairs = read_guesses(guesses)
        else:
            pairs = _simulated(known, threat, epsilon, mu, runs or 0, seed or 0, as_json_text)
        estimate = _estimated(pairs, threat, confidence)
        successes, trials = pairs.hits(threat.success), len(pairs.targets)
    scenario = _scenario(threat, absence)
    report = _report(
        estimate, scenario, _modelled(estimate, threat, known, as_json_text), successes,
        int(trials or 0), confidence, delta, false_positives,
        _claim(claim_epsilon, claim_delta, claim_relation),
    )  # fmt: skip
    if as_json_text:
        as_json(report)
    else:
        _show(report)
    claim = report["claim"]
    raise typer.Exit(EXIT_REFUTED if claim is not None and claim["refuted"] else 0)


def _check_parameters(epsilon: float | None, mu: float | None, runs: int | None) -> None:
    for option, value in (("--epsilon", epsilon), ("--mu", mu)):
        if value is not None and runs is None:
            raise MalformedError(
                "nothing is simulated", where=option,
                expected="with --runs; a claim is --claim-epsilon",
            )  # fmt: skip


def _counted(
    successes: int, trials: int | None, threat: "ThreatModel", confidence: float
) -> "AdvantageEstimate":
    from ragaudit.lab.risk.estimation import from_counts  # noqa: PLC0415

    if trials is None:
        raise MalformedError("no number of trials", where="--trials", expected="with --successes")
    if not (threat.prior.is_uniform and threat.success.is_exact):
        raise MalformedError(
            "counts are for a uniform prior and exact guesses",
            where="--successes", expected="--guesses",
        )  # fmt: skip
    return from_counts(successes, trials, threat.records, confidence)


def _simulated(
    known: "KnownMechanism | None", threat: "ThreatModel", epsilon: float | None,
    mu: float | None, runs: int, seed: int, quiet: bool,
) -> "Guesses":  # fmt: skip
    import numpy as np  # noqa: PLC0415
    from ragaudit.lab.risk.optimal_attack import simulate  # noqa: PLC0415

    value = epsilon if known is None or known.parameter == "epsilon" else mu
    if known is None or value is None:
        raise MalformedError(
            "nothing to simulate", where="--runs",
            expected="a mechanism by name, with --epsilon (gaussian: --mu)",
        )  # fmt: skip
    known.guarantee(value)  # refuses a parameter out of range
    attacked = known.attacked(value)
    with advancing(runs, "attacks", quiet) as done:
        return simulate(attacked, threat.prior, runs, np.random.default_rng(seed), done)


def _estimated(pairs: "Guesses", threat: "ThreatModel", confidence: float) -> "AdvantageEstimate":
    from ragaudit.lab.risk.estimation import from_guesses  # noqa: PLC0415

    return from_guesses(pairs.targets, pairs.guesses, threat, confidence)


def _scenario(threat: "ThreatModel", absence: NeighboringRelation | None) -> "Scenario":
    from ragaudit.lab.risk.general_bounds import Scenario  # noqa: PLC0415

    if absence is None:
        return Scenario.of_threat(threat)
    if threat.records != 2:
        raise MalformedError(
            f"{threat.records} candidates", where="--absence", expected="two: a document, nothing"
        )
    with named({"relation": "--absence"}):
        return Scenario.absence(float(threat.prior.probabilities[0]), absence)


def _claim(
    epsilon: float | None, delta: float | None, relation: NeighboringRelation | None
) -> "ApproximateDp | None":
    from ragaudit.privacy.guarantees import ApproximateDp  # noqa: PLC0415

    if epsilon is None:
        return None
    with named({"epsilon": "--claim-epsilon", "delta": "--claim-delta"}):
        return ApproximateDp.of(
            epsilon, 0 if delta is None else delta, relation or NeighboringRelation.REPLACE
        )


def _report(
    estimate: "AdvantageEstimate", scenario: "Scenario", model: dict[str, Any] | None,
    successes: int, trials: int, confidence: float, delta: float,
    false_positives: int | None, claim: "ApproximateDp | None",
) -> dict[str, Any]:  # fmt: skip
    from ragaudit.lab.risk.estimation import (  # noqa: PLC0415
        LARGEST_CANARIES,
        certify,
        ldp_auditor_epsilon,
        one_run_epsilon,
    )

    comparators: dict[str, float] = {}
    if false_positives is not None:
        comparators["ldp_auditor"] = ldp_auditor_epsilon(
            successes, false_positives, trials, 1 - confidence, delta
        )
    # One-run auditing includes each canary by a fair coin: two candidates, equally probable.
    if scenario.records == 2 and scenario.is_uniform and trials <= LARGEST_CANARIES:
        comparators["one_run_if_all_trials_were_in_one_run"] = one_run_epsilon(
            trials, trials, successes, confidence, delta
        )
    proved = certify(estimate, scenario, delta)
    return {
        "observed": {**asdict(estimate), "successes": successes},
        "certified_lower_bound": {**asdict(proved), "assumptions": proved.assumptions._asdict()},
        "model_based_estimate": model,
        "comparators": comparators,
        "claim": None if claim is None else _tested(estimate, scenario, claim),
    }


def _modelled(
    estimate: "AdvantageEstimate", threat: "ThreatModel", known: "KnownMechanism | None",
    quiet: bool,
) -> dict[str, Any] | None:  # fmt: skip
    from ragaudit.lab.risk.estimation import estimate_from_model  # noqa: PLC0415

    if known is None:
        return None
    with counted(lambda value: known.advantage(threat, value), quiet) as advantage_at:
        found = estimate_from_model(
            estimate, known.name, advantage_at, known.parameter, known.largest
        )
    return {**asdict(found), "label": "if the code is that mechanism; not a certificate"}


def _tested(
    estimate: "AdvantageEstimate", scenario: "Scenario", claim: "ApproximateDp"
) -> dict[str, Any]:
    from ragaudit.lab.risk.estimation import check_claim  # noqa: PLC0415

    with named({"relation": "--claim-relation"}):
        return _claimed(check_claim(estimate, scenario, claim))


def _claimed(found: "ClaimCheck") -> dict[str, Any]:
    return {
        "refuted": found.refuted,
        "stated": {
            "epsilon": float(found.stated.epsilon),
            "delta": float(found.stated.delta),
            "relation": found.stated.relation,
        },
        "epsilon": float(found.claim.epsilon),
        "delta": float(found.claim.delta),
        "relation": found.claim.relation,
        "advantage_allowed": found.allowed.value,
        "by": found.allowed.winner.theorem,
        "advantage_lower_bound": found.advantage,
        "confidence": found.confidence,
    }


def _show(report: dict[str, Any]) -> None:
    seen, proved = report["observed"], report["certified_lower_bound"]
    typer.echo(
        f"{seen['successes']} of {seen['trials']} guesses right; advantage {seen['advantage']:.6f},"
        f" at least {down(seen['lower'])} with confidence {seen['confidence']:g} ({seen['method']})"
    )
    typer.echo("\ncertified lower bound")
    typer.echo(
        f"  epsilon at least {down(proved['epsilon'])} at delta {proved['delta']:g} "
        f"({proved['relation']}), confidence {proved['confidence']:g}, by {proved['theorem']}"
    )
    model = report["model_based_estimate"]
    if model is not None:
        typer.echo(
            "\nmodel-based estimate (not a certificate: a fault in the code is invisible to it)"
        )
        about = "" if math.isinf(model["value"]) else "about "
        shown = f"{about}{nearest(model['value'])}"
        typer.echo(f"  {model['parameter']} {shown} if it is {model['mechanism']}")
    if report["comparators"]:
        typer.echo("\nother auditors, for comparison")
        for name, value in report["comparators"].items():
            typer.echo(f"  {name.replace('_', ' ')}: {nearest(value)}")
    claim = report["claim"]
    if claim is not None:
        verdict = "REFUTED" if claim["refuted"] else "not refuted"
        said, tested = _in_words(claim["stated"]), _in_words(claim)
        if tested != said:
            said = f"{said}, that is {tested},"
        typer.echo(
            f"\nclaim {verdict}: {said} allows an advantage of {up(claim['advantage_allowed'])}"
        )


def _in_words(claim: dict[str, Any]) -> str:
    return f"({claim['epsilon']:g}, {claim['delta']:g})-DP under {claim['relation']}"
