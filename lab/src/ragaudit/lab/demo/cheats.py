"""The cheating providers of `lab.attacks`, as far as the demonstration uses them."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.encoding.errors import UnsupportedError

__all__ = ["Cheat", "cheats", "find"]


@dataclass(frozen=True)
class Cheat:
    """One cheat.

    Attributes:
        checks: ids of the checks that catch it.
        result: FAIL, or REFUSED before the window.
        disputes: whether the accounts dispute what they reject; then no check sees those records
            in the sample.
        components: makes the prover's cheating parts; None if no running service can stage it
            with ordinary accounts, so that it is staged in this process instead.
    """

    name: str
    family: str
    description: str
    checks: Sequence[str]
    result: str
    disputes: bool
    components: Callable[[Any], Any] | None

    def stage(self) -> Any:
        """Stage it in this process on a small window and return the outcome of the procedure."""
        return importlib.import_module("ragaudit.lab.attacks.running").run(self.name)


def cheats() -> list[Cheat]:
    """Return all cheats that end in a verdict, in the order of their families.

    Raises:
        UnsupportedError: the attacks are not installed.
    """
    try:
        catalogue = importlib.import_module("ragaudit.lab.attacks.catalogue").CATALOGUE
        ordinary = importlib.import_module("ragaudit.lab.scenario.scenario").Scenario
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "the cheating providers are not installed", expected="the distribution ragaudit-lab"
        ) from error
    return [
        Cheat(
            each.name,
            each.family,
            each.description,
            each.checks,
            each.result,
            getattr(each, "disputes", False),
            # Some need accounts that misbehave with the provider, or evidence made by hand.
            each.components if getattr(each, "scenario", None) is ordinary else None,
        )
        for each in catalogue
        if each.checks
    ]


def find(name: str) -> Cheat:
    """Return the cheat of a name.

    Args:
        name: of the catalogue.

    Raises:
        UnsupportedError: there is none that ends in a verdict.
    """
    for each in cheats():
        if each.name == name:
            return each
    raise UnsupportedError(
        f"no cheating provider {name!r}", where="--cheat", expected="see --cheat list"
    )
