"""Windows without noise: answers that are not the best rows, and rows that are withheld."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores
from ragaudit.encoding.parameters import B
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.attacks.cheats.disputes import RewritesContent
from ragaudit.lab.attacks.cheats.embedding import OtherTenant
from ragaudit.lab.scenario.integrity import COPIED, LEFT_SHELF, IntegrityWindow
from ragaudit.lab.scenario.opening import Account, Asked, Event, TenantIndex
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.lab.scenario.scenario import ExactScenario
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.receipts import PrivateReceipt, ReceiptFile, WithdrawnRow
from ragaudit.ledger.messages.requests import (
    Answer,
    Openings,
    Request,
    float32_bytes,
    float32_values,
)
from ragaudit.ledger.messages.ties import TiesStatement
from ragaudit.prover.answering.mechanism import Embedding, Mechanism
from ragaudit.prover.answering.query import Logged
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.verifier.terms import Terms

# --- selections, answers and receipts ------------------------------------------------------------

Scores = npt.NDArray[np.int64]


_FAILS: Final = "selection argument does not hold"
selection = partial(ConstructedCheat, family="INTEGRITY", checks=("selection",), reason=_FAILS)
disputed = partial(ConstructedCheat, family="INTEGRITY", checks=("disputes",))


@selection("exact-from-another-tenants-index")
class AnswersFromAnotherTenant(IntegrityWindow):
    """Answers without noise from another tenant's index.

    bob of acme is answered from beta's index; his records say acme.

    Check 19 (`selection`) takes C_idx of the tenant that the account is registered in.
    """

    def searched(self, account: Account, record: Record) -> TenantIndex:
        if account.name == "bob" and record.version == 1:
            return self.indices["beta"]
        return super().searched(account, record)


@selection("better-row-left-out")
class LeavesOutTheBest(IntegrityWindow):
    """Leaves the nearest row out of the answers.

    One more row comes after the others.

    Check 19 (`selection`): T holds every row that is tied with the K-th or better.
    """

    def choose(self, exact: Scores, allowed: Sequence[int] | None, top_k: int) -> tuple[int, ...]:
        rows = range(len(exact)) if allowed is None else allowed
        best = max(rows, key=lambda i: int(exact[i]))
        return super().choose(exact, [i for i in rows if i != best], top_k)


@selection("approximate-search-sold-as-exact")
class SearchesApproximately(IntegrityWindow):
    """Walks a graph of rows instead of looking at each.

    It goes to nearer and nearer rows, as indexes for approximate search do.

    Check 19 (`selection`): what the walk does not meet is missing in T.
    """

    def choose(self, exact: Scores, allowed: Sequence[int] | None, top_k: int) -> tuple[int, ...]:
        rows = list(range(len(exact)) if allowed is None else allowed)
        met = {rows[0]}
        at, links = rows[0], 4
        while True:
            around = [rows[(rows.index(at) * links + n) % len(rows)] for n in range(1, links + 1)]
            met |= set(around)
            nearest = max(around, key=lambda i: int(exact[i]))
            if exact[nearest] <= exact[at]:
                return super().choose(exact, sorted(met), top_k)
            at = nearest


@selection("ties-left-out-of-the-selection")
class DropsTies(IntegrityWindow):
    """Selects as many of the tied rows as it serves.

    The tie is with the K-th row.

    Check 19 (`selection`) wants all of them in T, or the account could not tell that none was
    better.
    """

    def choose(self, exact: Scores, allowed: Sequence[int] | None, top_k: int) -> tuple[int, ...]:
        ties = super().choose(exact, allowed, top_k)
        return tuple(sorted(sorted(ties, key=lambda i: (-int(exact[i]), i))[:top_k]))


@selection("filter-applied-unasked")
class FiltersUnasked(IntegrityWindow):
    """Searches one shelf for an account that asked for all.

    It is the first question of alice.

    Check 19 (`selection`) is about all rows where the record's filter is the empty text.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        first = record.counter == 0 and record.slot == 0
        return super().allowed(record, LEFT_SHELF if first else wanted)


