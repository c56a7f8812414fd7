"""Check 32 over windows whose rows are sampled: what passes, what stays open, what is stated."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_windows import assert_caught, judged, outcome_of, played, signed, stated
from judged_windows import rechecked as repeated
from judged_windows import said as told
from procedure_cases import use_cached_table
from ragaudit import core
from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.lab.attacks import ConstructedCheat, find
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.lab.scenario.integrity import IntegrityWindow, Row
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.owned import AllPrivateRowsWindow, AllRowsWindow, RowsWindow
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.index.committed import IndexForm
from ragaudit.verifier.bundle import Part
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure import CHECKS, Outcome, Status, run_opening_checks
from ragaudit.verifier.recheck import Recheck
from ragaudit.verifier.report import render_html, render_text

use_cached_table()

ROWS_ALONE = tuple(check for check in CHECKS if check.id == "rows")


def said(outcome: Outcome) -> tuple[Status, str]:
    return outcome.check("rows").status, told(outcome, "rows")


@pytest.mark.parametrize(
    ("kind", "marked"),
    [(AllRowsWindow, 1), pytest.param(AllPrivateRowsWindow, None, marks=pytest.mark.slow)],
)
def test_an_honest_window_passes(kind: type[RowsWindow], marked: int | None) -> None:
    window, items = played(kind)
    outcome = judged(window, items)
    assert outcome.result == "PASS", outcome.checks
    status, text = said(outcome)
    assert status is Status.PASS
    # Version 2 of acme has a document more, and a null row, which noise lets nobody else see.
    assert "acme: 21 of 21 rows sampled, 20 with the vector of their text" in text
    assert "1 null rows, 0 changed since" in text
    assert "beta: 20 of 20 rows sampled, 20 with" in text
    assert outcome.counts.get("null_rows") == marked


def test_the_core_and_the_reference_agree() -> None:
    window, items = played(AllRowsWindow)
    for name in ("core", "reference"):
        outcome = judged(window, items, engine=engine(name), checks=ROWS_ALONE)
        assert said(outcome)[0] is Status.PASS


class ChangedSince(AllRowsWindow):
    """Two documents of acme change when the last version is committed to."""

    def script(self) -> list[Event]:
        return [*super().script(), ("delete", "acme", 2), ("delete", "acme", 9)]


def test_documents_that_changed_since_leave_the_check_open() -> None:
    window, items = played(ChangedSince)
    outcome = judged(window, items)
    status, text = said(outcome)
    assert status is Status.NOT_ESTABLISHED
    assert "2 sampled rows are of documents that the store changed since" in text
    assert "18 with the vector of their text" in text and "2 changed since" in text
    assert outcome.result == "PASS"
    assert outcome.claims.open == ("rows",)
    assert "hold the vectors of their texts is not established" in outcome.claims.statements[0]


class ChangedAndMoved(ChangedSince):
    """The rows of documents that changed since were never those of their texts."""

    def completed_rows(self, rows: Any) -> Any:
        honest = super().completed_rows(rows)
        vectors = honest[:, :-4].copy()
        vectors[2] //= 10
        return core.complete_rows(vectors, self.policy.squared_norm).astype(np.int16)


class PutRightInTime(AllRowsWindow):
    """A row of acme is short until the version before the end."""

    built = 0

    def completed_rows(self, rows: Any) -> Any:
        honest = super().completed_rows(rows)
        self.built += 1
        if self.built > 1:  # acme's is the first index
            return honest
        vectors = honest[:, :-4].copy()
        vectors[4] //= 10
        return core.complete_rows(vectors, self.policy.squared_norm).astype(np.int16)


def test_a_version_before_the_last_is_not_looked_at_and_the_verdict_says_so() -> None:
    window, items = played(PutRightInTime)
    outcome = judged(window, items)
    assert outcome.result == "PASS"
    assert any("of earlier versions nothing" in text for text in outcome.not_covered)
    row = window.indices["acme"].rows[4][:-4].astype(np.int64)
    assert 50 * int(row @ row) < window.policy.squared_norm


@dataclass
class Other:
    """An embedder that is another one, or does not answer."""

    digest: bytes
    vector: Callable[[str], Any]

    def embed(self, text: str, norm_bound: int = 127) -> Any:
        return self.vector(text)

    def embed_row(self, text: str, **_: Any) -> Any:
        return self.vector(text)


def gone(_text: str) -> Any:
    raise UnavailableError("no answer")


@pytest.mark.parametrize("which", ["none", "another", "away"])
def test_without_the_embedder_vectors_stay_open(which: str) -> None:
    window, items = played(AllRowsWindow)
    digest = b"another" if which == "another" else window.embedder.digest
    embedder = None if which == "none" else Other(digest, gone)
    outcome = judged(window, items, embedder=embedder)
    status, text = said(outcome)
    assert status is Status.NOT_ESTABLISHED
    assert "no embedder at hand compared the vectors of 40 sampled rows" in text
    assert ("is not the committed one" in text) == (which == "another")
    assert outcome.result == "PASS"


class Blank(AllRowsWindow):
    """A document without text, whose vector its store had."""

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        rows = super().rows_of(tenant, version)
        rows[7] = replace(rows[7], text=" ")
        return rows


def test_a_blank_text_has_no_vector_to_compare() -> None:
    window, items = played(Blank)
    status, text = said(judged(window, items))
    assert status is Status.NOT_ESTABLISHED
    assert "the vectors of 2 sampled rows" in text


def test_a_text_without_an_embedding_is_no_row() -> None:
    def none(_text: str) -> Any:
        raise RejectedError("no words of this text are known")

    window, items = played(AllRowsWindow)
    embedder = Other(window.embedder.digest, none)
    status, text = said(judged(window, items, embedder=embedder, checks=ROWS_ALONE))
    assert status is Status.FAIL
    assert "row 0 of acme: no words" in text


# --- tampering ---------------------------------------------------------------------------------


def test_no_byte_of_an_opening_can_be_changed() -> None:
    window, items = played(RowsWindow)
    name = names.rows_name("acme")
    honest, drawn = items[name], random.Random(5)
    places = sorted({*range(30), *(drawn.randrange(len(honest)) for _ in range(40))})
    passed = []
    for place in places:
        flipped = honest[place] ^ (1 << drawn.randrange(8))
        changed = {**items, name: honest[:place] + bytes([flipped]) + honest[place + 1 :]}
        if said(judged(window, changed, checks=ROWS_ALONE))[0] is not Status.FAIL:
            passed.append(place)
    assert passed == []


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d + b"\0", lambda _: b""])
def test_another_length_is_a_fault_of_this_check(change: Callable[[bytes], bytes]) -> None:
    window, items = played(AllRowsWindow)
    name = names.rows_name("acme")
    assert_caught(window, "rows", "rows of acme", {**items, name: change(items[name])})


def test_openings_of_two_tenants_do_not_change_places() -> None:
    window, items = played(AllRowsWindow)
    swapped = {
        names.rows_name("acme"): items[names.rows_name("beta")],
        names.rows_name("beta"): items[names.rows_name("acme")],
    }
    assert_caught(window, "rows", "rows of beta", {**items, **swapped})


LIES = (
    "row-shortened",
    "row-with-another-vector",
    "row-under-another-id-key",
    "row-opened-with-another-text",
)


@pytest.mark.parametrize("name", LIES)
def test_findings_show_no_secret_and_no_text(name: str) -> None:
    cheat = find(name)
    assert isinstance(cheat, ConstructedCheat)
    window: Any = cheat.window()
    outcome = judged(window)
    shown = json.dumps(stated(outcome))
    assert outcome.failed == ("rows",)
    for tenant, secret in window.document_secrets.items():
        assert secret.hex() not in shown
        assert all(text not in shown for text in window.texts(tenant))
        assert window.document_id(tenant, 4) not in shown


# --- the sample --------------------------------------------------------------------------------


class AsksForFewer(RowsWindow):
    """The challenge spares a row that the seed draws."""

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        strata = super().draw_sample(receipts)
        strata[-1]["sample"] = strata[-1]["sample"][1:]
        self.sampled_rows["beta"] = tuple(strata[-1]["sample"])
        return strata


class AsksForNone(RowsWindow):
    """The challenge has no strata of rows."""

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        strata = super().draw_sample(receipts)[:-2]
        self.sampled_rows = {}
        return strata


def test_rows_that_the_index_has_not_are_the_samples_fault() -> None:
    class Beyond(RowsWindow):
        def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
            strata = super().draw_sample(receipts)
            strata[-1]["sample"] = [*strata[-1]["sample"][:-1], 20]
            return strata

    outcome = judged(Beyond())
    assert outcome.failed == ("sampling",)
    assert outcome.check("rows").status is Status.NOT_RUN
    assert outcome.check("rows").needs == ("sampling",)


# --- the policy --------------------------------------------------------------------------------


@dataclass
class Opened(RowsWindow):
    """A window with other terms of rows."""

    owners: dict[str, Any] = field(default_factory=dict)

    def policy_json(self) -> dict[str, Any]:
        return {**super().policy_json(), "owners": {"rows": self.owners}}


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"beta": "0.0001", "eta": "0.1", "minimum": 5}, "may have 23025 of a tenant's"),
        ({"beta": "0.3", "eta": "0.1", "minimum": 4097}, "may have 4097 of a tenant's"),
        ({"beta": "0.6", "eta": "0.1", "minimum": 5}, "most_beta"),
        ({"beta": "0.3", "eta": "0.6", "minimum": 5}, "most_eta_tenants"),
        ({"beta": "0.3", "eta": "0.1", "minimum": 0}, "least_sample_tenants"),
    ],
)
def test_a_policy_whose_sample_says_too_little_or_is_too_large_is_refused(
    terms: dict[str, Any], reason: str
) -> None:
    window = Opened(owners=terms)
    window.open()
    outcome = run_opening_checks(
        window.evidence_of_opening(),
        engine=engine("core"),
        pins=window.pins,
        now=1000 * COUNTERSIGNED,
    )
    assert outcome.failed == ("policy",)
    assert reason in told(outcome, "policy")


# --- what both sides make of a text ------------------------------------------------------------


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    metric=st.sampled_from(["cosine", "inner-product"]),
    bound=st.sampled_from([127, 4095]),
)
def test_verifier_and_prover_make_the_same_row_of_a_text(
    text: str, metric: str, bound: int
) -> None:
    model = HashEmbedder(8)
    largest = Decimal(200_000) if metric == "inner-product" else None
    form = IndexForm(norm_bound=bound, metric=metric, largest_norm=largest)
    vector = model.embed([Document("1", text).content])
    mine = model.installed().embed_row(text, metric=metric, largest_norm=largest, norm_bound=bound)
    assert np.array_equal(mine, form.integers(vector)[0])


@pytest.mark.parametrize(
    ("cheat", "owner", "reason"),
    [
        (ChangedAndMoved, "rows", "committed at 0.10 of its length"),
        (AsksForFewer, "sampling", "the sample is not the one that the seed gives"),
        (AsksForNone, "sampling", "the sample is not the one that the seed gives"),
    ],
)
def test_a_rule_broken_once_is_caught_by_its_owner(
    cheat: type[RowsWindow], owner: str, reason: str
) -> None:
    assert_caught(cheat(), owner, reason)


def test_what_the_samples_say_is_stated_as_of_records() -> None:
    items = played(RowsWindow)[1]
    told = outcome_of(RowsWindow).sampling["rows"]
    assert told["beta"] == "0.3"
    acme, beta = told["strata"]
    assert [acme["id"], beta["id"]] == ["rows:acme", "rows:beta"]
    assert (acme["population"], acme["bad"], acme["eta"]) == (21, 7, "0.1")
    assert 0 < float(acme["miss_probability"]) <= 0.1
    challenge = Challenge.parse(items[names.CHALLENGE])
    assert {each["sample"] for each in told["strata"]} == {
        len(sample) for sample in challenge.sampled_rows.values()
    }
    assert not challenge.sampled & {-1}
    records = {index for stratum in challenge.strata[:-2] for index in stratum.sample}
    assert challenge.sampled == records


# --- again, offline ----------------------------------------------------------------------------


def rechecked(
    folder: Path, part: Part, change: Callable[[dict[str, Any]], object] = bool, **given: Any
) -> Recheck:
    predicate = stated(outcome_of(RowsWindow))
    change(predicate)
    return repeated(folder, *played(RowsWindow), predicate, part, **given)


@pytest.mark.parametrize("part", ["public", "all"])
def test_the_verdict_is_given_again(tmp_path: Path, part: Part) -> None:
    found = rechecked(tmp_path, part)
    assert found.differences == ()
    assert found.complete == (part == "all")


def test_without_the_embedder_a_recheck_excuses_the_vectors(tmp_path: Path) -> None:
    found = rechecked(tmp_path, "all", embedder=None)
    assert found.differences == ()
    assert any(
        text.startswith("check 32 rows: the committed embedder") for text in found.not_repeated
    )


@pytest.mark.parametrize("part", ["public", "all"])
@pytest.mark.parametrize(
    ("member", "value"),
    [("sample", 1), ("population", 20), ("miss_probability", "0.000000000001"), ("bad", 1)],
)
def test_other_numbers_than_indexes_and_policy_give_are_a_difference(
    tmp_path: Path, part: Part, member: str, value: object
) -> None:
    def lie(predicate: dict[str, Any]) -> None:
        predicate["sampling"]["rows"]["strata"][0][member] = value

    found = rechecked(tmp_path, part, lie)
    assert any(text.startswith("sampling: rows: strata: 0: ") for text in found.differences), (
        found.differences
    )


@pytest.mark.parametrize("part", ["public", "all"])
def test_rows_cannot_be_left_out_of_the_statement(tmp_path: Path, part: Part) -> None:
    found = rechecked(tmp_path, part, lambda predicate: predicate["sampling"].pop("rows"))
    assert any("rows" in text for text in found.differences)


# --- the report --------------------------------------------------------------------------------


def test_a_report_says_of_each_tenant_what_was_sampled() -> None:
    verdict = signed(stated(outcome_of(RowsWindow)))
    for page in (render_text(verdict), render_html(verdict)):
        text = " ".join(page.split())
        assert "Rows of each index were drawn likewise" in text
        assert "rows:acme" in text
        assert "would miss 7 bad rows of 21 once in" in text
        assert "Sampled rows hold their texts" in text


def test_a_report_without_sampled_rows_says_nothing_of_them() -> None:
    page = render_text(signed(stated(outcome_of(IntegrityWindow))))
    assert "Rows of each index" not in page
