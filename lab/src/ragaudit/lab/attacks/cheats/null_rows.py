"""Windows without noise whose null rows take part, come too soon, or do not say what they are."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from ragaudit.circuits.selection import scores
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.cheats.integrity import Disputed
from ragaudit.lab.scenario.accounts import Asked, TenantIndex
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.versions import Row
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.vectors import float32_bytes

DELETED: Final = 6
"""Position of acme's row that is a null row from version 2 on."""


class LetsNullRowsTakePart(IntegrityWindow):
    """Null rows are marked, and searched all the same: one of score 0 beats a document below it.

    Check 19 (`selection`) is about the live rows that pass the record's filter.
    """

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        honest = super().allowed(record, wanted)
        if honest is None or wanted:
            return honest
        return tuple(range(len(self.column_rows(record))))


class SearchesWhatItMarks(IntegrityWindow):
    """A document is marked as deleted where V looks, and is still found and served.

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


class HidesARowFromTheStart(IntegrityWindow):
    """A document of a new index is marked as deleted, so that no search finds it.

    Check 3 (`commitments`): a first version has no null rows.
    """

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        if tenant == "beta":
            rows[DELETED] = replace(rows[DELETED], deleted=True, marked=True)
        return rows


@dataclass
class ServesAnUnmarkedNullRow(Disputed):
    """The place of a deleted document is not marked; it is selected, and served as empty.

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


_EASY: Final = "nothing stops a service; evidence made without one shows it in a second"

null_row = partial(ConstructedCheat, family="VERSION", why=_EASY)

CHEATS: Final = (
    null_row(
        name="null-rows-searched",
        description="Marks the rows of deleted documents and searches them all the same.",
        window=LetsNullRowsTakePart,
        checks=("selection",),
        reason="selection argument does not hold",
    ),
    null_row(
        name="marked-row-searched",
        description="Marks a document as deleted and goes on finding it.",
        window=SearchesWhatItMarks,
        checks=("selection",),
        reason="selection argument does not hold",
    ),
    null_row(
        name="null-row-in-a-new-index",
        description="Hides a document of a new index by marking it as deleted.",
        window=HidesARowFromTheStart,
        checks=("commitments",),
        reason="a null row",
    ),
    null_row(
        name="unmarked-null-row-served",
        description="Does not mark the row of a deleted document, and serves it.",
        window=ServesAnUnmarkedNullRow,
        checks=("disputes",),
        reason="step 8",
    ),
)