@selection("filter-not-applied")
class PassesFiltersOver(IntegrityWindow):
    """Logs filters and does not apply them.

    Check 19 (`selection`) is about the rows that pass the record's filter.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        return super().allowed(record, "")


@selection("filter-on-other-columns")
class FiltersOnOtherColumns(IntegrityWindow):
    """Applies filters to other columns than the index shows.

    One column has not the value that the index shows.

    Check 19 (`selection`): V evaluates the filter on the columns in the leaves.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        if not wanted:
            return super().allowed(record, wanted)
        # Every row changes its shelf: some filtered answer shows it.
        moved = [
            row and {**row, "shelf": "right" if row.get("shelf") == "left" else "left"}
            for row in self.column_rows(record)
        ]
        return Filter.parse(wanted, self.policy.retrieval.public_columns).allowed(moved)


@ConstructedCheat("vector-quantised-otherwise", "INTEGRITY", ("embedding",), reason="vector")
class TurnsVectors(IntegrityWindow):
    """Cuts the entries of the application's vector off instead of rounding them.

    Check 18 (`embedding`) quantises the opened vector again, and allows no difference.
    """

    def embed_request(self, request: Request) -> npt.NDArray[np.int16]:
        if not request.vector:
            return super().embed_request(request)
        vector = np.array(float32_values(request.vector), dtype=np.float32)
        # Cut off where the rule is to round: as near as one can be without being right.
        honest = super().embed_request(request).astype(np.float64)
        scale = np.linalg.norm(honest) / np.linalg.norm(vector)
        return np.trunc(scale * vector).astype(np.int16)


@ConstructedCheat(
    "record-that-no-log-has",
    "INTEGRITY",
    ("receipts",),
    why="the prover's service answers nothing before it is logged",
    reason="receipt",
)
class AnswersUnlogged(IntegrityWindow):
    """Signs a receipt for a record that it does not log.

    It is the record of bob's last question.

    Check 13 (`receipts`): what the provider signed stands at its index.
    """

    def log_record(self, asked: Asked) -> None:
        if not (asked.account.name == "bob" and asked.record.counter == 2):
            super().log_record(asked)
            return
        self.unlogged = replace(asked, index=len(self.entries), salt=self.draw())

    def receipts(self) -> list[dict[str, Any]]:
        public = self.receipt_file(self.unlogged).public
        return [*super().receipts(), public.to_json()]


@dataclass
class Disputed(IntegrityWindow):
    """One answer is not what the record commits to; its account shows the file to the verifier.

    Attributes:
        about: number of the query in the window.
        step: of a receipt's check that fails (docs/spec/05-records.md §5.9).
    """

    about: int = 0
    step: int = 7

    def is_about(self, asked: Asked) -> bool:
        """Return whether this is the answer that is not right."""
        return asked.index == self.asked[self.about].index

    def receipt_file(self, asked: Asked) -> ReceiptFile:
        # Another salt_r would make it a second receipt of one record, which is check 13's.
        if asked.index not in self._files:
            self._files[asked.index] = super().receipt_file(asked)
        return self._files[asked.index]

    @cached_property
    def _files(self) -> dict[int, ReceiptFile]:
        return {}

    @property
    def shown(self) -> dict[str, Any]:
        """The receipt file that the account was given."""
        return self.receipt_file(self.asked[self.about]).to_json()

    def disputes(self) -> list[dict[str, Any]]:
        asked = self.asked[self.about]
        return [self.dispute(asked, self.shown, file=self.shown, step=self.step)]

    def judged(self) -> list[dict[str, Any]]:
        return [{**self.shown["public"], "proof": None}]


@disputed("score-misstated", given={"step": 8}, reason="step 8")
class MisstatesAScore(Disputed):
    """States a better score than the row has.

    The best score of an answer is one too high.

    Check 15 (`disputes`): the account computes scores from the rows that it was served.
    """

    def answered(self, asked: Asked, private: PrivateReceipt) -> Answer:
        best, *others = super().answered(asked, private).documents
        assert best.score is not None
        better = best.score + 1 if self.is_about(asked) else best.score
        return Answer((replace(best, score=better), *others))


