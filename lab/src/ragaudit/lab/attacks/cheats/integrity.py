"""Windows without noise: answers that are not the exact top K of the account's own index."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.accounts import Account, Asked, TenantIndex
from ragaudit.lab.scenario.integrity import LEFT_SHELF, IntegrityWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.versions import COPIED
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.private_receipts import PrivateReceipt, WithdrawnRow
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Answer, Openings, Request
from ragaudit.ledger.messages.ties import TiesStatement
from ragaudit.ledger.messages.vectors import float32_bytes, float32_values

Scores = npt.NDArray[np.int64]


class AnswersFromAnotherTenant(IntegrityWindow):
    """bob of acme is answered from beta's index; his records say acme.

    Check 19 (`selection`) takes C_idx of the tenant that the account is registered in.
    """

    def searched(self, account: Account, record: Record) -> TenantIndex:
        if account.name == "bob" and record.version == 1:
            return self.indices["beta"]
        return super().searched(account, record)


class LeavesOutTheBest(IntegrityWindow):
    """The nearest row is left out of every answer, and one more comes after the others.

    Check 19 (`selection`): T holds every row that is tied with the K-th or better.
    """

    def choose(self, exact: Scores, allowed: Sequence[int] | None, top_k: int) -> tuple[int, ...]:
        rows = range(len(exact)) if allowed is None else allowed
        best = max(rows, key=lambda i: int(exact[i]))
        return super().choose(exact, [i for i in rows if i != best], top_k)


class SearchesApproximately(IntegrityWindow):
    """A graph is walked to nearer and nearer rows, as indexes for approximate search do.

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


class DropsTies(IntegrityWindow):
    """Of the rows that tie with the K-th, only as many are selected as are served.

    Check 19 (`selection`) wants all of them in T, or the account could not tell that none was
    better.
    """

    def choose(self, exact: Scores, allowed: Sequence[int] | None, top_k: int) -> tuple[int, ...]:
        ties = super().choose(exact, allowed, top_k)
        return tuple(sorted(sorted(ties, key=lambda i: (-int(exact[i]), i))[:top_k]))


class FiltersUnasked(IntegrityWindow):
    """The first question of alice, which has no filter, is answered from one shelf.

    Check 19 (`selection`) is about all rows where the record's filter is the empty text.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        first = record.counter == 0 and record.slot == 0
        return super().allowed(record, LEFT_SHELF if first else wanted)


class PassesFiltersOver(IntegrityWindow):
    """Filters are logged and not applied.

    Check 19 (`selection`) is about the rows that pass the record's filter.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        return super().allowed(record, "")


class FiltersOnOtherColumns(IntegrityWindow):
    """Filters are applied to columns of which one has not the value that the index shows.

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


class TurnsVectors(IntegrityWindow):
    """The vector that an application sends is not the one that is searched for.

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


class AnswersUnlogged(IntegrityWindow):
    """bob's last question is answered with a receipt, and no log has the record.

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


class MisstatesAScore(Disputed):
    """The best score of an answer is one higher than it is.

    Check 15 (`disputes`): the account computes scores from the rows that it was served.
    """

    def answered(self, asked: Asked, private: PrivateReceipt) -> Answer:
        best, *others = super().answered(asked, private).documents
        assert best.score is not None
        better = best.score + 1 if self.is_about(asked) else best.score
        return Answer((replace(best, score=better), *others))


class ServesChangedText(Disputed):
    """A row is served with the text that the store has now.

    Check 15 (`disputes`): the content's digest is in the row's leaf; such a row is withdrawn.
    """

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.is_about(asked):
            return private
        first, *others = private.rows
        return replace(private, rows=(replace(first, content="as it is now"), *others))


class ServesOtherColumns(Disputed):
    """A row is served with a value of a public column that its leaf has not.

    Check 15 (`disputes`): columns are part of the leaf.
    """

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.is_about(asked):
            return private
        first, *others = private.rows
        columns = canonical_text({"shelf": "left", "year": 1999})
        return replace(private, rows=(replace(first, columns=columns), *others))


class CallsAServedRowWithdrawn(Disputed):
    """A row is in the answer, and among those that were left out of it.

    Check 15 (`disputes`): the served rows and the withdrawn ones are the first K of T, each once.
    """

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.is_about(asked):
            return private
        first = private.rows[0]
        return replace(private, withdrawn=(WithdrawnRow(first.position, first.id),))


class FiltersInTheAccountsName(Disputed):
    """The record commits to a filter that the account did not ask with.

    Check 15 (`disputes`): the opened filter is not the request's. V cannot see it by itself.
    """

    def open_request(self, account: Account, request: Request) -> Openings:
        openings = super().open_request(account, request)
        return replace(openings, filter=LEFT_SHELF) if not self.asked else openings


class KeepsTheBestBack(Disputed):
    """Two copies of one text are served, and the row that is nearer than both is not.

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


