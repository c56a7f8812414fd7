"""One exit code for one kind of fault, and the table that says so."""

import json
import re
from pathlib import Path

import pytest
from ragaudit.encoding.commands import ExitCode, exit_code, failing
from ragaudit.encoding.errors import (
    InternalError,
    InvalidArgumentError,
    MalformedError,
    RagauditError,
    RefusedError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)

CHAPTER = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (RejectedError, 1), (MalformedError, 2), (InvalidArgumentError, 2), (UnsupportedError, 2),
        (UnavailableError, 3), (RefusedError, 4), (InternalError, 70), (RagauditError, 70),
    ],
)  # fmt: skip
def test_a_family_has_one_code(kind: type[RagauditError], code: int) -> None:
    assert exit_code(kind("x")) == code


def test_the_documented_table_is_the_code() -> None:
    section = CHAPTER.read_text().split("Exit codes\n")[-1].split("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert documented == set(ExitCode)


def test_an_error_becomes_one_line_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, failing():
        raise RefusedError("no such window", where="w1", expected="w2")
    assert stop.value.code == ExitCode.REFUSED
    assert capsys.readouterr() == ("", "error: w1: no such window (expected w2)\n")
    with pytest.raises(SystemExit) as stop, failing(as_json=True):
        raise UnavailableError("away")
    assert stop.value.code == ExitCode.UNAVAILABLE
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"problem": "unavailable", "detail": "away"}
    assert shown.err == ""


def test_other_exceptions_are_not_hidden() -> None:
    with pytest.raises(KeyError), failing():
        raise KeyError("x")
