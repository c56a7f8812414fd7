"""The report: findings, channels, claims, guarantees, and what a verdict does not cover."""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.signed import key_id
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.ledger.messages.verdict_exports import VerificationResult
from ragaudit.privacy.accounting.generation import (
    ChannelCosts,
    ChannelEpsilon,
    KeywordChannelEpsilon,
)
from ragaudit.privacy.guarantees import TotalVariation
from ragaudit.verifier.command.cli import _show
from ragaudit.verifier.procedure import CHECKS, Outcome, Status, covered
from ragaudit.verifier.report import render_html, render_text, wording
from ragaudit.verifier.report.oscal import assessment_results
from ragaudit.verifier.report.view import ChannelView, channel_view
from report_cases import KEY, KEYS, SCOPE, TABLE, Page, outcome, signed, strata
from report_cases_claims import UNAPPLIED, unnoised

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


PURE = ChannelEpsilon("murag", 3, Fraction(3, 2), 1, 1000, 3)
KEYWORDS = KeywordChannelEpsilon(
    2, Fraction(1, 2), Fraction(8), Fraction(1, 10**6), Fraction(1, 10**6), 100
)
NULL = NeighboringRelation.NULL_REPLACE


def shown(costs: ChannelCosts, relation: NeighboringRelation) -> ChannelView:
    table = replace(TABLE, parameters=replace(TABLE.parameters, relation=relation))
    predicate = replace(outcome().predicate(time=1), generation=costs.to_json())
    view = channel_view(predicate, table)
    assert view is not None
    return view


@pytest.mark.parametrize("costs", [PURE, KEYWORDS], ids=["pure", "keywords"])
def test_both_channels_together_add_up_epsilon_and_delta_of_one_relation(
    costs: ChannelCosts,
) -> None:
    assert TABLE.parameters.relation is NeighboringRelation.REPLACE
    for relation, loss in (
        (NeighboringRelation.REPLACE, costs.replace_one), (NULL, costs.replace_one_null),
    ):  # fmt: skip
        epsilon, delta = loss if isinstance(loss, tuple) else (loss, Fraction(0))
        both = Fraction(str(TABLE.headline.epsilon)) + epsilon
        said = shown(costs, relation).together
        assert said.startswith(f"Both channels together: epsilon {both} (")
        whole = Fraction(TABLE.parameters.delta_policy) + delta
        assert f" at delta {float(whole):.3g} for 2 accounts under {relation.value}" in said


def test_what_keywords_cost_has_a_delta() -> None:
    said = shown(KEYWORDS, NULL).sentence
    assert "at delta 3e-06 for one document changed to or from a null row" in said
    assert "at delta 5e-06 for one replaced by another" in said
    assert "at delta" not in shown(PURE, NULL).sentence


NOT_CLAIMED = "No epsilon is claimed: the policy of this window adds no noise."


def shown_claims(verdict: Verdict) -> tuple[str, str]:
    """Both reports, white space made even."""
    return Page(render_html(verdict)).text, " ".join(render_text(verdict).split())


def test_the_first_line_says_that_no_epsilon_is_claimed() -> None:
    verdict = signed(unnoised())
    assert render_text(verdict).splitlines()[0] == NOT_CLAIMED
    body = render_html(verdict).partition("<body>")[2]
    assert body.index(NOT_CLAIMED) < body.index("<h1>")


@pytest.mark.parametrize(
    ("statuses", "results"),
    [
        ({}, ("PASS", "PASS", "NOT CLAIMED")),
        ({"selection": Status.FAIL}, ("FAIL", "FAIL", "NOT CLAIMED")),
    ],
)
def test_reports_show_both_claims(
    statuses: dict[str, Status], results: tuple[str, str, str]
) -> None:
    verdict = signed(unnoised(**statuses))
    claims = verdict.predicate.claims
    assert (verdict.result, claims.integrity, claims.privacy) == results
    for text in shown_claims(verdict):
        assert f"Integrity {claims.integrity}: {claims.statements[0]}" in text
        assert f"Privacy {claims.privacy}: {claims.statements[1]}" in text


