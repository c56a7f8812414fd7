"""What happened within a window, in plain words: in the evidence of check 9, and in the report."""

from __future__ import annotations

from html import unescape

import pytest
from judged_windows import judged
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.text import rfc3339
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.procedure import Outcome, Status
from ragaudit.verifier.report import render_html, render_text

use_cached_table()

HEADING = "what happened within the window"


class LastVersionTooLate(IntegrityWindow):
    """beta gets a version that no instant activates any more."""

    def script(self) -> list[Event]:
        return [*super().script(), ("version", "beta", 90), ("checkpoint", 91)]


def report(window: Window, outcome: Outcome) -> tuple[str, str]:
    envelope = outcome.sign(window.verdict_key, {}, time=1_900_000_500_000)
    verdict = Verdict.verify(envelope, window.verdict_key.public)
    return render_text(verdict), render_html(verdict)


def test_each_version_is_told_with_its_time_and_from_when_it_counted() -> None:
    window = LastVersionTooLate()
    outcome = judged(window)
    assert outcome.result == "PASS"
    entries = [
        (place, Version.parse(body))
        for place, (kind, _, body) in enumerate(window.entries)
        if kind == Version.KIND
    ]
    (first, acme), (second, beta) = entries
    in_force = rfc3339(1000 * window.instants[1])
    assert outcome.check("schedule").evidence == (
        f"{rfc3339(acme.time)}: version 2 of the index of acme, {acme.rows} rows, "
        f"logged as entry {first}; in force from {in_force}",
        f"{rfc3339(beta.time)}: version 2 of the index of beta, {beta.rows} rows, "
        f"logged as entry {second}; never in force: the window had no instant left",
    )
    text, html = report(window, outcome)
    for shown in (" ".join(text.split()), html):
        assert HEADING in shown.lower()
        # Once: not again beside the check that found it.
        assert shown.count("version 2 of the index of beta") == 1


def test_a_window_in_which_nothing_happened_has_no_history() -> None:
    window = Window()
    outcome = judged(window)
    assert outcome.check("schedule").evidence == ()
    assert all(HEADING not in shown.lower() for shown in report(window, outcome))


def test_a_log_that_waited_for_its_cosigner_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the scenario entries wait for up to 12 of 30 seconds: less than half, so nothing is told.
    monkeypatch.setattr("ragaudit.verifier.procedure.record_checks.TOLD_FROM", 0.25)
    monkeypatch.setattr("ragaudit.verifier.procedure.record_checks.MOST_OUTAGES", 3)
    window = LastVersionTooLate()
    items = window.items()
    clock = canonical_json.loads(items[names.CLOCK])
    late = 1000 * (window.policy.end + 31)
    items[names.CLOCK] = canonical_json.dumps({**clock, "records": late})
    outcome = judged(window, items)
    assert outcome.result == "PASS"
    told = outcome.check("schedule").evidence[2:]
    assert told == (
        f"{at(window, 30)} to {at(window, 42)}: no checkpoint was cosigned while 3 entries waited "
        "for one, the first for 12 of the 30 seconds that the policy allows",
        f"{rfc3339(late)}: the log was handed over, 31 seconds after the window's end",
        "2 shorter outages",
    )
    for shown in (
        " ".join(report(window, outcome)[0].split()),
        unescape(report(window, outcome)[1]),
    ):
        assert [shown.count(line) for line in told] == [1, 1, 1]


class LateVerifier(IntegrityWindow):
    """What the verifier gives at an instant comes half a minute late."""

    LATE = 31_000

    def released(self, a: int) -> int:
        return super().released(a) + self.LATE

    def drawn(self) -> int:
        return super().drawn() + self.LATE


def test_activations_and_a_sample_that_came_late_are_told() -> None:
    """As where the verifier, or the beacon, was away at their instants."""
    window = LateVerifier()
    outcome = judged(window)
    assert outcome.result == "PASS", outcome.failed
    told = outcome.check("schedule").evidence[1:]
    policy = window.policy
    came = [window.released(1), window.released(2), window.drawn()]
    what = ["activation 1 was released", "activation 2 was released", "the sample was drawn"]
    assert told == tuple(
        f"{rfc3339(time)}: {name}, "
        f"{(time - 1000 * policy.release_instant(a)) // 1000} seconds after it was due"
        for a, (time, name) in enumerate(zip(came, what, strict=True), start=1)
    )


def at(window: Window, seconds: int) -> str:
    return rfc3339(1000 * (window.policy.start + seconds))


def test_where_the_check_fails_its_faults_are_no_history() -> None:
    class EarlyVersion(IntegrityWindow):
        def in_force(self, tenant: str, time: int) -> int:
            return 1

    window = EarlyVersion()
    outcome = judged(window)
    assert outcome.failed == ("schedule",)
    for shown in report(window, outcome):
        assert HEADING not in shown.lower()
        assert "version 2 of the index of acme" in " ".join(shown.split())


def test_a_long_history_says_how_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragaudit.verifier.procedure.record_checks._MOST_NOTED", 1)
    lines = judged(LastVersionTooLate()).check("schedule").evidence
    assert (len(lines), lines[1]) == (2, "1 more changes")


def test_the_words_do_not_fail_a_window_whose_versions_do_not_follow() -> None:
    class SkipsAVersion(IntegrityWindow):
        def append(self, kind: str, body: bytes) -> int:
            if kind == Version.KIND:
                version = Version.parse(body)
                body = type(version)(
                    version.window, version.tenant, 3, version.rows, version.index_root,
                    version.proof_digest, version.time,
                ).encode()  # fmt: skip
            return super().append(kind, body)

    schedule = judged(SkipsAVersion()).check("schedule")
    assert schedule.status is Status.FAIL
    assert sum("does not follow" in line for line in (schedule.reason, *schedule.evidence)) >= 1
    assert not any("version 3 of the index" in line for line in schedule.evidence)
