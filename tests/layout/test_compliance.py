"""The page that maps verdicts to laws and standards: it names what there is, and claims nothing."""

import re
from pathlib import Path

import pytest
from ragaudit.verifier.procedure import CHECKS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compliance.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith("|---")
]
# What stands in code marks and is no check: commands, options and members of the verdict.
OTHER = {
    "not_covered",
    "assumptions",
    "--format jsonl",
    "--format oscal",
    "ragaudit verifier recheck",
    "ragaudit risk",
    "ragaudit attack",
    "ragaudit plan",
    "ragaudit verifier evidence",
    "retention_days",
}


def test_every_check_that_is_named_exists() -> None:
    named = {word for row in ROWS for cell in row for word in re.findall(r"`([^`]+)`", cell)}
    assert named - {check.id for check in CHECKS} == OTHER


def test_every_entry_says_what_is_not_covered() -> None:
    assert len(ROWS) > 30
    assert [row for row in ROWS if len(row) != 3 or not row[0] or not row[2]] == []


def test_nothing_that_is_not_covered_names_a_check() -> None:
    uncovered = [row for row in ROWS if row[1] == "–"]
    assert uncovered
    assert all(row[2].startswith("Not covered") for row in uncovered)


@pytest.mark.parametrize(
    "claim", ["complian(t|ce with)", "certified", "guarantees? compliance", "fulfils?", "satisf"]
)
def test_no_word_claims_that_a_law_is_met(claim: str) -> None:
    assert re.search(claim, PAGE, re.IGNORECASE) is None
