"""What `ragaudit plan` retrieves from, and the deployed mechanism that it tries there."""

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from plan_command import SCHEMA, run
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.selection import select
from ragaudit.cli.plan.collection import (
    Collection,
    QuestionSource,
    SeededNoise,
    load,
    noise_of,
    quantised_recall,
    scored,
)
from ragaudit.encoding.errors import MalformedError
from ragaudit.privacy.planning.retrieval import simulate
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store


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
