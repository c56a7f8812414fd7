"""`ragaudit plan`: its JSON, its tables, its refusals, its plots."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from chapters import DOCS, blocks, run_program, shell
from for_each import for_each
from jsonschema import Draft202012Validator
from plan_command import ARGUMENTS, RUNNER, SCHEMA, TARGETS, run
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import select
from ragaudit.cli.main import app as root
from ragaudit.cli.plan.collection import (
    FEWEST_SUGGESTED,
    Collection,
    QuestionSource,
    SeededNoise,
    load,
    noise_of,
    quantised_recall,
    scored,
)
from ragaudit.cli.plan.command import app, decimal_text
from ragaudit.cli.plan.plots import draw, left_out, write
from ragaudit.cli.plan.run import SIGMAS, Plan, Trial, make_plan
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.privacy.guarantees import EMPTY_ADVANTAGE, WEAK_ADVANTAGE, Strength
from ragaudit.privacy.planning.budget import Targets, budget
from ragaudit.privacy.planning.retrieval import GOOD_GAIN, USELESS_GAIN, Service, simulate
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store


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


# What `ragaudit plan` retrieves from, and the deployed mechanism that it tries there.


@pytest.mark.parametrize(
    ("rows", "asked", "where"),
    [
        (np.zeros((3, 4)), np.ones((2, 4)), "index, row 0"),
        (np.ones((3, 4)), np.full((2, 4), np.nan), "questions, row 0"),
        (np.ones((3, 4)), np.ones((2, 5)), "questions"),
        (np.ones(3), np.ones((2, 5)), "index"),
        (np.ones((3, 4)), np.ones((1, 4)), "questions"),
        (np.ones((1, 4)), np.ones((2, 4)), "index"),
        (np.array([["a"]]), np.ones((2, 4)), "index"),
    ],
)
def test_bad_embeddings_are_refused(
    rows: np.ndarray, asked: np.ndarray, where: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "asked.npy", asked)
    with pytest.raises(MalformedError) as caught:
        load(tmp_path / "rows.npy", tmp_path / "asked.npy", None, 1, lambda _: None)
    assert caught.value.where == where


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(MalformedError) as caught:
        load(tmp_path / "rows.npy", tmp_path / "rows.npy", None, 1, lambda _: None)
    assert caught.value.where == "index"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Settings of a prover with tenants of 30, 25 and 3 short documents."""
    (tmp_path / "prover.yaml").write_text("provider: example.org\n")
    opened = Store.create(f"sqlite:///{tmp_path / 'prover.db'}")
    for tenant, rows in (("shop", 30), ("club", 25), ("tiny", 3)):
        texts = (f"What is fact {n}? It is {n * n} for the {tenant}." for n in range(rows))
        documents = [Document(f"d{n}", text) for n, text in enumerate(texts)]
        StoredDocuments(opened).add(tenant, documents)
    opened.close()
    return tmp_path / "prover.yaml"


