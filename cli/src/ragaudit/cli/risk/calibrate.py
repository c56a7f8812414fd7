"""`ragaudit risk calibrate`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.cli.risk.options import (
    AdjacencyName,
    AdjacencyOption,
    AsJson,
    DeltaOption,
    EtaOption,
    Knowledge,
    KnowledgeOption,
    MechanismName,
    MechanismOption,
    PriorOption,
    RecordsOption,
    SpanOption,
    SubsetOption,
    adjacency_of,
    known_mechanism,
    prior_of,
    threat_of,
)
from ragaudit.cli.risk.show import as_json, down, up

if TYPE_CHECKING:
    from ragaudit.privacy.risk.calibration import Crossing
    from ragaudit.privacy.risk.threat import ThreatModel

__all__ = ["EXAMPLE", "command"]

EXAMPLE = """Examples:

  ragaudit risk calibrate --target 0.1 --mechanism grr --records 100

  ragaudit risk calibrate --target 0.05 --mechanism laplace --records 101 --span 100

  ragaudit risk calibrate --target 0.1 --mechanism blackbox --delta 1e-6 --records 10"""


def command(
    target: Annotated[float, typer.Option("--target", help="Largest advantage to allow.")],
    mechanism: MechanismOption,
    delta: DeltaOption = 0.0,
    adjacency: AdjacencyOption = AdjacencyName.REPLACE,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = 0.0,
    span: SpanOption = 1.0,
    knowledge: KnowledgeOption = Knowledge.NONE,
    subset: SubsetOption = None,
    as_json_text: AsJson = False,
) -> None:
    """The largest epsilon, or the least noise, that keeps every attacker's advantage at a target.

    A target that nothing exceeds constrains nothing: epsilon is then infinite, the noise zero.
    """
    threat = threat_of(prior_of(records, prior), eta, span, knowledge)
    found: dict[str, Any] = {"target": target, "mechanism": mechanism.value}
    if mechanism is MechanismName.BLACKBOX:
        crossing = _blackbox(target, threat, delta, adjacency)
        found |= {"parameter": "epsilon", "delta": delta, "adjacency": adjacency.value}
    else:
        crossing, known = _known(target, threat, mechanism, subset, eta, span)
        found |= {"parameter": known.parameter}
        if mechanism in (MechanismName.LAPLACE, MechanismName.GAUSSIAN):
            found["noise_scale"] = span / crossing.parameter if crossing.parameter else float("inf")
    found |= {"value": crossing.parameter, "advantage": crossing.bound}
    if as_json_text:
        as_json(found)
        return
    typer.echo(f"{found['parameter']} at most {down(crossing.parameter)}")
    if "noise_scale" in found:
        kind = "scale" if mechanism is MechanismName.LAPLACE else "standard deviation"
        typer.echo(f"noise of {kind} at least {up(found['noise_scale'])}")
    if crossing.parameter != float("inf"):
        typer.echo(f"every attacker's advantage is then at most {up(crossing.bound)}")


def _blackbox(
    target: float, threat: "ThreatModel", delta: float, adjacency: AdjacencyName
) -> "Crossing":
    from ragaudit.privacy.guarantees import Adjacency, ApproximateDp  # noqa: PLC0415
    from ragaudit.privacy.risk.best_bound import best_bound  # noqa: PLC0415
    from ragaudit.privacy.risk.calibration import largest_parameter  # noqa: PLC0415
    from ragaudit.privacy.risk.scenario import Scenario  # noqa: PLC0415

    scenario, relation = Scenario.of_threat(threat), adjacency_of(adjacency)

    def bound(epsilon: float) -> float:
        promised = ApproximateDp.of(epsilon, delta, relation).under(Adjacency.REPLACE_ONE)
        return best_bound(scenario, [promised]).value

    return largest_parameter(bound, target)


def _known(
    target: float, threat: "ThreatModel", mechanism: MechanismName, subset: int | None,
    eta: float, span: float,
) -> "tuple[Crossing, Any]":  # fmt: skip
    from ragaudit.privacy.risk.calibration import largest_parameter  # noqa: PLC0415
    from ragaudit.privacy.risk.known_mechanisms import LocalMechanism  # noqa: PLC0415
    from ragaudit.privacy.risk.mechanisms import subset_size  # noqa: PLC0415

    if mechanism is MechanismName.SS and subset is None:
        # The subset's size follows epsilon by the paper's rule, so the bound jumps with it.
        def by_rule(epsilon: float) -> float:
            size = min(subset_size(threat.records, epsilon), threat.records - 1)
            return LocalMechanism("ss", size).advantage(threat, epsilon)

        return largest_parameter(by_rule, target), LocalMechanism("ss")
    known = known_mechanism(mechanism, threat.records, subset, eta, span)
    return largest_parameter(lambda value: known.advantage(threat, value), target), known
