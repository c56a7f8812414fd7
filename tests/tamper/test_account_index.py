"""Check 22 over whole windows: who asks for it, what it finds, and what it leaves to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judged_windows import assert_caught, judged, outcome_of, played, public, rechecked, stated
from procedure_cases import use_cached_table
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.owned import IndexedWindow
from ragaudit.lab.scenario.private import PrivateWindow
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.accounts import AccountIndex, AccountProof
from ragaudit.ledger.messages.entries import Accounts, Close
from ragaudit.ledger.messages.shown import OpenedEntry
from ragaudit.verifier.procedure import Status

use_cached_table()


class IndexedPrivateWindow(PrivateWindow):
    """The window with noise, with a policy that asks for the index."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "account_index": True}


@pytest.mark.parametrize("kind", [IndexedWindow, IndexedPrivateWindow])
def test_an_honest_window_passes_with_22_checks(kind: type[Window]) -> None:
    outcome = outcome_of(kind)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert [check.number for check in outcome.checks] == list(range(1, 23))
    assert outcome.check("accounts").reason.startswith("4 accounts")


@pytest.mark.parametrize("kind", [Window, IntegrityWindow, PrivateWindow])
def test_a_window_that_promises_no_more_has_21_checks(kind: type[Window]) -> None:
    assert [check.number for check in outcome_of(kind).checks] == list(range(1, 22))


def test_the_public_part_does_not_show_counts() -> None:
    window, items = played(IndexedWindow)
    result = outcome_of(IndexedWindow, part="public").check("accounts")
    assert (result.status, result.needs) == (Status.NOT_RUN, ("confidential part",))
    index = window.account_index()
    shown = b"".join(public(items).values())
    for row in index.rows[1:-1]:
        assert row.digest not in shown and row.digest.hex().encode() not in shown
    assert index.root.hex().encode() in shown


@pytest.mark.parametrize("left_out", [False, True])
def test_a_verdict_that_leaves_the_check_out_does_not_stand(tmp_path: Path, left_out: bool) -> None:
    predicate = stated(outcome_of(IndexedWindow))
    if left_out:
        predicate["checks"].pop()
    done = rechecked(tmp_path, *played(IndexedWindow), predicate)
    text = "the verdict does not list the checks of the procedure"
    assert done.differences == ((text,) if left_out else ())
    assert done.checks[1] == (21 if left_out else 22)


class NamesAnotherWindow(IndexedWindow):
    def log_accounts(self, index: AccountIndex) -> None:
        entry = Accounts("w2", index.accounts, index.root)
        self.append(Accounts.KIND, entry.encode())


class LeavesAnEmptyAccountOut(IndexedWindow):
    """erin is registered, asks nothing, and has no row."""

    def script(self) -> list[Any]:
        return [("register", "erin", "beta", False, -22), *super().script()]

    def account_index(self) -> AccountIndex:
        index = super().account_index()
        (proven,) = index.prove(self.accounts["erin"].pseudonym)
        return AccountIndex(index.window, [r for r in index.rows if r != proven.row], {})


class IndexTwice(IndexedWindow):
    def log_accounts(self, index: AccountIndex) -> None:
        super().log_accounts(index)
        super().log_accounts(index)


class IndexUnasked(IntegrityWindow):
    def close(self) -> None:
        self.log_accounts(self.account_index())
        super().close()


class NoClose(IndexedWindow):
    def append(self, kind: str, body: bytes) -> int:
        return self.tree.size - 1 if kind == Close.KIND else super().append(kind, body)


def test_where_no_close_ends_the_log_the_log_is_at_fault() -> None:
    window = NoClose()
    outcome = judged(window)
    assert outcome.failed == ("log",)
    result = outcome.check("accounts")
    assert (result.status, result.needs) == (Status.NOT_RUN, ("log",))


def test_proofs_of_a_whole_window_hold() -> None:
    window, _ = played(IndexedWindow)
    index = window.account_index()
    at = len(window.entries) - 2
    _, salt, body = window.entries[at]
    final = window.checkpoints[-1][2].encode()
    proof = TlogProof(at, window.tree.inclusion_proof(at), final)
    for name, account in window.accounts.items():
        shown = AccountProof.of(
            window.origin, account.pseudonym, index, OpenedEntry(salt, body), proof
        )
        shown.verify(window.policy)
        asked = tuple(each.index for each in window.asked if each.account.name == name)
        assert shown.records == asked
    nobody = AccountProof.of(window.origin, bytes(32), index, OpenedEntry(salt, body), proof)
    nobody.verify(window.policy)
    assert nobody.records is None


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (NamesAnotherWindow, "accounts", "names another window"),
        (LeavesAnEmptyAccountOut, "accounts", "counts 4 accounts, the log has 5"),
        (IndexTwice, "log", "of kind accounts, out of order"),
        (IndexUnasked, "log", "of kind accounts, out of order"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