def exceeded() -> Verdict:
    """More accounts than planned, answers that nobody computed again, and no stamps in time."""
    open_ = {"replay", "time-stamps"}
    base = outcome()
    checks = tuple(
        replace(check, status=Status.NOT_ESTABLISHED)
        if check.id in open_
        else replace(check, status=Status.EXCEEDED)
        if check.id == "coalition"
        else check
        for check in base.checks
    )
    return signed(replace(base, checks=checks, result="EXCEEDED"))


def test_exceeded_hides_neither_conditional_nor_what_is_not_established(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdict = exceeded()
    _show(verdict, as_json=False)
    command = " ".join(capsys.readouterr().out.split())
    oscal = assessment_results(verdict).decode().replace("\\\\", "")
    for text in (*shown_claims(verdict), command, oscal):
        for said in (
            "more accounts look as if they act together than the policy plans for",
            "epsilon is conditional on it",
            "times that were promised is not established",
        ):
            assert said in text, said
    for text in shown_claims(verdict):
        assert "risk translate" not in text
    # The list of what passed names them too.
    properties = VerificationResult.of(verdict).properties
    assert [name for name in properties if "_PASS" not in name] == [
        "RAGAUDIT_CHECK_COALITION_EXCEEDED",
        "RAGAUDIT_CHECK_TIME_STAMPS_NOT_ESTABLISHED",
        "RAGAUDIT_CHECK_REPLAY_NOT_ESTABLISHED",
    ]


def test_no_report_of_a_window_without_noise_speaks_of_a_guarantee() -> None:
    for text in shown_claims(signed(unnoised())):
        assert "guarantee is called" not in text
        assert "added the noise" not in text
        assert "OTHER WAYS TO COUNT" not in text
        assert "risk translate" not in text


def test_checks_that_do_not_apply_are_listed_and_do_not_stand_out() -> None:
    page, text = shown_claims(signed(unnoised()))
    assert "What did not pass" not in page
    assert "WHAT DID NOT PASS" not in text
    assert text.count("NOT APPLICABLE") == len(UNAPPLIED)


def test_a_window_with_noise_shows_both_claims_and_its_guarantee() -> None:
    verdict = signed(outcome())
    for text in shown_claims(verdict):
        assert "Integrity PASS: Every answer that was checked" in text
        assert "Privacy PASS: The noise that was promised" in text
        assert "guarantee is called" in text
        assert NOT_CLAIMED not in text


def test_public_columns_are_listed() -> None:
    for text in shown_claims(signed(unnoised())):
        assert "colour" in text
        assert covered.COLUMNS in text


def test_the_command_shows_both_claims(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = signed(unnoised())
    _show(verdict, as_json=False)
    text = " ".join(capsys.readouterr().out.split())
    assert "integrity: PASS" in text
    assert "privacy: NOT CLAIMED: No epsilon is claimed" in text
    _show(verdict, as_json=True)
    assert json.loads(capsys.readouterr().out)["claims"]["privacy"]["result"] == "NOT CLAIMED"


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


SPEC = Path(__file__).parents[3] / "docs" / "spec"
TEXTS: dict[str, str] = json.loads((SPEC / "verdict-texts.json").read_text(encoding="utf-8"))


def texts(*names: str) -> tuple[str, ...]:
    return tuple(TEXTS[name] for name in names)


def test_the_texts_of_a_verdict_are_those_of_the_specification() -> None:
    conditional = (covered.UNSAMPLED, covered.DISPUTED, covered.SHOWN, covered.PLAIN)
    expected = (*covered.NOT_COVERED, covered.UNOWNED, *conditional)
    generating = (covered.UNLOGGED, covered.RENEWED, covered.VOIDED)
    changing = (covered.COLUMNS, covered.VERSIONS, covered.EPOCHS)
    second = (*changing, *generating, covered.WITHHELD_UNCOUNTED, covered.IDS)
    assert expected == texts(*(f"N{number}" for number in range(1, 11)))
    assert second == texts("N11", "N12", "N13", "N14", "N17", "N15", "N16", "N18")
    assert texts("A1", "A2", "A3", "A4", "A5", "A8") == covered.ASSUMPTIONS
    everything = covered.not_covered("B", {"disputes_open": 1, "anchored": 1, "plain": 1})
    least = (*expected[:-4], covered.WITHHELD_UNCOUNTED)
    assert everything == (*expected, covered.WITHHELD_UNCOUNTED)
    assert covered.not_covered("A", {"disputes_open": 0, "plain": None}) == least
    generated = covered.not_covered("A", {}, generation=True)
    assert generated == (*least[:-1], *generating[:2], covered.WITHHELD_UNCOUNTED)
    assert covered.VOIDED in covered.not_covered("A", {"voids": 1}, generation=True)
    known = covered.assumptions(None, ("the embedder", "the generator"))
    *same, models = known
    assert tuple(same) == covered.ASSUMPTIONS[:-1]
    assert models == " ".join(texts("A8", "A8, known models"))
    order = ["I1", "I2", "N4", "I3", "I4", "I7", "N6", "I5", "N8", "I6", "N11", "N12", "N13"]
    counts = {"disputes_open": 1, "anchored": 0, "plain": 1, "versions": 1, "epochs": 1}
    unnoised = covered.not_covered("B", counts, noised=False, columns=True)
    assert unnoised == texts(*order)
    assert TEXTS["A6"] == covered.SAMPLE_ALONE
    assert covered.BEACON.format("<hash>") == TEXTS["A7"]
    assert TEXTS["N3 by direction"] == covered.HIDDEN
    directed = covered.not_covered("A", {}, by_direction=True)
    assert directed[2] == covered.HIDDEN
    assert directed == (*least[:2], covered.HIDDEN, *least[3:])


def test_every_text_of_the_specification_is_named_in_its_chapter() -> None:
    chapter = (SPEC / "10-verdict.md").read_text(encoding="utf-8")
    section = chapter.split("## 10.4")[1].split("## 10.5")[0]
    named = {*re.findall(r"`([NIA]\d[^`]*)`", section), "N2"}  # of `N1` to `N6`
    assert named == {name for name in TEXTS if name[0] in "NIA"}


def test_statements_of_claims_are_those_of_the_specification() -> None:
    stated = {f"{claim} {result}": text for (claim, result), text in verdicts._STATEMENTS.items()}
    opened = {f"integrity PASS, {name} open": text for name, text in verdicts._OPEN.items()}
    said = {**stated, **opened, "integrity PASS, voids": verdicts._VOID.format("n")}
    assert said == {name: text for name, text in TEXTS.items() if name[0] in "ip"}


def test_what_owners_can_check_is_said_in_the_place_of_the_providers_word() -> None:
    replaced = {
        "N5": (covered.NOT_COVERED[4], covered.OWNED),
        "N6": (covered.UNOWNED, covered.UNOWNED_ROWS),
        "I4": (covered.DOCUMENTS, covered.OWNED_DOCUMENTS),
    }
    for name, (_, owned) in replaced.items():
        assert owned == TEXTS[f"{name} with owners"]
    assert TEXTS["N5 and I4, rows sampled"] == covered.COMPARED
    for noised, names in ((True, ("N5", "N6")), (False, ("I4", "N6"))):
        before = covered.not_covered("B", {"plain": 1}, noised=noised)
        after = covered.not_covered("B", {"plain": 1}, noised=noised, owned=True)
        changed = dict(replaced[name] for name in names)
        more = (covered.IDS,) if noised else ()
        assert after == (*(changed.get(each, each) for each in before), *more)
        assert set(changed) <= set(before)
        sampled = covered.not_covered("B", {"plain": 1}, noised=noised, owned=True, rows=True)
        assert [each for each in sampled if each not in after] == [
            f"{replaced[names[0]][1]} {covered.COMPARED}"
        ]
