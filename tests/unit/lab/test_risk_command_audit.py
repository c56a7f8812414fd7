"""`ragaudit risk`: certificates, claims, verdicts, docs that use them; what bad input is told."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chapters import DOCS, blocks, shell
from for_each import for_each
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.commands import ExitCode, exit_code
from ragaudit.encoding.errors import MalformedError, RefusedError, RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.risk.optimal_attack import RandomizedResponse, simulate
from ragaudit.lab.risk.threat import FinitePrior
from ragaudit.ledger.messages.verdict import Claims, SignedCheck, Status, sign_statement, statement
from ragaudit.privacy.accounting.report import epsilon_report
from risk_command import refused, report, run

# --- audit ---


def test_counts_are_certified() -> None:
    found = report("audit --mechanism blackbox --successes 200 --trials 1000 --records 10")
    assert found["certified_lower_bound"]["epsilon"] == pytest.approx(0.6765895630900883, abs=1e-9)
    assert found["model_based_estimate"] is None
    assert found["claim"] is None and found["comparators"] == {}


def test_a_simulated_mechanism_gets_both_answers_apart() -> None:
    found = report("audit --mechanism oue --epsilon 2 --records 20 --runs 100000 --seed 1")
    certified, model = found["certified_lower_bound"], found["model_based_estimate"]
    # Six standard errors of the mean, about .0012 each, at slope near .1.
    assert (model["parameter"], model["value"]) == ("epsilon", pytest.approx(2, abs=0.1))
    assert certified["epsilon"] < 2
    assert "not a certificate" in model["label"]
    shown = run("audit --mechanism oue --epsilon 2 --records 20 --runs 1000").stdout
    assert shown.index("certified lower bound") < shown.index("model-based estimate (not a cert")


def test_gaussian_noise_gets_both_answers_in_their_own_parameters() -> None:
    """The certificate is an epsilon, as always; the estimate the mechanism's own mu."""
    command = ("audit", "--mechanism", "gaussian", "--mu", "2", "--records", "5", "--eta", "0.3")
    found = report(*command, "--runs", "100000", "--seed", "4")
    model = found["model_based_estimate"]
    # Six standard errors of the mean, about .0015 each, at slope near .1.
    assert (model["parameter"], model["value"]) == ("mu", pytest.approx(2, abs=0.09))
    assert found["certified_lower_bound"]["epsilon"] > 0
    assert "mu about" in run(*command, "--runs", "1000").stdout


