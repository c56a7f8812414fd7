"""Checks budget and charges: documents that pay too often, or not at all."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry
from ragaudit.circuits.selection import scores
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.generating import Charged, GeneratingWindow
from ragaudit.lab.scenario.integrity import LEFT_SHELF
from ragaudit.lab.scenario.opening import Account, Event
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.ledger.messages.entries import Charge
from ragaudit.verifier.reference.ristretto import add, decode, encode, negate
from ragaudit.verifier.terms import Terms


def _sum(*points: bytes) -> bytes:
    first, *others = map(decode, points)
    for other in others:
        first = add(first, other)
    return encode(first)


HALF_VOID: Final = Terms.of({**SMALL_TERMS.to_json(), "most_void_share": "0.5"})
_NO_ARGUMENT: Final = "tenant acme: "

constructed = partial(
    ConstructedCheat,
    family="GENERATION",
    why="nothing stops a service; evidence made without one shows it in seconds",
    slow=True,
)


@constructed("exhausted-documents-charged", checks=("budget",), reason=_NO_ARGUMENT, slow=False)
class ChargesExhaustedRows(GeneratingWindow):
    """Charges documents whose budgets are used up, and reads them again.

    Check 26 (`budget`) has a proof that no row is charged more than M times.
    """

    def live(self, tenant: str) -> frozenset[int]:
        return frozenset(range(self.rows))

    def budget_statement(self, tenant: str) -> BudgetStatement:
        # What can be proven: that no row is charged more than M + 1 times.
        return replace(super().budget_statement(tenant), uses=self.uses + 1)


@constructed("budget-given-back", checks=("budget",), reason=_NO_ARGUMENT)
class GivesBudgetBack(GeneratingWindow):
    """Charges -1, so that a document can pay once more later.

    The second charge does so.

    Check 26 (`budget`): charges are bits.
    """

    def commit_charge(self, positions: Sequence[int], blinding: bytes) -> bytes:
        honest = super().commit_charge(positions, blinding)
        if len(self.charged) != 1:
            return honest
        taken = core.commit_selection(list(positions)[:1], bytes(32))
        back = encode(negate(decode(taken)))
        return _sum(honest, back, back)


@constructed("charged-twice-at-once", checks=("budget",), reason=_NO_ARGUMENT)
class ChargesTwiceAtOnce(GeneratingWindow):
    """Takes two uses of a document for one question.

    It is the second charge, and it drains the row.

    Check 26 (`budget`): charges are bits, even where the sum is allowed.
    """

    uses = 3
    epsilons = ("6", "3")

    def commit_charge(self, positions: Sequence[int], blinding: bytes) -> bytes:
        honest = super().commit_charge(positions, blinding)
        if len(self.charged) != 1:
            return honest
        return _sum(honest, core.commit_selection(list(positions)[:1], bytes(32)))


@constructed("budgets-of-a-subset", checks=("budget",), reason=_NO_ARGUMENT)
class ProvesASubset(GeneratingWindow):
    """Proves the budgets over all charge entries but the last.

    Check 26 (`budget`) takes the entries from the log.
    """

    def budget_statement(self, tenant: str) -> BudgetStatement:
        found = super().budget_statement(tenant)
        return replace(found, charges=found.charges[:-32]) if tenant == "acme" else found

    def prove_budget(self, tenant: str) -> bytes:
        if tenant != "acme":
            return super().prove_budget(tenant)
        entries = self.history(tenant)[:-1]
        blindings = np.frombuffer(b"".join(one.blinding for one in entries), dtype=np.uint8)
        return core.prove_budget(
            self.budget_statement(tenant),
            [one.positions for one in entries],
            blindings.reshape(len(entries), 32),
        )


@constructed("relevant-document-uncharged", checks=("charges",), reason="charge entry")
class LeavesARowOut(GeneratingWindow):
    """Leaves a relevant document out of a charge, to save its budget.

    That document then answers longer than others.

    Check 27 (`charges`) has a proof that every live row above the threshold is charged.
    """

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        due = super().due_rows(tenant, embedding, allowed)
        return due[1:] if not self.charged else due


@constructed("charged-at-the-threshold", checks=("charges",), reason="charge entry")
class ChargesAtTheThreshold(GeneratingWindow):
    """Charges a document whose score is the threshold, not above it.

    Check 27 (`charges`).
    """

    def __post_init__(self) -> None:
        question = self.model_vector("treatment of bazeli ?")
        rows = np.array([self.model_vector(text) for text in self.texts("acme")])
        exact = sorted(int(score) for score in scores(rows.astype(np.int8), question))
        self.threshold = exact[3 * len(exact) // 4]
        super().__post_init__()

    def model_vector(self, text: str) -> npt.NDArray[np.int16]:
        """Return e of a text, as the window's embedder gives it."""
        from ragaudit.lab.scenario.embedder import HashEmbedder  # noqa: PLC0415

        return HashEmbedder(self.dimension).installed().embed(text).astype(np.int16)

    def is_relevant(self, score: int) -> bool:
        return score >= self.threshold


