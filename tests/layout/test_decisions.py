"""Every decision says when it was made, whether it holds, and what else was thought of."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
STATUS = r"Date: \d{4}-\d\d-\d\d · Status: (accepted|superseded by (\d{4}-[\w-]+\.md))"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_date_status_and_alternatives(path: Path) -> None:
    title, blank, status, *rest = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"# {int(path.name[:4])}\. \S.*", title)
    found = re.fullmatch(STATUS, status)
    assert blank == "" and found is not None, status
    assert found[2] is None or (FOLDER / found[2]).exists()
    assert rest.count("## Alternatives") == 1


def test_the_numbers_run_from_one() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))
