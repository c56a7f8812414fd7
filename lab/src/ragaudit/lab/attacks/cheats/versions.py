"""Indexes that change: versions and null rows that are stale, early, unseen or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.circuits.selection import scores
from ragaudit.circuits.statements import IndexStatement
from ragaudit.embedders.base import Embedder
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.attacks.cheats.integrity import Disputed
from ragaudit.lab.scenario.integrity import IntegrityWindow, Row
from ragaudit.lab.scenario.opening import Account, Asked, Event, TenantIndex
from ragaudit.lab.scenario.scenario import ChangingScenario
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.entries import Record, Version
from ragaudit.ledger.messages.requests import float32_bytes
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Selected
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.window.records import Delivery

# --- versions ------------------------------------------------------------------------------------

version = partial(ConstructedCheat, family="VERSION")


@version("stale-version-named", checks=("schedule",), reason="version")
class NamesAStaleVersion(IntegrityWindow):
    """Answers from the version before the one in force, and says so.

    acme's accounts are answered from version 1 when version 2 is in force.

    Check 9 (`schedule`) wants the version in force at the record's time.
    """

    def in_force(self, tenant: str, time: int) -> int:
        return 1


@version("stale-version-searched", checks=("selection",), reason="selection argument does not hold")
class SearchesAStaleVersion(IntegrityWindow):
    """Names the version in force and searches the one before.

    Check 19 (`selection`) is about the version that the record names.
    """

    def searched(self, account: Account, record: Record) -> TenantIndex:
        return self.indices[account.tenant]

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        return super().allowed(replace(record, version=1), wanted)


@version("version-used-early", checks=("schedule",), reason="version")
class NamesAVersionEarly(IntegrityWindow):
    """Answers from a version before the instant that activates it.

    Version 2 answers as soon as it is logged.

    Check 9 (`schedule`) wants the version in force at the record's time.
    """

    def in_force(self, tenant: str, time: int) -> int:
        logged = (tenant, 2) in self.later
        return 2 if logged else super().in_force(tenant, time)

    def activation_of_version(self, tenant: str, version: int) -> int | None:
        # What it will have: the cheat is in the time alone.
        return super().activation_of_version(tenant, version) or version


@version(
    "version-used-before-its-entry", checks=("schedule",), reason="before the entry of its version"
)
class AnswersFromAVersionToCome(IntegrityWindow):
    """Logs an answer from a version before the version, dated after it.

    The record names version 2.

    Its time is that of the instant, ahead of the clock by less than the skew, so every time fits.
    Check 9 (`schedule`) wants the entry first: rows could be fitted to what was asked.
    """

    def script(self) -> list[Event]:
        honest = super().script()
        at = next(i for i, event in enumerate(honest) if event[0] == "version")
        # The search that comes next is not asked: its time lies before the instant.
        return [*honest[:at], ("version", "acme", 57), ("checkpoint", 58), *honest[at + 3 :]]

    def announce(self, entry: Version) -> None:
        self.query("bob", "what a version to come will answer", 3, 60)
        super().announce(entry)

    def in_force(self, tenant: str, time: int) -> int:
        return self._to_come(tenant) or super().in_force(tenant, time)

    def activation_of_version(self, tenant: str, version: int) -> int | None:
        # What it will have: the cheat is in the order alone.
        to_come = version > 1 and self._to_come(tenant) == version
        return version if to_come else super().activation_of_version(tenant, version)

    def _to_come(self, tenant: str) -> int:
        """The version that is built and not announced yet, 0 if there is none."""
        announced = sum(kind == "version" for kind, _, _ in self.entries)
        return 2 if tenant == "acme" and len(self.later) > announced else 0


@version("index-changed-unseen", checks=("selection",), reason="selection argument does not hold")
class ChangesTheIndexUnseen(IntegrityWindow):
    """Changes rows without announcing a version.

    Rows of acme change places in the store, and answers come from there.

    Check 19 (`selection`) is about the rows that were committed to.
    """

    def searched(self, account: Account, record: Record) -> TenantIndex:
        index = super().searched(account, record)
        if account.tenant != "acme" or record.version != 1:
            return index
        return replace(index, rows=np.roll(index.rows, 1, axis=0))


@version("null-row-served", checks=("selection",), reason="selection argument does not hold")
class ServesANullRow(IntegrityWindow):
    """Selects the row of a deleted document.

    It takes the place of the K-th.

    Check 19 (`selection`): a null row is in no selection.
    """

    def choose(
        self, exact: NDArray[np.int64], allowed: Sequence[int] | None, top_k: int
    ) -> tuple[int, ...]:
        honest = super().choose(exact, allowed, top_k)
        deleted = 6
        if self.later and len(exact) > self.rows and deleted not in honest:
            worst = min(honest, key=lambda i: int(exact[i]))
            return tuple(sorted({*honest, deleted} - {worst}))
        return honest


@version("argument-of-the-version-before", checks=("index-proof",), reason="acme")
class ReplaysAProof(IntegrityWindow):
    """Proves a version with the argument of the one before.

    Check 4 (`index-proof`): the argument is about the version's own commitments.
    """

    def prove_index(
        self, statement: IndexStatement, rows: IntegerRows, blindings: NDArray[np.uint8]
    ) -> bytes:
        if len(rows) > self.rows:
            return self.indices["acme"].commitment.proof
        return super().prove_index(statement, rows, blindings)


@version("version-that-nobody-gets", checks=("commitments",), reason="beta")
class HandsOverNoVersion(IntegrityWindow):
    """Announces a version and hands its index to nobody.

    It is the last version, and nobody gets its argument either.

    Check 3 (`commitments`) wants the index of every version that the log has.
    """

    def script(self) -> list[Event]:
        return [*super().script(), ("version", "beta", 90), ("checkpoint", 91)]

    def handed_over(self) -> dict[str, bytes]:
        items = super().handed_over()
        return {name: data for name, data in items.items() if not name.endswith("beta/2.bin")}


# --- null rows -----------------------------------------------------------------------------------

DELETED: Final = 6
"""Position of acme's row that is a null row from version 2 on."""


