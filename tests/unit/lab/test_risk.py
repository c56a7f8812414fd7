"""`ragaudit risk`: what is printed, what a program reads, exit codes, bad input."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit.cli.main import app as root
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.commands import ExitCode, exit_code
from ragaudit.encoding.errors import MalformedError, RagauditError, RefusedError, RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.risk.calibration import laplace_epsilon, uniform_exact_guess_epsilon
from ragaudit.lab.risk.finite import finite_advantage
from ragaudit.lab.risk.priors import FinitePrior
from ragaudit.lab.risk.reconstruction_robustness import LABEL
from ragaudit.lab.risk.simulation import RandomizedResponse, simulate
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, SuccessSets, ThreatModel
from ragaudit.lab.risk_command.command import app
from ragaudit.lab.risk_command.progress import counted
from ragaudit.ledger.messages.verdict import sign_statement, statement
from ragaudit.privacy.accounting.report import epsilon_report
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
    assert found["winner"]["assumptions"]["relation"] == "replace"


@pytest.mark.parametrize("guarantee", [("1", "replace"), ("0.5", "add-remove")])
def test_gaussian_guarantees_are_converted_by_name(guarantee: tuple[str, str]) -> None:
    mu, relation = guarantee
    found = report(
        "bound", "--mechanism", "blackbox", "--mu", mu, "--relation", relation, "--records", "10"
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


@pytest.mark.parametrize(
    ("arguments", "value", "equation"),
    [
        (["--mechanism", "grr", "--epsilon", "1"], math.e / 10, "Eq. (1)"),
        (["--mechanism", "blackbox", "--epsilon", "1", "--delta", "0.01"], None, "Eq. (3)"),
        (["--mechanism", "gaussian", "--mu", "1"], None, "Eq. (3)"),
    ],
)
def test_reconstruction_robustness_stands_apart_with_its_label(
    arguments: list[str], value: float | None, equation: str
) -> None:
    found = report("bound", "--records", "10", *arguments)
    success = found["reconstruction_robustness"]
    assert success["equation"] == equation
    assert success["label"] == LABEL
    if value is not None:
        assert success["success_probability_at_most"] == pytest.approx(value)
    assert all("Eq." not in bound["theorem"] for bound in found["applicable"])
    shown = run("bound", "--records", "10", *arguments).stdout
    assert LABEL in shown and f"by {equation}" in shown
    assert shown.index("advantage at most") < shown.index(LABEL)


def test_reconstruction_robustness_does_not_apply_with_knowledge() -> None:
    command = ("bound", "--mechanism", "grr", "--epsilon", "1", "--records", "3")
    for more in (("--knowledge", "full"), ("--auxiliary", "a,b,a")):
        success = report(*command, *more)["reconstruction_robustness"]
        assert "knowledge" in success["missing"] and success["label"] == LABEL
        assert "success_probability_at_most" not in success


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_the_optimum_of_ones_own_mechanism(tmp_path: Path, suffix: str) -> None:
    rows = [[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]
    path = tmp_path / f"matrix{suffix}"
    path.write_text(
        json.dumps(rows) if suffix == ".json" else "\n".join(",".join(map(str, r)) for r in rows)
    )
    command = ("bound", "--mechanism", "channel", "--channel", str(path), "--prior", "0.5,0.3,0.2")
    threat = ThreatModel.reconstruction(FinitePrior([0.5, 0.3, 0.2]))
    found = report(*command)
    assert found["value"] == pytest.approx(finite_advantage(rows, threat))
    assert found["winner"]["theorem"] == "Theorem 4.3" and not found["winner"]["composes"]
    labels = tmp_path / "labels.json"
    labels.write_text('["a", "b", "a"]')
    knowing = ThreatModel(
        threat.prior, SuccessSets.exact(3), AuxiliaryKnowledge.of_labels(["a", "b", "a"])
    )
    for source in ("a,b,a", str(labels)):
        partly = report(*command, "--auxiliary", source)
        assert partly["value"] == pytest.approx(finite_advantage(rows, knowing))


def test_an_optimum_does_not_compose() -> None:
    found = report("bound", "--mechanism", "grr", "--epsilon", "1", "--records", "3")
    composes = {bound["theorem"]: bound["composes"] for bound in found["applicable"]}
    assert not composes.pop("Theorem 4.3")
    assert all(composes.values())


@pytest.mark.parametrize(
    "mechanism",
    [["laplace", "--epsilon"], ["gaussian", "--mu"], ["grr", "--epsilon"], ["oue", "--epsilon"]],
)
def test_at_zero_nothing_is_told(mechanism: list[str]) -> None:
    arguments = ["--mechanism", *mechanism, "0", "--records", "5"]
    assert report("bound", *arguments)["value"] == 0
    audited = report("audit", *arguments, "--runs", "1000")
    assert abs(audited["observed"]["advantage"]) < 6 * 0.4 / math.sqrt(1000)  # 6 standard errors


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


def test_a_target_that_cannot_be_kept_is_said_to_be_so() -> None:
    command = ("calibrate", "--mechanism", "blackbox", "--records", "100", "--delta", "1e-3")
    lost = report(*command, "--target", "1e-9")
    assert (lost["value"], lost["kept"]) == (0, False)
    assert lost["advantage"] > 1e-9
    assert "no epsilon keeps the target 1e-09" in run(*command, "--target", "1e-9").stdout
    assert report(*command, "--target", "0.1")["kept"]
    free = report("calibrate", "--mechanism", "grr", "--records", "10", "--target", "0.9")
    assert (free["value"], free["kept"]) == ("inf", True)


def test_many_records_on_a_line_are_calibrated() -> None:
    """Their epsilon is far above 10^4, which is not infinite."""
    command = ("calibrate", "--mechanism", "laplace", "--records", "1000000", "--target", "0.3")
    assert report(*command)["value"] == pytest.approx(laplace_epsilon(0.3, 10**6), rel=1e-9)


def test_large_and_small_numbers_are_shown() -> None:
    assert run(
        "calibrate", "--mechanism", "laplace", "--target", "1e-300", "--records", "10"
    ).exit_code == 0  # fmt: skip
    shown = run(
        "calibrate", "--mechanism", "laplace", "--target", "0.3", "--prior", "0.5,0.3,0.2",
        "--span", "1e99",
    )  # fmt: skip
    assert "noise of scale at least 3.75" in shown.stdout and "e+98" in shown.stdout


def test_a_uniform_prior_of_ten_million_records_takes_no_memory() -> None:
    found = report(
        "calibrate", "--mechanism", "blackbox", "--target", "0.1", "--records", "10000000"
    )
    assert found["value"] == pytest.approx(uniform_exact_guess_epsilon(0.1, 10**7), rel=1e-6)


def test_progress_counts_evaluations_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with counted(math.sqrt, quiet=False) as watched:
        assert watched(4.0) == 2
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich is concerned
    with counted(math.sqrt, quiet=False) as watched:
        assert watched(4.0) == 2
    shown = capsys.readouterr()
    assert "evaluation 1" in shown.err and not shown.out
    with counted(math.sqrt, quiet=True) as watched:
        watched(4.0)
    assert capsys.readouterr().err == ""


def test_an_add_remove_guarantee_is_worth_half() -> None:
    common = ("--target", "0.05", "--mechanism", "blackbox", "--records", "10")
    one = report("calibrate", *common)["value"]
    other = report("calibrate", *common, "--relation", "add-remove")["value"]
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


@pytest.mark.parametrize(
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
        "audit", "--mechanism", "laplace", "--epsilon", "4", "--records", "11", "--span", "10",
        "--eta", "1", "--runs", "20000",
    )  # fmt: skip
    assert found["observed"]["method"] == "empirical-bernstein"
    # Three of the eleven records count, so chance alone is right about 3/11 of the time.
    right = found["observed"]["successes"] / 20000
    assert right > found["observed"]["advantage"] + 0.2
    assert found["certified_lower_bound"]["epsilon"] < 4


# --- translate ---


def predicate(result: str = "PASS", worthless: bool = False) -> dict[str, Any]:
    table = epsilon_report(
        "20", "null-replace", 1, 100, 2, "0.000001", _gamma(), 300, [100] * 3, "4", "0.000001"
    ).to_json()
    return {
        "window": "2026-w48", "provider": "acme", "result": result, "worthless": worthless,
        "terms": "00",
        "time": 1, "engine": "core", "checks": [], "epsilon": table, "sampling": {}, "counts": {},
        "coalition": {}, "scope": {}, "not_covered": [], "assumptions": [],
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
    assert found["relation"] == "null-replace"
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
        (["bound", *GRR, "--records", "1"], "--records"),
        (["bound", *GRR, "--records", "20000000"], "--records"),
        (["bound", *GRR, "--prior", "0.5,0.4"], "--prior"),
        (["bound", *GRR, "--prior", "1.2,-0.2"], "--prior"),
        (["bound", *GRR, "--prior", "half,half"], "--prior"),
        (["bound", *GRR, "--prior", "[true, false]"], "--prior"),
        (["bound", *GRR, "--prior", "nan,1"], "--prior"),
        (["bound", *GRR, "--records", "3", "--eta", "-1"], "--eta"),
        (["bound", *GRR, "--records", "3", "--eta", "1", "--span", "0"], "--span"),
        (["bound", *GRR, "--records", "3", "--delta", "0.1"], "--delta"),
        (["bound", *GRR, "--records", "3", "--mu", "1"], "--mu"),
        (["bound", "--mechanism", "grr", "--records", "3"], "--epsilon"),
        (["bound", "--mechanism", "grr", "--epsilon", "nan", "--records", "3"], "--epsilon"),
        (["bound", "--mechanism", "grr", "--epsilon", "-1", "--records", "3"], "--epsilon"),
        (["bound", "--mechanism", "ss", "--epsilon", "1", "--records", "5"], "--subset"),
        (
            ["bound", "--mechanism", "ss", "--epsilon", "1", "--records", "5", "--subset", "6"],
            "--subset",
        ),
        (["bound", "--mechanism", "gaussian", "--mu", "-1", "--records", "5"], "--mu"),
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
            "--delta",
        ),
        (["calibrate", "--target", "nan", "--mechanism", "grr", "--records", "3"], "--target"),
        ([*COUNTS], "--prior"),
        ([*COUNTS, "--prior", "0.6,0.4"], "--successes"),
        ([*COUNTS, "--records", "4", "--runs", "10"], "--successes, --guesses, --runs"),
        ([*COUNTS, "--records", "4", "--confidence", "1"], "--confidence"),
        ([*COUNTS, "--records", "4", "--delta", "-1"], "--delta"),
        ([*COUNTS, "--records", "4", "--absence", "add-remove"], "--absence"),
        ([*COUNTS, "--records", "2", "--absence", "replace"], "--absence"),
        ([*COUNTS, "--records", "2", "--claim-epsilon", "-1"], "--claim-epsilon"),
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
            "--successes",
        ),
        (["audit", "--mechanism", "blackbox", "--successes", "1", "--records", "2"], "--trials"),
        (["audit", "--mechanism", "blackbox", "--runs", "10", "--records", "2"], "--runs"),
        (["audit", "--mechanism", "grr", "--runs", "10", "--records", "2"], "--runs"),
        (["audit", *GRR, "--runs", "0", "--records", "2"], "--runs"),
        (["translate", "--epsilon", "1", "--records", "2"], "--relation"),
        (["translate", "--relation", "replace", "--records", "2"], "--epsilon"),
        (["translate", "--verdict", "nowhere.json", "--records", "2"], "nowhere.json"),
        (["translate", "--verdict", "x", "--mu", "1", "--records", "2"], "--verdict"),
    ],
)
def test_bad_options_name_the_field(arguments: list[str], field: str) -> None:
    assert refused(*arguments).where == field


CALIBRATE = ("calibrate", *GRR[:2], "--target", "0.1", "--records", "100")
SIMULATE = ("audit", "--records", "3", "--runs", "100")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ([*CALIBRATE, "--delta", "0.5"], "--delta"),
        ([*CALIBRATE, "--delta", "nan"], "--delta"),
        ([*CALIBRATE, "--relation", "add-remove"], "--relation"),
        ([*CALIBRATE, "--subset", "-4"], "--subset"),
        ([*CALIBRATE, "--span", "2"], "--span"),
        (["calibrate", "--mechanism", "channel", "--target", "1", "--records", "3"], "--mechanism"),
        ([*COUNTS, "--records", "3", "--epsilon", "3"], "--epsilon"),
        ([*COUNTS, "--records", "3", "--epsilon", "nan"], "--epsilon"),
        ([*COUNTS, "--records", "3", "--mu", "3"], "--mu"),
        ([*COUNTS, "--records", "3", "--claim-delta", "7"], "--claim-delta"),
        ([*COUNTS, "--records", "3", "--claim-relation", "replace"], "--claim-relation"),
        ([*COUNTS, "--records", "3", "--subset", "9"], "--subset"),
        ([*COUNTS, "--records", "3", "--seed", "1"], "--seed"),
        ([*SIMULATE, *GRR, "--trials", "50"], "--trials"),
        ([*SIMULATE, "--mechanism", "gaussian", "--mu", "1", "--epsilon", "3"], "--epsilon"),
        ([*SIMULATE[:3], *GRR[:2], "--guesses", "f", "--trials", "77"], "--trials"),
        (["audit", *GRR, "--records", "3", "--runs", "1000000000000"], "--runs"),
        (["audit", *GRR, "--records", "3", "--successes", "5", "--trials", "9"], "--epsilon"),
        (["bound", *GRR, "--records", "3", "--span", "-1"], "--span"),
        (["bound", *GRR, "--records", "3", "--span", "nan"], "--span"),
        (["bound", *GRR, "--records", "3", "--subset", "3"], "--subset"),
        (["bound", *GRR, "--records", "3", "--channel", "f"], "--channel"),
        (["bound", *GRR, "--records", "3", "--auxiliary", "a,b"], "--auxiliary"),
        (["bound", *GRR, "--records", "3", "--auxiliary", "[[1], [2], [3]]"], "--auxiliary"),
        (
            ["bound", *GRR, "--records", "2", "--auxiliary", "a,b", "--knowledge", "full"],
            "--auxiliary",
        ),
        (["bound", "--mechanism", "channel", "--records", "3"], "--channel"),
        (
            [
                "bound", "--mechanism", "blackbox", "--epsilon", "1", "--records", "3",
                "--subset", "3",
            ],
            "--subset",
        ),
        (
            [
                "translate", "--epsilon", "1", "--relation", "replace", "--records", "3",
                "--verdict-key", "00",
            ],
            "--verdict-key",
        ),
        (
            [
                "translate", "--epsilon", "1", "--relation", "replace", "--records", "3",
                "--span", "nan",
            ],
            "--span",
        ),
        (["translate", "--verdict", "x", "--delta", "0.1", "--records", "2"], "--verdict"),
    ],
)  # fmt: skip
def test_options_that_do_not_apply_are_refused_by_name(arguments: list[str], option: str) -> None:
    assert refused(*arguments).where == option


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
    assert refused("bound", *GRR, "--prior", str(path)).where == "--prior"
    matrix = ("bound", "--mechanism", "channel", "--records", "2", "--channel", str(path))
    assert str(refused(*matrix).where).startswith("--channel")


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
