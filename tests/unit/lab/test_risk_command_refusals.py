"""`ragaudit risk` on bad input: which option is named, and what is not let through."""

import json
from pathlib import Path

import pytest
from for_each import for_each
from ragaudit.encoding.commands import ExitCode, exit_code
from ragaudit.encoding.errors import MalformedError
from risk_command import refused, report

# --- bad input ---
GRR = "--mechanism grr --epsilon 1"
COUNTS = "audit --mechanism blackbox --successes 1 --trials 10"
CALIBRATE = "calibrate --mechanism grr --target 0.1 --records 100"
SIMULATE = "audit --records 3 --runs 100"
TRANSLATE = "translate --epsilon 1 --relation replace"
KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # of RFC 8032


@for_each(
    ("command", "option"),
    [
        (f"bound {GRR}", "--prior"),
        (f"bound {GRR} --records 3 --prior 0.5,0.5", "--prior"),
        (f"bound {GRR} --records 1", "--records"),
        (f"bound {GRR} --records 20000000", "--records"),
        (f"bound {GRR} --prior 0.5,0.4", "--prior"),
        (f"bound {GRR} --prior 1.2,-0.2", "--prior"),
        (f"bound {GRR} --prior half,half", "--prior"),
        (f"bound {GRR} --prior '[true, false]'", "--prior"),
        (f"bound {GRR} --prior nan,1", "--prior"),
        (f"bound {GRR} --records 3 --eta -1", "--eta"),
        (f"bound {GRR} --records 3 --eta 1 --span 0", "--span"),
        (f"bound {GRR} --records 3 --delta 0.1", "--delta"),
        (f"bound {GRR} --records 3 --mu 1", "--mu"),
        ("bound --mechanism grr --records 3", "--epsilon"),
        ("bound --mechanism grr --epsilon nan --records 3", "--epsilon"),
        ("bound --mechanism grr --epsilon -1 --records 3", "--epsilon"),
        ("bound --mechanism ss --epsilon 1 --records 5", "--subset"),
        ("bound --mechanism ss --epsilon 1 --records 5 --subset 6", "--subset"),
        ("bound --mechanism gaussian --mu -1 --records 5", "--mu"),
        ("bound --mechanism blackbox --records 3", "--epsilon"),
        ("bound --mechanism blackbox --mu 1 --delta 0.1 --records 3", "--delta"),
        ("bound --mechanism blackbox --epsilon 1 --delta 1.5 --records 3", "--delta"),
        ("calibrate --target nan --mechanism grr --records 3", "--target"),
        (COUNTS, "--prior"),
        (f"{COUNTS} --prior 0.6,0.4", "--successes"),
        (f"{COUNTS} --records 4 --runs 10", "--successes, --guesses, --runs"),
        (f"{COUNTS} --records 4 --confidence 1", "--confidence"),
        (f"{COUNTS} --records 4 --delta -1", "--delta"),
        (f"{COUNTS} --records 4 --absence add-remove", "--absence"),
        (f"{COUNTS} --records 2 --absence replace", "--absence"),
        (f"{COUNTS} --records 2 --claim-epsilon -1", "--claim-epsilon"),
        ("audit --mechanism blackbox --successes 11 --trials 10 --records 2", "--successes"),
        ("audit --mechanism blackbox --successes 1 --records 2", "--trials"),
        ("audit --mechanism blackbox --runs 10 --records 2", "--runs"),
        ("audit --mechanism grr --runs 10 --records 2", "--runs"),
        (f"audit {GRR} --runs 0 --records 2", "--runs"),
        ("translate --epsilon 1 --records 2", "--relation"),
        ("translate --relation replace --records 2", "--epsilon"),
        ("translate --verdict nowhere.json --records 2", "nowhere.json"),
        ("translate --verdict x --mu 1 --records 2", "--verdict"),
        # Options that do not apply.
        (f"{CALIBRATE} --delta 0.5", "--delta"),
        (f"{CALIBRATE} --delta nan", "--delta"),
        (f"{CALIBRATE} --relation add-remove", "--relation"),
        (f"{CALIBRATE} --subset -4", "--subset"),
        (f"{CALIBRATE} --span 2", "--span"),
        ("calibrate --mechanism channel --target 1 --records 3", "--mechanism"),
        (f"{COUNTS} --records 3 --epsilon 3", "--epsilon"),
        (f"{COUNTS} --records 3 --epsilon nan", "--epsilon"),
        (f"{COUNTS} --records 3 --mu 3", "--mu"),
        (f"{COUNTS} --records 3 --claim-delta 7", "--claim-delta"),
        (f"{COUNTS} --records 3 --claim-relation replace", "--claim-relation"),
        (f"{COUNTS} --records 3 --subset 9", "--subset"),
        (f"{COUNTS} --records 3 --seed 1", "--seed"),
        (f"{SIMULATE} {GRR} --trials 50", "--trials"),
        (f"{SIMULATE} --mechanism gaussian --mu 1 --epsilon 3", "--epsilon"),
        ("audit --records 3 --mechanism grr --guesses f --trials 77", "--trials"),
        (f"audit {GRR} --records 3 --runs 1000000000000", "--runs"),
        (f"audit {GRR} --records 3 --successes 5 --trials 9", "--epsilon"),
        (f"bound {GRR} --records 3 --span -1", "--span"),
        (f"bound {GRR} --records 3 --span nan", "--span"),
        (f"bound {GRR} --records 3 --subset 3", "--subset"),
        (f"bound {GRR} --records 3 --channel f", "--channel"),
        (f"bound {GRR} --records 3 --auxiliary a,b", "--auxiliary"),
        (f"bound {GRR} --records 3 --auxiliary '[[1], [2], [3]]'", "--auxiliary"),
        (f"bound {GRR} --records 2 --auxiliary a,b --knowledge full", "--auxiliary"),
        ("bound --mechanism channel --records 3", "--channel"),
        ("bound --mechanism blackbox --epsilon 1 --records 3 --subset 3", "--subset"),
        (f"{TRANSLATE} --records 3 --verdict-key {KEY}", "--verdict-key"),
        (f"{TRANSLATE} --records 3 --span nan", "--span"),
        ("translate --verdict x --delta 0.1 --records 2", "--verdict"),
    ],
)
def test_bad_options_are_refused_by_name(command: str, option: str) -> None:
    assert refused(command).where == option


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("option", ["--span", "--eta"])
@pytest.mark.parametrize("length", ["1e-320", "1e-300", "1e300", "1e308", "nan", "inf", "-1"])
def test_lengths_out_of_range_are_refused(option: str, length: str) -> None:
    command = ["bound", "--mechanism", "laplace", "--epsilon", "1", "--prior", "0.5,0.3,0.2"]
    assert refused(*command, option, length).where == option


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", ["1e-100", "1e100"])
def test_extreme_lengths_change_nothing(length: str) -> None:
    command = ["bound", "--mechanism", "laplace", "--epsilon", "1", "--prior", "0.5,0.3,0.2"]
    plain = report(*command, "--eta", "0.5")["value"]
    half = repr(float(length) / 2 * (1 + 1e-15))
    wide = [*command, "--span", length, "--eta", half if length == "1e100" else length]
    if length == "1e100":
        assert report(*wide)["value"] == pytest.approx(plain, abs=1e-9)
    else:
        assert report(*wide)["value"] == 0  # every guess counts


