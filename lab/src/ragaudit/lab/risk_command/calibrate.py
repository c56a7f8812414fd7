"""`ragaudit risk calibrate`."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk_command.options import (
    AsJson,
    DeltaOption,
    EtaOption,
    Knowledge,
    KnowledgeOption,
    Line,
    MechanismName,
    MechanismOption,
    PriorOption,
    RecordsOption,
    RelationOption,
    SpanOption,
    SubsetOption,
    check_mechanism,
    knowledge_of,
    known_mechanism,
    prior_of,
    scenario_of,
    threat_of,
)
from ragaudit.lab.risk_command.show import as_json, counted, down, up

if TYPE_CHECKING:
    from ragaudit.lab.risk.calibration import Crossing
    from ragaudit.lab.risk.general_bounds import Scenario
    from ragaudit.lab.risk.known_mechanisms import KnownMechanism
    from ragaudit.lab.risk.threat import ThreatModel

EXAMPLE = """Examples:

  ragaudit risk calibrate --target 0.1 --mechanism grr --records 100

  ragaudit risk calibrate --target 0.05 --mechanism laplace --records 101 --span 100

  ragaudit risk calibrate --target 0.1 --mechanism blackbox --delta 1e-6 --records 10"""


def command(
    target: Annotated[float, typer.Option("--target", help="Largest advantage to allow.")],
    mechanism: MechanismOption,
    delta: DeltaOption = None,
    relation: RelationOption = None,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = None,
    span: SpanOption = None,
    knowledge: KnowledgeOption = Knowledge.NONE,
    subset: SubsetOption = None,
    as_json_text: AsJson = False,
) -> None:
    """The largest epsilon, or the least noise, that keeps every attacker's advantage at a target.

    A target that nothing exceeds constrains nothing: epsilon is then infinite, the noise zero. A
    target that not even epsilon 0 keeps is said to be so.
    """
    check_mechanism(
        mechanism,
        {
            "--delta": delta, "--relation": relation, "--subset": subset, "--eta": eta,
            "--span": span,
        },
    )  # fmt: skip
    line = Line.of(eta, span)
    found: dict[str, Any] = {"target": target, "mechanism": mechanism.value}
    if mechanism is MechanismName.BLACKBOX:
        slack, relation = delta or 0.0, relation or NeighboringRelation.REPLACE
        scenario = scenario_of(records, prior, line, knowledge)
        crossing = _blackbox(target, scenario, slack, relation, as_json_text)
        found |= {"parameter": "epsilon", "delta": slack, "relation": relation.value}
    else:
        threat = _threat(records, prior, line, knowledge)
        if mechanism is MechanismName.SS and subset is None:
            crossing, parameter = _subset_by_rule(target, threat, as_json_text), "epsilon"
        else:
            known = known_mechanism(mechanism, threat.records, subset, line)
            crossing, parameter = _known(target, threat, known, as_json_text), known.parameter
        found |= {"parameter": parameter}
    if mechanism in (MechanismName.LAPLACE, MechanismName.GAUSSIAN):
        found["noise_scale"] = line.span / crossing.parameter if crossing.parameter else math.inf
    kept = math.isinf(crossing.parameter) or crossing.bound <= target
    found |= {"value": crossing.parameter, "advantage": crossing.bound, "kept": kept}
    if as_json_text:
        as_json(found)
    else:
        _show(found)


def _threat(
    records: int | None, prior: str | None, line: Line, knowledge: Knowledge
) -> "ThreatModel":
    found = prior_of(records, prior)
    return threat_of(found, line, knowledge_of(knowledge, found.records))


def _blackbox(
    target: float, scenario: "Scenario", delta: float, relation: NeighboringRelation, quiet: bool
) -> "Crossing":
    from ragaudit.lab.risk.general_bounds import best_bound  # noqa: PLC0415
    from ragaudit.privacy.guarantees import ApproximateDp  # noqa: PLC0415

    def bound(epsilon: float) -> float:
        promised = ApproximateDp.of(epsilon, delta, relation).under(NeighboringRelation.REPLACE)
        return best_bound(scenario, [promised]).value

    return _bisected(bound, target, quiet)


def _subset_by_rule(target: float, threat: "ThreatModel", quiet: bool) -> "Crossing":
    """The subset's size follows epsilon by the paper's rule, so the advantage jumps with it."""
    from ragaudit.lab.risk.known_mechanisms import LocalMechanism  # noqa: PLC0415
    from ragaudit.lab.risk.mechanisms import subset_size  # noqa: PLC0415

    def bound(epsilon: float) -> float:
        size = min(subset_size(threat.records, epsilon), threat.records - 1)
        return LocalMechanism("ss", size).advantage(threat, epsilon)

    return _bisected(bound, target, quiet)


def _bisected(bound: Callable[[float], float], target: float, quiet: bool) -> "Crossing":
    from ragaudit.lab.risk.calibration import largest_parameter  # noqa: PLC0415

    with counted(bound, quiet) as watched:
        return largest_parameter(watched, target)


def _known(
    target: float, threat: "ThreatModel", known: "KnownMechanism", quiet: bool
) -> "Crossing":
    from ragaudit.lab.risk.calibration import continuous_largest_parameter  # noqa: PLC0415

    with counted(lambda value: known.advantage(threat, value), quiet) as watched:
        return continuous_largest_parameter(watched, target, limit=known.largest)


def _show(found: dict[str, Any]) -> None:
    parameter, value = found["parameter"], found["value"]
    if not found["kept"]:
        typer.echo(
            f"no {parameter} keeps the target {found['target']:g}: even at {parameter} 0 an "
            f"advantage of {up(found['advantage'])} is not excluded"
        )
        return
    typer.echo(f"{parameter} at most {down(value)}")
    if "noise_scale" in found:
        kind = "scale" if found["mechanism"] == "laplace" else "standard deviation"
        typer.echo(f"noise of {kind} at least {up(found['noise_scale'])}")
    if not math.isinf(value):
        typer.echo(f"every attacker's advantage is then at most {up(found['advantage'])}")
