"""Tests of membership: claims, statistics, and tricks of the tested side."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_rag
from for_each import for_each
from ragaudit.embedders.registry import DEFAULT
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError, RefusedError
from ragaudit.lab.attacks.membership.campaign import Campaign, Claim, Exchange, Plan
from ragaudit.lab.attacks.membership.documents import (
    Document,
    cross_fitted,
    held_out_low,
    measure,
    permutation_p,
    read,
)
from ragaudit.lab.attacks.membership.endpoints import Answer, Template
from ragaudit.lab.attacks.membership.judging import Judgement, Verdict, check_questions
from ragaudit.lab.attacks.membership.judging import _claimed as claimed
from ragaudit.lab.attacks.membership.judging import _dumb as nothing_told
from ragaudit.lab.attacks.membership.judging import _verdict as verdict_of
from ragaudit.lab.attacks.membership.probing import SIGNALS, Probe, probes, signals
from ragaudit.lab.attacks.membership.running import classes, figures, page, statement, summary
from ragaudit.lab.risk.estimation import area_under_curve
from ragaudit.ledger.messages.signed_results import MembershipResult
from scipy import stats

LABELS = np.arange(50) < 25
PERFECT = measure(LABELS.astype(np.float64), LABELS, 0)

Texts = tuple[str | None, str | None, str | None]
"""Epsilon, delta and mu as a command line has them."""


def plan_of(claim: Claim | None) -> Plan:
    return Plan(Template("http://x/", {"q": "{query}"}, "a"), (), (), ("verbatim",), 0, 0.65, claim)


def judgement(claim: Claim | None) -> tuple[Plan, Judgement]:
    """Of a perfect score, whose bootstrap has no width."""
    plan = plan_of(claim)
    low = held_out_low(LABELS[:, None].astype(np.float64), np.arange(50), LABELS, 0)
    test = claimed(plan, PERFECT.low, low)
    return plan, Judgement(Verdict.FAIL, PERFECT, low, 0.01, (), test, 0.03, 0, "", ())


@for_each(
    ("texts", "cap", "refuted"),
    [
        (("1", None, None), 0.7310586, True),  # 1 - (1 - delta)^2 / (1 + e^epsilon)
        (("0.5", "0.1", None), 1 - 0.81 * 0.3775407, True),
        (("10", None, None), 0.9999546, False),
        (("0", "1", None), 1.0, False),
        ((None, None, "0"), 0.5, True),  # Phi(mu / sqrt 2)
        ((None, None, "0.5"), 0.6381632, True),
        # The exact lower limit of twelve or thirteen pairs is below .76.
        ((None, None, "1"), 0.7602499, False),
        ((None, None, "5"), 0.9997965, False),
    ],
)
def test_a_perfect_score_refutes_no_weak_claim(texts: Texts, cap: float, refuted: bool) -> None:
    plan, found = judgement(Claim.of(*texts))
    assert PERFECT.low == 1 and plan.claim is not None and found.claim is not None
    assert plan.claim.cap == pytest.approx(cap, abs=1e-7)
    assert found.claim.refuted is refuted


@for_each(
    ("texts", "error", "what"),
    [
        (("1", None, "1"), MalformedError, "--claim-mu: two claims"),
        (("1", "0.1", "1"), MalformedError, "--claim-mu: two claims"),
        ((None, "0.1", "1"), MalformedError, "--claim-delta: a delta without its epsilon"),
        ((None, "0", None), MalformedError, "--claim-delta: a delta without its epsilon"),
        ((None, None, "-1"), InvalidArgumentError, "mu"),
        ((None, None, "1e16"), InvalidArgumentError, "mu"),
        ((None, None, "nan"), InvalidArgumentError, "mu"),
        ((None, None, ""), InvalidArgumentError, "mu"),
        (("1", "1.5", None), InvalidArgumentError, "delta"),
        (("1", "", None), InvalidArgumentError, "delta"),
        (("-1", None, None), InvalidArgumentError, "epsilon"),
    ],
)
def test_what_is_no_claim_is_refused(texts: Texts, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        Claim.of(*texts)


@pytest.mark.parametrize(
    ("texts", "stated", "test", "words"),
    [
        (("0.5", "1e-6", None), {"epsilon": "0.5", "delta": "1e-6"}, "claimed_epsilon",
         "CLAIM REFUTED: epsilon 0.5 at delta 1e-6 allows an AUC of at most 0.622460"),
        ((None, None, "0.5"), {"mu": "0.5"}, "claimed_mu",
         "CLAIM REFUTED: mu 0.5 allows an AUC of at most 0.638163"),
        ((None, None, "5"), {"mu": "5"}, "claimed_mu",
         "claim not refuted: mu 5 allows an AUC of at most 0.999797"),
    ],
)  # fmt: skip
def test_the_result_and_the_page_state_the_claim(
    texts: Texts, stated: dict[str, str], test: str, words: str, tmp_path: Path
) -> None:
    plan, found = judgement(Claim.of(*texts))
    assert found.claim is not None and plan.claim is not None
    refuted = found.claim.refuted
    assert figures(plan, found)["claim"] == {**stated, "cap": plan.claim.cap, "refuted": refuted}
    assert words in summary(plan, found) and words in page(plan, found)
    campaign = Campaign(tmp_path, plan)
    campaign.close()
    result = statement(plan, campaign, found)
    assert result.plan == hashlib.sha256((tmp_path / "plan.json").read_bytes()).hexdigest()
    body = result.to_json()
    assert (test in body["predicate"]["failedTests"]) is refuted
    assert (test in body["predicate"]["passedTests"]) is not refuted
    assert MembershipResult.parse(canonical_json.dumps(body)) == result
    assert {name: result.detail[f"claimed_{name}"] for name in stated} == stated


def test_another_claim_is_another_plan() -> None:
    claims = [("1", None, None), ("1", "0.1", None), (None, None, "1"), (None, None, None)]
    assert len({plan_of(Claim.of(*texts)).digest for texts in claims}) == 4


@pytest.mark.parametrize(
    ("refuted", "detail"),
    [
        (True, {}),
        (None, {"claimed_mu": "1"}),
        (False, {"claimed_mu": "1", "claimed_epsilon": "1"}),
        (None, {"claimed_mu": "1", "claimed_epsilon": "1"}),
    ],
)
def test_a_signed_result_states_the_one_claim_that_was_tested(
    refuted: bool | None, detail: dict[str, str]
) -> None:
    with pytest.raises(MalformedError, match="claim"):
        MembershipResult({"e": "ab" * 32}, "ab" * 32, "FAIL", refuted, detail)


@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.nightly)])
def test_the_exact_limit_is_of_documents_that_the_model_does_not_know(count: int) -> None:
    labels = np.arange(50) < 25
    rng = np.random.default_rng(5)
    perfect = np.where(labels, 1.0, -1.0)[:, None]
    assert held_out_low(perfect, np.arange(50), labels, 0) == pytest.approx(0.025 ** (1 / 12))
    assert held_out_low(np.zeros((50, 1)), np.arange(50), labels, 0) == 0
    # Of data sets that say nothing at most 1 in 40 is above 1/2; a sound test fails this with
    # probability 1e-6.
    above = sum(
        held_out_low(rng.normal(size=(50, 6)), np.arange(50), labels, seed) > 0.5
        for seed in range(count)
    )
    assert above <= stats.binom.isf(1e-6, count, 1 / 40)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(150, marks=pytest.mark.slow), pytest.param(2000, marks=pytest.mark.nightly)],
)
def test_exchangeable_documents_are_significant_at_the_stated_rate(rounds: int) -> None:
    """Not by the answers of documents, nor by many questions about each."""
    hits = 0
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(30), 3)
        # Answers about one document are alike: the unit is the document.
        values = rng.normal(size=(30, 4))[groups] + 0.3 * rng.normal(size=(90, 4))
        hits += permutation_p(values, groups, np.arange(30) < 15, seed, permutations=19) <= 0.05
    # Exactly 1/20 each; a sound test fails this with probability 1e-6.
    assert hits <= stats.binom.isf(1e-6, rounds, 0.05)
    assert hits >= stats.binom.ppf(1e-6, rounds, 0.05)


def test_the_direction_is_learnt_on_other_documents() -> None:
    rng = np.random.default_rng(3)
    labels = np.arange(60) < 30
    values = rng.normal(size=(60, 1)) - 2.0 * labels[:, None]
    # Low values are members': the folds say so, and the test documents have no say.
    scores = cross_fitted(values, np.arange(60), labels, 0)
    assert area_under_curve(scores[labels], scores[~labels]) > 0.85
    scores = cross_fitted(rng.normal(size=(60, 1)), np.arange(60), labels, 0)
    assert area_under_curve(scores[labels], scores[~labels]) < 0.75


def test_documents_whose_answers_measure_the_same_tie_in_whatever_order_they_were_asked() -> None:
    """A signal of the phrasing alone: sums in another order differ by a rounding error."""
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(50), 3)
    of_phrasing = np.tile([np.log(10), np.log(12), np.log(16)], 50)
    order = rng.permutation(len(groups))
    values, groups = of_phrasing[order][:, np.newaxis], groups[order]
    # Not rounded, some documents differ from others, and that is the same in every test.
    sums = np.bincount(groups, values[:, 0])
    assert len(np.unique(sums / 3)) > 1
    labels = np.arange(50) < 25
    scores = cross_fitted(values, groups, labels, 0)
    assert measure(scores, labels, 0).equal
    assert permutation_p(values, groups, labels, 0, permutations=19) == 1


def test_measures_have_known_answers() -> None:
    labels = np.array([True, True, True, False, False, False])
    found = measure(np.array([3.0, 2.5, 2.0, 1.0, 0.5, 0.0]), labels, 0)
    assert (found.auc, found.low, found.high, found.equal) == (1, 1, 1, False)
    assert found.p == pytest.approx(1 / 20)  # one order of 20
    flat = measure(np.zeros(6), labels, 0)
    assert (flat.auc, flat.equal, flat.p) == (0.5, True, 1)
    tied = measure(np.array([1.0, 1, 0, 1, 0, 0]), labels, 0)
    assert tied.auc == pytest.approx((2 * (0.5 + 2) + (2 * 0.5)) / 9)


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
