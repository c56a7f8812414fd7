"""`ragaudit risk translate`."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.risk_command.applicable import check_companions
from ragaudit.lab.risk_command.options import (
    AsJson,
    EpsilonOption,
    EtaOption,
    Line,
    MuOption,
    PriorOption,
    RecordsOption,
    SpanOption,
    claimed,
    scenario_of,
)
from ragaudit.lab.risk_command.show import as_json

if TYPE_CHECKING:
    from ragaudit.lab.risk.scenario import Scenario
    from ragaudit.lab.risk_command.verdicts import Stated

__all__ = ["EXAMPLE", "command"]

EXAMPLE = """Examples:

  ragaudit risk translate --verdict verdict.json --verdict-key HEX --records 10

  ragaudit risk translate --mu 0.2 --relation null-replace --prior 0.5,0.3,0.2

  ragaudit risk translate --epsilon 1 --delta 1e-6 --relation add-remove --records 100"""

MOST_LISTED = 10_000
"""Probabilities that JSON lists one by one."""

CAVEATS = (
    "The limits hold for every attacker, whatever the method, who sees what the guarantee covers "
    "and no more.",
    "They limit what the target's presence adds. What the rest of the collection, or common "
    "knowledge, tells about the target is not counted as a leak.",
)


def command(
    verdict: Annotated[
        Path | None, typer.Option(help="The verifier's verdict.json; only PASS and EXCEEDED.")
    ] = None,
    verdict_key: Annotated[
        PublicKey | None,
        typer.Option(parser=public_key, metavar="HEX", help="The verifier's verdict key."),
    ] = None,
    epsilon: EpsilonOption = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="0 to 1, with --epsilon; 0 unless given.")
    ] = None,
    mu: MuOption = None,
    relation: Annotated[
        NeighboringRelation | None,
        typer.Option("--relation", help="Relation of --epsilon or --mu."),
    ] = None,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = None,
    span: SpanOption = None,
    as_json_text: AsJson = False,
) -> None:
    """A guarantee in sentences to quote: membership, ROC area, attributes, reconstruction.

    The prior is the auditor's to state: what an attacker believes about a target before seeing any
    answer. All numbers are upper limits, rounded up.
    """
    from ragaudit.lab.risk.translation import translate  # noqa: PLC0415 - loads scipy

    check_companions(
        {
            "--verdict": verdict, "--verdict-key": verdict_key, "--eta": eta, "--span": span,
        }
    )  # fmt: skip
    line = Line.of(eta, span)
    scenario = scenario_of(records, prior, line)
    stated: Stated | None = None
    if verdict is not None:
        from ragaudit.lab.risk_command.verdicts import read_verdict  # noqa: PLC0415

        if any(each is not None for each in (epsilon, delta, mu, relation)):
            raise MalformedError(
                "a verdict has its own guarantee", where="--verdict", expected="alone"
            )
        stated = read_verdict(verdict, verdict_key)
        found = translate(stated.guarantee, scenario, float(stated.slack), line.nearness())
    else:
        if relation is None:
            raise MalformedError(
                "a guarantee without its relation says nothing", where="--relation",
                expected="replace, add-remove or null-replace",
            )  # fmt: skip
        given = claimed(epsilon, delta, mu, relation)
        found = translate(given, scenario, nearness=line.nearness())
    source = _source(stated) if stated is not None else f"{found.guarantee}, {found.relation}"
    if as_json_text:
        report: dict[str, Any] = {
            **asdict(found),
            "prior_stated": _prior(scenario, prior),
            "eta": line.eta,
            "span": line.span if line.eta else None,
            "source": source,
            "sentences": found.sentences(),
            "caveats": CAVEATS,
        }
        if stated is not None:
            report["verdict"] = {
                "window": stated.window,
                "provider": stated.provider,
                "result": stated.result,
                "epsilon": stated.epsilon,
                "delta": stated.delta,
                "signature_checked": stated.signed,
            }
        as_json(report)
        return
    for paragraph in (source, *found.sentences(), *CAVEATS):
        typer.echo(textwrap.fill(paragraph, 100) + "\n")


def _prior(scenario: "Scenario", source: str | None) -> dict[str, Any]:
    """The prior itself, or, if it is too long, where it came from."""
    if scenario.prior is None or source is None:
        return {"uniform_over": scenario.records}
    if scenario.prior.records <= MOST_LISTED:
        return {"probabilities": scenario.prior.probabilities.tolist()}
    return {
        "records": scenario.prior.records,
        "largest": float(scenario.prior.probabilities.max()),
        "collision_probability": scenario.prior.collision_probability,
        "source": source,
    }


def _source(stated: "Stated") -> str:
    checked = "signature checked" if stated.signed else "SIGNATURE NOT CHECKED (--verdict-key)"
    return (
        f"Window {stated.window} of {stated.provider}: {stated.result}, epsilon {stated.epsilon} "
        f"at delta {stated.delta} under {stated.guarantee.relation}; {checked}."
    )
