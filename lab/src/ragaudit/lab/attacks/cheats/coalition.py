"""Check coalition: a coalition that is larger than the provider says."""

from typing import Any, Final

from ragaudit.lab.attacks.cheat import ONE_CLOCK, ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.privacy import coalition
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.window.open_window import OpenWindow


class UnderstatesTheCoalition(Closing):
    """Claims that nobody acts together.

    Check 20 (`coalition`) recomputes k_hat from the sketches.
    """

    def coalition_claim(self, live: OpenWindow, logged: Any) -> int:
        return max(1, super().coalition_claim(live, logged) - 1)


class PullsApart(Window):
    """carol and dora ask the same within a second; dora's record is dated 20 s later.

    Check 20 (`coalition`) joins records that what check 9 accepts as dating could have pulled apart
    (docs/spec/07-coalition.md §7.2), so it still counts two.
    """

    def script(self) -> list[Event]:
        at = 90
        return [
            *super().script(),
            ("query", "carol", "what both ask", 2, at),
            ("checkpoint", at + 1),
            ("query", "dora", "what both ask", 2, at + 20),
            ("checkpoint", at + 21),
        ]

    def estimate(self) -> int:
        """Return k_hat as if times were exact: no skew, delay or life in tau."""
        records = [
            coalition.Record(each.record.pseudonym, each.record.time, each.openings.sketch)
            for each in self.asked
        ]
        terms = self.policy.estimator
        return coalition.estimate(
            records, tau=1000 * terms.tau_seconds, threshold=terms.hamming_threshold
        ).k_hat


CHEATS: Final = (
    ServiceCheat(
        name="coalition-understated", family="COALITION",
        description="Claims a smaller coalition than the sketches show.",
        parts={"closing": UnderstatesTheCoalition},
        checks=("coalition",), reason="the provider claims 1 accounts, the sketches give 2",
    ),
    ConstructedCheat(
        name="coalition-pulled-apart-in-time", family="COALITION",
        description="Dates the records of accounts that act together so that they are not linked.",
        why=ONE_CLOCK,
        window=PullsApart,
        checks=("coalition",), reason="the provider claims 1 accounts, the sketches give 2",
    ),
)  # fmt: skip
