"""`ragaudit plan`: its JSON, its tables, its refusals, its plots."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from for_each import for_each
from jsonschema import Draft202012Validator
from plan_command import ARGUMENTS, RUNNER, SCHEMA, TARGETS, run
from ragaudit.cli.main import app as root
from ragaudit.cli.plan.command import app, decimal_text
from ragaudit.cli.plan.plots import draw, left_out, write
from ragaudit.cli.plan.run import Plan, Trial, make_plan
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.privacy.planning.budget import Targets, budget


class Silent:
    def stage(self, what: str) -> None: ...

    def asked(self, done: int, total: int) -> None: ...


class Recorder:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def stage(self, what: str) -> None:
        self.seen.append(what)

    def asked(self, done: int, total: int) -> None:
        self.seen.append((done, total))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """An index of 60 random vectors and 8 questions near some of them, as options."""
    folder = tmp_path_factory.mktemp("vectors")
    generator = np.random.default_rng(7)
    rows = generator.normal(size=(60, 16))
    np.save(folder / "rows.npy", rows.astype(np.float32))
    np.save(folder / "asked.npy", rows[:8] + 0.2 * generator.normal(size=(8, 16)))
    return ["--index", str(folder / "rows.npy"), "--questions", str(folder / "asked.npy")]


@pytest.fixture(scope="module")
def plan(vectors: list[str]) -> Plan:
    trial = Trial(Path(vectors[1]), Path(vectors[3]), trials=1, recalls=(0.5,))
    # Few queries and slots: few points to compute for the curves.
    targets = replace(TARGETS, queries=1, slots=4)
    return make_plan(targets, None, trial, Silent())


def test_help_has_an_example_and_the_exit_codes() -> None:
    result = RUNNER.invoke(root, ["plan", "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for words in ("ragaudit plan --epsilon 8", "Exit code", "--delta-policy", "--plots"):
        assert words in result.output


@pytest.mark.parametrize("changes", [{}, {"epsilon": None, "sigma": "0.1"}, {"windows": "3"}])
def test_the_json_without_a_simulation(changes: dict[str, str | None]) -> None:
    result = run("--no-simulate", "--json", **changes)
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(shown)
    assert shown["retrieval"] is None
    targets = Targets(changes.get("epsilon", "8"), "0.000001", 50, 2, "0.00001")
    made = budget(targets, changes.get("sigma"))
    assert shown["sigma"] == made.sigma
    assert shown["coalitions"][-1]["epsilon"] == made.coalition.price.epsilon
    assert len(shown["over_windows"]) == int(changes.get("windows") or 1) - 1
    assert shown["plots"] is None


def test_the_json_names_the_noise_of_every_epsilon() -> None:
    shown = json.loads(run("--no-simulate", "--json", coalition="5").stdout)
    assert shown["account"]["delta"] == "0.000001" and shown["account"]["kept"] is True
    row = shown["coalitions"][-1]
    assert (row["delta"], row["relation"]) == ("0.00001", "replace")
    # The formula holds for the paper's own noise, six times as much.
    assert row["closed_form"]["sigma"] == shown["paper"]["sigma"] != shown["sigma"]
    assert shown["tenant"]["closed_form"]["reason"] == "delta_policy is at most accounts · delta"
    noise = shown["coalition_noise"]
    assert (noise["accounts"], noise["epsilon"], noise["delta"]) == (5, "8", "0.00001")
    assert noise["sigma"] == "18.980910"


def test_a_promise_that_was_not_made_is_not_broken() -> None:
    changes: dict[str, str | None] = {"epsilon": None, "sigma": "0.1"}
    shown = json.loads(run("--no-simulate", "--json", **changes).stdout)
    assert shown["account"]["kept"] is None
    assert shown["affords"]["reason"] == shown["coalition_noise"]["reason"]
    assert shown["paper"]["reason"] == "one account has no finite epsilon to stay within"
    text = run("--no-simulate", **changes).stdout
    assert "keep that promise" not in text and "promise is broken" not in text
    assert "as given: epsilon none (" in text
    assert "no noise calibrated: one account has no finite epsilon" in text


def test_a_broken_promise_is_told() -> None:
    result = run("--no-simulate", epsilon="1", sigma="20")
    assert result.exit_code == 0
    assert "this sigma does not keep that promise: epsilon is 3.308" in result.stdout
    assert "the promise is broken" in result.stdout


def test_the_json_of_a_simulation(vectors: list[str]) -> None:
    more = [*vectors, "--top-k", "3", "--trials", "2", "--recall", "0.5", "--recall", "1", "--json"]
    result = run(*more, seed="a")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    shown = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(shown)
    found = shown["retrieval"]
    (index,) = found["indexes"]
    assert index == {
        "name": "rows.npy", "rows": 60, "dimension": 16, "questions": 8,
        "question_source": "as given",
    }  # fmt: skip
    assert found["left_out"] == []
    assert (found["top_k"], found["questions"], found["trials"]) == (3, 8, 2)
    assert found["random"]["recall"] == 0.05
    assert found["random"]["rank_loss"] == pytest.approx(28.5, abs=0.1)  # (N - K)/2 but for ties
    (planned,) = [each for each in found["points"] if each["planned"]]
    assert planned["sigma"] == shown["sigma"]
    assert planned["recall_by_index"] == {"rows.npy": planned["recall"]}
    assert found["points"][0]["recall"]["mean"] > 0.9 > 0.2 > planned["recall"]["mean"]
    assert [each["recall"] for each in found["recall_costs"]] == [0.5, 1.0]
    assert found["recall_costs"][0]["best"]["sigma"]
    assert shown["verdict"]["service"] == "useless"
    for priced in (planned["account"], found["recall_costs"][0]["best"]["coalition"]):
        assert priced["recall_ceiling"] is None or 0.05 <= priced["recall_ceiling"] <= 1


def test_the_same_seed_gives_the_same_figures(plan: Plan) -> None:
    assert plan.retrieval is not None
    targets = replace(TARGETS, queries=1, slots=4)
    watcher = Recorder()
    again = make_plan(targets, None, plan.retrieval.trial, watcher)
    assert again.retrieval is not None
    assert watcher.seen == ["reading the embeddings", *((done, 8) for done in range(1, 9))]
    assert again.retrieval.simulation == plan.retrieval.simulation


def test_the_tables_and_the_sentence(vectors: list[str]) -> None:
    result = run(*vectors, "--trials", "1", windows="2")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.replace("│", " ").split())
    for words in ("sigma = 9.233901", "the paper's calibration (3.4)", "k_max = 2", "slots = 64",
                  "for 2 accounts together within that epsilon at delta 0.00001: sigma = 12.0",
                  "its bound for its own noise, sigma = 55.677394, not for this sigma",
                  "of any test for one row", "8 questions (as given)",
                  "recall@5", "blind", "what a recall costs",
                  "ceiling", "Retrieval useless",
                  "2 accounts together over 2 windows"):  # fmt: skip
        assert words in text
    # Never less than the value: 11.033393 is shown as 11.04.
    assert budget(TARGETS).coalition.price.epsilon == "11.033393"
    assert " 11.04 " in text and "11.03 " not in text


@for_each(
    ("changes", "option"),
    [
        ({"epsilon": "x"}, "--epsilon"),
        ({"epsilon": "0"}, "--epsilon"),
        ({"epsilon": "-1"}, "--epsilon"),
        ({"epsilon": "nan"}, "--epsilon"),
        ({"epsilon": None}, "--epsilon"),
        ({"delta": "1"}, "--delta"),
        ({"delta": "1e-13"}, "--delta"),
        ({"delta_policy": "inf"}, "--delta-policy"),
        ({"queries": "0"}, "--queries"),
        ({"queries": "99999999999999"}, "--queries"),
        ({"coalition": "-1"}, "--coalition"),
        ({"relation": "add-remove"}, "--relation"),
        ({"rows_per_document": "0"}, "--rows-per-document"),
        ({"slots": "1"}, "--slots"),
        ({"windows": "0"}, "--windows"),
        ({"sigma": "0.0001"}, "--sigma"),
        ({"top_k": "0"}, "--top-k"),
        ({"trials": "0"}, "--trials"),
        ({"recall": "1.5"}, "--recall"),
        ({"recall": "nan"}, "--recall"),
        ({"index": "missing.npy", "questions": "missing.npy"}, "--index"),
        ({"index": "missing.npy"}, "--questions"),
        ({"questions": "missing.txt"}, "--questions"),
        ({"questions": "missing.npy"}, "--questions"),
        ({"index": "missing.npy", "tenant": "shop"}, "--tenant"),
    ],
)
def test_bad_options_are_named(changes: dict[str, str | None], option: str) -> None:
    result = run(**changes)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"error: {option}: ")
    assert result.stdout == ""


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_breaks_no_number(vectors: list[str], columns: int) -> None:
    more = [*vectors, "--trials", "1", "--recall", "0.5"]
    wide, narrow = (
        RUNNER.invoke(
            app,
            [*(part for pair in ARGUMENTS.items() for part in pair), *more, "--windows", "2"],
            env={"COLUMNS": str(each)},
        ).stdout
        for each in (200, columns)
    )
    # Every word of the tables is there, whole; their rules and the panel are of other widths.
    words = {word for word in wide.partition("╭")[0].split() if not word.startswith("─")}
    assert words <= set(narrow.split())


@for_each(
    ("option", "value"),
    [
        ("--index", "x"), ("--questions", "x"), ("--tenant", "x"), ("--recall", "0.9"),
        ("--top-k", "5"), ("--trials", "3"), ("--seed", "0"),
    ],
)  # fmt: skip
def test_what_would_not_be_used_is_refused(option: str, value: str) -> None:
    result = run("--no-simulate", option, value)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {option}: nothing is simulated")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("missing.txt", None, "cannot read"),
        ("missing.yaml", None, "cannot read"),
        ("bad.yaml", ":\n - [", "not a YAML document"),
        ("prover.yaml", "a: 1\n", "provider: Field required"),
        ("empty.txt", "", "empty file"),
    ],
)
def test_bad_index_files_are_named(
    name: str, content: str | None, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    result = run(index=str(path))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: --index, {path}: {problem}")


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    result = run(index=str(tmp_path))
    assert result.stderr.startswith(f"error: --index, {tmp_path}: no documents found")


def test_errors_as_json() -> None:
    result = run("--json", delta="2")
    assert result.exit_code == 2
    shown = json.loads(result.stdout)
    assert shown["problem"] == "malformed" and shown["detail"].startswith("--delta: ")


def test_a_promise_that_no_noise_keeps_is_refused() -> None:
    result = run(epsilon="1e-12", queries="10000000000")
    assert result.exit_code == 4
    assert "--epsilon: no sigma in range" in result.stderr


def test_a_missing_required_option_is_usage() -> None:
    assert run(delta=None).exit_code == 2


@for_each(
    ("text", "plain"),
    [("1e-6", "0.000001"), ("0.50", "0.5"), ("8", "8"), ("1E2", "100"), ("0", "0"), ("0e9", "0")],
)
def test_numbers_are_read_exactly(text: str, plain: str) -> None:
    assert decimal_text(text, "delta") == plain


@for_each("text", ["", "1,5", "1e-13", "1e9", "1e999999999", "-0.1", "Infinity"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(MalformedError) as caught:
        decimal_text(text, "delta")
    assert caught.value.where == "delta"


def test_a_missing_module_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(plots=str(tmp_path / "plots"))
    assert result.exit_code == 2
    assert "this needs the module matplotlib" in result.stderr
    assert not (tmp_path / "plots").exists()


def test_k_must_be_below_the_smallest_index(vectors: list[str]) -> None:
    result = run(*vectors, top_k="60")
    assert result.exit_code == 2
    assert (
        "--top-k: top_k is 60, and rows.npy has 60 rows (expected K below the number of rows)"
        in result.stderr
    )


def test_plots_are_the_same_again() -> None:
    plan = make_plan(replace(TARGETS, epsilon=None, slots=3), "0.1", None, Silent())
    assert draw(plan) == draw(plan)


def test_plots_are_written(plan: Plan, tmp_path: Path) -> None:
    files = draw(plan)
    names = ("epsilon-by-accounts", "recall-by-epsilon", "recall-by-sigma", "sigma-by-queries")
    assert sorted(files) == sorted(f"{name}.{kind}" for name in names for kind in ("png", "svg"))
    written = write(tmp_path / "a" / "b", files)
    assert {path.name: path.read_bytes() for path in written} == files
    assert sorted(path.name for path in (tmp_path / "a/b").iterdir()) == sorted(files)
    for name, content in files.items():
        if name.endswith(".svg"):
            assert ElementTree.fromstring(content).tag.endswith("svg")
            assert b"<dc:date>" not in content
        else:
            assert content.startswith(b"\x89PNG\r\n\x1a\n")


def test_plots_without_a_simulation_or_a_finite_epsilon(tmp_path: Path) -> None:
    result = run("--no-simulate", epsilon=None, sigma="0.1", plots=str(tmp_path))
    assert result.exit_code == 0, result.output
    names = ["epsilon-by-accounts.png", "epsilon-by-accounts.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    # The curve that there is, called what it is.
    drawn = (tmp_path / names[1]).read_text()
    assert "a perfect sampler at sigma 0.1: no guarantee" in drawn
    # What was written, and what was not, is said.
    assert f"plots written: {tmp_path / names[0]}, {tmp_path / names[1]}" in result.stdout
    assert "plot left out: sigma-by-queries, there is no finite epsilon" in result.stdout
    more = ["--no-simulate", "--json"]
    shown = json.loads(run(*more, epsilon=None, sigma="0.1", plots=str(tmp_path)).stdout)
    assert shown["plots"] == {
        "files": [str(tmp_path / name) for name in names],
        "left_out": {"sigma-by-queries": "there is no finite epsilon to calibrate for"},
    }


def test_a_plot_of_one_account_and_one_slot() -> None:
    targets = replace(TARGETS, queries=1, coalition=1, slots=1)
    plan = make_plan(targets, None, None, Silent())
    assert left_out(plan) == {}
    assert "What a coalition learns, r = 1<" in draw(plan)["epsilon-by-accounts.svg"].decode()


def test_a_failure_leaves_no_plots(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "plots"
    missing = {"index": "missing.npy", "questions": "missing.npy"}
    assert run(plots=str(folder), **missing).exit_code == 2
    assert not (tmp_path / "new").exists()


def test_plots_go_into_folders_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    result = run("--no-simulate", plots=str(tmp_path / "file"))
    assert result.exit_code == 3 and result.stderr.startswith("error: --plots: ")
    assert (tmp_path / "file").read_text() == "mine"
    assert run("--no-simulate", plots=str(tmp_path / "file" / "under")).exit_code == 3


def test_all_plots_or_none(tmp_path: Path) -> None:
    (tmp_path / "b.png").mkdir()
    with pytest.raises(UnavailableError):
        write(tmp_path, {"a.png": b"1", "b.png": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b.png"]


def test_a_folder_made_for_plots_goes_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UnavailableError, match="No space left"):
        write(tmp_path / "a" / "b", {"a.png": b"1"})
    assert list(tmp_path.iterdir()) == []
