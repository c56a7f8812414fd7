"""Check 31 over whole windows: what it finds, what it leaves to others, and what a verdict says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judged_windows import assert_caught, judged, outcome_of, played, rechecked, signed, stated
from procedure_cases import use_cached_table
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Asked
from ragaudit.lab.scenario.owned import OwnedPrivateWindow, OwnedWindow
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Documents, Opening, Version
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import PrivateReceipt
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Status, covered, run_opening_checks
from ragaudit.verifier.procedure.statement_checks import judge
from ragaudit.verifier.report import render_html, render_text

use_cached_table()

KINDS = [OwnedWindow, OwnedPrivateWindow]


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_window_passes_with_check_31(kind: type[Window]) -> None:
    outcome = outcome_of(kind)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert [check.number for check in outcome.checks] == [*range(1, 22), 31]
    assert "documents listed" in outcome.check("documents").reason


def test_a_window_without_owners_has_no_such_member() -> None:
    outcome = outcome_of(IntegrityWindow)
    assert outcome.documents is None
    assert "documents" not in stated(outcome)


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_counts_rows_and_documents(kind: type[Window]) -> None:
    window, _ = played(kind)
    assert isinstance(window, OwnedWindow)
    outcome = outcome_of(kind)
    first, second = (window.committed("acme", v).commitment.rows for v in (1, 2))
    marked = (0, 1) if kind is OwnedWindow else (None, None)
    beta = window.committed("beta", 1).commitment.rows
    assert outcome.documents == [
        {
            "tenant": "acme",
            "listed": second,
            "versions": [
                {"version": 1, "rows": first, "marked": marked[0]},
                {"version": 2, "rows": second, "marked": marked[1]},
            ],
        },
        {
            "tenant": "beta",
            "listed": beta,
            "versions": [{"version": 1, "rows": beta, "marked": marked[0]}],
        },
    ]
    shown = signed(stated(outcome))
    for text in (render_text(shown), render_html(shown)):
        said = " ".join(text.split())
        assert f"{second} rows in version 2" in said
        assert ("1 of them marked as deleted" in said) == (marked[1] is not None)


def test_what_is_not_covered_says_what_the_owner_can_check() -> None:
    without, owned = outcome_of(IntegrityWindow).not_covered, outcome_of(OwnedWindow).not_covered
    assert len(without) == len(owned)
    changed = [text for text in owned if text not in without]
    assert len(changed) == 2 and all("with proofs of its own" in text for text in changed)
    noised = outcome_of(OwnedPrivateWindow).not_covered
    assert sum("with proofs of its own" in text for text in noised) == 2
    assert covered.IDS in noised and covered.IDS not in owned
    assert sum("provider's word" in text for text in noised) >= 2


def test_the_public_part_is_enough_for_the_check() -> None:
    outcome = outcome_of(OwnedWindow, part="public")
    assert outcome.check("documents").status is Status.PASS
    assert outcome.documents == outcome_of(OwnedWindow).documents


def test_no_evidence_holds_a_secret_or_an_id() -> None:
    """To the verifier id keys are pseudonyms."""
    window, items = played(OwnedWindow)
    assert isinstance(window, OwnedWindow)
    held = b"".join(data for name, data in items.items() if not name.endswith(".zip"))
    for secret in window.document_secrets.values():
        assert secret not in held and secret.hex().encode() not in held


@pytest.mark.parametrize("change", ["", "check", "counts", "texts", "member"])
def test_a_recheck_repeats_all_of_it(tmp_path: Path, change: str) -> None:
    predicate = stated(outcome_of(OwnedWindow))
    if change == "check":
        predicate["checks"].pop()
    elif change == "counts":
        predicate["documents"][0]["listed"] += 1
    elif change == "texts":
        predicate["not_covered"] = list(outcome_of(IntegrityWindow).not_covered)
    elif change == "member":
        del predicate["documents"]
    done = rechecked(tmp_path, *played(OwnedWindow), predicate)
    assert bool(done.differences) == bool(change), done.differences


def test_what_a_verifier_could_not_list_is_no_difference(tmp_path: Path) -> None:
    """The log is at fault in its confidential part, which whoever has the public part lacks."""
    window, items = played(OwnedWindow)
    broken = {**items, names.RECORDS: items[names.RECORDS][:-1]}
    outcome = judged(window, broken)
    assert "log" in outcome.failed and outcome.documents is not None
    assert [each["listed"] for each in outcome.documents] == [None, None]
    done = rechecked(tmp_path, window, broken, stated(outcome), "public", embedder=None)
    assert done.differences == ()


@pytest.mark.parametrize(
    "member", [[], [1], [{"tenant": 1}], [{"versions": [1]}], [{"versions": [{"marked": []}]}]]
)
def test_whatever_is_signed_there_is_no_traceback(member: Any) -> None:
    shown = signed({**stated(outcome_of(OwnedWindow)), "documents": member})
    assert render_text(shown) and render_html(shown)
    assert json.loads(json.dumps(shown.predicate.to_json()))["documents"] == member


# --- lists that are not right


class NamesAnotherWindow(OwnedWindow):
    def documents(self) -> list[Documents]:
        return [replace(body, window="w2") for body in super().documents()]


class ListsAnEarlierVersion(OwnedWindow):
    """The list is that of the first version: what came later is in none."""

    def last_version(self, tenant: str) -> int:
        return 1


class NamesAVersionThatIsNot(OwnedWindow):
    def documents(self) -> list[Documents]:
        return [replace(body, version=body.version + 1) for body in super().documents()]


class TurnsTheOrder(OwnedWindow):
    def documents(self) -> list[Documents]:
        return super().documents()[::-1]


class ListsOneTwice(OwnedWindow):
    def documents(self) -> list[Documents]:
        first, second = super().documents()
        return [first, first, second]


class LeavesATenantOut(OwnedWindow):
    def documents(self) -> list[Documents]:
        return super().documents()[:1]


class ListsAStranger(OwnedWindow):
    def documents(self) -> list[Documents]:
        first, second = super().documents()
        return [first, replace(second, tenant="gamma")]


class ListsInTheMiddle(OwnedWindow):
    """A list that others could take for the last one."""

    def script(self) -> list[Any]:
        return [*super().script(), ("listing",), ("checkpoint", 82)]

    def listing(self) -> None:
        self.log_documents()
        self.query("dora", "another question of dora", 2, 81)


class ListsUnasked(IntegrityWindow):
    def log_documents(self) -> None:
        self.append("documents", Documents(self.window, "acme", 1, 1, bytes(32)).encode())


# --- what is committed to


class CommitsToNoSecret(OwnedWindow):
    def build_opening(self) -> Opening:
        opening = super().build_opening()
        first, *others = opening.tenants
        return replace(opening, tenants=(replace(first, id_commitment=None), *others))


class CommitsToASecretUnasked(IntegrityWindow):
    def build_opening(self) -> Opening:
        opening = super().build_opening()
        first, *others = opening.tenants
        return replace(opening, tenants=(replace(first, id_commitment=bytes(32)), *others))


class HasNoKeys(OwnedWindow):
    def id_keys(self, tenant: str, ids: Any) -> bytes:
        return b""

    def log_documents(self) -> None:
        pass


class HasKeysUnasked(IntegrityWindow):
    def id_keys(self, tenant: str, ids: Any) -> bytes:
        return bytes(range(32)) * len(ids)


@pytest.mark.parametrize("kind", [HasNoKeys, HasKeysUnasked])
def test_rows_have_keys_where_owners_check_and_nowhere_else(kind: type[Window]) -> None:
    """Before the countersignature: no window begins whose rows nobody can tell apart."""
    window = kind()
    outcome = judged(window)
    assert "commitments" in outcome.failed
    assert "id keys" in outcome.check("commitments").reason
    opening = {
        name: data
        for name, data in window.items().items()
        if name.startswith(("public/index/", "public/policy", "public/embedder", "public/opening"))
        or name in (names.EMPTY_CHECKPOINT, names.TERMS)
    }
    refused = run_opening_checks(
        Evidence.of(opening), engine=engine("core"), now=1, pins=window.pins
    )
    assert refused.result == "REFUSED"


# --- what the verifier cannot see, and whoever is served does


class ListsUnderAnothersKey(OwnedWindow):
    """Documents 3 and 4 of acme have each other's key, in every version."""

    def key_of(self, tenant: str, position: int, name: str) -> bytes:
        if tenant == "acme" and position in (3, 4):
            name = self.document_id(tenant, 7 - position)
        return super().key_of(tenant, position, name)

    def script(self) -> list[Any]:
        asked = ("query", "alice", "document 3 of acme", 2, 81)
        return [*super().script(), asked, ("checkpoint", 83)]


