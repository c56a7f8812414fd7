"""Every way to cheat that is known here."""

from typing import Final

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.cheat import FAMILIES, Cheat
from ragaudit.lab.attacks.cheats import (
    accounts,
    beacon,
    coalition,
    cosigners,
    disputes,
    documents,
    embedding,
    epochs,
    exact_service,
    generation,
    generation_anchored,
    generation_answers,
    generation_keywords,
    generation_receipts,
    generation_sums,
    index,
    intake,
    integrity,
    intrusions,
    log,
    norms,
    null_rows,
    overlaps,
    policy,
    promises,
    proofs,
    registrations,
    rows,
    sampling,
    schedule,
    seed,
    selection,
    time_stamps,
    version_service,
    versions,
    withheld,
)

_MODULES = (
    policy, overlaps, index, seed, log, registrations, schedule, promises, intake, disputes,
    sampling, embedding, selection, integrity, withheld, norms, exact_service, accounts,
    documents, rows, cosigners, time_stamps, beacon, versions, epochs, version_service, null_rows,
    proofs, coalition, generation, generation_anchored, generation_answers, generation_receipts,
    generation_keywords, generation_sums, intrusions,
)  # fmt: skip

CATALOGUE: Final[tuple[Cheat, ...]] = tuple(
    sorted(
        (cheat for module in _MODULES for cheat in module.CHEATS),
        key=lambda cheat: FAMILIES.index(cheat.family),
    )
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
