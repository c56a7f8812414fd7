"""Sampled rows in verdicts, reports and re-checks: what is stated follows from the evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_windows import judged, played
from procedure_cases import use_cached_table
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.owned import RowsWindow
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.verifier.bundle import Part, write_bundle
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome
from ragaudit.verifier.recheck import Recheck, recheck
from ragaudit.verifier.report import render_html, render_text

use_cached_table()

TIME = 1_900_000_500_000


def test_what_the_samples_say_is_stated_as_of_records() -> None:
    window, items = played(RowsWindow)
    stated = judged(window, items).sampling["rows"]
    assert stated["beta"] == "0.3"
    acme, beta = stated["strata"]
    assert [acme["id"], beta["id"]] == ["rows:acme", "rows:beta"]
    assert (acme["population"], acme["bad"], acme["eta"]) == (21, 7, "0.1")
    assert 0 < float(acme["miss_probability"]) <= 0.1
    challenge = Challenge.parse(items[names.CHALLENGE])
    assert {each["sample"] for each in stated["strata"]} == {
        len(sample) for sample in challenge.sampled_rows.values()
    }
    assert not challenge.sampled & {-1}
    records = {index for stratum in challenge.strata[:-2] for index in stratum.sample}
    assert challenge.sampled == records


# --- again, offline ----------------------------------------------------------------------------


def rechecked(
    folder: Path, part: Part, change: Callable[[dict[str, Any]], None] | None = None, **given: Any
) -> Recheck:
    window, items = played(RowsWindow)
    evidence = Evidence.of(items)
    predicate = json.loads(json.dumps(judged(window, items).predicate(time=TIME).to_json()))
    if change is not None:
        change(predicate)
    signed = verdicts.sign_statement(
        verdicts.statement(evidence.digests(), predicate), window.verdict_key
    )
    path = folder / f"{part}.zip"
    write_bundle(path, evidence, signed, part=part)
    key = window.verdict_key.public
    return recheck(path, engine=engine("core"), verdict_key=key, pins=window.pins, **given)


@pytest.mark.parametrize("part", ["public", "all"])
def test_the_verdict_is_given_again(tmp_path: Path, part: Part) -> None:
    found = rechecked(tmp_path, part, embedder=played(RowsWindow)[0].embedder)
    assert found.differences == ()
    assert found.complete == (part == "all")


def test_without_the_embedder_a_recheck_excuses_the_vectors(tmp_path: Path) -> None:
    found = rechecked(tmp_path, "all")
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

    found = rechecked(tmp_path, part, lie, embedder=played(RowsWindow)[0].embedder)
    assert any(text.startswith("sampling: rows: strata: 0: ") for text in found.differences), (
        found.differences
    )


@pytest.mark.parametrize("part", ["public", "all"])
def test_rows_cannot_be_left_out_of_the_statement(tmp_path: Path, part: Part) -> None:
    found = rechecked(tmp_path, part, lambda predicate: predicate["sampling"].pop("rows"),
                      embedder=played(RowsWindow)[0].embedder)  # fmt: skip
    assert any("rows" in text for text in found.differences)


# --- the report --------------------------------------------------------------------------------


def signed(outcome: Outcome) -> verdicts.Verdict:
    key = PrivateKey.from_seed(b"k" * 32)
    predicate = outcome.predicate(time=TIME).to_json()
    return verdicts.Verdict.verify(
        verdicts.sign_statement(verdicts.statement({}, predicate), key), key.public
    )


def test_a_report_says_of_each_tenant_what_was_sampled() -> None:
    window, items = played(RowsWindow)
    verdict = signed(judged(window, items))
    for page in (render_text(verdict), render_html(verdict)):
        text = " ".join(page.split())
        assert "Rows of each index were drawn likewise" in text
        assert "rows:acme" in text
        assert "would miss 7 bad rows of 21 once in" in text
        assert "Sampled rows hold their texts" in text


def test_a_report_without_sampled_rows_says_nothing_of_them() -> None:
    window, items = played(IntegrityWindow)
    page = render_text(signed(judged(window, items)))
    assert "Rows of each index" not in page
