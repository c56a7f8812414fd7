"""Options that the commands share, and what they mean.

What does not apply is refused by its name, never ignored.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, ParamSpec, Self

import typer
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.relations import NeighboringRelation

if TYPE_CHECKING:
    from ragaudit.lab.risk.general_bounds import Scenario
    from ragaudit.lab.risk.known_mechanisms import KnownMechanism
    from ragaudit.lab.risk.threat import AuxiliaryKnowledge, FinitePrior, SuccessSets, ThreatModel
    from ragaudit.lab.risk.translation import Nearness
    from ragaudit.lab.risk.validation import FloatArray
    from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp


LARGEST_BYTES = 256 * 2**20


def read_numbers(text: str, option: str) -> list[float]:
    """Return a list of numbers.

    Args:
        text: JSON, or numbers apart by commas and spaces; or the name of a file of them.
        option: of the command line, for the error.

    Raises:
        MalformedError: named after the option.
    """
    text = _content(text, option)
    values = _json(text, option) if _is_json(text) else text.replace(",", " ").split()
    return _floats(values, option)


def read_matrix(path: Path, option: str) -> list[list[float]]:
    """Return rows of numbers.

    Args:
        path: a JSON list of lists, or CSV without a heading; at most 256 MiB.
        option: of the command line, for the error.

    Raises:
        MalformedError: named after the option.
    """
    text = _read(path, option)
    if not _is_json(text):
        rows: object = [line.replace(",", " ").split() for line in text.splitlines() if line]
    else:
        rows = _json(text, option)
    if not isinstance(rows, list):
        raise MalformedError("not a matrix", where=option, expected="a list of rows")
    return [_floats(row, f"{option} row {number}") for number, row in enumerate(rows, start=1)]


def read_labels(text: str, option: str) -> list[str]:
    """Return one label per record.

    Args:
        text: a JSON list, or labels apart by commas or lines; or the name of a file of them.
        option: of the command line, for the error.

    Raises:
        MalformedError: named after the option.
    """
    text = _content(text, option)
    if not _is_json(text):
        return [label.strip() for label in text.strip().replace("\n", ",").split(",")]
    labels = _json(text, option)
    if not isinstance(labels, list) or not all(isinstance(each, str | int) for each in labels):
        raise MalformedError("not labels", where=option, expected="a list of texts or integers")
    return [str(label) for label in labels]


def _content(text: str, option: str) -> str:
    """The text itself, or that of the file of this name."""
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):
        is_file = False
    return _read(Path(text), option) if is_file else text


def _read(path: Path, option: str) -> str:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise MalformedError("file too large", where=option, expected="at most 256 MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError("not readable as text", where=f"{option} {path}") from error


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("[")


def _json(text: str, option: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON", where=option, expected="a list") from error


def _floats(values: object, option: str) -> list[float]:
    # Python would read true as 1.
    if not isinstance(values, list) or any(isinstance(value, bool) for value in values):
        raise MalformedError("not a list of numbers", where=option, expected="0.5,0.3,0.2")
    try:
        return [float(value) for value in values]
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedError(
            "not a list of numbers, nor a file", where=option, expected="0.5,0.3,0.2"
        ) from error


P = ParamSpec("P")

_LEAST_LENGTH: Final = 1e-100
_LARGEST_LENGTH: Final = 1e100


class MechanismName(StrEnum):
    """Mechanisms by name; blackbox: only its guarantee is known; channel: a matrix, for bound."""

    GRR = "grr"
    OUE = "oue"
    SS = "ss"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    BLACKBOX = "blackbox"
    CHANNEL = "channel"


class Knowledge(StrEnum):
    """What the attacker knows of the target: nothing, or the whole record (or anything else)."""

    NONE = "none"
    FULL = "full"


MechanismOption = Annotated[
    MechanismName,
    typer.Option(
        "--mechanism", help="blackbox: any with the guarantee given; channel: bound only."
    ),
]
EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", help="Natural logarithm; laplace: range over scale.")
]
DeltaOption = Annotated[
    float | None, typer.Option("--delta", help="0 to 1; 0 if unset; blackbox only.")
]
MuOption = Annotated[
    float | None,
    typer.Option("--mu", help="mu of Gaussian DP; gaussian: range over standard deviation."),
]
RelationOption = Annotated[
    NeighboringRelation | None,
    typer.Option(
        "--relation",
        help="Relation of the guarantee, converted to replace, the default. blackbox only.",
    ),
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
    float | None,
    typer.Option("--eta", help="A guess this near counts; records are evenly spaced over --span."),
]
SpanOption = Annotated[
    float | None,
    typer.Option("--span", help="Distance of the extreme records, in the unit of --eta; else 1."),
]
KnowledgeOption = Annotated[
    Knowledge, typer.Option("--knowledge", help="What the attacker knows of the target beforehand.")
]
SubsetOption = Annotated[
    int | None, typer.Option("--subset", help="ss: size of the reported subset.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def prior_of(records: int | None, prior: str | None) -> "FinitePrior":
    """Return the prior of --records or --prior.

    Args:
        records: of a uniform prior.
        prior: probabilities as text, or the name of a file of them; exactly one of both is given.

    Raises:
        MalformedError: both, neither, or no probabilities.
    """
    from ragaudit.lab.risk.threat import FinitePrior  # noqa: PLC0415 - loads scipy

    if (records is None) == (prior is None):
        raise MalformedError("no prior, or two", where="--prior", expected="--records or --prior")
    if records is not None:
        return FinitePrior.uniform(records)
    return FinitePrior(read_numbers(str(prior), "--prior"))


@dataclass(frozen=True, slots=True)
class Line:
    """Records evenly spaced on a line.

    Attributes:
        eta: a guess this near counts; 0: the record itself only.
        span: distance of the extreme records.
    """

    eta: float
    span: float

    @classmethod
    def of(cls, eta: float | None, span: float | None) -> Self:
        """Return the line of --eta and --span.

        Args:
            eta: 0 or None for exact guesses.
            span: 1 if it is not given.

        Raises:
            MalformedError: a length out of range.
        """
        return cls(_length(eta, "--eta") if eta else 0.0, 1.0 if span is None else _length(span))

    def positions(self, records: int) -> "FloatArray":
        """Return where the records lie, float64[records], from 0 to the span."""
        import numpy as np  # noqa: PLC0415

        return np.linspace(0.0, self.span, records)

    def success(self, records: int) -> "SuccessSets":
        """Return which guesses count: exact ones only if eta is 0."""
        from ragaudit.lab.risk.threat import SuccessSets  # noqa: PLC0415

        if self.eta == 0:
            return SuccessSets.exact(records)
        return SuccessSets.on_line(self.positions(records), self.eta)

    def nearness(self) -> "Nearness | None":
        """Return what `success` says in words; None if near guesses do not count."""
        from ragaudit.lab.risk.translation import Nearness  # noqa: PLC0415

        return Nearness(self.eta, self.span) if self.eta else None


def _length(value: float, option: str = "--span") -> float:
    if not _LEAST_LENGTH <= value <= _LARGEST_LENGTH:
        raise MalformedError(f"{value:g} out of range", where=option, expected="1e-100 to 1e100")
    return value


def threat_of(
    prior: "FinitePrior", line: Line, known: "AuxiliaryKnowledge | None" = None
) -> "ThreatModel":
    """Return the threat model of the options.

    Args:
        prior: over the records.
        line: on which they lie.
        known: what the attacker knows of the target; nothing if it is not given.
    """
    from ragaudit.lab.risk.threat import AuxiliaryKnowledge, ThreatModel  # noqa: PLC0415

    auxiliary = AuxiliaryKnowledge.none(prior.records) if known is None else known
    return ThreatModel(prior, line.success(prior.records), auxiliary)


def scenario_of(
    records: int | None, prior: str | None, line: Line, knowledge: Knowledge = Knowledge.NONE
) -> "Scenario":
    """Return what bounds for unknown mechanisms need.

    Args:
        records, prior: as of `prior_of`; a uniform prior without --eta is never listed, so 10^7
            records cost no memory.
        line: on which the records lie.
        knowledge: of the attacker.
    """
    from ragaudit.lab.risk import general_bounds as bounds  # noqa: PLC0415
    from ragaudit.lab.risk.threat import LARGEST_DOMAIN  # noqa: PLC0415
    from ragaudit.lab.risk.validation import check_integer  # noqa: PLC0415

    known = bounds.Knowledge.NONE if knowledge is Knowledge.NONE else bounds.Knowledge.ANY
    if records is not None and prior is None and line.eta == 0:
        check_integer(records, "records", least=2, most=LARGEST_DOMAIN)
        return bounds.Scenario.uniform(records, known)
    found = bounds.Scenario.of_threat(threat_of(prior_of(records, prior), line))
    return replace(found, knowledge=known)


def knowledge_of(knowledge: Knowledge, records: int) -> "AuxiliaryKnowledge":
    """Return what the attacker knows, by --knowledge, of one of so many records."""
    from ragaudit.lab.risk.threat import AuxiliaryKnowledge  # noqa: PLC0415

    if knowledge is Knowledge.NONE:
        return AuxiliaryKnowledge.none(records)
    return AuxiliaryKnowledge.full(records)


def known_mechanism(
    name: MechanismName, records: int, subset: int | None, line: Line
) -> "KnownMechanism":
    """Return the mechanism of a name.

    Args:
        name: any but blackbox and channel.
        records: m.
        subset: of subset selection, which needs it.
        line: on which the records lie, for noise.

    Raises:
        MalformedError: another name, or subset selection without a subset's size.
    """
    from ragaudit.lab.risk.known_mechanisms import (  # noqa: PLC0415
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
            return NoiseMechanism("laplace", line.positions(records), line.eta)
        case MechanismName.GAUSSIAN:
            return NoiseMechanism("gaussian", line.positions(records), line.eta)
        case _:
            raise MalformedError(
                f"{name.value} has no formula", where="--mechanism", expected="grr, oue, ss, ..."
            )


@contextmanager
def named(options: Mapping[str, str]) -> Iterator[None]:
    """Let an error about an argument of the library name the option that it came from.

    Args:
        options: what the user calls it, by the library's name.
    """
    try:
        yield
    except MalformedError as error:
        error.where = options.get(error.where, error.where)
        raise


def by_option(command: Callable[P, None], **others: str) -> Callable[P, None]:
    """Return a command whose errors name its options.

    Args:
        command: whose parameters are named as its options are.
        others: what the user calls further arguments of the library, by their names.
    """
    options = {name: f"--{name.replace('_', '-')}" for name in signature(command).parameters}

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with named({**options, **others}):
            command(*args, **kwargs)

    return run


def claimed(
    epsilon: float | None, delta: float | None, mu: float | None, relation: NeighboringRelation
) -> "ApproximateDp | GaussianDp":
    """Return the guarantee of --epsilon (and --delta) or --mu.

    Args:
        epsilon, mu: exactly one of them is given.
        delta: 0 if it is not given.
        relation: under which the guarantee holds.

    Raises:
        MalformedError: both, neither, or delta together with mu.
    """
    from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp  # noqa: PLC0415

    if (epsilon is None) == (mu is None):
        raise MalformedError(
            "no guarantee, or two", where="--epsilon", expected="--epsilon or --mu"
        )
    if epsilon is not None:
        return ApproximateDp.of(epsilon, 0 if delta is None else delta, relation)
    if delta is not None:
        raise MalformedError("delta together with mu", where="--delta", expected="--epsilon")
    return GaussianDp.of(mu if mu is not None else 0.0, relation)


_BLACKBOX = (MechanismName.BLACKBOX,)
_NOISE = (MechanismName.LAPLACE, MechanismName.GAUSSIAN)
_LOCAL = (MechanismName.GRR, MechanismName.OUE, MechanismName.SS)

_MECHANISMS: Final[dict[str, tuple[MechanismName, ...]]] = {
    "--epsilon": (*_LOCAL, MechanismName.LAPLACE, *_BLACKBOX),
    "--mu": (MechanismName.GAUSSIAN, *_BLACKBOX),
    "--delta": _BLACKBOX,
    "--relation": _BLACKBOX,
    "--subset": (MechanismName.SS,),
    "--channel": (MechanismName.CHANNEL,),
    "--span": _NOISE,
}
"""The mechanisms that an option is for; an option that is not here is for all. --span is for all
too if --eta is given."""

_COMPANIONS: Final[dict[str, str]] = {
    "--trials": "--successes",
    "--seed": "--runs",
    "--claim-delta": "--claim-epsilon",
    "--claim-relation": "--claim-epsilon",
    "--verdict-key": "--verdict",
    "--span": "--eta",
}
"""Options that say nothing without another one."""


def check_mechanism(mechanism: MechanismName, given: dict[str, object]) -> None:
    """Refuse an option that is not the mechanism's.

    Args:
        given: options by name; None: not given.

    Raises:
        MalformedError: named after the option.
    """
    free = {"--span"} if given.get("--eta") is not None else set()
    for option, value in given.items():
        mechanisms = _MECHANISMS.get(option, tuple(MechanismName))
        if value is not None and mechanism not in mechanisms and option not in free:
            raise MalformedError(
                f"not an option of {mechanism.value}", where=option,
                expected=f"--mechanism {' or '.join(mechanisms)}",
            )  # fmt: skip


def check_companions(given: dict[str, object]) -> None:
    """Refuse an option without the one that it belongs to.

    Args:
        given: options by name; None: not given.

    Raises:
        MalformedError: named after the option.
    """
    for option, companion in _COMPANIONS.items():
        if given.get(option) is not None and given.get(companion) is None:
            raise MalformedError("says nothing alone", where=option, expected=f"with {companion}")