null_row = partial(ConstructedCheat, family="VERSION")


@null_row("null-rows-searched", checks=("selection",), reason="selection argument does not hold")
class LetsNullRowsTakePart(IntegrityWindow):
    """Marks the rows of deleted documents and searches them all the same.

    One of score 0 beats a document below it.

    Check 19 (`selection`) is about the live rows that pass the record's filter.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        honest = super().allowed(record, wanted)
        if honest is None or wanted:
            return honest
        return tuple(range(len(self.column_rows(record))))


@null_row("marked-row-searched", checks=("selection",), reason="selection argument does not hold")
class SearchesWhatItMarks(IntegrityWindow):
    """Marks a document as deleted and goes on finding it.

    The mark is where V looks.

    Check 19 (`selection`): what is marked is in no selection.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        if version > 1:
            live = rows[5]
            rows[5] = Marked(live.id, live.text, live.columns)
        return rows

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        honest = super().allowed(record, wanted)
        if honest is None or wanted or record.version == 1:
            return honest
        return tuple(sorted({*honest, 5}))


@null_row("null-row-in-a-new-index", checks=("commitments",), reason="a null row")
class HidesARowFromTheStart(IntegrityWindow):
    """Hides a document of a new index by marking it as deleted.

    So no search finds it.

    Check 3 (`commitments`): a first version has no null rows.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        if tenant == "beta":
            rows[DELETED] = replace(rows[DELETED], deleted=True, marked=True)
        return rows


@null_row("unmarked-null-row-served", checks=("disputes",), reason="step 8")
@dataclass
class ServesAnUnmarkedNullRow(Disputed):
    """Does not mark the row of a deleted document, and serves it.

    It is served as empty.

    V cannot see what a row holds. Check 15 (`disputes`): the account can, of a row it was served.
    """

    about: int = 7
    step: int = 8

    def script(self) -> list[Event]:
        return [
            ("away", "bob", 3, 75) if event[0] == "query" and event[-1] == 75 else event
            for event in super().script()
        ]

    def away(self, name: str, top_k: int, time: int) -> Asked:
        """Ask with the vector that points away from most of acme's documents."""
        mean = self.model.embed(self.texts("acme")).astype(np.float64).mean(axis=0)
        asked = self.ask(name, float32_bytes((-mean).tolist()), top_k, time)
        exact = scores(self.index_of(asked).vectors, asked.embedding)
        assert DELETED in asked.served, sorted(exact, reverse=True)
        return asked

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        return [replace(row, marked=False) for row in super().rows_of(tenant, version)]

    def newest(self, index: TenantIndex) -> bool:
        # Else it would be withdrawn, and nobody but the account's patience would be hurt.
        return index.version == 1 and super().newest(index)


class Marked(Row):
    """A document in its place, under the mark of a null row."""

    @property
    def columns_text(self) -> str:
        return NULL_ROW


# --- with all services ---------------------------------------------------------------------------

changing = partial(ServiceCheat, family="VERSION", scenario=ChangingScenario)


@changing("stale-version-scored", checks=("selection",), reason="selection argument does not hold")
class ScoresAStaleVersion(Mechanism):
    """Scores the first version of an index when another is in force.

    Check 19 (`selection`) is about the version that the record names.
    """

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._first: dict[str, CommittedIndex] = {}

    def select_exactly(
        self,
        index: CommittedIndex,
        embedding: npt.NDArray[np.int16],
        top_k: int,
        allowed: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        # What is served is scored rightly: the account checks that.
        first = self._first.setdefault(index.tenant, index)
        return super().select_exactly(first, embedding, top_k, allowed)


@changing(
    "fewer-rows-delivered",
    checks=("disputes",),
    disputes=True,
    reason="upheld by the arbiter: step 7",
    complaint="step 7 (rows)",
)
class DeliversLess(Selected):
    """Leaves out a row, and does not say that it is withdrawn.

    It is the last row of an answer.

    Check 15 (`disputes`): what is served and what is withdrawn are together the first K of T.
    """

    def delivered(self) -> Delivery:
        honest = super().delivered()
        # Where rows tie, no opening of the others could be proven.
        tied = len(self.opened.selected) > self.record.top_k
        return honest if tied else replace(honest, rows=honest.rows[:-1])