@for_each(
    ("arguments", "successes", "trials"),
    [
        (["--mechanism", "grr", "--records", "10"], 1000, 1000),
        (["--mechanism", "laplace", "--records", "10"], 1000, 1000),
        (["--mechanism", "gaussian", "--records", "10"], 1000, 1000),
        (["--mechanism", "ss", "--subset", "2", "--records", "5"], 100, 200),
        (["--mechanism", "oue", "--records", "5"], 180, 300),
        (["--mechanism", "oue", "--records", "5"], 250, 300),
    ],
)
def test_an_estimate_at_the_supremum_is_infinite(
    arguments: list[str], successes: int, trials: int
) -> None:
    command = ("audit", *arguments, "--successes", str(successes), "--trials", str(trials))
    assert report(*command)["model_based_estimate"]["value"] == "inf"
    assert " infinite if it is" in run(*command).stdout
    below = ("audit", *arguments, "--successes", str(successes // 2), "--trials", str(trials))
    assert report(*below)["model_based_estimate"]["value"] != "inf"


def test_infinity_is_said_in_one_way() -> None:
    shown = run(
        "audit", "--mechanism", "blackbox", "--successes", "0", "--trials", "100", "--records",
        "2", "--false-positives", "50",
    ).stdout  # fmt: skip
    assert "ldp auditor: -infinite" in shown
    assert "inf\n" not in shown


def test_a_claim_is_shown_as_it_was_made() -> None:
    command = (
        "audit", "--mechanism", "blackbox", "--successes", "990", "--trials", "1000", "--records",
        "2", "--claim-epsilon", "1",
    )  # fmt: skip
    converted = (*command, "--claim-relation", "add-remove")
    said = "claim REFUTED: (1, 0)-DP under add-remove, that is (2, 0)-DP under replace, allows"
    assert said in run(*converted).stdout
    assert "REFUTED: (1, 0)-DP under replace allows" in run(*command).stdout
    claim = report(*converted, code=1)["claim"]
    assert claim["stated"] == {"epsilon": 1, "delta": 0, "relation": "add-remove"}
    assert (claim["epsilon"], claim["relation"]) == (2, "replace")


def test_simulation_is_repeatable() -> None:
    arguments = ("audit", "--mechanism", "grr", "--epsilon", "1", "--records", "5", "--runs", "999")
    assert report(*arguments) == report(*arguments)
    assert report(*arguments) != report(*arguments, "--seed", "1")


def write_pairs(path: Path, epsilon: float) -> None:
    found = simulate(
        RandomizedResponse(epsilon), FinitePrior.uniform(4), 4000, np.random.default_rng(2)
    )
    pairs = np.stack([found.targets, found.guesses], axis=1).tolist()
    if path.suffix == ".json":
        path.write_text(json.dumps(pairs))
    else:
        path.write_text("target,guess\n" + "\n".join(f"{t},{g}" for t, g in pairs) + "\n")


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_file_of_guesses_refutes_a_false_claim(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"attack{suffix}"
    write_pairs(path, 3.0)
    common = ("audit", "--mechanism", "blackbox", "--guesses", str(path), "--records", "4")
    found = report(*common, "--claim-epsilon", "0.5", code=1)
    assert found["claim"]["refuted"] and found["claim"]["by"] in ("Theorem 5.5", "Corollary 5.6")
    assert not report(*common, "--claim-epsilon", "3")["claim"]["refuted"]
    shown = run(*common, "--claim-epsilon", "0.5")
    assert shown.exit_code == 1 and "claim REFUTED" in shown.stdout


def test_membership_audits_have_comparators_and_their_own_relation() -> None:
    found = report(
        "audit", "--mechanism", "blackbox", "--successes", "86", "--trials", "132", "--records",
        "2", "--absence", "add-remove", "--false-positives", "46",
    )  # fmt: skip
    assert found["certified_lower_bound"]["relation"] == "add-remove"
    one_run = found["comparators"]["one_run_if_all_trials_were_in_one_run"]
    assert one_run == pytest.approx(0.312198, abs=1e-6)
    assert "ldp_auditor" in found["comparators"]


def test_guesses_within_a_distance(tmp_path: Path) -> None:
    found = report(
        "audit --mechanism laplace --epsilon 4 --records 11 --span 10 --eta 1 --runs 20000"
    )
    assert found["observed"]["method"] == "empirical-bernstein"
    # Three of the eleven records count, so chance alone is right about 3/11 of the time.
    right = found["observed"]["successes"] / 20000
    assert right > found["observed"]["advantage"] + 0.2
    assert found["certified_lower_bound"]["epsilon"] < 4


# --- translate ---


def predicate(result: str = "PASS", worthless: bool = False) -> dict[str, Any]:
    table = epsilon_report(
        "20", "null-replace", 1, 100, 2, "0.000001", Fraction(1, 2**100), 300, [100] * 3, "4",
        "0.000001",
    ).to_json()  # fmt: skip
    status = Status.PASS if result == "PASS" else Status.FAIL
    check = SignedCheck(20, "coalition", status, "", ())
    return {
        "window": "2026-w48", "provider": "acme", "result": result, "worthless": worthless,
        "terms": "00",
        "time": 1, "engine": "core", "checks": [check.to_json()], "epsilon": table,
        "sampling": {}, "counts": {},
        "coalition": {}, "scope": {}, "not_covered": [], "assumptions": [],
        "claims": Claims.of({check.id: status}).to_json(),
    }  # fmt: skip


@pytest.fixture
def key() -> PrivateKey:
    return PrivateKey.generate()


def test_a_signed_verdict_is_translated(tmp_path: Path, key: PrivateKey) -> None:
    path = tmp_path / "verdict.json"
    path.write_bytes(sign_statement(statement({}, predicate()), key))
    checked = ("--verdict-key", key.public.raw.hex())
    found = report("translate --verdict", str(path), *checked, "--records", "10")
    table = predicate()["epsilon"]
    assert found["verdict"]["signature_checked"] is True
    assert found["relation"] == "null-replace"
    assert found["membership_advantage"] >= float(table["risk"]["membership_advantage"]) - 1e-12
    assert found["attribute_advantage"] == pytest.approx(
        float(table["risk"]["uniform_priors"][1]["attribute"]), abs=5e-6
    )
    shown = run("translate --verdict", str(path), "--records", "10").stdout
    assert "SIGNATURE NOT CHECKED" in " ".join(shown.split())
    assert "Window 2026-w48 of acme: PASS" in shown
    assert "percentage points" in shown
    other = PrivateKey.generate().public.raw.hex()
    with_other = ("translate", "--verdict", str(path), "--verdict-key", other, "--records", "10")
    assert isinstance(refused(*with_other), RejectedError)


def test_a_translation_stands_alone(tmp_path: Path) -> None:
    command = ("translate", "--epsilon", "1", "--relation", "replace")
    near = (*command, "--prior", "0.5,0.3,0.2", "--eta", "0.5", "--span", "2")
    words = " ".join(run(*near).stdout.split())
    assert "names it correctly" not in words
    assert "names a record within 0.5 of it (the records lie evenly over a range of 2)" in words
    assert "one of 3 records with the probabilities 0.5, 0.3 and 0.2" in words
    found = report(*near)
    assert (found["eta"], found["span"]) == (0.5, 2)
    assert found["prior_stated"] == {"probabilities": [0.5, 0.3, 0.2]}
    exact = report(*command, "--records", "10")
    assert (exact["eta"], exact["span"], exact["prior_stated"]) == (0, None, {"uniform_over": 10})
    many = tmp_path / "prior.txt"
    many.write_text(" ".join(["0.1", *["0.00009"] * 10_000]))
    summarized = report(*command, "--prior", str(many))
    assert summarized["prior_stated"] == {
        "records": 10_001, "largest": 0.1, "source": str(many),
        "collision_probability": pytest.approx(0.01 + 1e4 * 0.00009**2),
    }  # fmt: skip
    assert "the most probable one with probability 0.1, two draws" in summarized["prior"]


def test_a_payload_or_a_predicate_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "predicate.json"
    for value in (predicate(), statement({}, predicate())):
        path.write_bytes(dumps(value))
        assert report("translate --verdict", str(path), "--records", "2")["auc"] > 0.5


@pytest.mark.parametrize(
    ("result", "worthless"), [("FAIL", False), ("REFUSED", False), ("PASS", True)]
)
def test_verdicts_that_guarantee_nothing_are_not_translated(
    tmp_path: Path, result: str, worthless: bool
) -> None:
    path = tmp_path / "verdict.json"
    value = predicate(result, worthless)
    if result == "REFUSED":
        value["epsilon"] = {}
    path.write_bytes(dumps(value))
    error = refused("translate --verdict", str(path), "--records", "2")
    assert isinstance(error, RefusedError)
    assert "states no guarantee" in str(error) or "worthless" in str(error)


def damaged(change: Callable[[dict[str, Any]], object]) -> bytes:
    value = predicate()
    change(value)
    return dumps(value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"payload": "%%%"}',
        b"[" * 100_000,
        damaged(lambda p: p["epsilon"].pop("headline")),
        damaged(lambda p: p["epsilon"]["headline"].update(mu="much")),
        damaged(lambda p: p["epsilon"]["headline"].update(mu="NaN")),
        damaged(lambda p: p["epsilon"]["headline"].update(mu="-1")),
        damaged(lambda p: p["epsilon"]["headline"].update(mu=None)),
        damaged(lambda p: p["epsilon"]["parameters"].update(gamma="2^-x")),
        damaged(lambda p: p["epsilon"]["parameters"].update(gamma="3")),
        damaged(lambda p: p["epsilon"]["parameters"].update(gamma="1/0")),
        damaged(lambda p: p["epsilon"]["parameters"].update(relation="other")),
    ],
)
def test_damaged_verdicts_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "verdict.json"
    path.write_bytes(content)
    assert isinstance(refused("translate --verdict", str(path), "--records", "2"), MalformedError)


@pytest.mark.slow
def test_the_auditors_commands(tmp_path: Path) -> None:
    key = PrivateKey.generate()
    (tmp_path / "verdict.json").write_bytes(sign_statement(statement({}, predicate()), key))
    first, second = blocks((DOCS / "regulator.md").read_text(), "sh", "ragaudit risk")
    translated = shell(first, tmp_path, VERDICT_KEY=key.public.raw.hex())
    words = " ".join(translated.split())
    assert "signature checked." in words
    assert "one of 10 equally likely records" in words
    other = shell(second, tmp_path)
    assert "(1, 1e-06)-DP" in other


@pytest.mark.slow
def test_the_researchers_audit_commands(tmp_path: Path) -> None:
    commands, file_of_guesses = blocks((DOCS / "researcher.md").read_text(), "sh", "ragaudit risk")
    shown = shell(commands, tmp_path)
    assert "advantage at most" in shown
    assert "certified lower bound" in shown
    assert "model-based estimate" in shown
    audited = shell(file_of_guesses, tmp_path)
    assert "6 of 8 guesses right" in audited
    assert "claim not refuted" in audited


@pytest.mark.nightly
def test_the_researchers_reproduction(tmp_path: Path) -> None:
    (command,) = blocks((DOCS / "researcher.md").read_text(), "sh", "ragaudit reproduce rad")
    done = shell(command, tmp_path)
    assert "MNIST is not used" in done
    assert (tmp_path / "results" / "figure-8-3052.svg").exists()


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
