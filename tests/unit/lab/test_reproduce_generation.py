"""`ragaudit reproduce generation`: records, arms, the attack, what is written."""

import json
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit.cli import main
from ragaudit.lab.generation.records import SUPPORT, Corpus, corpus, scores
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.reproduce import generation
from ragaudit.lab.reproduce.command import app
from ragaudit.lab.reproduce.generation import (
    ARMS,
    BASELINES,
    COMPARISON,
    EPSILONS,
    REUSING,
    Asked,
    Size,
    cap,
    cells,
    retrieval_auc,
)
from ragaudit.privacy.mechanisms.dp_rag import TokenAnswer
from ragaudit.privacy.mechanisms.retrieval import Row
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.mechanisms.streams import DocumentBudgets, Murag, Outcome
from typer.testing import CliRunner

RUNNER = CliRunner()
FIGURES = {f"{name}.{kind}" for name in ("utility", "groups", "membership") for kind in
           ("png", "svg")}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generation") / "results"
    result = RUNNER.invoke(app, ["generation", "--quick", "--output", str(folder)])
    assert result.exit_code == 0, result.output
    assert result.stdout == (folder / "generation.txt").read_text(encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def document(written: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((written / "generation.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def made() -> Corpus:
    return corpus(np.random.default_rng(3), 2, 20)


def share(document: dict[str, Any], arm: str, epsilon: int | None, group: str = "all") -> float:
    (cell,) = [
        each for each in document["cells"]
        if (each["arm"], each["epsilon"], each["group"]) == (arm, epsilon, group)
    ]  # fmt: skip
    assert cell["low"] <= cell["right"] <= cell["high"]
    return float(cell["right"])


def test_the_group_is_registered() -> None:
    helped = RUNNER.invoke(main.app, ["reproduce", "generation", "--help"])
    assert helped.exit_code == 0
    assert "Examples" in helped.stdout


def test_records_have_their_diseases_and_no_name_means_two_things(made: Corpus) -> None:
    assert len(made.texts) == 2 * sum(SUPPORT)
    diseases = Counter(text.split(" of ")[1].split()[0] for text in made.texts)
    assert sorted(diseases.values()) == sorted(SUPPORT * 2)
    stems = Counter(disease[:4] for disease in diseases)
    assert sorted(stems.values()) == [3, 3]
    for question in made.questions:
        attribute, _, disease, _ = question.text.split()
        right = sum(f"{attribute} of {disease} : {question.answer}" in each for each in made.texts)
        assert diseases[disease] == question.support
        assert 0.5 * question.support < right <= question.support
        assert not any(question.answer in other.text for other in made.questions)


def test_a_stream_asks_everything_and_then_again(made: Corpus) -> None:
    asked = [question.text for question in made.questions]
    assert len(asked) == 20 and len(set(asked)) == 12
    kinds = Counter(question.kind for question in made.questions)
    assert kinds == {"first": 6, "dependent": 6, "repeated": 8}
    assert all(each.kind != "repeated" for each in made.questions[:12])


def test_scores_are_of_one_text_and_the_question_only(made: Corpus) -> None:
    question = made.questions[0]
    disease = question.text.split()[2]
    found = scores(question.text, made.texts)
    assert found[::-1] == scores(question.text, made.texts[::-1])
    for score, text in zip(found, made.texts, strict=True):
        assert (score == 1) == (f" {disease} " in text)
        assert Fraction(0) <= score <= 1
    # Another disease of the family lies between it and a stranger.
    family = {score for score, text in zip(found, made.texts, strict=True)
              if f"of {disease[:4]}" in text and f" {disease} " not in text}  # fmt: skip
    strangers = {score for score, text in zip(found, made.texts, strict=True)
                 if f"of {disease[:4]}" not in text}  # fmt: skip
    assert max(strangers) < min(family) <= max(family) < 1


@pytest.mark.nightly
def test_closed_book_knows_nothing_and_documents_help(document: dict[str, Any]) -> None:
    assert share(document, "closed book", None) == 0
    assert share(document, "non-private RAG", None) > 0.7
    assert share(document, "non-private KSA", None) > 0.7
    assert share(document, "NAIVE", 10) < 0.3
    assert share(document, "MURAG, M = 1", 10, "120 documents") > share(document, "NAIVE", 10)


@pytest.mark.nightly
def test_every_arm_has_its_cells_and_no_document_pays_too_often(
    written: Path, document: dict[str, Any]
) -> None:
    assert {each["arm"] for each in document["cells"]} == {*BASELINES, *ARMS}
    assert {path.name for path in written.iterdir()} == {
        "generation.json", "generation.txt", *FIGURES,
    }  # fmt: skip
    assert document["terms"]["epsilons"] == [3, 10] and set(document["terms"]["epsilons"]) < {
        *EPSILONS
    }
    for each in document["cells"]:
        assert each["questions"] > 0
        if each["arm"] == "MURAG, M = 1" and each["group"] == "all":
            # A document pays once; some of a stratum's diseases are never asked about.
            assert each["charged"] * document["terms"]["questions"] <= sum(SUPPORT)
            assert each["refused"] > 0
    assert [each["reported"] for each in document["papers"]] == [each for each, _ in COMPARISON]


@pytest.mark.nightly
def test_the_attack_is_flat_in_accounts_and_below_the_cap(document: dict[str, Any]) -> None:
    points = document["membership"]["points"]
    limit = document["membership"]["cap"]
    assert limit == pytest.approx(cap(8)) == pytest.approx(0.99966, abs=1e-5)
    assert len({point["exact"] for point in points}) == 1
    for point in points:
        assert 0.5 < point["exact"] < limit
        # Six standard errors.
        assert abs(point["auc"] - point["exact"]) < 6 * point["error"]
    grown = [point["retrieval"] for point in points]
    assert grown == sorted(grown) and grown[-1] > 0.9 > points[-1]["exact"]
    assert retrieval_auc(1, 0.7) == pytest.approx(0.7)


def test_later_questions_of_a_coalition_find_the_record_spent() -> None:
    """Whatever their answers, they follow the same law in both worlds: no document is alive."""
    from ragaudit.lab.generation.voters import LocalVoters

    voters = LocalVoters(Transformer.load())
    terms = generation.rag(Fraction(3))
    text = "patient dobifu ; treatment of bazeli : mirazo ; symptom of bazeli : kolupe ."
    question = "treatment of bazeli ?"
    voters.prepare(question, [text])
    stream = Murag(terms, DocumentBudgets(6, 3), Fraction(1, 2))
    rows = [Row(0, Fraction(1), text)]
    outcomes = [stream.ask(question, rows, voters, KeyedCoins(bytes([n]) * 32)) for n in range(4)]
    assert [len(each.charged) for each in outcomes] == [1, 1, 0, 0]
    again = Murag(terms, DocumentBudgets(6, 3), Fraction(1, 2))
    alone = [again.ask(question, [], voters, KeyedCoins(bytes([n]) * 32)) for n in range(4)]
    assert [each.answer for each in outcomes[2:]] == [each.answer for each in alone[2:]]


@pytest.mark.nightly
def test_what_was_asked_before_has_its_answer_and_nobody_pays(document: dict[str, Any]) -> None:
    at = {(each["arm"], each["group"]): each for each in document["cells"] if each["epsilon"] == 10}
    for reusing, base in REUSING.items():
        first, again = at[reusing, "first"], at[reusing, "repeated"]
        assert (first["reused"], again["reused"]) == (0, 1)
        assert (again["charged"], again["used"], again["refused"], again["private"]) == (0,) * 4
        # With the same coins, before anything is asked again both arms are one.
        assert first == {**at[base, "first"], "arm": reusing}


def test_stored_answers_are_for_the_same_question_only() -> None:
    asked: list[str] = []

    def ask(text: str, rows: Sequence[Row], coins: KeyedCoins) -> Outcome[TokenAnswer]:
        asked.append(text)
        return Outcome(TokenAnswer((len(asked),), 1, False), frozenset({7}), frozenset({7}))

    reusing = generation.reusing(ask)
    coins = KeyedCoins(bytes(32))
    outcomes = [reusing(text, [], coins) for text in ("a ?", "b ?", "a ?")]
    assert asked == ["a ?", "b ?"]
    assert outcomes[2].answer == outcomes[0].answer != outcomes[1].answer
    assert [len(each.charged) for each in outcomes] == [1, 1, 0]


def test_what_is_run_is_repeatable() -> None:
    model = Transformer.load()
    size = Size(1, families=1, questions=3, epsilons=(8,))
    first, second = (list(generation.run(model, 5, size)) for _ in range(2))
    assert first == second
    assert len(first) == 3 * (len(BASELINES) + len(ARMS))


def asked(seed: int, right: Sequence[bool]) -> list[Asked]:
    return [Asked(seed, "NAIVE", 3, 10, "first", each) for each in right]


def test_intervals_resample_corpora_not_questions() -> None:
    apart = cells([*asked(1, [True] * 9), *asked(2, [False] * 9)])[0]
    assert (apart.right, apart.low, apart.high) == (0.5, 0, 1)
    alike = cells([*asked(1, [True, False] * 9), *asked(2, [True, False] * 9)])[0]
    assert (alike.right, alike.low, alike.high) == (0.5, 0.5, 0.5)
    assert alike.precision is None


@pytest.mark.parametrize("options", [["--seeds", "1"], ["--seed", "-1"], ["--bad"]])
def test_bad_options_are_refused(options: list[str]) -> None:
    assert RUNNER.invoke(app, ["generation", *options]).exit_code == 2


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(generation, "run", lambda *given: iter(asked(1, [True])))
    monkeypatch.setattr(generation, "points", lambda *given: ())
    result = RUNNER.invoke(app, ["generation", "--quick", "--output", str(tmp_path / "file")])
    assert result.exit_code == 1