@disputed("changed-text-served", given={"step": 8}, reason="step 8")
class ServesChangedText(Disputed):
    """Serves the text that a document has now instead of the committed one.

    Check 15 (`disputes`): the content's digest is in the row's leaf; such a row is withdrawn.
    """

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.is_about(asked):
            return private
        first, *others = private.rows
        return replace(private, rows=(replace(first, content="as it is now"), *others))


@disputed("columns-not-the-leafs", given={"step": 8}, reason="step 8")
class ServesOtherColumns(Disputed):
    """Serves a row with another value in a public column.

    Check 15 (`disputes`): columns are part of the leaf.
    """

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.is_about(asked):
            return private
        first, *others = private.rows
        columns = canonical_text({"shelf": "left", "year": 1999})
        return replace(private, rows=(replace(first, columns=columns), *others))


@disputed("withdrawn-row-served", given={"step": 7}, reason="step 7")
class CallsAServedRowWithdrawn(Disputed):
    """Serves a row that it says it withdrew.

    Check 15 (`disputes`): the served rows and the withdrawn ones are the first K of T, each once.
    """

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.is_about(asked):
            return private
        first = private.rows[0]
        return replace(private, withdrawn=(WithdrawnRow(first.position, first.id),))


@disputed("filter-in-the-accounts-name", given={"step": 5}, reason="step 5")
class FiltersInTheAccountsName(Disputed):
    """Commits to a filter that the account did not ask with, and applies it.

    Check 15 (`disputes`): the opened filter is not the request's. V cannot see it by itself.
    """

    def open_request(self, account: Account, request: Request) -> Openings:
        openings = super().open_request(account, request)
        return replace(openings, filter=LEFT_SHELF) if not self.asked else openings


@disputed("best-row-kept-back", given={"step": 8}, reason="step 8")
class KeepsTheBestBack(Disputed):
    """Serves two tied rows of T and keeps back the row that is nearer.

    The two are copies of one text.

    T is right, so check 19 passes. Check 15 (`disputes`): the account sees that its rows have the
    same score, and that not all rows of T that it was not served have it too.
    """

    def script(self) -> list[Event]:
        return [
            ("between", *event[1:]) if event[:2] == ("query", "alice") else event
            for event in super().script()
        ]

    def between(self, name: str, _: str, __: int, time: int) -> Asked:
        """Ask with a vector that is nearest to document 5, then to the copies."""
        texts = self.texts("acme")
        nearest, copy = self.model.embed([texts[5], texts[COPIED[0]]]).astype(np.float64)
        vector = 1.2 * nearest / np.linalg.norm(nearest) + copy / np.linalg.norm(copy)
        asked = self.ask(name, float32_bytes(vector.tolist()), 2, time)
        exact = scores(self.index_of(asked).vectors, asked.embedding)
        ranked = sorted(asked.selected, key=lambda i: (-int(exact[i]), i))
        assert ranked == [5, *COPIED], "the copies come second"
        return asked

    def serve(
        self, account: Account, request: Request, openings: Openings, record: Record
    ) -> Asked:
        asked = super().serve(account, request, openings, record)
        return replace(asked, served=COPIED[:2]) if not self.asked else asked

    def prove_ties(self, asked: Asked, statement: TiesStatement) -> bytes:
        if 5 in asked.served or 5 not in asked.selected:
            return super().prove_ties(asked, statement)
        # Of the answer that would have been right: the core proves nothing of the false one.
        right = self.ties(replace(asked, served=(5, COPIED[0])))
        assert right is not None
        return right.proof


# --- withheld rows -------------------------------------------------------------------------------

HALF_WITHHELD: Final = Terms.of({**SMALL_TERMS.to_json(), "most_withheld_share": "0.5"})
counted = partial(ConstructedCheat, family="INTEGRITY", checks=("containment",))


@ConstructedCheat(
    "withheld-row-not-counted",
    "INTEGRITY",
    ("disputes",),
    given={"about": 4, "step": 7},
    reason="step 7",
)
class CountsNothingWithheld(Disputed):
    """Logs that an answer withholds nothing, and leaves out a row.

    The receipt of its account names that row.

    Check 15 (`disputes`): V adds up what records count; what receipts name the account compares.
    """

    def counted(self, withheld: int) -> int | None:
        return 0