def test_small_tenants_are_left_out_and_named(store: Path) -> None:
    more = ["--index", str(store), "--trials", "1"]
    result = run(*more, "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(shown)
    found = shown["retrieval"]
    assert [each["name"] for each in found["indexes"]] == ["club", "shop"]
    assert found["left_out"] == [{"name": "tiny", "rows": 3}]
    # Pooled over tenants, and each by itself: the mean of 25 and of 30 questions.
    for point in found["points"]:
        club, shop = (point["recall_by_index"][name]["mean"] for name in ("club", "shop"))
        assert point["recall"]["mean"] == pytest.approx((25 * club + 30 * shop) / 55, abs=2e-6)
    text = run(*more).stdout
    assert "left out: tiny, whose 3 rows are not more than K" in text
    assert "recall at the planned sigma by index: club " in text


def test_a_tenant_that_is_too_small_is_named(store: Path) -> None:
    result = run(index=str(store), tenant="tiny")
    assert result.exit_code == 2
    assert (
        "--top-k: top_k is 5, and tiny has 3 rows (expected K below the number of rows)"
        in result.stderr
    )


def test_short_texts_are_asked_their_own_questions(store: Path) -> None:
    (found,) = load(store, None, "shop", 5, lambda _: None).collections
    assert found.question_source is QuestionSource.SENTENCES
    # "What is fact 7?" of each document; not the sentences that ask nothing.
    assert found.questions.shape == (30, 256)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    lines = ("returns go to the shop", "we open at nine", "a salt has 32 bytes", "it is free")
    (tmp_path / "faq.md").write_text("".join(f"# {line}\n{line}, always.\n" for line in lines))
    return tmp_path / "faq.md"


def test_text_files_and_questions(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.txt").write_text("when do you open?\n\nhow long is a salt?\n")
    (found,) = load(texts, tmp_path / "asked.txt", None, 3, lambda _: None).collections
    assert (found.name, found.rows.shape, found.questions.shape) == ("faq.md", (4, 256), (2, 256))
    assert np.argmax(next(scored([found]))) == 1


@pytest.mark.parametrize(
    ("asked", "problem"), [("one question?", "at least 2"), (b"\xff\xfe", "UTF-8")]
)
def test_bad_question_files_are_refused(
    asked: str | bytes, problem: str, texts: Path, tmp_path: Path
) -> None:
    path = tmp_path / "asked.txt"
    path.write_bytes(asked if isinstance(asked, bytes) else asked.encode())
    with pytest.raises(MalformedError, match=problem) as caught:
        load(texts, path, None, 1, lambda _: None)
    assert caught.value.where == "questions"


def test_texts_that_suggest_no_questions_are_asked_their_sentences(texts: Path) -> None:
    (found,) = load(texts, None, None, 3, lambda _: None).collections
    assert found.question_source is QuestionSource.SENTENCES
    assert found.questions.shape == (4, 256)


def test_texts_without_two_sentences_need_a_file(tmp_path: Path) -> None:
    lines = (json.dumps({"id": f"d{n}", "text": "the same"}) for n in range(3))
    (tmp_path / "faq.jsonl").write_text("\n".join(lines))
    with pytest.raises(MalformedError, match="1 different sentences") as caught:
        load(tmp_path / "faq.jsonl", None, None, 1, lambda _: None)
    assert caught.value.where == "questions"


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "prover.yaml").write_text(
        "provider: example.org\nstore: {url: 'sqlite:///none.db'}\n"
    )
    result = run(index=str(tmp_path / "prover.yaml"))
    assert result.exit_code == 2 and "no database" in result.stderr
    assert not (tmp_path / "none.db").exists()


def test_an_unknown_tenant_is_named() -> None:
    with pytest.raises(MalformedError, match="data, language, networking") as caught:
        load(None, None, "shop", 1, lambda _: None)
    assert caught.value.where == "tenant"


def test_bundled_text_has_three_tenants_with_questions() -> None:
    stages: list[str] = []
    (only,) = load(None, None, "language", 5, stages.append).collections
    assert only.rows.shape == (520, 256) and only.questions.shape == (100, 256)
    assert only.question_source is QuestionSource.SUGGESTED
    assert stages[0] == "reading the texts" and "language" in stages[-1]


def collection(rows: int = 100, asked: int = 40, seed: int = 3) -> Collection:
    generator = np.random.default_rng(seed)
    return Collection.of(
        "random", generator.normal(size=(rows, 32)), generator.normal(size=(asked, 32))
    )


def test_huge_noise_retrieves_at_random() -> None:
    """With the deployed sampler and selection, recall is K/N.

    sigma is 100,000 times the range of the scores, so the returned K = 5 of N = 100 are a
    uniformly random set: the number of hits is hypergeometric, variance
    5·(5/100)·(95/100)·(95/99) = 0.22790, deviation of recall 0.09548; of the mean of 2000 draws
    0.002135. Two-sided at 1e-6: 4.892 deviations, 0.01045.
    """
    tried = [collection()]
    found = simulate(scored(tried), noise_of(["100000"], "t"), select, top_k=5, trials=50)
    (point,) = found.points
    assert abs(point.recall.mean - found.random_recall) < 0.01045
    # The rank loss of a random set: N = 100 ranks, each mean of 5 has variance
    # (99·101/12)/5·(95/99), deviation 12.65; 4.892·12.65/sqrt(2000) = 1.384.
    assert found.random_rank_loss == pytest.approx(47.5, abs=0.2)  # (N - K)/2 but for ties
    assert point.rank_loss is not None
    assert abs(point.rank_loss.mean - found.random_rank_loss) < 1.384


def test_tiny_noise_retrieves_exactly() -> None:
    """Scores 1000 units apart; sigma = 0.001 is 16.1 units, and noise ends at 13 sigma (210)."""
    ladder = np.arange(0, 20_000, 1000, dtype=np.int64)
    found = simulate([ladder, ladder[::-1].copy()], noise_of(["0.001"], "t"), select, top_k=5,
                     trials=20)  # fmt: skip
    (point,) = found.points
    assert point.recall.mean == 1.0
    assert point.rank_loss is not None and point.rank_loss.mean == 0.0
    assert point.returned == 5.0


def test_draws_differ_by_all_that_names_them() -> None:
    noise = SeededNoise("1", "seed")
    draws = [
        noise(0, 0, 8), noise(0, 1, 8), noise(1, 0, 8), SeededNoise("1", "other")(0, 0, 8),
        SeededNoise("1.5", "seed")(0, 0, 8),
    ]  # fmt: skip
    assert len({each.tobytes() for each in draws}) == len(draws)
    assert noise(0, 0, 8).tolist() == draws[0].tolist()


def test_vectors_are_quantised_as_the_prover_does() -> None:
    each = collection(asked=2)
    assert np.array_equal(each.rows, quantise_rows(each.vectors))
    exact = next(scored([each]))
    assert exact.tolist() == (each.rows.astype(int) @ each.questions[0].astype(int)).tolist()


def test_what_quantisation_costs() -> None:
    # Integers of norm exactly 127 are kept as they are, so they rank as before: nothing is lost.
    exact = np.zeros((4, 3))
    exact[0, 0] = exact[1, 1] = exact[2, 2] = 127.0
    exact[3] = (73, 73, 73)
    lossless = Collection.of("exact", exact, np.array([[3.0, 2, 1], [1, 2, 3], [2, 3, 1]]))
    assert quantised_recall([lossless], 1).mean == 1.0
    # Rows closer together than the lattice can tell: whole numbers cannot rank them.
    near = np.array([[1.0, n * 1e-6] for n in range(20)])
    assert quantised_recall([Collection.of("near", near, near[-4:])], 5).mean < 0.5


# The commands and the program of docs/planning.md.

SECTION = (DOCS / "planning.md").read_text()
SCRIPT = blocks(SECTION, "sh")[0]
PROSE = " ".join(SECTION.split())


@pytest.fixture
def provider(tmp_path: Path) -> Path:
    """A folder with an initialised prover, six documents of the tenant shop, and questions."""
    (tmp_path / "prover").mkdir()
    (tmp_path / "prover/prover.yaml").write_text("provider: example.org\n")
    store = Store.create(f"sqlite:///{tmp_path / 'prover/prover.db'}")
    texts = ("Returns within a month.", "Open from nine.", "Delivery is free.", "Two years of "
             "warranty.", "Gift cards never expire.", "Parking is behind the shop.")  # fmt: skip
    StoredDocuments(store).add("shop", [Document(f"d{n}", text) for n, text in enumerate(texts)])
    store.close()
    (tmp_path / "questions.txt").write_text("When do you open?\nCan I send it back?\n")
    return tmp_path


@pytest.mark.slow
def test_the_commands_run(provider: Path) -> None:
    output = shell(SCRIPT, provider)
    assert "sigma = 9.233901" in output and "k_max" in output
    plan = json.loads((provider / "plan.json").read_text())
    assert plan["retrieval"]["indexes"] == [
        {"name": "shop", "rows": 6, "dimension": 256, "questions": 2, "question_source": "as given"}
    ]
    assert [row["windows"] for row in plan["over_windows"]] == [2, 3, 4]
    assert len(list((provider / "plots").iterdir())) == 8


@pytest.mark.slow
def test_the_recall_figures_are_those_of_the_command(tmp_path: Path) -> None:
    """Three places; the last may differ where another machine's embeddings round otherwise."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in SECTION.splitlines()
        if line.startswith(("| sigma | 0", "| recall@5"))
    ]
    printed = dict(zip(rows[0][1:], map(float, rows[1][1:]), strict=True))
    first = SCRIPT.splitlines()[0].replace("--no-simulate", "--seed chapter --json")
    found = json.loads(shell(first, tmp_path))["retrieval"]
    points = {point["sigma"]: point for point in found["points"]}
    assert printed.pop("0") == pytest.approx(found["quantised_recall"]["mean"], abs=2e-3)
    assert printed.pop("9.234 (planned)") == pytest.approx(
        next(each for each in found["points"] if each["planned"])["recall"]["mean"], abs=2e-3
    )
    for sigma, recall in printed.items():
        assert recall == pytest.approx(points[sigma]["recall"]["mean"], abs=2e-3)
    widest = max(each["recall"]["high"] - each["recall"]["low"] for each in found["points"])
    assert widest / 2 < 0.02
    assert found["questions"] == 300 and len(found["indexes"]) == 3


def test_the_program_runs(tmp_path: Path) -> None:
    program = DOCS.parent / "examples" / "plan_window.py"
    *points, last = run_program([sys.executable, str(program)], tmp_path).splitlines()
    assert points[0].startswith("9.233901 19.8")
    assert len(points) == 5 and points[1].startswith("0.01 ")
    assert last.endswith("useless, empty")


def test_the_numbers_of_the_rules_are_the_codes() -> None:
    assert f"from {float(EMPTY_ADVANTAGE)} on" in PROSE
    assert f"from {float(WEAK_ADVANTAGE)} on" in PROSE
    assert (USELESS_GAIN, GOOD_GAIN) == (0.5, 0.9)
    assert "half of the way" in PROSE and "nine tenths of the way" in PROSE
    assert len(SIGMAS) == 13 and "thirteen others" in PROSE
    assert f"fewer than {FEWEST_SUGGESTED}," in PROSE
    assert all(f"`{each.value}`" in PROSE for each in (*Service, *Strength))
    made = budget(Targets("8", "0.000001", 50, 5, "0.00001"))
    assert f"in the first example: {made.coalition_sigma}" in PROSE
