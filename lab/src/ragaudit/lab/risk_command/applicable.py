"""Which options go together: what does not apply is refused by its name, never ignored."""

from typing import Final

from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.risk_command.options import MechanismName

__all__ = ["check_companions", "check_mechanism"]

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
