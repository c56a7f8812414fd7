"""Check 22 over whole windows, and proofs of counts from a bundle to the one who reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judged_windows import assert_caught, judged, outcome_of, played, public, rechecked, stated
from procedure_cases import use_cached_table
from ragaudit.client.cli import app as client
from ragaudit.encoding.canonical_json import dumps
from ragaudit.lab.attacks.cheats.owned import CountsARecordLess
from ragaudit.lab.scenario.integrity import IntegrityWindow, PrivateWindow
from ragaudit.lab.scenario.owned import IndexedWindow
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.accounts import AccountIndex, AccountProof
from ragaudit.ledger.messages.entries import Accounts, Close
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.shown import OpenedEntry
from ragaudit.verifier.bundle import Part, write_bundle
from ragaudit.verifier.command.cli import app as verifier
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Status
from typer.testing import CliRunner

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


class CountsBeforeTheLastRecord(IndexedWindow):
    """The index is of the log as it was one record earlier."""

    def account_index(self) -> AccountIndex:
        *rest, last = self.entries
        self.entries = rest
        try:
            return super().account_index()
        finally:
            self.entries = [*rest, last]


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
        (CountsBeforeTheLastRecord, "accounts", "other records, or another order"),
        (IndexTwice, "log", "of kind accounts, out of order"),
        (IndexUnasked, "log", "of kind accounts, out of order"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)


RUNNER = CliRunner()


def bundled(window: Window, folder: Path, part: Part = "all") -> Path:
    """A bundle of the window, without a verdict: nobody here reads one."""
    evidence = Evidence.of(window.items())
    path = folder / f"{type(window).__name__}-{part}.zip"
    write_bundle(path, evidence, b"{}", part=part)
    return path


@pytest.fixture(scope="module")
def window() -> IndexedWindow:
    return IndexedWindow()


@pytest.fixture(scope="module")
def folder(window: IndexedWindow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made: Path = tmp_path_factory.mktemp("counts")
    bundled(window, made).rename(made / "all.zip")
    (made / "policy.json").write_bytes(window.policy.canonical + b"\n")
    yield made


def proven(folder: Path, pseudonym: bytes, bundle: str = "all.zip") -> tuple[int, str]:
    arguments = [str(folder / bundle), pseudonym.hex(), "-o", str(folder / "count.json")]
    done = RUNNER.invoke(verifier, ["prove-count", *arguments])
    return done.exit_code, done.output


def verified(folder: Path, *options: str) -> tuple[int, str]:
    arguments = [str(folder / "count.json"), "--policy", str(folder / "policy.json"), *options]
    done = RUNNER.invoke(client, ["verify-count", *arguments])
    return done.exit_code, done.output


def receipt(window: IndexedWindow, folder: Path, number: int, **changes: Any) -> str:
    """Write the public part of a record's receipt."""
    public = window.receipt_file(window.asked[number]).public
    if changes:
        names = ("origin", "index", "salt", "body", "issued", "answer_digest")
        fields = {name: getattr(public, name) for name in names}
        public = PublicReceipt(**{**fields, **changes}).signed(window.provider_key)
    path = folder / f"receipt-{number}.json"
    path.write_bytes(dumps(public.to_json()))
    return str(path)


def of(window: IndexedWindow, name: str) -> list[int]:
    """Numbers of an account's records among those of the window."""
    return [i for i, asked in enumerate(window.asked) if asked.account.name == name]


def test_a_count_goes_from_the_bundle_to_the_account(window: IndexedWindow, folder: Path) -> None:
    pseudonym = window.accounts["bob"].pseudonym
    mine = of(window, "bob")
    assert proven(folder, pseudonym) == (0, f"{pseudonym.hex()}: {len(mine)} records\n")
    receipts = [receipt(window, folder, number) for number in mine]
    options = [option for path in receipts for option in ("--receipt", path)]
    code, output = verified(folder, *options, "--json")
    listed = [window.asked[number].index for number in mine]
    assert (code, json.loads(output)["records"]) == (0, listed)
    assert f"has exactly {len(mine)} records" in verified(folder)[1]


def test_a_receipt_that_is_not_counted_contradicts_the_proof(
    window: IndexedWindow, folder: Path
) -> None:
    proven(folder, window.accounts["bob"].pseudonym)
    number = of(window, "bob")[0]
    path = receipt(window, folder, number, index=window.asked[of(window, "alice")[0]].index)
    code, output = verified(folder, "--receipt", path)
    assert (code, "is not counted" in output) == (1, True)


def test_a_receipt_that_accuses_nobody_is_not_held_against_the_proof(
    window: IndexedWindow, folder: Path
) -> None:
    proven(folder, window.accounts["bob"].pseudonym)
    alices = receipt(window, folder, of(window, "alice")[0])
    assert verified(folder, "--receipt", alices)[0] == 2
    forged = Path(receipt(window, folder, of(window, "bob")[0]))
    forged.write_bytes(dumps({**json.loads(forged.read_bytes()), "index": 1}))
    code, output = verified(folder, "--receipt", str(forged))
    assert (code, "signature" in output) == (1, True)


def test_an_account_that_is_not_there_is_proven_absent(window: IndexedWindow, folder: Path) -> None:
    assert proven(folder, b"\x07" * 32)[1].endswith(": not registered\n")
    code, output = verified(folder)
    assert (code, "was not registered" in output) == (0, True)
    bobs = receipt(window, folder, of(window, "bob")[0])
    assert verified(folder, "--receipt", bobs)[0] == 2


def test_a_proof_for_another_window_is_false(window: IndexedWindow, folder: Path) -> None:
    proven(folder, window.accounts["bob"].pseudonym)
    other = IndexedWindow(seed=2)
    (folder / "other.json").write_bytes(other.policy.canonical + b"\n")
    arguments = [str(folder / "count.json"), "--policy", str(folder / "other.json")]
    assert RUNNER.invoke(client, ["verify-count", *arguments]).exit_code == 1


def test_only_a_whole_bundle_with_a_true_index_proves(window: IndexedWindow, folder: Path) -> None:
    bundled(window, folder, "public").rename(folder / "public.zip")
    code, output = proven(folder, bytes(32), "public.zip")
    assert (code, "confidential" in output) == (4, True)
    bundled(IntegrityWindow(), folder).rename(folder / "none.zip")
    code, output = proven(folder, bytes(32), "none.zip")
    assert (code, "no account index" in output) == (4, True)
    bundled(CountsARecordLess(), folder).rename(folder / "false.zip")
    code, output = proven(folder, bytes(32), "false.zip")
    assert (code, "no such account index" in output) == (1, True)
    assert proven(folder, bytes(32), "away.zip")[0] == 2
