"""Every numbered claim of the notes is named by a test, and every claim that is named exists."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NOTES = Path(__file__).parents[3] / "docs" / "notes"
DOCUMENTS = ("accounting", "disclosure-risk", "risk-audits")

NUMBER = r"(\d+_\d+[a-z]?|\d+[a-z]?)"
NAMED = re.compile(rf"def test_claims?_{NUMBER}(?:_(and|to)_{NUMBER})?_")


def claims(note: str) -> list[str]:
    """The claims of a note in their order, as tests spell them."""
    text = (NOTES / f"{note}.md").read_text()
    return [number.replace(".", "_") for number in re.findall(r"\*\*Claim ([\d.]*\d[a-z]?)", text)]


def named(note: str) -> set[str]:
    """The claims that the tests name whose module is about the note."""
    numbers: set[str] = set()
    for path in (*TESTS.glob("privacy/test_*.py"), *TESTS.glob("lab/test_*.py")):
        text = path.read_text()
        notes = re.findall(r"docs/notes/([\w-]+)\.md", text.split('"""')[1])
        found = NAMED.findall(text)
        assert not found or len(notes) == 1, f"{path.name}: of which note are its claims?"
        if notes == [note]:
            for first, word, last in found:
                numbers.update(between(note, first, last) if word == "to" else {first, last} - {""})
    return numbers


def between(note: str, first: str, last: str) -> list[str]:
    """The claims of a note from one to another."""
    all_ = claims(note)
    return all_[all_.index(first) : all_.index(last) + 1]


@pytest.mark.parametrize("note", DOCUMENTS)
def test_claims_and_tests_name_each_other(note: str) -> None:
    stated = claims(note)
    assert len(stated) == len(set(stated)) > 10
    assert set(stated) - named(note) == set(), "claims that no test names"
    assert named(note) - set(stated) == set(), "tests of claims that are not there"
