"""What an endpoint, or a set of documents, could trick a membership test with."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_rag
from for_each import for_each
from ragaudit.embedders.registry import DEFAULT
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.lab.attacks.membership.campaign import Campaign, Exchange, Plan
from ragaudit.lab.attacks.membership.command import _classes as classes
from ragaudit.lab.attacks.membership.documents import Document, read
from ragaudit.lab.attacks.membership.endpoints import Answer, Template
from ragaudit.lab.attacks.membership.judging import Verdict, check_questions
from ragaudit.lab.attacks.membership.judging import _dumb as nothing_told
from ragaudit.lab.attacks.membership.judging import _verdict as verdict_of
from ragaudit.lab.attacks.membership.probing import SIGNALS, Probe, probes, signals
from ragaudit.lab.attacks.membership.scoring import measure

TEMPLATE = Template("http://x/", {"q": "{query}"}, "answers[*].text", "answers[*].id")


def documents(count: int, seed: int = 1) -> list[Document]:
    return [Document(**each) for each in toy_rag.documents(count, seed)]


def plan(members: list[Document], others: list[Document], *strategies: str) -> Plan:
    return Plan(
        TEMPLATE, tuple(members), tuple(others), strategies or ("verbatim", "citation", "fact"),
        0, 0.65, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["", "", "yes"], "Most questions had no answer"),
        (["no", "no", "no"], "All answers are the same"),
        (["", "no", "yes"], ""),
    ],
)
def test_a_pass_rests_on_answers(texts: list[str], said: str) -> None:
    probe = Probe("a", "verbatim", 0, "?")
    dumb = nothing_told([Exchange(probe, Answer(each)) for each in texts], texts.count(""))
    assert dumb.startswith(said) and bool(dumb) == bool(said)
    labels = np.arange(40) < 20
    flat = measure((np.arange(40) % 2).astype(np.float64), labels, 0)
    expected = Verdict.INCONCLUSIVE if said else Verdict.PASS
    assert verdict_of(flat, 0.9, dumb) is expected
    # What tells members from others is a leak, however few answers say it.
    assert verdict_of(measure(labels.astype(np.float64), labels, 0), 0.65, dumb) is Verdict.FAIL


@for_each(
    ("text", "what"),
    [
        ("{", "not JSON"),
        ("{}", "no template"),
        ('{"url": "ftp://x/", "body": {"q": "{query}"}, "answer": "a"}', "no URL"),
        ('{"url": "http://u:p@x/", "body": {"q": "{query}"}, "answer": "a"}', "a password"),
        ('{"url": "http://x/", "body": {"q": 1}, "answer": "a"}', "no place for the question"),
        ('{"url": "http://x/", "body": {"q": "{query}\\ud800"}, "answer": "a"}', "no place for"),
        (
            '{"url": "http://x/", "body": {"q": "{query}"}, "answer": "a", "headers": {"a b": ""}}',
            "headers: 'a b'",
        ),
        (
            '{"url": "http://x/", "body": {"": "{query}"}, "answer": "a", "headers": {"a": "\\n"}}',
            "headers: 'a'",
        ),
        ('{"url": "http://x/", "body": {"q": "{query}"}, "answer": "a["}', "a path as"),
        ('{"url": "http://x/", "body": {"q": "{query}"}, "answer": "a", "b": 1}', "no template"),
    ],
)
def test_a_bad_template_is_refused(text: str, what: str) -> None:
    with pytest.raises(MalformedError, match=re.escape(what)):
        Template.parse(text)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"answers": [{"text": "a", "id": 1}, {"text": "b", "id": 2}]}, ("a\nb", ("1", "2"))),
        # What finds nothing, and what declines as OpenAI's chat does, answers.
        ({"answers": []}, ("", ())),
        ({"answers": [{"text": None, "id": None}]}, ("", ("None",))),
    ],
)
def test_an_empty_answer_is_an_answer(reply: Any, said: tuple[str, tuple[str, ...]]) -> None:
    answer = TEMPLATE.read(reply)
    assert (answer.text, answer.citations) == said


@pytest.mark.parametrize("reply", [{}, {"answers": 1}, {"answers": [{}]}, [], {"answers": [[]]}])
def test_a_path_that_leads_nowhere_is_none(reply: Any) -> None:
    with pytest.raises(MalformedError, match="no text"):
        TEMPLATE.read(reply)


def citation(document: Document, query: str, answer: str, *cited: str) -> float:
    found = signals(document, Probe(document.id, "citation", 0, query), answer, cited)
    return found[SIGNALS.index("citation")]


def test_who_repeats_the_question_cites_nothing() -> None:
    document = Document("memo-17", "Notes on harbours", "word " * 12)
    asked = "What sources discuss Notes on harbours? Name them."
    assert citation(document, asked, "I know nothing of Notes on harbours.") == 0
    assert citation(document, "What is this?", "See notes on HARBOURS.") == 1
    assert citation(document, asked, "See memo-17.") == 1
    # What the endpoint names as a source, it has found.
    assert citation(document, asked, "", "Notes on harbours (2)") == 1


def test_a_short_name_is_any_word() -> None:
    document = Document("7", "", "word " * 12)
    assert citation(document, "?", "There are 7 of them.") == 0
    assert citation(document, "?", "", "chapter 7") == 0
    assert citation(document, "?", "", "7") == 1


def test_questions_that_tell_the_classes_apart_are_refused() -> None:
    """A service that holds nothing and repeats the question would be accused."""
    every = documents(50)
    check_questions(plan(every[:25], every[25:]))
    sure = [
        Document(each.id, each.title, f"According to the text, clearly: {each.text}")
        for each in every[:25]
    ]
    with pytest.raises(RefusedError, match="the questions alone tell members from others"):
        check_questions(plan(sure, every[25:]))


def test_titles_of_one_class_are_left_out(tmp_path: Path) -> None:
    every = toy_rag.documents(50, seed=1)
    inside = toy_rag.write(tmp_path / "in.jsonl", every[:25])
    bare = [{**each, "title": ""} for each in every[25:]]
    outside = toy_rag.write(tmp_path / "out.jsonl", bare)
    found = classes(inside, outside, None, DEFAULT, 0)
    assert not any(each.title for side in found for each in side)
    outside = toy_rag.write(tmp_path / "out.jsonl", every[25:])
    found = classes(inside, outside, None, DEFAULT, 0)
    assert all(each.title for side in found for each in side)


def test_separators_of_lines_within_a_text_end_no_document(tmp_path: Path) -> None:
    path, text = tmp_path / "in.jsonl", "one\u2028two\u0085three " * 12
    path.write_text(json.dumps({"id": "a", "text": text}, ensure_ascii=False) + "\n", "utf-8")
    assert [each.text for each in read(path, "--members")] == [text]


def test_half_of_a_character_cannot_be_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"id": "a", "text": "\ud800 " + "word " * 12}) + "\n")
    with pytest.raises(MalformedError, match="--members line 1: half of a surrogate pair"):
        read(path, "--members")


def test_a_key_that_no_header_can_hold_is_refused() -> None:
    template = Template("http://x/", {"q": "{query}"}, "a", headers={"Authorization": "{key}"})
    with pytest.raises(MalformedError, match="--key-file"):
        template.check_key("two\nlines")


def test_two_processes_do_not_ask_the_same_questions(tmp_path: Path) -> None:
    every = documents(20)
    one = Campaign(tmp_path, plan(every[:10], every[10:]))
    with pytest.raises(RefusedError, match="another process asks"):
        Campaign(tmp_path, plan(every[:10], every[10:]))
    one.close()
    Campaign(tmp_path, plan(every[:10], every[10:])).close()


def test_every_strategy_has_three_phrasings() -> None:
    found = probes(
        documents(3), ("verbatim", "citation", "fact", "s2mia", "interrogation", "mask"), 0
    )
    counts: dict[tuple[str, str], set[int]] = {}
    for each in found:
        counts.setdefault((each.document, each.strategy), set()).add(each.phrasing)
    assert len(counts) == 18 and min(map(len, counts.values())) >= 3
