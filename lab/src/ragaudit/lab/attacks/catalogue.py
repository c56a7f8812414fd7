"""Every way to cheat that is known here."""

from typing import Final

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.cheat import FAMILIES, Cheat
from ragaudit.lab.attacks.constructed import disputes as constructed_disputes
from ragaudit.lab.attacks.constructed import indexes, proofs, times
from ragaudit.lab.attacks.constructed import log as constructed_log
from ragaudit.lab.attacks.service import (
    answers,
    audit,
    claims,
    disputes,
    intrusions,
    log,
    opening,
    promises,
    reveals,
    terms,
)

CATALOGUE: Final[tuple[Cheat, ...]] = tuple(
    sorted(
        (
            *opening.CHEATS, *log.CHEATS, *promises.CHEATS, *claims.CHEATS, *reveals.CHEATS,
            *answers.CHEATS, *audit.CHEATS, *disputes.CHEATS, *terms.CHEATS,
            *constructed_log.CHEATS, *indexes.CHEATS, *times.CHEATS, *proofs.CHEATS,
            *constructed_disputes.CHEATS, *intrusions.CHEATS,
        ),
        key=lambda each: FAMILIES.index(each.family),
    )
)  # fmt: skip
"""In the order of the families."""


def find(name: str) -> Cheat:
    """The cheat called ``name``.

    Raises:
        UnsupportedError: there is none.
    """
    for each in CATALOGUE:
        if each.name == name:
            return each
    raise UnsupportedError(f"no cheat {name!r}", expected="a name of `ragaudit attack list`")