@constructed("disallowed-documents-charged", checks=("charges",), reason="charge entry")
class ChargesDisallowedRows(GeneratingWindow):
    """Charges documents that do not pass the question's filter.

    Check 27 (`charges`): the filter is what was asked.
    """

    def script(self) -> list[Event]:
        events = super().script()
        asked = events.index(("charge", "alice", "treatment of bazeli ?", 1))
        events[asked] = (*events[asked], LEFT_SHELF)
        return events

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        return super().due_rows(tenant, embedding, None)


@constructed("threshold-moved", checks=("charges",), reason="threshold 1100")
class MovesTheThreshold(GeneratingWindow):
    """Lowers the threshold for one question.

    It is the second question, whose author then picks the rows.

    Check 27 (`charges`): the threshold is the policy's for every question.
    """

    def due_rows(
        self, tenant: str, embedding: npt.NDArray[np.int16], allowed: Sequence[int] | None
    ) -> tuple[int, ...]:
        exact = scores(self.indices[tenant].vectors, embedding)
        live, lowered = self.live(tenant), self.lowered
        return tuple(i for i in range(self.rows) if i in live and exact[i] > lowered)

    @property
    def lowered(self) -> int:
        """The threshold of the next charge entry."""
        return self.threshold - 400 * (len(self.charged) == 1)

    def alter_charge(self, account: Account, charge: Charge) -> Charge:
        return replace(charge, threshold=self.lowered)


@constructed("charges-out-of-order", checks=("charges",), reason="number 1 of its tenant")
class NumbersOutOfOrder(GeneratingWindow):
    """Numbers charge entries in another order than the log's.

    The first two charge entries of a tenant have each other's number.

    Check 27 (`charges`): the order of the log is the order of the charges.
    """

    def alter_charge(self, account: Account, charge: Charge) -> Charge:
        swapped = charge.tenant == "acme" and charge.number < 2
        return replace(charge, number=1 - charge.number) if swapped else charge


@constructed(
    "charge-dated-back", checks=("charges",), reason="earlier than the account's record before it"
)
class DatesAChargeBack(GeneratingWindow):
    """Dates a charge before the account's record that precedes it in the log.

    Check 27 (`charges`).
    """

    def script(self) -> list[Event]:
        last = ("charge", "alice", "treatment of bazeli ?", 13)
        asked = ("query", "alice", "another question of alice", 3, 14)
        return [
            event
            for each in super().script()
            for event in ((asked, last) if each == last else (each,))
        ]


@constructed(
    "charge-dated-before-a-void",
    checks=("charges",),
    reason="earlier than the account's void before it",
)
class DatesAChargeBeforeAVoid(GeneratingWindow):
    """Dates a charge before the void of the account's last one.

    Check 27 (`charges`): the account is plain, and no nonce orders its questions.
    """

    def script(self) -> list[Event]:
        last = ("void", 2, 15)
        asked = ("charge", "carol", "treatment of bazeli ?", 14)
        return [
            event
            for each in super().script()
            for event in ((last, asked, ("void", 4, 17)) if each == last else (each,))
        ]


@constructed(
    "answers-voided-at-will",
    checks=("answers",),
    given={"terms": HALF_VOID},
    reason="1 of 1 charges of tenant beta are void",
)
class VoidsWhatItLikes(GeneratingWindow):
    """Voids all charges of a tenant whose answers it would rather not give.

    Plain accounts ask, and the provider voids a charge when it sees the answer.

    Check 28 (`answers`) holds the share of such charges against the verifier's terms.
    """


@constructed("charge-argument-of-another-entry", checks=("charges",), reason="charge entry")
class ProvesAnotherEntry(GeneratingWindow):
    """Shows the charge argument of another entry.

    The second entry comes with the argument of the first.

    Check 27 (`charges`): an argument is bound to its entry.
    """

    group = 1

    def prove_charges(self, tenant: str, group: Sequence[int]) -> bytes:
        return super().prove_charges(tenant, [0] if list(group) == [1] else group)


@constructed("earlier-charge-skipped", checks=("charges",), reason="charge entry")
class SkipsAnEntry(GeneratingWindow):
    """Leaves an earlier entry out of what was charged before.

    So a row seems to have a use left at the last entry.

    Check 27 (`charges`): V sums all entries before one by itself.
    """

    group = 1

    def stated_charge(self, asked: Charged, before: bytes) -> ChargeEntry:
        found = super().stated_charge(asked, before)
        entries = self.history(asked.charge.tenant)
        if asked is not entries[-1] or len(entries) < 3:
            return found
        first = entries[0].charge.charge
        assert first is not None
        return replace(found, charged_before=first)


@constructed("coins-of-another-key", checks=("charges",), reason="charge entry")
class OpensAnotherKey(GeneratingWindow):
    """Draws the coins of an answer from a key that was not committed to.

    The key of the first answer is made up afterwards.

    Check 27 (`charges`): keys were committed to before the window.
    """

    def open_charge_key(self, asked: Charged) -> Any:
        opening = super().open_charge_key(asked)
        return replace(opening, key=bytes(32)) if asked is self.charged[0] else opening

    def record_key(self, asked: Charged) -> bytes:
        return bytes(32) if asked is self.charged[0] else super().record_key(asked)
