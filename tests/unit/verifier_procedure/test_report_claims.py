"""Reports of verdicts with two claims: both are shown, and what is not claimed stands on top."""

import json
from dataclasses import replace

import pytest
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.ledger.messages.verdict_exports import VerificationResult
from ragaudit.verifier.command.cli import _show
from ragaudit.verifier.procedure import Status, covered
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.report.oscal import assessment_results
from report_cases import Page, outcome, signed
from report_cases_claims import UNAPPLIED, unnoised

NOT_CLAIMED = "No epsilon is claimed: the policy of this window adds no noise."


def shown(verdict: Verdict) -> tuple[str, str]:
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
    for text in shown(verdict):
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
    for text in (*shown(verdict), command, oscal):
        for said in (
            "more accounts look as if they act together than the policy plans for",
            "epsilon is conditional on it",
            "times that were promised is not established",
        ):
            assert said in text, said
    for text in shown(verdict):
        assert "risk translate" not in text
    # The list of what passed names them too.
    properties = VerificationResult.of(verdict).properties
    assert [name for name in properties if "_PASS" not in name] == [
        "RAGAUDIT_CHECK_COALITION_EXCEEDED",
        "RAGAUDIT_CHECK_TIME_STAMPS_NOT_ESTABLISHED",
        "RAGAUDIT_CHECK_REPLAY_NOT_ESTABLISHED",
    ]


def test_no_report_of_a_window_without_noise_speaks_of_a_guarantee() -> None:
    for text in shown(signed(unnoised())):
        assert "guarantee is called" not in text
        assert "added the noise" not in text
        assert "OTHER WAYS TO COUNT" not in text
        assert "risk translate" not in text


def test_checks_that_do_not_apply_are_listed_and_do_not_stand_out() -> None:
    page, text = shown(signed(unnoised()))
    assert "What did not pass" not in page
    assert "WHAT DID NOT PASS" not in text
    assert text.count("NOT APPLICABLE") == len(UNAPPLIED)


def test_a_window_with_noise_shows_both_claims_and_its_guarantee() -> None:
    verdict = signed(outcome())
    for text in shown(verdict):
        assert "Integrity PASS: Every answer that was checked" in text
        assert "Privacy PASS: The noise that was promised" in text
        assert "guarantee is called" in text
        assert NOT_CLAIMED not in text


def test_public_columns_are_listed() -> None:
    for text in shown(signed(unnoised())):
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
