"""Windows without noise whose indexes change: versions that are stale, early, unseen or wrong."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.circuits.statements import IndexStatement
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.accounts import Account, TenantIndex
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.ledger.messages.records import Record, Version


class NamesAStaleVersion(IntegrityWindow):
    """acme's accounts are answered from version 1 when version 2 is in force; records say so.

    Check 9 (`schedule`) wants the version in force at the record's time.
    """

    def in_force(self, tenant: str, time: int) -> int:
        return 1


class SearchesAStaleVersion(IntegrityWindow):
    """Records name version 2, and version 1 is searched.

    Check 19 (`selection`) is about the version that the record names.
    """

    def searched(self, account: Account, record: Record) -> TenantIndex:
        return self.indices[account.tenant]

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        return super().allowed(replace(record, version=1), wanted)


class NamesAVersionEarly(IntegrityWindow):
    """Version 2 answers as soon as it is logged, before the instant that activates it.

    Check 9 (`schedule`) wants the version in force at the record's time.
    """

    def in_force(self, tenant: str, time: int) -> int:
        logged = (tenant, 2) in self.later
        return 2 if logged else super().in_force(tenant, time)

    def activation_of_version(self, tenant: str, version: int) -> int | None:
        # What it will have: the cheat is in the time alone.
        return super().activation_of_version(tenant, version) or version


class AnswersFromAVersionToCome(IntegrityWindow):
    """A record names version 2 and stands in the log before the entry that commits to it.

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


class ChangesTheIndexUnseen(IntegrityWindow):
    """Rows of acme change places in the store; no version says so, and answers come from there.

    Check 19 (`selection`) is about the rows that were committed to.
    """

    def searched(self, account: Account, record: Record) -> TenantIndex:
        index = super().searched(account, record)
        if account.tenant != "acme" or record.version != 1:
            return index
        return replace(index, rows=np.roll(index.rows, 1, axis=0))


class ServesANullRow(IntegrityWindow):
    """The row of a deleted document is selected once more, in the place of the K-th.

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


class ReplaysAProof(IntegrityWindow):
    """Version 2 comes with the argument of version 1.

    Check 4 (`index-proof`): the argument is about the version's own commitments.
    """

    def prove_index(
        self, statement: IndexStatement, rows: IntegerRows, blindings: NDArray[np.uint8]
    ) -> bytes:
        if len(rows) > self.rows:
            return self.indices["acme"].commitment.proof
        return super().prove_index(statement, rows, blindings)


class HandsOverNoVersion(IntegrityWindow):
    """The last version is logged, and nobody gets its index or its argument.

    Check 3 (`commitments`) wants the index of every version that the log has.
    """

    def script(self) -> list[Event]:
        return [*super().script(), ("version", "beta", 90), ("checkpoint", 91)]

    def handed_over(self) -> dict[str, bytes]:
        items = super().handed_over()
        return {name: data for name, data in items.items() if not name.endswith("beta/2.bin")}


_EASY: Final = "nothing stops a service; evidence made without one shows it in a second"

version = partial(ConstructedCheat, family="VERSION", why=_EASY)

CHEATS: Final = (
    version(
        name="stale-version-named",
        description="Answers from the version before the one in force, and says so.",
        window=NamesAStaleVersion,
        checks=("schedule",),
        reason="version",
    ),
    version(
        name="stale-version-searched",
        description="Names the version in force and searches the one before.",
        window=SearchesAStaleVersion,
        checks=("selection",),
        reason="selection argument does not hold",
    ),
    version(
        name="version-used-early",
        description="Answers from a version before the instant that activates it.",
        window=NamesAVersionEarly,
        checks=("schedule",),
        reason="version",
    ),
    version(
        name="version-used-before-its-entry",
        description="Logs an answer from a version before the version, dated after it.",
        window=AnswersFromAVersionToCome,
        checks=("schedule",),
        reason="before the entry of its version",
    ),
    version(
        name="index-changed-unseen",
        description="Changes rows without announcing a version.",
        window=ChangesTheIndexUnseen,
        checks=("selection",),
        reason="selection argument does not hold",
    ),
    version(
        name="null-row-served",
        description="Selects the row of a deleted document.",
        window=ServesANullRow,
        checks=("selection",),
        reason="selection argument does not hold",
    ),
    version(
        name="argument-of-the-version-before",
        description="Proves a version with the argument of the one before.",
        window=ReplaysAProof,
        checks=("index-proof",),
        reason="acme",
    ),
    version(
        name="version-that-nobody-gets",
        description="Announces a version and hands its index to nobody.",
        window=HandsOverNoVersion,
        checks=("commitments",),
        reason="beta",
    ),
)