def judged_files(window: OwnedWindow) -> list[int]:
    """The step that fails of each receipt file, 0 for none."""
    later = [
        (index, Version.parse(body))
        for index, (kind, _, body) in enumerate(window.entries)
        if kind == Version.KIND
    ]
    view = WindowView(window.policy, window.opening, versions=later)
    files = (window.receipt_file(each).to_json() for each in window.asked)
    return [judge(file, view, engine("core")).step for file in files]


def test_a_row_under_anothers_key_is_seen_by_whoever_is_served() -> None:
    """All checks pass: V does not know of which id a key is. The account's receipt does."""
    window = ListsUnderAnothersKey()
    assert judged(window).result == "PASS"
    for made, others in ((window, {3, 4}), (played(OwnedWindow)[0], set())):
        listed_wrongly = [
            each.record.tenant == "acme" and not others.isdisjoint(each.served)
            for each in made.asked
        ]
        assert any(listed_wrongly) == bool(others)
        assert isinstance(made, OwnedWindow)
        assert judged_files(made) == [8 if bad else 0 for bad in listed_wrongly]


# --- with noise nobody but the owner may test ids


class Discloses(OwnedPrivateWindow):
    def private_part(self, asked: Asked) -> PrivateReceipt:
        secret = self.document_secrets[asked.record.tenant]
        return replace(super().private_part(asked), document_secret=secret)


