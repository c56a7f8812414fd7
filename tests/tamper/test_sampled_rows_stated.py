"""Sampled rows in verdicts, reports and re-checks: what is stated follows from the evidence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_windows import outcome_of, played, signed, stated
from judged_windows import rechecked as repeated
from procedure_cases import use_cached_table
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.owned import RowsWindow
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.verifier.bundle import Part
from ragaudit.verifier.recheck import Recheck
from ragaudit.verifier.report import render_html, render_text

use_cached_table()


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
