"""One exit code for one kind of fault, and the table that says so."""

import io
import json
import re
from pathlib import Path

import pytest
from for_each import for_each
from ragaudit.encoding.commands import (
    Escaping,
    ExitCode,
    exit_code,
    failing,
    of_file,
    verdict_code,
)
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
from ragaudit.ledger.messages.verdict import RESULTS

CHAPTER = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


@for_each(
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


def test_what_is_malformed_in_a_file_names_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for where, expected in (("", f"{path}"), ("a.b", f"{path}: a.b"), (f"{path}: c", f"{path}: c")):
        with pytest.raises(MalformedError) as caught, of_file(path):
            raise InvalidArgumentError("bad", where=where, expected="good")
        assert (caught.value.where, caught.value.expected) == (expected, "good")
    with pytest.raises(RefusedError, match=r"^no$"), of_file(path):
        raise RefusedError("no")


def test_every_result_of_a_verdict_has_a_code() -> None:
    codes = {result: verdict_code(result) for result in RESULTS}
    assert codes == {"PASS": 0, "FAIL": 1, "REFUSED": 4, "EXCEEDED": 6, "CONDITIONAL": 7}


def test_output_that_nobody_takes_is_unavailable() -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(UnavailableError, match="output: cannot be written: No space left"):
        Escaping(Full()).write("x")
