"""Windows without noise: rows that answers withhold, and what records count of them."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.cheats.integrity import EASY, Disputed
from ragaudit.lab.scenario.accounts import TenantIndex
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.verifier.terms import Terms


class CountsNothingWithheld(Disputed):
    """A record counts no withheld row, and the receipt of its account names one.

    Check 15 (`disputes`): V adds up what records count; what receipts name the account compares.
    """

    def counted(self, withheld: int) -> int | None:
        return 0


class CountsTooMuchWithheld(IntegrityWindow):
    """A record counts more withheld rows than were asked for.

    Check 10 (`containment`): a count beyond K would spoil every sum.
    """

    def counted(self, withheld: int) -> int | None:
        return super().counted(withheld if self.asked else 4)


class CountsWithheldNowhere(IntegrityWindow):
    """Records do not say how many rows are withheld, as in a window with noise.

    Check 10 (`containment`): without noise each record counts.
    """

    def counted(self, withheld: int) -> int | None:
        return None


class WithholdsTheBest(IntegrityWindow):
    """The best row of every answer is said to be gone.

    Nobody but the provider sees the store, so the selection is right and each record counts what it
    withholds. Check 10 (`containment`) holds their share against the verifier's terms.
    """

    def missing(self, index: TenantIndex, first: Sequence[int]) -> set[int]:
        return {first[0]}


HALF_WITHHELD: Final = Terms.of({**SMALL_TERMS.to_json(), "most_withheld_share": "0.5"})

counted = partial(ConstructedCheat, family="INTEGRITY", why=EASY, checks=("containment",))

CHEATS: Final = (
    ConstructedCheat(
        name="withheld-row-not-counted", family="INTEGRITY",
        description="Logs that an answer withholds nothing, and leaves out a row.",
        why=EASY, window=partial(CountsNothingWithheld, about=4, step=7),
        checks=("disputes",), reason="step 7",
    ),
    counted(
        name="more-withheld-than-asked",
        description="Logs that an answer of three rows withholds four.",
        window=CountsTooMuchWithheld, reason="counts 4 withheld rows of 3",
    ),
    counted(
        name="withheld-rows-not-counted-at-all",
        description="Logs records that do not say how many rows are withheld.",
        window=CountsWithheldNowhere, reason="counts no withheld rows of",
    ),
    counted(
        name="best-row-withheld",
        description="Says of the best row of every answer that it is gone.",
        window=partial(WithholdsTheBest, terms=HALF_WITHHELD),
        reason="withhold rows, and the verifier's terms allow a share of 1/2",
    ),
)  # fmt: skip