class ShowsAnotherKey(OwnedPrivateWindow):
    key: bytes | None = bytes(32)

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        rows = tuple(replace(row, id_key=self.key) for row in private.rows)
        return replace(private, rows=rows)


class ShowsNoKey(ShowsAnotherKey):
    key = None


@pytest.mark.parametrize(
    ("kind", "step"),
    [(OwnedPrivateWindow, 0), (Discloses, 8), (ShowsAnotherKey, 8), (ShowsNoKey, 8)],
)
def test_accounts_get_keys_of_served_rows_and_no_secret(kind: type[OwnedWindow], step: int) -> None:
    window = kind()
    assert judged(window).result == "PASS"
    first = [each.record.version for each in window.asked].index(2)  # later rows may be null rows
    assert set(judged_files(window)[:first]) == {step}


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (NamesAnotherWindow, "documents", "names another window"),
        (ListsAnEarlierVersion, "documents", "names version 1, the last is 2"),
        (NamesAVersionThatIsNot, "documents", "names version 3, the last is 2"),
        (TurnsTheOrder, "documents", "one document list each, in order"),
        (ListsOneTwice, "documents", "one document list each, in order"),
        (LeavesATenantOut, "documents", "one document list each, in order"),
        (ListsAStranger, "documents", "one document list each, in order"),
        (ListsInTheMiddle, "log", "of kind documents, out of order"),
        (ListsUnasked, "log", "of kind documents, out of order"),
        (CommitsToNoSecret, "commitments", "document secrets are committed to if, and only if"),
        (
            CommitsToASecretUnasked,
            "commitments",
            "document secrets are committed to if, and only if",
        ),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[Window], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)
