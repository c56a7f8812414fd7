"""Reports say what the verdict says, and nothing in them runs, loads or breaks out."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from ragaudit.encoding.signing import PrivateKey
from ragaudit.privacy.accounting import GAMMA, epsilon_report
from ragaudit.verifier import verdict as verdicts
from ragaudit.verifier.procedure import CHECKS, CheckResult, Outcome, Status, limits
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.verdict import Verdict

KEY = PrivateKey.from_seed(b"k" * 32)
HOSTILE = '<script>alert("x")</script>&<img src=x onerror=y>'


def table() -> dict[str, object]:
    return epsilon_report(
        "4", "replace", 1, 4, 2, "0.00001", GAMMA, 5, [3, 2, 2, 1], "20", "0.00001"
    )


TABLE = table()


def outcome(result: str = "PASS", **changes: object) -> Outcome:
    checks = tuple(
        CheckResult(c.number, c.id, c.title, Status.PASS, f"in order, {c.id}") for c in CHECKS
    )
    base = Outcome(
        window="w1",
        provider="rag.example",
        engine="core",
        result=result,
        worthless=False,
        checks=checks,
        epsilon=TABLE,
        sampling={
            "mode": "B",
            "beta": "0.1",
            "strata": [
                {
                    "id": "tenant:acme",
                    "eta": "0.0009765625",
                    "population": 1200,
                    "bad": 120,
                    "sample": 300,
                    "miss_probability": "0.000000953674",
                    "with_replacement": "0.999998000000",
                }
            ],
        },
        counts={"records": 1200, "accounts": 4, "anchored": 2, "plain": 2, "records_plain": 7},
        coalition={"claimed": 1, "estimated": 1, "max": 2},
        not_covered=(*limits.NOT_COVERED, limits.UNSAMPLED, limits.PLAIN),
        assumptions=limits.ASSUMPTIONS,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def signed(value: Outcome) -> Verdict:
    digests = {"public/policy.json": "ab" * 32, "confidential/records.bin": "cd" * 32}
    return verdicts.verify_verdict(
        verdicts.sign_verdict(value, digests, KEY, time=1_700_000_000_000), KEY.public
    )


class Page(HTMLParser):
    """Texts, tags and attributes of a page; unbalanced tags fail."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        assert self.open == []
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data


@pytest.mark.parametrize("result", ["PASS", "FAIL", "EXCEEDED", "REFUSED"])
def test_both_reports_say_everything(result: str) -> None:
    verdict = signed(outcome(result))
    page = Page(render_html(verdict)).text
    text = " ".join(render_text(verdict).split())
    for report in (page, text):
        assert result in report
        for check in CHECKS:
            assert check.title in report
            assert f"in order, {check.id}" in report
        for line in (*limits.NOT_COVERED, *limits.ASSUMPTIONS, limits.UNSAMPLED, limits.PLAIN):
            assert line in report
        assert str(TABLE["headline"]["epsilon"]) in report  # type: ignore[index]
        assert "compliance rate" in report
        assert "not an (epsilon, delta) statement" in report
        assert "0.000000953674" in report
        assert "2023-11-14 22:13:20 UTC" in report
        assert "not a guarantee" in report
        assert "100 candidates" in report
        assert "abababab" in report
        assert "WORTHLESS" not in report


def test_a_seeded_window_is_called_worthless_on_top() -> None:
    verdict = signed(outcome(worthless=True))
    for report in (Page(render_html(verdict)).text, render_text(verdict)):
        assert "WORTHLESS" in report
        assert report.index("WORTHLESS") < report.index("registrations")


def test_what_is_not_established_stands_beside_the_result() -> None:
    checks = tuple(
        replace(each, status=Status.NOT_ESTABLISHED, reason="no texts")
        if each.id == "embedding"
        else each
        for each in outcome().checks
    )
    verdict = signed(outcome(checks=checks))
    for report in (Page(render_html(verdict)).text, render_text(verdict)):
        assert "This result does not speak of the following: no texts." in report
    assert "does not speak" not in render_text(signed(outcome()))


def test_the_page_is_self_contained_and_accessible() -> None:
    html = render_html(signed(outcome()))
    page = Page(html)
    assert set(page.tags) & {"script", "link", "img", "iframe", "object", "form", "a"} == set()
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "href", "style"}
    assert "default-src 'none'" in html
    assert not re.search(r"https?://|url\(|@import", html)
    assert ("lang", "en") in page.attributes
    assert page.tags.count("h1") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    assert all(value in {"col", "row"} for name, value in page.attributes if name == "scope")


def test_nothing_in_a_verdict_becomes_markup() -> None:
    checks = tuple(
        replace(each, reason=HOSTILE, evidence=(HOSTILE,)) for each in outcome("FAIL").checks
    )
    hostile = outcome(
        "FAIL",
        window=HOSTILE,
        provider=HOSTILE,
        checks=checks,
        not_covered=(HOSTILE,),
        assumptions=(HOSTILE,),
        coalition={HOSTILE: HOSTILE},
        counts={HOSTILE: HOSTILE},
        epsilon={HOSTILE: {HOSTILE: [HOSTILE]}},
        sampling={"mode": "B", "strata": [{"id": HOSTILE}]},
    )
    page = Page(render_html(signed(hostile)))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "alert(" in page.text


def test_reports_of_verdicts_with_nothing_in_them() -> None:
    empty = outcome("REFUSED", checks=(), epsilon={}, sampling={}, counts={}, coalition={})
    verdict = signed(replace(empty, not_covered=(), assumptions=()))
    assert "No records were sampled" in Page(render_html(verdict)).text
    assert "No records were sampled" in render_text(verdict)


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    signed_far = verdicts.sign_verdict(outcome(), {}, KEY, time=2**53 - 1)
    verdict = verdicts.verify_verdict(signed_far, KEY.public)
    assert f"{2**53 - 1} ms" in render_text(verdict)
