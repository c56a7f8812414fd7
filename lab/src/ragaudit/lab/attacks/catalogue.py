"""Every way to cheat that is known here, staged in this process."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.cheat import (
    ENROLLED,
    FAMILIES,
    Attempt,
    Cheat,
    ConstructedCheat,
    Guard,
    Intrusion,
    ServiceCheat,
)
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
from ragaudit.lab.scenario.scenario import Conclusion, Prepared
from ragaudit.lab.scenario.window import Window
from ragaudit.prover.service import Components
from ragaudit.verifier.engines import fastest_engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS, Outcome
from ragaudit.verifier.procedure import run as run_procedure

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


@dataclass(frozen=True)
class Staged:
    """A cheat that was staged.

    Attributes:
        outcome: of the procedure; of the checks before the window if it was refused.
        complaints: what client libraries and the prover itself said; none without services.
    """

    cheat: Cheat
    outcome: Outcome
    complaints: tuple[str, ...]
    _again: "Conclusion | _Evidence" = field(repr=False)

    @property
    def caught(self) -> bool:
        """Whether exactly the named checks failed, one of them for the named reason."""
        cheat, outcome = self.cheat, self.outcome
        named = cheat.named(outcome)
        said = [text for check in named for text in (check.reason, *check.evidence)]
        return (
            outcome.result == cheat.result
            and tuple(check.id for check in named) == cheat.checks
            and any(cheat.reason in text for text in said)
        )

    def without(self, checks: Sequence[str]) -> Outcome:
        """Judge the same evidence without some checks.

        A refused window has no evidence beyond its opening: the result is None if nothing is left
        to refuse. `stage` with ``without`` goes on from there.

        Args:
            checks: ids (docs/spec/09-audit.md) of the checks to leave out.
        """
        return self._again.without(checks)


def run(name: str) -> Outcome:
    """Stage the cheat called ``name`` in this process and return what the verifier concludes.

    Args:
        name: of the catalogue.

    Raises:
        UnsupportedError: there is no such cheat, or it is an intrusion.
    """
    with tempfile.TemporaryDirectory(prefix="ragaudit-attack-") as folder:
        return stage(find(name), Path(folder)).outcome


def stage(
    cheat: Cheat,
    folder: Path,
    *,
    prepared: Prepared | None = None,
    without: Sequence[str] = (),
) -> Staged:
    """Stage a cheat.

    Args:
        folder: where services keep what they keep.
        prepared: an honest window to go on from, for cheats that begin with the queries in a
            window of its kind; others begin one of their own.
        without: checks that the verifier does not make, before the window either.
    """
    if isinstance(cheat, ServiceCheat):
        other = prepared is None or prepared.offer is not cheat.scenario.offer
        conclusion = cheat.scenario(
            folder,
            cheat.components(Components()),
            prepared=None if other or cheat.from_the_start else prepared,
            disputes=cheat.disputes,
            without=without,
        ).run()
        return Staged(cheat, conclusion.outcome, conclusion.complaints, conclusion)
    if not isinstance(cheat, ConstructedCheat):
        raise UnsupportedError(f"staging {cheat.staging}", where=cheat.name)
    again = _Evidence(cheat.window())
    return Staged(cheat, again.without(without), (), again)


def intrude(
    cheat: Intrusion, folder: Path, *, prepared: Prepared | None = None, guarded: bool = True
) -> Attempt:
    """Stage an intrusion.

    Args:
        folder: where services keep what they keep.
        prepared: an honest window to go on from; it is not changed.
        guarded: whether the verifier has the guards that repel it.
    """
    scenario = cheat.scenario(folder, Components(), prepared=prepared)
    with _without(() if guarded else cheat.guards):
        return scenario.attempt()


@contextmanager
def _without(guards: Sequence[Guard]) -> Iterator[None]:
    """Take functions away from the verifier of this process."""
    # Restored whatever happens: other cheats are staged in this process afterwards.
    there = [(each, getattr(each.owner, each.name)) for each in guards]
    try:
        for guard, _ in there:
            setattr(guard.owner, guard.name, guard.without)
        yield
    finally:
        for guard, function in there:
            setattr(guard.owner, guard.name, function)


class _Evidence:
    """The evidence of a constructed window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._evidence = Evidence.of(window.items())

    def without(self, checks: Sequence[str]) -> Outcome:
        return run_procedure(
            self._evidence,
            engine=fastest_engine(),
            checks=tuple(each for each in CHECKS if each.id not in checks),
            pins=self._window.pins,
            embedder=self._window.embedder,
            generator=self._window.generator,
        )
