"""Options that the commands share, and what they mean."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.errors import MalformedError

if TYPE_CHECKING:
    from ragaudit.privacy.guarantees import Adjacency, ApproximateDp, GaussianDp
    from ragaudit.privacy.risk.known_mechanisms import KnownMechanism
    from ragaudit.privacy.risk.priors import FinitePrior
    from ragaudit.privacy.risk.threat import ThreatModel
    from ragaudit.privacy.risk.validation import FloatArray

__all__ = [
    "AdjacencyName",
    "AdjacencyOption",
    "AsJson",
    "DeltaOption",
    "EpsilonOption",
    "EtaOption",
    "Knowledge",
    "KnowledgeOption",
    "MechanismName",
    "MechanismOption",
    "MuOption",
    "PriorOption",
    "RecordsOption",
    "SpanOption",
    "SubsetOption",
    "adjacency_of",
    "claimed",
    "known_mechanism",
    "positions_of",
    "prior_of",
    "threat_of",
]

LARGEST_PRIOR_BYTES = 256 * 2**20


class MechanismName(StrEnum):
    """Mechanisms by name; blackbox: only its guarantee is known."""

    GRR = "grr"
    OUE = "oue"
    SS = "ss"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    BLACKBOX = "blackbox"


class AdjacencyName(StrEnum):
    """Which two data sets are neighbors."""

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"
    NULL_REPLACE = "null-replace"


class Knowledge(StrEnum):
    """What the attacker knows of the target: nothing, or the whole record (or anything else)."""

    NONE = "none"
    FULL = "full"


MechanismOption = Annotated[
    MechanismName, typer.Option("--mechanism", help="blackbox: any with the guarantee given.")
]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", help="Natural logarithm; laplace: range over scale.")
]
DeltaOption = Annotated[float, typer.Option("--delta", help="0 to 1; blackbox only.")]
MuOption = Annotated[
    float | None,
    typer.Option("--mu", help="Of Gaussian DP; gaussian: range over standard deviation."),
]
AdjacencyOption = Annotated[
    AdjacencyName, typer.Option("--adjacency", help="Of the guarantee; converted to replace.")
]
RecordsOption = Annotated[
    int | None,
    typer.Option("--records", help="Uniform prior over this many candidates, 2 to 10^7."),
]
PriorOption = Annotated[
    str | None,
    typer.Option(
        "--prior", help="Probabilities: '0.5,0.3,0.2', or a file (JSON list, or one per line)."
    ),
]
EtaOption = Annotated[
    float,
    typer.Option("--eta", help="A guess this near counts; records are evenly spaced over --span."),
]
SpanOption = Annotated[
    float, typer.Option("--span", help="Distance of the extreme records, in the unit of --eta.")
]
KnowledgeOption = Annotated[
    Knowledge, typer.Option("--knowledge", help="Of the attacker about the target, beforehand.")
]
SubsetOption = Annotated[
    int | None, typer.Option("--subset", help="ss: size of the reported subset.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def prior_of(records: int | None, prior: str | None) -> "FinitePrior":
    """The prior of --records or --prior; exactly one of them.

    Raises:
        MalformedError: both, neither, or no probabilities.
    """
    from ragaudit.privacy.risk.priors import FinitePrior  # noqa: PLC0415 - loads scipy

    if (records is None) == (prior is None):
        raise MalformedError("no prior, or two", where="--prior", expected="--records or --prior")
    if records is not None:
        return FinitePrior.uniform(records)
    return FinitePrior(_probabilities(str(prior)))


def positions_of(records: int, span: float) -> "FloatArray":
    """Evenly spaced positions over [0, span]."""
    import numpy as np  # noqa: PLC0415
    from ragaudit.privacy.risk.validation import check_positive  # noqa: PLC0415

    return np.linspace(0.0, check_positive(span, "span"), records)


def threat_of(
    prior: "FinitePrior", eta: float, span: float, knowledge: Knowledge = Knowledge.NONE
) -> "ThreatModel":
    """The threat model of the options; with eta, records are evenly spaced over the span."""
    from ragaudit.privacy.risk.threat import (  # noqa: PLC0415
        AuxiliaryKnowledge,
        SuccessSets,
        ThreatModel,
    )

    success = (
        SuccessSets.exact(prior.records)
        if eta == 0
        else SuccessSets.on_line(positions_of(prior.records, span), eta)
    )
    known = AuxiliaryKnowledge.none if knowledge is Knowledge.NONE else AuxiliaryKnowledge.full
    return ThreatModel(prior, success, known(prior.records))


def known_mechanism(
    name: MechanismName, records: int, subset: int | None, eta: float, span: float
) -> "KnownMechanism":
    """The mechanism of a name other than blackbox.

    Raises:
        MalformedError: subset selection without a subset's size.
    """
    from ragaudit.privacy.risk.known_mechanisms import (  # noqa: PLC0415
        LocalMechanism,
        NoiseMechanism,
    )

    match name:
        case MechanismName.GRR:
            return LocalMechanism("grr")
        case MechanismName.OUE:
            return LocalMechanism("oue")
        case MechanismName.SS:
            if subset is None:
                raise MalformedError("no size of the subset", where="--subset", expected="a number")
            return LocalMechanism("ss", subset)
        case MechanismName.LAPLACE:
            return NoiseMechanism("laplace", positions_of(records, span), eta)
        case MechanismName.GAUSSIAN:
            return NoiseMechanism("gaussian", positions_of(records, span), eta)
        case _:
            raise MalformedError("a black box has no formula", where="--mechanism")


def adjacency_of(name: AdjacencyName) -> "Adjacency":
    """The adjacency of an option."""
    from ragaudit.privacy.guarantees import Adjacency  # noqa: PLC0415

    return Adjacency(name.value)


def claimed(
    epsilon: float | None, delta: float, mu: float | None, adjacency: AdjacencyName
) -> "ApproximateDp | GaussianDp":
    """The guarantee of --epsilon (and --delta) or --mu; exactly one of them.

    Raises:
        MalformedError: both, neither, or delta together with mu.
    """
    from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp  # noqa: PLC0415

    if (epsilon is None) == (mu is None):
        raise MalformedError(
            "no guarantee, or two", where="--epsilon", expected="--epsilon or --mu"
        )
    relation = adjacency_of(adjacency)
    if epsilon is not None:
        return ApproximateDp.of(epsilon, delta, relation)
    if delta != 0:
        raise MalformedError("delta together with mu", where="--delta", expected="--epsilon")
    return GaussianDp.of(mu if mu is not None else 0.0, relation)


def _probabilities(text: str) -> list[float]:
    import json  # noqa: PLC0415

    found = Path(text)
    try:
        written = found.is_file()
    except OSError:
        written = False
    if written:
        if found.stat().st_size > LARGEST_PRIOR_BYTES:
            raise MalformedError("file too large", where="--prior", expected="at most 256 MiB")
        try:
            text = found.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MalformedError("not readable as text", where=f"--prior {found}") from error
    try:
        if text.lstrip().startswith("["):
            values = json.loads(text)
        else:
            values = [float(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        raise MalformedError(
            "not a list of numbers, nor a file", where="--prior", expected="0.5,0.3,0.2"
        ) from error
    if not isinstance(values, list) or not all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    ):
        raise MalformedError("not numbers", where="--prior", expected="a list of probabilities")
    return [float(value) for value in values]
