"""Check accounts: an account index that does not count every record of every account."""

from dataclasses import replace
from functools import partial
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.scenario.indexed import IndexedWindow
from ragaudit.ledger.messages.account_index import AccountIndex
from ragaudit.ledger.messages.sorted_rows import KeyedRow


def with_rows(index: AccountIndex, rows: list[KeyedRow]) -> AccountIndex:
    """Return an index with other rows, whose openings nobody has."""
    return AccountIndex(index.window, rows, {})


class CountsARecordLess(IndexedWindow):
    """The last record of bob is not among his.

    Check 22 (`accounts`) computes every row again.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        pseudonym = self.accounts["bob"].pseudonym
        opening = index.opening(pseudonym)
        (proven,) = index.prove(pseudonym)
        assert opening is not None
        fewer = replace(opening, records=opening.records[:-1])
        rows = list(index.rows)
        rows[proven.position] = replace(proven.row, digest=fewer.digest)
        return with_rows(index, rows)


class LeavesAnAccountOut(IndexedWindow):
    """There is no row for carol, so that she can be told that she never asked.

    Check 22 (`accounts`) wants a row for every account.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        (proven,) = index.prove(self.accounts["carol"].pseudonym)
        return with_rows(index, [row for row in index.rows if row != proven.row])


class SwapsTwoRows(IndexedWindow):
    """Two rows have changed places: their neighbours deny the accounts between them.

    Check 22 (`accounts`) wants the rows in the order of their keys.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        rows = list(index.rows)
        rows[1], rows[2] = rows[2], rows[1]
        return with_rows(index, rows)


class DoublesARow(IndexedWindow):
    """One account has two rows, and may be shown either; another one's is left out for it.

    Check 22 (`accounts`) wants keys that rise strictly.
    """

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        rows = list(index.rows)
        rows[2] = replace(rows[1], digest=rows[2].digest)
        return with_rows(index, rows)


class LogsNoIndex(IndexedWindow):
    """The policy promises an account index, and the log ends without it.

    Check 22 (`accounts`) wants it right before the close.
    """

    def log_accounts(self, index: AccountIndex) -> None:
        pass


constructed = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("accounts",),
    why="nothing stops a service; evidence made without one shows it in a second",
)

CHEATS: Final = (
    constructed(
        name="record-left-uncounted",
        description="States one record less of an account than the log has.",
        window=CountsARecordLess,
        reason="other records, or another order",
    ),
    constructed(
        name="account-left-uncounted",
        description="Leaves an account out of the account index.",
        window=LeavesAnAccountOut,
        reason="counts 3 accounts, the log has 4",
    ),
    constructed(
        name="accounts-out-of-order",
        description="Sorts the account index so that it denies an account that it holds.",
        window=SwapsTwoRows,
        reason="other records, or another order",
    ),
    constructed(
        name="account-counted-twice",
        description="Gives an account two rows in the account index, for two stories.",
        window=DoublesARow,
        reason="other records, or another order",
    ),
    constructed(
        name="account-index-missing",
        description="Closes the log without the account index that the policy promises.",
        window=LogsNoIndex,
        reason="no account index",
    ),
)
