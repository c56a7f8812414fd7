"""Cheating providers as running services: caught by the checks that the catalogue names."""

import io
from pathlib import Path

import pytest
from ragaudit.encoding.console import Console
from ragaudit.lab.demo.run import Demo, Options, find
from small_plan import WINDOW, small_plan

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "name",
    ["half-the-sigma", "row-of-norm-128", "answer-differs-from-the-selection", "counter-gap"],
)
def test_a_cheating_service_is_caught(name: str, tmp_path: Path) -> None:
    options = Options(cheat=name, keep=tmp_path / "work")
    report = Demo(options, Console(file=io.StringIO()), small_plan).run()
    predicate = report.verdicts[WINDOW]
    cheat = find(name)
    failed = {each["id"] for each in predicate["checks"] if each["status"] == "FAIL"}
    assert predicate["result"] == cheat.result, report.traffic
    assert failed == set(cheat.checks)
