"""Every way to cheat that is known here."""

from typing import Final

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.cheat import ENROLLED, FAMILIES, Cheat
from ragaudit.lab.attacks.cheats import (  # noqa: F401 - each enrols its own
    challenges,
    coalition,
    disputes,
    embedding,
    generation,
    generation_answers,
    generation_channels,
    generation_receipts,
    index,
    integrity,
    intrusions,
    log,
    owned,
    policy,
    promises,
    schedule,
    seed,
    selection,
    third_parties,
    versions,
)

CATALOGUE: Final[tuple[Cheat, ...]] = tuple(
    sorted(ENROLLED, key=lambda cheat: FAMILIES.index(cheat.family))
)
"""In the order of the families."""


def find(name: str) -> Cheat:
    """Return the cheat called ``name``.

    Raises:
        UnsupportedError: there is none.

    Args:
        name: as `ragaudit attack list` prints it.
    """
    for cheat in CATALOGUE:
        if cheat.name == name:
            return cheat
    raise UnsupportedError(f"no cheat {name!r}", expected="a name of `ragaudit attack list`")
