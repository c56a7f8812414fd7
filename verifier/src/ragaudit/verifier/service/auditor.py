"""The audit procedure as the service uses it: evidence in, signed verdict out."""

from collections.abc import Callable
from typing import Protocol

from ragaudit.verifier.evidence import Evidence

Progress = Callable[[str, int, int], None]  # step, done, total
"""Called from the audit's thread; it may raise to stop the audit."""


class Auditor(Protocol):
    """Runs checks and signs; pure but for the key that it holds."""

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        """Run checks 1 to 4 as of ``now`` (Unix milliseconds).

        Returns:
            None if the opening may be countersigned, otherwise the signed REFUSED verdict.
        """

    def audit(self, evidence: Evidence, now: int, progress: Progress) -> bytes:
        """Run every check; the signed verdict."""

    def result(self, verdict: bytes) -> str:
        """PASS, FAIL, EXCEEDED or REFUSED of a verdict signed here."""

    def report_html(self, verdict: bytes) -> str:
        """The report for people, one HTML page."""

    def report_text(self, verdict: bytes) -> str:
        """The report for people, plain text."""
