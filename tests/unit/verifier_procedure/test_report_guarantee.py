"""The guarantee in a report: one sentence first, or none."""

import re
from dataclasses import replace

import pytest
from ragaudit.privacy.guarantees import TotalVariation
from ragaudit.verifier.procedure import Outcome
from ragaudit.verifier.report import render_html, render_text
from report_cases import TABLE, Page, outcome, signed

# --- the guarantee, and how good it looks ---------------------------------------------------------


def with_advantage(advantage: str) -> Outcome:
    membership = TotalVariation.of(advantage, TABLE.parameters.relation)
    return outcome(epsilon=replace(TABLE, risk=replace(TABLE.risk, membership=membership)))


@pytest.mark.parametrize(
    ("advantage", "word", "tone"),
    [
        ("0.010000", "meaningful", "good"),
        ("0.099999", "meaningful", "good"),
        ("0.100000", "weak", "warn"),
        ("0.499999", "weak", "warn"),
        ("0.500000", "empty", "hollow"),
        ("0.900000", "empty", "hollow"),
    ],
)
def test_a_pass_looks_as_good_as_its_guarantee(advantage: str, word: str, tone: str) -> None:
    verdict = signed(with_advantage(advantage))
    html = render_html(verdict)
    assert f'<header class="{tone}">' in html
    assert f"<small>the guarantee is {word}</small>" in html
    assert f"PASS: the guarantee is {word}" in render_text(verdict)
    for report in (Page(html).text, " ".join(render_text(verdict).split())):
        assert f"Membership advantage {advantage}" in report
        assert "weak from 0.1 on, empty from 0.5 on" in report


def test_the_guarantee_stands_first_in_one_sentence_and_the_rest_below_in_order() -> None:
    page = Page(render_html(signed(outcome()))).text
    text = " ".join(render_text(signed(outcome())).split())
    for report in (page, text):
        headline = TABLE.headline.epsilon
        places = [
            report.index(part)
            for part in (
                "Anybody who sees every answer of 2 accounts together",
                f"epsilon {headline} at delta 0.00001 under replace",
                "Every mandatory check passed", "One account alone",
                "All records of the largest tenant", "As many queries as were asked",
                "by Rényi accounting", "by another library", "if noise were continuous",
                "Closed form of the source paper",
            )
        ]  # fmt: skip
        assert places == sorted(places)
    assert page.index("What was audited") < page.index("Other ways to count")


@pytest.mark.parametrize(
    "value", [outcome("FAIL"), outcome("REFUSED"), outcome(worthless=True)], ids=lambda o: o.result
)
def test_where_there_is_no_guarantee_none_is_printed(value: Outcome) -> None:
    verdict = signed(value)
    for report in (Page(render_html(verdict)).text, " ".join(render_text(verdict).split())):
        assert "uarantee of this window" not in report
        assert not re.search("guarantee is (meaningful|weak|empty)", report)
        assert "Anybody who sees" not in report
        assert "ther ways to count" not in report.lower()
        assert "None of this is established" in report
        assert report.index("None of this is established") < report.index("One account alone")
        assert "risk translate" not in report
    assert '<header class="bad">' in render_html(verdict)


def test_a_table_that_is_none_gives_no_sentence_and_no_green() -> None:
    whole = TABLE.to_json()
    above_one = {**whole, "risk": {**whole["risk"], "membership_advantage": "2.000000"}}
    for epsilon in ({}, {"headline": {"epsilon": "1"}}, above_one, {**whole, "moons": 3}):
        html = render_html(signed(outcome(), epsilon=epsilon))
        assert '<header class="hollow">' in html
        assert "Anybody who sees" not in html
