"""`ragaudit risk bound`."""

from typing import TYPE_CHECKING

import typer
from ragaudit.cli.risk.options import (
    AdjacencyName,
    AdjacencyOption,
    AsJson,
    DeltaOption,
    EpsilonOption,
    EtaOption,
    Knowledge,
    KnowledgeOption,
    MechanismName,
    MechanismOption,
    MuOption,
    PriorOption,
    RecordsOption,
    SpanOption,
    SubsetOption,
    claimed,
    known_mechanism,
    prior_of,
    threat_of,
)
from ragaudit.cli.risk.show import as_json, up
from ragaudit.encoding.errors import MalformedError

if TYPE_CHECKING:
    from ragaudit.privacy.risk.best_bound import BestBound
    from ragaudit.privacy.risk.threat import ThreatModel

__all__ = ["EXAMPLE", "command"]

EXAMPLE = """Examples:

  ragaudit risk bound --mechanism grr --epsilon 1 --records 100

  ragaudit risk bound --mechanism blackbox --epsilon 3 --delta 1e-5 --prior 0.4,0.3,0.2,0.1

  ragaudit risk bound --mechanism gaussian --mu 0.5 --records 101 --span 100 --eta 5"""


def command(
    mechanism: MechanismOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = 0.0,
    mu: MuOption = None,
    adjacency: AdjacencyOption = AdjacencyName.REPLACE,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = 0.0,
    span: SpanOption = 1.0,
    knowledge: KnowledgeOption = Knowledge.NONE,
    subset: SubsetOption = None,
    as_json_text: AsJson = False,
) -> None:
    """The best upper bound of every attacker's advantage, and which theorem gives it.

    For a mechanism that is known by name the first bound is the optimum itself: some attack
    reaches it. All candidates are shown with what they assume, and why others do not apply.
    """
    threat = threat_of(prior_of(records, prior), eta, span, knowledge)
    best = _best(mechanism, threat, epsilon, delta, mu, adjacency, eta, span, subset)
    if as_json_text:
        as_json(best.to_json())
    else:
        _show(best)


def _best(
    mechanism: MechanismName, threat: "ThreatModel", epsilon: float | None, delta: float,
    mu: float | None, adjacency: AdjacencyName, eta: float, span: float, subset: int | None,
) -> "BestBound":  # fmt: skip
    from ragaudit.privacy.guarantees import Adjacency  # noqa: PLC0415 - loads scipy
    from ragaudit.privacy.risk.best_bound import best_bound  # noqa: PLC0415
    from ragaudit.privacy.risk.known_mechanisms import exact_bounds  # noqa: PLC0415
    from ragaudit.privacy.risk.scenario import Scenario  # noqa: PLC0415

    scenario = Scenario.of_threat(threat)
    if mechanism is MechanismName.BLACKBOX:
        guarantee = claimed(epsilon, delta, mu, adjacency).under(Adjacency.REPLACE_ONE)
        return best_bound(scenario, [guarantee])
    if delta != 0 or adjacency is not AdjacencyName.REPLACE:
        raise MalformedError(
            "a known mechanism has its own guarantee", where="--delta, --adjacency",
            expected="blackbox, or neither",
        )  # fmt: skip
    known = known_mechanism(mechanism, threat.records, subset, eta, span)
    value = _parameter(known.parameter, epsilon, mu)
    return best_bound(scenario, [known.guarantee(value)], exact_bounds(known, threat, value))


def _parameter(name: str, epsilon: float | None, mu: float | None) -> float:
    given, other = (epsilon, mu) if name == "epsilon" else (mu, epsilon)
    if given is None or other is not None:
        raise MalformedError("not this mechanism's parameter", where=f"--{name}", expected="once")
    return given


def _show(best: "BestBound") -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    typer.echo(f"advantage at most {up(best.value)}, by {best.winner.theorem}")
    share = best.normalized
    typer.echo(
        f"that is {up(share.value)} of the largest possible"
        if share.defined
        else "the prior alone names the record: nothing is left to gain"
    )
    assumed = best.winner.assumptions
    table = Table(
        title=f"bounds that apply (prior: {assumed.prior}; adjacency: {assumed.adjacency})",
        title_justify="left",
    )
    for heading in ("at most", "by", "knowledge", "guess", "mechanism"):
        table.add_column(heading, justify="right" if heading == "at most" else "left")
    for bound in best.applicable:
        table.add_row(
            up(bound.value), bound.theorem, bound.assumptions.auxiliary, bound.assumptions.eta,
            bound.assumptions.mechanism,
        )  # fmt: skip
    Console().print(table)
    for theorem, why in best.refused:
        typer.echo(f"{theorem} does not apply: {why}")