@pytest.mark.parametrize("content", ["[" * 100_000, "[" + "9" * 430 + "]", "[" + "9" * 5000 + "]"])
def test_damaged_priors_and_matrices_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "prior.json"
    path.write_text(content)
    assert refused("bound", *GRR.split(), "--prior", str(path)).where == "--prior"
    matrix = ("bound", "--mechanism", "channel", "--records", "2", "--channel", str(path))
    assert str(refused(*matrix).where).startswith("--channel")


@pytest.mark.parametrize(
    "content",
    [
        "", "a,b\n1,2\n", "target,guess\n", "target,guess\n1,x\n", "target,guess\n1\n",
        "target,guess\n-1,0\n", "target,guess\n0,99999999999999999999\n",
        "target,guess\n0,7\n1,1\n", "[]", "[[1]]", "[[1, 2.5]]", "[[true, 1]]", '[{"target": 1}]',
        "[1, 2", "[" * 100_000,
    ],
)  # fmt: skip
def test_damaged_files_of_guesses_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "attack"
    path.write_text(content)
    error = refused("audit --mechanism blackbox --guesses", str(path), "--records", "4")
    assert isinstance(error, MalformedError)


def test_targets_that_no_prior_drew_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "attack.json"
    path.write_text(json.dumps([[0, 0]] * 200))
    error = refused("audit --mechanism blackbox --guesses", str(path), "--records", "4")
    assert error.where == "targets"


def test_numbers_of_twenty_digits_are_refused_by_name() -> None:
    digits = "9" * 20
    counted = ("audit", "--mechanism", "blackbox", "--records", "2")
    error = refused(*counted, "--successes", "1", "--trials", digits)
    assert (error.where, exit_code(error)) == ("--trials", ExitCode.BAD_INPUT)
    error = refused(*counted, "--successes", digits, "--trials", "100")
    assert error.where == "--successes"
    # As many trials as there can be have no one-run comparator, which goes through all of them.
    found = report(*counted, "--successes", "600000000000", "--trials", "1000000000000")
    assert found["comparators"] == {}
    assert 0.4 < found["certified_lower_bound"]["epsilon"] < 0.41
