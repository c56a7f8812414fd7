"""Check coalition: a coalition that is larger than the provider says."""

from functools import partial
from typing import Any

from ragaudit.lab.attacks.cheat import ONE_CLOCK, ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.integrity import PrivateWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.policy_terms import DIRECTION
from ragaudit.privacy import coalition
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.window.open_window import OpenWindow

understated = partial(ConstructedCheat, family="COALITION", checks=("coalition",))


@ServiceCheat(
    "coalition-understated",
    "COALITION",
    ("coalition",),
    reason="the provider claims 1 accounts, the sketches give 2",
)
class UnderstatesTheCoalition(Closing):
    """Claims a smaller coalition than the sketches show.

    Claims that nobody acts together.

    Check 20 (`coalition`) recomputes k_hat from the sketches.
    """

    def coalition_claim(self, live: OpenWindow, logged: Any) -> int:
        return max(1, super().coalition_claim(live, logged) - 1)


@understated(
    "coalition-pulled-apart-in-time",
    why=ONE_CLOCK,
    reason="the provider claims 1 accounts, the sketches give 2",
)
class PullsApart(Window):
    """Dates the records of accounts that act together so that they are not linked.

    carol and dora ask the same within a second; dora's record is dated 20 s later.

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


@understated(
    "coalition-by-another-estimate",
    why="the service claims by the estimate of its policy",
    reason="the provider claims 1 accounts, the sketches give 2",
)
class Staggers(PrivateWindow):
    """Claims what another estimate than the policy's gives of a staggered plan.

    carol and dora ask the same three times each, one after the other, under 7.5.

    Check 20 (`coalition`) reads no times there: the provider's claim is what 7.2 gives.
    """

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "coalition_estimate": DIRECTION}

    def script(self) -> list[Event]:
        return [
            ("register", "carol", "beta", False, -25),
            ("register", "dora", "beta", False, -24),
            ("checkpoint", -20),
            *(("query", "carol", "what both ask", 2, at) for at in (5, 6, 7)),
            ("checkpoint", 8),
            *(("query", "dora", "what both ask", 2, at) for at in (60, 61, 62)),
            ("checkpoint", 63),
        ]

    def estimate(self) -> int:
        """Return k_hat by the estimate that the policy does not name."""
        records = [
            coalition.Record(each.record.pseudonym, each.record.time, each.openings.sketch)
            for each in self.asked
        ]
        threshold = self.policy.estimator.hamming_threshold
        return coalition.estimate(records, tau=self.policy.link_time, threshold=threshold).k_hat
