"""`ragaudit risk`: disclosure risk, its bounds, and audits by attack."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import ragaudit.privacy  # noqa: F401 - the group exists where this member is installed
import typer
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk_command import audit, translate
from ragaudit.lab.risk_command.options import (
    AsJson,
    DeltaOption,
    EpsilonOption,
    EtaOption,
    Knowledge,
    KnowledgeOption,
    Line,
    MechanismName,
    MechanismOption,
    MuOption,
    PriorOption,
    RecordsOption,
    RelationOption,
    SpanOption,
    SubsetOption,
    by_option,
    check_mechanism,
    claimed,
    knowledge_of,
    known_mechanism,
    prior_of,
    read_labels,
    read_matrix,
    scenario_of,
    threat_of,
)
from ragaudit.lab.risk_command.show import as_json, counted, down, up

if TYPE_CHECKING:
    from ragaudit.lab.risk.calibration import Crossing
    from ragaudit.lab.risk.general_bounds import BestBound, Bound, Scenario
    from ragaudit.lab.risk.known_mechanisms import KnownMechanism
    from ragaudit.lab.risk.threat import AuxiliaryKnowledge, ThreatModel
    from ragaudit.lab.risk.trade_off import Guarantee


BOUND = """Examples:

  ragaudit risk bound --mechanism grr --epsilon 1 --records 100

  ragaudit risk bound --mechanism blackbox --epsilon 3 --delta 1e-5 --prior 0.4,0.3,0.2,0.1

  ragaudit risk bound --mechanism gaussian --mu 0.5 --records 101 --span 100 --eta 5

  ragaudit risk bound --mechanism channel --channel matrix.csv --records 4 --auxiliary a,a,b,b"""


def bound(
    mechanism: MechanismOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    mu: MuOption = None,
    relation: RelationOption = None,
    records: RecordsOption = None,
    prior: PriorOption = None,
    eta: EtaOption = None,
    span: SpanOption = None,
    knowledge: KnowledgeOption = Knowledge.NONE,
    auxiliary: Annotated[
        str | None,
        typer.Option(
            help="Partial knowledge: a label per record, 'a,a,b' or a file; who has equal labels "
            "cannot be told apart beforehand."
        ),
    ] = None,
    subset: SubsetOption = None,
    channel: Annotated[
        Path | None,
        typer.Option(help="p(output | record), CSV or JSON, a row per record: your own mechanism."),
    ] = None,
    as_json_text: AsJson = False,
) -> None:
    """The best upper bound of every attacker's advantage, and which theorem gives it.

    For a mechanism that is known by name, or as a matrix, the first bound is the optimum itself:
    some attack reaches it. All candidates are shown with what they assume, and why others do not
    apply. Reconstruction robustness (ReRo), an older measure, stands apart, for comparison.
    """
    check_mechanism(
        mechanism,
        {
            "--epsilon": epsilon, "--delta": delta, "--mu": mu, "--relation": relation,
            "--subset": subset, "--channel": channel, "--eta": eta, "--span": span,
        },
    )  # fmt: skip
    line = Line.of(eta, span)
    guarantees: list[Guarantee] = []
    evaluated: tuple[Bound, ...] = ()
    found = prior_of(records, prior)
    threat = threat_of(found, line, _known(knowledge, auxiliary, found.records))
    if mechanism is MechanismName.BLACKBOX:
        guarantees.append(_promised(epsilon, delta, mu, relation))
    elif mechanism is MechanismName.CHANNEL:
        evaluated = _of_channel(channel, threat)
    else:
        guarantee, evaluated = _of_known(mechanism, threat, subset, line, epsilon, mu)
        guarantees.append(guarantee)
    _report(threat, guarantees, evaluated, as_json_text)


def _known(knowledge: Knowledge, auxiliary: str | None, records: int) -> "AuxiliaryKnowledge":
    from ragaudit.lab.risk.threat import AuxiliaryKnowledge  # noqa: PLC0415 - loads scipy

    if auxiliary is None:
        return knowledge_of(knowledge, records)
    if knowledge is not Knowledge.NONE:
        raise MalformedError(
            "knowledge given twice", where="--auxiliary", expected="without --knowledge"
        )
    labels = read_labels(auxiliary, "--auxiliary")
    if len(labels) != records:
        raise MalformedError(
            f"{len(labels)} labels", where="--auxiliary", expected=f"{records}, one per record"
        )
    return AuxiliaryKnowledge.of_labels(labels)


def _promised(
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    relation: NeighboringRelation | None,
) -> "Guarantee":
    given = claimed(epsilon, delta, mu, relation or NeighboringRelation.REPLACE)
    # The candidates stand in one place: whatever relation is stated, this is the one that covers
    # them, at its price.
    return given.under(NeighboringRelation.REPLACE)


def _of_channel(path: Path | None, threat: "ThreatModel") -> "tuple[Bound, ...]":
    import numpy as np  # noqa: PLC0415
    from ragaudit.lab.risk.general_bounds import channel_bounds  # noqa: PLC0415

    if path is None:
        raise MalformedError("no matrix", where="--channel", expected="a CSV or JSON file")
    rows = read_matrix(path, "--channel")
    if len({len(row) for row in rows}) != 1:
        raise MalformedError("rows of different length", where="--channel", expected="a matrix")
    return channel_bounds(np.array(rows), threat, path.name)


def _of_known(
    mechanism: MechanismName, threat: "ThreatModel", subset: int | None, line: Line,
    epsilon: float | None, mu: float | None,
) -> "tuple[Guarantee, tuple[Bound, ...]]":  # fmt: skip
    from ragaudit.lab.risk.known_mechanisms import exact_bounds  # noqa: PLC0415

    known = known_mechanism(mechanism, threat.records, subset, line)
    value = epsilon if known.parameter == "epsilon" else mu
    if value is None:
        raise MalformedError(
            "no parameter of the mechanism", where=f"--{known.parameter}", expected="a number"
        )
    return known.guarantee(value), exact_bounds(known, threat, value)


def _report(
    threat: "ThreatModel", guarantees: "list[Guarantee]", evaluated: "tuple[Bound, ...]",
    as_json_text: bool,
) -> None:  # fmt: skip
    from ragaudit.lab.risk.general_bounds import Scenario, best_bound  # noqa: PLC0415

    scenario = Scenario.of_threat(threat)
    best = best_bound(scenario, guarantees, evaluated)
    success = _robustness(scenario, guarantees)
    if as_json_text:
        as_json({**best.to_json(), "reconstruction_robustness": success})
    else:
        _show(best)
        _show_robustness(success)


def _robustness(scenario: "Scenario", guarantees: "list[Guarantee]") -> dict[str, Any]:
    """The ReRo bound, or what it lacks; the label in any case."""
    from ragaudit.lab.risk.general_bounds import (  # noqa: PLC0415
        LABEL,
        success_bound,
    )
    from ragaudit.lab.risk.validation import AssumptionError  # noqa: PLC0415

    if not guarantees:
        return {"label": LABEL, "missing": "no guarantee of the mechanism is stated"}
    try:
        return success_bound(scenario, guarantees[0]).to_json()
    except AssumptionError as error:
        return {"label": LABEL, "missing": str(error)}


def _show(best: "BestBound") -> None:
    from ragaudit.encoding.console import Console  # noqa: PLC0415
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
        title=f"bounds that apply (prior: {assumed.prior}; relation: {assumed.relation})",
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


def _show_robustness(success: dict[str, Any]) -> None:
    typer.echo(f"\nreconstruction robustness, for comparison ({success['label']})")
    if "missing" in success:
        typer.echo(f"  does not apply: {success['missing']}")
        return
    value, equation = success["success_probability_at_most"], success["equation"]
    typer.echo(f"  success probability at most {up(value)}, by {equation}")


CALIBRATE = """Examples:

  ragaudit risk calibrate --target 0.1 --mechanism grr --records 100

  ragaudit risk calibrate --target 0.05 --mechanism laplace --records 101 --span 100

  ragaudit risk calibrate --target 0.1 --mechanism blackbox --delta 1e-6 --records 10"""


def calibrate(
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
            crossing, parameter = _crossing_of(target, threat, known, as_json_text), known.parameter
        found |= {"parameter": parameter}
    if mechanism in (MechanismName.LAPLACE, MechanismName.GAUSSIAN):
        found["noise_scale"] = line.span / crossing.parameter if crossing.parameter else math.inf
    kept = math.isinf(crossing.parameter) or crossing.bound <= target
    found |= {"value": crossing.parameter, "advantage": crossing.bound, "kept": kept}
    if as_json_text:
        as_json(found)
    else:
        _show_parameter(found)


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


def _crossing_of(
    target: float, threat: "ThreatModel", known: "KnownMechanism", quiet: bool
) -> "Crossing":
    from ragaudit.lab.risk.calibration import continuous_largest_parameter  # noqa: PLC0415

    with counted(lambda value: known.advantage(threat, value), quiet) as watched:
        return continuous_largest_parameter(watched, target, limit=known.largest)


def _show_parameter(found: dict[str, Any]) -> None:
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


app = typer.Typer(
    no_args_is_help=True,
    help="Disclosure risk: reconstruction advantage (RAD), its bounds, and audits by attack.",
)
app.command("bound", epilog=BOUND)(by_option(bound))
app.command("calibrate", epilog=CALIBRATE)(by_option(calibrate, advantage="--target"))
app.command("audit", epilog=audit.EXAMPLE)(by_option(audit.command))
app.command("translate", epilog=translate.EXAMPLE)(by_option(translate.command))
