"""`ragaudit risk`: what is printed, what a program reads, exit codes, bad input."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit.cli.main import app as root
from ragaudit.cli.risk.command import app
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedError, RagauditError, RefusedError, RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.risk.priors import FinitePrior
from ragaudit.privacy.risk.simulation import RandomizedResponse, simulate
from ragaudit.verifier.verdict import sign_statement, statement
from typer.testing import CliRunner, Result


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def report(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == code, (result.output, result.exception)
    return json.loads(result.stdout)


def refused(*arguments: str) -> RagauditError:
    result = run(*arguments)
    assert isinstance(result.exception, RagauditError), (result.output, result.exception)
    assert not result.stdout
    return result.exception


def test_the_group_is_registered_and_every_command_has_examples() -> None:
    assert "risk" in CliRunner().invoke(root, ["--help"]).stdout
    for command in ("bound", "calibrate", "audit", "translate"):
        shown = run(command, "--help").stdout
        assert "Example" in shown and f"ragaudit risk {command}" in shown


# --- bound ---


@pytest.mark.parametrize(
    ("arguments", "value", "winner"),
    [
        (["--mechanism", "grr", "--epsilon", "1"], 0.9 * math.expm1(1) / (math.e + 9), None),
        (["--mechanism", "oue", "--epsilon", "40"], 0.45, "Theorem 4.3"),
        (["--mechanism", "ss", "--subset", "2", "--epsilon", "1"], None, "Theorem 4.3"),
        (["--mechanism", "laplace", "--epsilon", "2"], 0.9 * -math.expm1(-1 / 9), "Theorem 4.3"),
        (["--mechanism", "gaussian", "--mu", "1"], None, "Theorem 4.3"),
        (
            ["--mechanism", "blackbox", "--epsilon", "1", "--delta", "1e-5"],
            0.1319769969909071,
            None,
        ),
        (
            ["--mechanism", "blackbox", "--epsilon", "1", "--knowledge", "full"],
            0.9 * math.tanh(0.5),
            "Theorem 4.2",
        ),
    ],
)
def test_the_best_bound_and_who_gave_it(
    arguments: list[str], value: float | None, winner: str | None
) -> None:
    found = report("bound", "--records", "10", *arguments)
    if value is not None:
        assert found["value"] == pytest.approx(value, abs=1e-9)
    if winner is not None:
        assert found["winner"]["theorem"] == winner
    assert found["value"] == pytest.approx(min(b["value"] for b in found["applicable"]), abs=1e-12)
    assert found["winner"]["assumptions"]["prior"] == "uniform, 10 records"
    assert found["winner"]["assumptions"]["adjacency"] == "replace"


@pytest.mark.parametrize("guarantee", [("1", "replace"), ("0.5", "add-remove")])
def test_gaussian_guarantees_are_converted_by_name(guarantee: tuple[str, str]) -> None:
    mu, adjacency = guarantee
    found = report(
        "bound", "--mechanism", "blackbox", "--mu", mu, "--adjacency", adjacency, "--records", "10"
    )
    by = {bound["theorem"]: bound["value"] for bound in found["applicable"]}
    assert by["Theorem 5.1"] == pytest.approx(0.2714176166155863, abs=1e-9)
    assert found["value"] <= by["Theorem 5.1"]


def test_the_table_of_bounds_says_what_does_not_apply() -> None:
    shown = run("bound", "--mechanism", "blackbox", "--epsilon", "3", "--prior", "0.6 0.3 0.1")
    assert shown.exit_code == 0
    assert "advantage at most 0." in shown.stdout
    assert "Corollary 5.6 does not apply: prior" in shown.stdout
    certain = run("bound", "--mechanism", "blackbox", "--epsilon", "3", "--prior", "1,0")
    assert "nothing is left to gain" in certain.stdout


def test_eta_and_priors_from_files(tmp_path: Path) -> None:
    listed, lined = tmp_path / "prior.json", tmp_path / "prior.txt"
    listed.write_text("[0.5, 0.3, 0.2]")
    lined.write_text("0.5\n0.3\n0.2\n")
    common = ("--mechanism", "laplace", "--epsilon", "2", "--eta", "0.5")
    values = {
        report("bound", *common, "--prior", source)["value"]
        for source in (str(listed), str(lined), "0.5,0.3,0.2")
    }
    assert len(values) == 1


# --- calibrate ---


def test_calibration_of_the_papers_example() -> None:
    found = report("calibrate", "--target", "0.1", "--mechanism", "grr", "--records", "100")
    assert found["value"] == pytest.approx(2.504379, abs=1e-6)  # the paper prints 2.503
    assert found["advantage"] <= 0.1


@pytest.mark.parametrize("mechanism", ["grr", "oue", "ss", "laplace", "gaussian", "blackbox"])
def test_a_calibrated_mechanism_keeps_the_target_and_a_weaker_one_does_not(mechanism: str) -> None:
    found = report("calibrate", "--target", "0.05", "--mechanism", mechanism, "--records", "12")
    value, parameter = found["value"], found["parameter"]
    more = ("--subset", "1") if mechanism == "ss" else ()

    def bound(at: float) -> float:
        shown = report(
            "bound", "--mechanism", mechanism, f"--{parameter}", repr(at), "--records", "12", *more
        )
        return float(shown["value"])

    if mechanism != "ss":  # its subset's size follows epsilon
        assert bound(value) <= 0.05 + 1e-12
    assert bound(value * 1.01) > 0.05
    if mechanism in ("laplace", "gaussian"):
        assert found["noise_scale"] == pytest.approx(1 / value)


def test_unreachable_targets_constrain_nothing_and_zero_allows_nothing() -> None:
    everything = report("calibrate", "--target", "0.95", "--mechanism", "grr", "--records", "10")
    assert everything["value"] == "inf"
    nothing = report("calibrate", "--target", "0", "--mechanism", "laplace", "--records", "10")
    assert nothing["value"] == 0 and nothing["noise_scale"] == "inf"
    shown = run("calibrate", "--target", "0", "--mechanism", "laplace", "--records", "10")
    assert "scale at least infinite" in shown.stdout


def test_an_add_remove_guarantee_is_worth_half() -> None:
    common = ("--target", "0.05", "--mechanism", "blackbox", "--records", "10")
    one = report("calibrate", *common)["value"]
    other = report("calibrate", *common, "--adjacency", "add-remove")["value"]
    assert other == pytest.approx(one / 2, rel=1e-9)


# --- audit ---


def test_counts_are_certified() -> None:
    found = report(
        "audit", "--mechanism", "blackbox", "--successes", "200", "--trials", "1000",
        "--records", "10",
    )  # fmt: skip
    assert found["certified_lower_bound"]["epsilon"] == pytest.approx(0.6765895630900883, abs=1e-9)
    assert found["model_based_estimate"] is None
    assert found["claim"] is None and found["comparators"] == {}


def test_a_simulated_mechanism_gets_both_answers_apart() -> None:
    found = report(
        "audit", "--mechanism", "oue", "--epsilon", "2", "--records", "20", "--runs", "100000",
        "--seed", "1",
    )  # fmt: skip
    certified, model = found["certified_lower_bound"], found["model_based_estimate"]
    # Six standard errors of the mean, about .0012 each, at slope near .1.
    assert (model["parameter"], model["value"]) == ("epsilon", pytest.approx(2, abs=0.1))
    assert certified["epsilon"] < 2
    assert "not a certificate" in model["label"]
    shown = run(
        "audit", "--mechanism", "oue", "--epsilon", "2", "--records", "20", "--runs", "1000",
    ).stdout  # fmt: skip
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
    found = report(*common, "--claim-epsilon", "0.5", code=3)
    assert found["claim"]["refuted"] and found["claim"]["by"] in ("Theorem 5.5", "Corollary 5.6")
    assert not report(*common, "--claim-epsilon", "3")["claim"]["refuted"]
    shown = run(*common, "--claim-epsilon", "0.5")
    assert shown.exit_code == 3 and "claim REFUTED" in shown.stdout


def test_membership_audits_have_comparators_and_their_own_adjacency() -> None:
    found = report(
        "audit", "--mechanism", "blackbox", "--successes", "86", "--trials", "132", "--records",
        "2", "--absence", "add-remove", "--false-positives", "46",
    )  # fmt: skip
    assert found["certified_lower_bound"]["adjacency"] == "add-remove"
    one_run = found["comparators"]["one_run_if_all_trials_were_in_one_run"]
    assert one_run == pytest.approx(0.312198, abs=1e-6)
    assert "ldp_auditor" in found["comparators"]


def test_guesses_within_a_distance(tmp_path: Path) -> None:
    found = report(
        "audit", "--mechanism", "laplace", "--epsilon", "4", "--records", "11", "--span", "10",
        "--eta", "1", "--runs", "20000",
    )  # fmt: skip
    assert found["observed"]["method"] == "empirical-bernstein"
    assert found["certified_lower_bound"]["epsilon"] < 4


# --- translate ---


def predicate(result: str = "PASS", worthless: bool = False) -> dict[str, Any]:
    table = epsilon_report(
        "20", "null-replace", 1, 100, 2, "0.000001", _gamma(), 300, [100] * 3, "4", "0.000001"
    )
    return {
        "window": "2026-w48", "provider": "acme", "result": result, "worthless": worthless,
        "time": 1, "engine": "core", "checks": [], "epsilon": table, "sampling": {}, "counts": {},
        "coalition": {}, "not_covered": [], "assumptions": [],
    }  # fmt: skip


def _gamma() -> Any:
    from fractions import Fraction

    return Fraction(1, 2**100)


@pytest.fixture
def key() -> PrivateKey:
    return PrivateKey.generate()


def test_a_signed_verdict_is_translated(tmp_path: Path, key: PrivateKey) -> None:
    path = tmp_path / "verdict.json"
    path.write_bytes(sign_statement(statement({}, predicate()), key))
    checked = ("--verdict-key", key.public.raw.hex())
    found = report("translate", "--verdict", str(path), *checked, "--records", "10")
    table = predicate()["epsilon"]
    assert found["verdict"]["signature_checked"] is True
    assert found["adjacency"] == "null-replace"
    assert found["membership_advantage"] >= float(table["risk"]["membership_advantage"]) - 1e-12
    assert found["attribute_advantage"] == pytest.approx(
        float(table["risk"]["uniform_priors"][1]["attribute"]), abs=5e-6
    )
    shown = run("translate", "--verdict", str(path), "--records", "10").stdout
    assert "SIGNATURE NOT CHECKED" in " ".join(shown.split())
    assert "Window 2026-w48 of acme: PASS" in shown
    assert "percentage points" in shown
    other = PrivateKey.generate().public.raw.hex()
    with_other = ("translate", "--verdict", str(path), "--verdict-key", other, "--records", "10")
    assert isinstance(refused(*with_other), RejectedError)


def test_a_payload_or_a_predicate_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "predicate.json"
    for value in (predicate(), statement({}, predicate())):
        path.write_bytes(dumps(value))
        assert report("translate", "--verdict", str(path), "--records", "2")["auc"] > 0.5


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
    error = refused("translate", "--verdict", str(path), "--records", "2")
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
    assert isinstance(
        refused("translate", "--verdict", str(path), "--records", "2"), MalformedError
    )


# --- bad input ---


GRR = ("--mechanism", "grr", "--epsilon", "1")
COUNTS = ("audit", "--mechanism", "blackbox", "--successes", "1", "--trials", "10")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["bound", *GRR], "--prior"),
        (["bound", *GRR, "--records", "3", "--prior", "0.5,0.5"], "--prior"),
        (["bound", *GRR, "--records", "1"], "records"),
        (["bound", *GRR, "--records", "20000000"], "records"),
        (["bound", *GRR, "--prior", "0.5,0.4"], "prior"),
        (["bound", *GRR, "--prior", "1.2,-0.2"], "prior"),
        (["bound", *GRR, "--prior", "half,half"], "--prior"),
        (["bound", *GRR, "--prior", "[true, false]"], "--prior"),
        (["bound", *GRR, "--prior", "nan,1"], "prior"),
        (["bound", *GRR, "--records", "3", "--eta", "-1"], "eta"),
        (["bound", *GRR, "--records", "3", "--eta", "1", "--span", "0"], "span"),
        (["bound", *GRR, "--records", "3", "--delta", "0.1"], "--delta, --adjacency"),
        (["bound", *GRR, "--records", "3", "--mu", "1"], "--epsilon"),
        (["bound", "--mechanism", "grr", "--records", "3"], "--epsilon"),
        (["bound", "--mechanism", "grr", "--epsilon", "nan", "--records", "3"], "epsilon"),
        (["bound", "--mechanism", "grr", "--epsilon", "-1", "--records", "3"], "epsilon"),
        (["bound", "--mechanism", "ss", "--epsilon", "1", "--records", "5"], "--subset"),
        (
            ["bound", "--mechanism", "ss", "--epsilon", "1", "--records", "5", "--subset", "6"],
            "subset",
        ),
        (["bound", "--mechanism", "gaussian", "--mu", "0", "--records", "5"], "mu"),
        (["bound", "--mechanism", "blackbox", "--records", "3"], "--epsilon"),
        (
            ["bound", "--mechanism", "blackbox", "--mu", "1", "--delta", "0.1", "--records", "3"],
            "--delta",
        ),
        (
            [
                "bound",
                "--mechanism",
                "blackbox",
                "--epsilon",
                "1",
                "--delta",
                "1.5",
                "--records",
                "3",
            ],
            "delta",
        ),
        (["calibrate", "--target", "nan", "--mechanism", "grr", "--records", "3"], "advantage"),
        ([*COUNTS], "--prior"),
        ([*COUNTS, "--prior", "0.6,0.4"], "--successes"),
        ([*COUNTS, "--records", "4", "--runs", "10"], "--successes, --guesses, --runs"),
        ([*COUNTS, "--records", "4", "--confidence", "1"], "confidence"),
        ([*COUNTS, "--records", "4", "--delta", "-1"], "delta"),
        ([*COUNTS, "--records", "4", "--absence", "add-remove"], "--absence"),
        ([*COUNTS, "--records", "2", "--absence", "replace"], "adjacency"),
        ([*COUNTS, "--records", "2", "--claim-epsilon", "-1"], "epsilon"),
        (
            [
                "audit",
                "--mechanism",
                "blackbox",
                "--successes",
                "11",
                "--trials",
                "10",
                "--records",
                "2",
            ],
            "successes",
        ),
        (["audit", "--mechanism", "blackbox", "--successes", "1", "--records", "2"], "--trials"),
        (["audit", "--mechanism", "blackbox", "--runs", "10", "--records", "2"], "--runs"),
        (["audit", "--mechanism", "grr", "--runs", "10", "--records", "2"], "--runs"),
        (["audit", *GRR, "--runs", "0", "--records", "2"], "runs"),
        (["translate", "--epsilon", "1", "--records", "2"], "--adjacency"),
        (["translate", "--adjacency", "replace", "--records", "2"], "--epsilon"),
        (["translate", "--verdict", "nowhere.json", "--records", "2"], "nowhere.json"),
        (["translate", "--verdict", "x", "--mu", "1", "--records", "2"], "--verdict"),
    ],
)
def test_bad_options_name_the_field(arguments: list[str], field: str) -> None:
    assert refused(*arguments).where == field


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a,b\n1,2\n",
        "target,guess\n",
        "target,guess\n1,x\n",
        "target,guess\n1\n",
        "target,guess\n-1,0\n",
        "target,guess\n0,99999999999999999999\n",
        "target,guess\n0,7\n1,1\n",
        "[]",
        "[[1]]",
        "[[1, 2.5]]",
        "[[true, 1]]",
        '[{"target": 1}]',
        "[1, 2",
        "[" * 100_000,
    ],
)
def test_damaged_files_of_guesses_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "attack"
    path.write_text(content)
    error = refused("audit", "--mechanism", "blackbox", "--guesses", str(path), "--records", "4")
    assert isinstance(error, MalformedError)


def test_targets_that_no_prior_drew_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "attack.json"
    path.write_text(json.dumps([[0, 0]] * 200))
    error = refused("audit", "--mechanism", "blackbox", "--guesses", str(path), "--records", "4")
    assert error.where == "targets"
