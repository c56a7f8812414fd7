"""The audit procedure as the service uses it: evidence in, signed verdict out."""

from collections.abc import Callable
from typing import Any, Protocol

from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.verifier.engines import Engine, committed_embedder, engine, fastest_engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.procedure.checks import run, run_opening_checks
from ragaudit.verifier.procedure.facts import Pins
from ragaudit.verifier.procedure.framework import REFUSED
from ragaudit.verifier.procedure.statement_checks import Judgement, judge
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.settings import EngineName
from ragaudit.verifier.verdict import Verdict, sign_verdict, verify_verdict

Progress = Callable[[str, int, int], None]
"""Step, done, total. Called from the audit's thread; what it raises stops the audit."""


class Auditor(Protocol):
    """Runs checks and signs; pure but for the key that it holds."""

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        """Run checks 1 to 4 as of ``now`` (Unix milliseconds).

        Returns:
            None if the opening may be countersigned, otherwise the signed REFUSED verdict.
        """

    def judge_dispute(self, file: dict[str, Any], view: WindowView) -> Judgement:
        """Judge a disputed receipt file; RagauditError if the provider did not sign it."""

    def audit(self, evidence: Evidence, now: int, progress: Progress) -> bytes:
        """Run every check; the signed verdict."""

    def result(self, verdict: bytes) -> str:
        """PASS, FAIL, EXCEEDED or REFUSED of a verdict signed here."""

    def report_html(self, verdict: bytes) -> str:
        """The report for people, one HTML page."""

    def report_text(self, verdict: bytes) -> str:
        """The report for people, plain text."""


class ProcedureAuditor:
    """The audit procedure with this verifier's keys.

    Args:
        chosen: who checks the arguments; "auto" takes the compiled core where it is installed.

    Raises:
        UnsupportedError: the chosen engine is not installed.
    """

    def __init__(self, keys: VerifierKeys, chosen: EngineName) -> None:
        self._key = keys.verdict
        # The provider's key was compared with the pinned one when the window was registered.
        self._pins = Pins(
            cosigner=keys.cosigner.verifier_key,
            verifier=keys.statement.public,
            verdict=keys.verdict.public,
        )
        self._engine: Engine = fastest_engine() if chosen == "auto" else engine(chosen)

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        outcome = run_opening_checks(evidence, engine=self._engine, now=now, pins=self._pins)
        if outcome.result != REFUSED:
            return None
        return sign_verdict(outcome, evidence.digests(), self._key, time=now)

    def judge_dispute(self, file: dict[str, Any], view: WindowView) -> Judgement:
        return judge(file, view, self._engine)

    def audit(self, evidence: Evidence, now: int, progress: Progress) -> bytes:
        outcome = run(
            evidence,
            engine=self._engine,
            pins=self._pins,
            embedder=committed_embedder(evidence),
            progress=progress,
        )
        if outcome.result is None:
            raise InternalError("the procedure did not conclude")
        progress("verdict", 0, 0)
        return sign_verdict(outcome, evidence.digests(), self._key, time=now)

    def result(self, verdict: bytes) -> str:
        return self._read(verdict).result

    def report_html(self, verdict: bytes) -> str:
        return render_html(self._read(verdict))

    def report_text(self, verdict: bytes) -> str:
        return render_text(self._read(verdict))

    def _read(self, verdict: bytes) -> Verdict:
        return verify_verdict(verdict, self._key.public)