_FAILS: Final = "selection argument does not hold"
EASY: Final = "nothing stops a service; evidence made without one shows it in a second"

selection = partial(
    ConstructedCheat, family="INTEGRITY", why=EASY, checks=("selection",), reason=_FAILS
)
disputed = partial(ConstructedCheat, family="INTEGRITY", why=EASY, checks=("disputes",))

CHEATS: Final = (
    selection(
        name="exact-from-another-tenants-index",
        description="Answers without noise from another tenant's index.",
        window=AnswersFromAnotherTenant,
    ),
    selection(
        name="better-row-left-out",
        description="Leaves the nearest row out of the answers.",
        window=LeavesOutTheBest,
    ),
    selection(
        name="approximate-search-sold-as-exact",
        description="Walks a graph of rows instead of looking at each.",
        window=SearchesApproximately,
    ),
    selection(
        name="ties-left-out-of-the-selection",
        description="Selects as many of the tied rows as it serves.",
        window=DropsTies,
    ),
    selection(
        name="filter-applied-unasked",
        description="Searches one shelf for an account that asked for all.",
        window=FiltersUnasked,
    ),
    selection(
        name="filter-not-applied",
        description="Logs filters and does not apply them.",
        window=PassesFiltersOver,
    ),
    selection(
        name="filter-on-other-columns",
        description="Applies filters to other columns than the index shows.",
        window=FiltersOnOtherColumns,
    ),
    ConstructedCheat(
        name="vector-quantised-otherwise", family="INTEGRITY",
        description="Cuts the entries of the application's vector off instead of rounding them.",
        why=EASY, window=TurnsVectors,
        checks=("embedding",), reason="vector",
    ),
    ConstructedCheat(
        name="record-that-no-log-has", family="INTEGRITY",
        description="Signs a receipt for a record that it does not log.",
        why="the prover's service answers nothing before it is logged", window=AnswersUnlogged,
        checks=("receipts",), reason="receipt",
    ),
    disputed(
        name="score-misstated",
        description="States a better score than the row has.",
        window=partial(MisstatesAScore, step=8), reason="step 8",
    ),
    disputed(
        name="changed-text-served",
        description="Serves the text that a document has now instead of the committed one.",
        window=partial(ServesChangedText, step=8), reason="step 8",
    ),
    disputed(
        name="columns-not-the-leafs",
        description="Serves a row with another value in a public column.",
        window=partial(ServesOtherColumns, step=8), reason="step 8",
    ),
    disputed(
        name="withdrawn-row-served",
        description="Serves a row that it says it withdrew.",
        window=partial(CallsAServedRowWithdrawn, step=7), reason="step 7",
    ),
    disputed(
        name="filter-in-the-accounts-name",
        description="Commits to a filter that the account did not ask with, and applies it.",
        window=partial(FiltersInTheAccountsName, step=5), reason="step 5",
    ),
    disputed(
        name="best-row-kept-back",
        description="Serves two tied rows of T and keeps back the row that is nearer.",
        window=partial(KeepsTheBestBack, step=8), reason="step 8",
    ),
)  # fmt: skip
