"""`ragaudit risk bound` and `calibrate`: what is printed, what a program reads, exit codes."""

import json
import math
from pathlib import Path

import pytest
from for_each import for_each
from ragaudit.cli.main import app as root
from ragaudit.lab.risk.calibration import laplace_epsilon, uniform_exact_guess_epsilon
from ragaudit.lab.risk.general_bounds import LABEL
from ragaudit.lab.risk.mechanisms import finite_advantage
from ragaudit.lab.risk.threat import AuxiliaryKnowledge, FinitePrior, SuccessSets, ThreatModel
from ragaudit.lab.risk_command.show import counted
from risk_command import report, run
from typer.testing import CliRunner


def test_the_group_is_registered_and_every_command_has_examples() -> None:
    assert "risk" in CliRunner().invoke(root, ["--help"]).stdout
    for command in ("bound", "calibrate", "audit", "translate"):
        shown = run(command, "--help").stdout
        assert "Example" in shown and f"ragaudit risk {command}" in shown


# --- bound ---


@for_each(
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
    found = report("bound --records 10", *arguments)
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
    found = report("bound --mechanism blackbox --mu", mu, "--relation", relation, "--records", "10")
    by = {bound["theorem"]: bound["value"] for bound in found["applicable"]}
    assert by["Theorem 5.1"] == pytest.approx(0.2714176166155863, abs=1e-9)
    assert found["value"] <= by["Theorem 5.1"]


def test_the_table_of_bounds_says_what_does_not_apply() -> None:
    shown = run("bound --mechanism blackbox --epsilon 3 --prior '0.6 0.3 0.1'")
    assert shown.exit_code == 0
    assert "advantage at most 0." in shown.stdout
    assert "Corollary 5.6 does not apply: prior" in shown.stdout
    certain = run("bound --mechanism blackbox --epsilon 3 --prior 1,0")
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
    found = report("bound --records 10", *arguments)
    success = found["reconstruction_robustness"]
    assert success["equation"] == equation
    assert success["label"] == LABEL
    if value is not None:
        assert success["success_probability_at_most"] == pytest.approx(value)
    assert all("Eq." not in bound["theorem"] for bound in found["applicable"])
    shown = run("bound --records 10", *arguments).stdout
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
    found = report("bound --mechanism grr --epsilon 1 --records 3")
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
    found = report("calibrate --target 0.1 --mechanism grr --records 100")
    assert found["value"] == pytest.approx(2.504379, abs=1e-6)  # the paper prints 2.503
    assert found["advantage"] <= 0.1


@for_each("mechanism", ["grr", "oue", "ss", "laplace", "gaussian", "blackbox"])
def test_a_calibrated_mechanism_keeps_the_target_and_a_weaker_one_does_not(mechanism: str) -> None:
    found = report("calibrate --target 0.05 --mechanism", mechanism, "--records", "12")
    value, parameter = found["value"], found["parameter"]
    more = ("--subset", "1") if mechanism == "ss" else ()

    def bound(at: float) -> float:
        shown = report(
            "bound --mechanism", mechanism, f"--{parameter}", repr(at), "--records", "12", *more
        )
        return float(shown["value"])

    if mechanism != "ss":  # its subset's size follows epsilon
        assert bound(value) <= 0.05 + 1e-12
    assert bound(value * 1.01) > 0.05
    if mechanism in ("laplace", "gaussian"):
        assert found["noise_scale"] == pytest.approx(1 / value)


def test_unreachable_targets_constrain_nothing_and_zero_allows_nothing() -> None:
    everything = report("calibrate --target 0.95 --mechanism grr --records 10")
    assert everything["value"] == "inf"
    nothing = report("calibrate --target 0 --mechanism laplace --records 10")
    assert nothing["value"] == 0 and nothing["noise_scale"] == "inf"
    shown = run("calibrate --target 0 --mechanism laplace --records 10")
    assert "scale at least infinite" in shown.stdout


def test_a_target_that_cannot_be_kept_is_said_to_be_so() -> None:
    command = ("calibrate", "--mechanism", "blackbox", "--records", "100", "--delta", "1e-3")
    lost = report(*command, "--target", "1e-9")
    assert (lost["value"], lost["kept"]) == (0, False)
    assert lost["advantage"] > 1e-9
    assert "no epsilon keeps the target 1e-09" in run(*command, "--target", "1e-9").stdout
    assert report(*command, "--target", "0.1")["kept"]
    free = report("calibrate --mechanism grr --records 10 --target 0.9")
    assert (free["value"], free["kept"]) == ("inf", True)


def test_many_records_on_a_line_are_calibrated() -> None:
    """Their epsilon is far above 10^4, which is not infinite."""
    command = ("calibrate", "--mechanism", "laplace", "--records", "1000000", "--target", "0.3")
    assert report(*command)["value"] == pytest.approx(laplace_epsilon(0.3, 10**6), rel=1e-9)


def test_large_and_small_numbers_are_shown() -> None:
    tiny = run("calibrate --mechanism laplace --target 1e-300 --records 10")
    assert tiny.exit_code == 0
    shown = run("calibrate --mechanism laplace --target 0.3 --prior 0.5,0.3,0.2 --span 1e99")
    assert "noise of scale at least 3.75" in shown.stdout and "e+98" in shown.stdout


def test_a_uniform_prior_of_ten_million_records_takes_no_memory() -> None:
    found = report("calibrate --mechanism blackbox --target 0.1 --records 10000000")
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
