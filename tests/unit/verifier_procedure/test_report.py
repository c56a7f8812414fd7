"""Both reports of a verdict: complete, accessible, nothing in them becomes markup."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.signed import key_id
from ragaudit.verifier.procedure import CHECKS, Outcome, Status, covered
from ragaudit.verifier.report import render_html, render_text, wording
from report_cases import KEY, KEYS, SCOPE, TABLE, Page, outcome, signed, strata

HOSTILE = '<script>alert("x")</script>&<img src=x onerror=y>'


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
        for line in (*covered.NOT_COVERED, *covered.ASSUMPTIONS, covered.UNSAMPLED, covered.PLAIN):
            assert line in report
        assert str(TABLE.headline.epsilon) in report
        assert "compliance rate" in report
        assert "0.000000953674" in report
        assert "2023-11-14T22:13:20Z" in report
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
    assert page.tags.count("h3") == 0
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
        sampling={"mode": "B", "strata": [{"id": HOSTILE, HOSTILE: HOSTILE}]},
        scope={HOSTILE: HOSTILE, "tenants": [HOSTILE], "keys": {"cosigner": HOSTILE}},
    )
    page = Page(render_html(signed(hostile, epsilon={HOSTILE: {HOSTILE: [HOSTILE]}})))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "alert(" in page.text


def test_reports_of_verdicts_with_nothing_in_them() -> None:
    empty = outcome(
        "REFUSED", checks=(), epsilon=None, sampling={}, counts={}, coalition={}, scope={}
    )
    verdict = signed(replace(empty, not_covered=(), assumptions=()))
    assert "No records were sampled" in Page(render_html(verdict)).text
    assert "No records were sampled" in render_text(verdict)


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    signed_far = outcome().sign(KEY, {}, time=2**53 - 1)
    verdict = verdicts.Verdict.verify(signed_far, KEY.public)
    assert f"{2**53 - 1} ms" in render_text(verdict)


# --- what was audited, what failed, who signed ----------------------------------------------------


def test_what_was_audited_is_said() -> None:
    verdict = signed(outcome())
    for report in (Page(render_html(verdict)).text, render_text(verdict)):
        for part in (
            "2023-11-14T22:13:20Z", "2023-11-15T22:13:20Z", "2023-11-15T23:13:20Z", "ef" * 32,
            "acme", "rows: 12,345", "umbrella", "rows: none", "K_max", "0.013", "0.00000077",
            *KEYS.values(),
        ):  # fmt: skip
            assert part in report, part


def failing() -> Outcome:
    status = {"promises": Status.FAIL, "embedding": Status.NOT_ESTABLISHED, "seed": Status.NOT_RUN}
    checks = tuple(
        replace(each, status=status[each.id], reason=f"because of {each.id}", evidence=("line",))
        if each.id in status
        else each
        for each in outcome().checks
    )
    return outcome("FAIL", checks=checks)


def test_failures_stand_first() -> None:
    verdict = signed(failing())
    html = render_html(verdict)
    for report in (Page(html).text, render_text(verdict)):
        places = [
            report.index(part)
            for part in (
                "because of promises", "because of embedding", "because of seed", "ef" * 32,
                "in order, policy",
            )
        ]  # fmt: skip
        assert places == sorted(places)
        assert report.count("because of promises") == 1
    assert Page(html).tags.count("h3") == 3


def test_who_signed_and_how_to_check() -> None:
    verdict = signed(outcome())
    key = KEY.public.raw.hex()
    for report in (Page(render_html(verdict)).text, " ".join(render_text(verdict).split())):
        assert "verifier.example/cosigner" in report
        assert key_id(KEY.public) in report
        assert f"ragaudit verifier recheck bundle.zip --verdict-key {key}" in report
        assert f"ragaudit risk translate --verdict verdict.json --verdict-key {key}" in report
        assert "Compare the key with the one that the verifier gave you in another way" in report


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


@pytest.mark.parametrize("value", [outcome(), failing()], ids=["pass", "fail"])
def test_every_signed_line_is_shown(value: Outcome) -> None:
    verdict = signed(value)
    times = {SCOPE[name] for name in ("start", "end", "sampling_instant")}
    for report in (Page(render_html(verdict)).text, " ".join(render_text(verdict).split())):
        for leaf in leaves({**verdict.predicate.to_json(), "time": None}):
            if leaf in times:
                shown = rfc3339(1000 * int(str(leaf)))
            elif isinstance(leaf, bool):
                shown = "yes" if leaf else "no"
            else:
                shown = f"{leaf:,}" if isinstance(leaf, int) else str(leaf)
            assert leaf is None or shown in report, leaf


def test_members_that_nobody_foresaw_are_shown() -> None:
    value = outcome(
        counts={"moons": 3},
        scope={"colour_of_ink": "blue"},
        sampling={"mode": "B", "seeds": {"x": "y7"}, "strata": [{"id": "s", "b": 11}]},
    )
    for report in (Page(render_html(signed(value))).text, render_text(signed(value))):
        for part in ("moons", "colour of ink", "blue", "y7", "11"):
            assert part in report
    for shape in ("none at all", {"x": "none at all"}, ["none at all"]):
        odd = signed(outcome(scope={"tenants": shape}), sampling={"mode": "B", "strata": shape})
        for report in (Page(render_html(odd)).text, render_text(odd)):
            assert report.count("none at all") == 2


def test_the_terms_of_the_verifier_are_shown() -> None:
    for report in (Page(render_html(signed(outcome()))).text, render_text(signed(outcome()))):
        assert "5a" * 32 in report
    assert "Terms for policies" not in render_text(signed(outcome(terms="")))


def test_responses_that_are_too_many_are_counted_and_said_to_be() -> None:
    digests = {f"confidential/responses/{index}.bin": "ab" * 32 for index in range(1500)}
    digests["public/policy.json"] = "cd" * 32
    envelope = outcome().sign(KEY, digests, time=1)
    verdict = verdicts.Verdict.verify(envelope, KEY.public)
    for report in (Page(render_html(verdict)).text, " ".join(render_text(verdict).split())):
        assert "1,500 responses" in report
        assert "stand in verdict.json only" in report
        assert "cd" * 32 in report
        assert "ab" * 32 not in report


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (strata(("tenant:a", 700, 700), ("tenant:b", 500, 500)), "Every record was checked."),
        (strata(("tenant:a", 700, 700), ("tenant:b", 499, 499)), "do not hold all records"),
        (strata(("tenant:a", 1200, 1199)), "do not hold all records"),
        (strata(("account:a", 1200, 1200)), "do not hold all records"),
        (strata(), "No records were sampled."),
    ],
)
def test_every_record_is_said_to_be_checked_only_if_it_was(
    sampling: dict[str, object], said: str
) -> None:
    verdict = signed(outcome(sampling=sampling))
    for report in (Page(render_html(verdict)).text, " ".join(render_text(verdict).split())):
        assert said in report
        assert ("Every record was checked." in report) == (said == "Every record was checked.")


# --- on paper and on a phone ----------------------------------------------------------------------


def test_what_a_sample_would_miss_is_a_sentence() -> None:
    stratum = {"id": "tenant:a", "population": 30, "bad": 3, "miss_probability": "0.001000000000"}
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "would miss 3 bad answers of 30 once in 1,000"),
        ({"bad": 1}, "would miss 1 bad answer of 30 once in 1,000"),
        ({"id": "charges:a"}, "would miss 3 bad charges of 30 once in 1,000"),
        ({"miss_probability": "0.000999000000"}, "would miss 3 bad answers of 30 once in 1,001"),
        ({"miss_probability": "0.001000000001"}, "would miss 3 bad answers of 30 once in 999"),
        ({"miss_probability": "0"}, "would miss 3 bad answers of 30 never"),
        ({"miss_probability": "0.7004"}, "would miss 3 bad answers of 30 with a chance of 0.701"),
        ({"population": 0, "bad": 0}, "nothing: it is empty"),
        ({"miss_probability": None}, "3 bad records"),
        ({"population": "many"}, "3 bad records"),
    ]
    for change, said in cases:
        sampling = {"mode": "B", "strata": [stratum | change]}
        verdict = signed(outcome(sampling=sampling))
        for report in (Page(render_html(verdict)).text, " ".join(render_text(verdict).split())):
            assert said in report, change
            assert not re.search(r"\bbad: ?\d", report), change


def test_no_control_character_of_a_verdict_is_in_a_report() -> None:
    drawn = "x\x1b[2J\x1b[32mPASS\x9b1m\r\u202e\u2028"
    checks = tuple(
        replace(each, reason=drawn, evidence=(drawn,)) for each in outcome("FAIL").checks
    )
    verdict = signed(outcome("FAIL", checks=checks, counts={drawn: drawn}, not_covered=(drawn,)))
    for report in (render_html(verdict), render_text(verdict)):
        assert "PASS" in report
        assert not [c for c in report if c != "\n" and unicodedata.category(c)[0] == "C"]
        assert "\u2028" not in report


def test_nothing_is_folded_away_on_paper() -> None:
    html = render_html(signed(failing()))
    assert html.count("<details") == html.count("<details open>") > 0
    assert "@media print" in html


def test_columns_keep_their_headings_on_a_phone() -> None:
    html = render_html(signed(outcome()))
    assert "@media (max-width: 40rem)" in html
    assert "attr(data-label)" in html
    page = Page(html)
    labels = [value for name, value in page.attributes if name == "data-label"]
    assert {"epsilon", "Queries", "Records", "Checked", "Status", "Reason"} <= set(labels)
    assert "nowrap" not in html
    assert "overflow-x" not in html


def test_the_disclaimers_exist_once() -> None:
    """What a verdict does not cover is signed; the report's own words do not say it again."""
    texts = (*covered.NOT_COVERED, *covered.ASSUMPTIONS, covered.UNSAMPLED, covered.PLAIN)
    labels = " ".join(" ".join(each) for each in wording.LABELS.values())
    own = " ".join(each for each in vars(wording).values() if isinstance(each, str)) + labels
    for text in texts:
        for sentence in re.split(r"(?<=[.:]) ", text):
            assert len(sentence) < 30 or sentence not in own
    page = Page(render_html(signed(outcome()))).text
    assert all(page.count(text) == 1 for text in texts)


def test_no_other_module_has_a_copy_of_a_disclaimer() -> None:
    """In any member: sentences of the limits, however their literals are broken into lines."""
    home = Path(covered.__file__)
    homes = {home, Path(verdicts.__file__)}
    folders = [each for each in home.parents[5].glob("*/src") if each.is_dir()]
    assert len(folders) > 8
    code = "".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        for member in folders
        for path in member.rglob("*")
        if path.suffix in {".py", ".j2"} and path not in homes
    )
    everything = covered.not_covered("B", {"disputes_open": 1, "anchored": 1, "plain": 1})
    for text in (*everything, *covered.ASSUMPTIONS, verdicts.WORTHLESS):
        for sentence in re.split(r"(?<=[.:]) ", text):
            assert len(sentence) < 30 or sentence not in code