@counted("more-withheld-than-asked", reason="counts 4 withheld rows of 3")
class CountsTooMuchWithheld(IntegrityWindow):
    """Logs that an answer of three rows withholds four.

    Check 10 (`containment`): a count beyond K would spoil every sum.
    """

    def counted(self, withheld: int) -> int | None:
        return super().counted(withheld if self.asked else 4)


@counted("withheld-rows-not-counted-at-all", reason="counts no withheld rows of")
class CountsWithheldNowhere(IntegrityWindow):
    """Logs records that do not say how many rows are withheld.

    Records of a window with noise do not say it either.

    Check 10 (`containment`): without noise each record counts.
    """

    def counted(self, withheld: int) -> int | None:
        return None


@counted(
    "best-row-withheld",
    given={"terms": HALF_WITHHELD},
    reason="withhold rows, and the verifier's terms allow a share of 1/2",
)
class WithholdsTheBest(IntegrityWindow):
    """Says of the best row of every answer that it is gone.

    Nobody but the provider sees the store, so the selection is right and each record counts what it
    withholds. Check 10 (`containment`) holds their share against the verifier's terms.
    """

    def missing(self, index: TenantIndex, first: Sequence[int]) -> set[int]:
        return {first[0]}


# --- with all services ---------------------------------------------------------------------------


exact = partial(ServiceCheat, family="INTEGRITY", scenario=ExactScenario)


@exact("best-row-passed-over", checks=("selection",), reason="selection argument does not hold")
class PassesTheBestOver(Mechanism):
    """Never selects the nearest row, in a service without noise.

    Check 19 (`selection`): T holds every row that is tied with the K-th or better.
    """

    def select_exactly(
        self,
        index: CommittedIndex,
        embedding: Embedding,
        top_k: int,
        allowed: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        exact = self.scores(index, embedding)
        rows = range(len(exact)) if allowed is None else allowed
        best = max(rows, key=lambda i: int(exact[i]))
        return super().select_exactly(index, embedding, top_k, [i for i in rows if i != best])


@exact(
    "filters-ignored",
    checks=("selection",),
    reason="selection argument does not hold",
    complaint="does not pass the filter",
)
class IgnoresFilters(Mechanism):
    """Answers whoever filters from all rows.

    Check 19 (`selection`) is about the rows that pass the record's filter.
    """

    def select_exactly(
        self,
        index: CommittedIndex,
        embedding: Embedding,
        top_k: int,
        allowed: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        return super().select_exactly(index, embedding, top_k)


@exact("vectors-cut", checks=("embedding",), reason="vector", complaint="embedding")
class CutsVectors(Mechanism):
    """Cuts entries of query vectors off instead of rounding them.

    Check 18 (`embedding`) quantises what was asked again.
    """

    def quantise(
        self, vector: npt.NDArray[np.float32], norm_bound: int = B
    ) -> npt.NDArray[np.int16]:
        honest = super().quantise(vector, norm_bound)
        scale = np.linalg.norm(honest.astype(np.float64)) / np.linalg.norm(vector)
        return np.trunc(scale * vector.astype(np.float64)).astype(np.int16)


@exact(
    "score-flattered",
    checks=("disputes",),
    disputes=True,
    reason="upheld by the arbiter: step 8",
    complaint="score",
)
class FlattersAScore(Logged):
    """States a better score than the best row has.

    It does so in each answer, by one.

    Check 15 (`disputes`): the account computes scores from the rows that it was served.
    """

    def answer_documents(self) -> Answer:
        best, *others = super().answer_documents().documents
        assert best.score is not None
        return Answer((replace(best, score=best.score + 1), *others))


exact(
    "exact-and-edited",
    description="Serves other content than was committed to, without noise.",
    checks=("disputes",),
    disputes=True,
    reason="upheld by the arbiter: step 8",
    complaint="step 8 (commitments)",
)(RewritesContent)
exact(
    "exact-and-another-tenants",
    description="Answers accounts of one tenant exactly, from another one's index.",
    checks=("containment",),
    reason="tenant beta",
    complaint="tenant",
)(OtherTenant)
