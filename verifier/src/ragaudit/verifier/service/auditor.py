"""The auditor of a verifier service: the procedure with the keys that sign what it concludes."""

import hashlib
from collections.abc import Callable
from typing import Any

from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import InternalError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.verdict import REFUSED, Claims, Verdict
from ragaudit.serving.jobs.runner import Runner
from ragaudit.verifier.engines import Engine, fastest_engine
from ragaudit.verifier.engines import engine as engine_of
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.models import GeneratorService, committed_embedder, committed_generator
from ragaudit.verifier.procedure.checks import run, run_opening_checks
from ragaudit.verifier.procedure.facts import Pins
from ragaudit.verifier.procedure.indexes import verify_version
from ragaudit.verifier.procedure.statement_checks import Judgement, judge
from ragaudit.verifier.settings import BUNDLED, EmbedderSettings, EngineName
from ragaudit.verifier.work import JobEngine

ReportProgress = Callable[[str, int, int], None]
"""Step, done, total. Called from the audit's thread; what it raises stops the audit."""


class Auditor:
    """The audit procedure with this verifier's keys; pure but for these.

    Args:
        chosen: who checks the arguments; "auto" takes the compiled core where it is installed.
        embedders: which this verifier has of its own.
        generators: language models likewise; None: none.
        runner: has arguments of an audit checked by workers; None to check them here.

    Raises:
        UnsupportedError: the chosen engine is not installed.
    """

    def __init__(
        self,
        keys: VerifierKeys,
        chosen: EngineName,
        embedders: EmbedderSettings = BUNDLED,
        runner: Runner | None = None,
        generators: GeneratorService | None = None,
    ) -> None:
        self._key = keys.verdict
        self._embedders = embedders
        self._generators = generators
        self._runner = runner
        # The provider's key was compared with the pinned one when the window was registered.
        self._pins = Pins(
            cosigner=keys.cosigner.verifier_key,
            verifier=keys.statement.public,
            verdict=keys.verdict.public,
        )
        self._engine: Engine = fastest_engine() if chosen == "auto" else engine_of(chosen)

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        """Run checks 1 to 4 (docs/spec/09-audit.md).

        Args:
            evidence: items that are there before a countersignature.
            now: Unix milliseconds.

        Returns:
            None if the opening may be countersigned, otherwise the signed REFUSED verdict.
        """
        outcome = run_opening_checks(evidence, engine=self._engine, now=now, pins=self._pins)
        if outcome.result != REFUSED:
            return None
        return outcome.sign(self._key, evidence.digests(), time=now)

    def check_version(self, data: bytes, policy: Policy, tenant: str, version: int) -> None:
        """Check a later version of a tenant's index by itself.

        Args:
            data: the index commitment as handed over.
            policy: of the window.
            tenant, version: as it is handed over.

        Raises:
            MalformedError: not an index commitment of this policy.
            RejectedError: of another place, or its argument does not hold.
        """
        verify_version(data, policy, tenant, version, self._engine)

    def judge_dispute(self, file: dict[str, Any], view: WindowView) -> Judgement:
        """Judge a disputed receipt file.

        Args:
            file: a JSON value of any form (docs/spec/05-records.md §5.10).
            view: the window's policy and opening, as countersigned.

        Raises:
            RagauditError: the provider did not sign it, part for part.
        """
        return judge(file, view, self._engine)

    def audit(self, evidence: Evidence, now: int, progress: ReportProgress) -> bytes:
        """Run every check.

        Args:
            evidence: all items, sealed.
            now: Unix milliseconds; the verdict's time.
            progress: called from this thread; what it raises ends the run.

        Returns:
            The signed verdict, a DSSE envelope (docs/spec/10-verdict.md §10.3).
        """
        digests = evidence.digests()
        # Of the sealed evidence: an audit that was cut off finds what it did.
        jobs = hashlib.sha256(dumps(digests)).hexdigest()
        engine = self._engine
        if self._runner is not None:
            engine = JobEngine(engine, self._runner, jobs)
        with committed_generator(evidence, self._generators) as generator:
            outcome = run(
                evidence,
                engine=engine,
                pins=self._pins,
                embedder=committed_embedder(evidence, self._embedders),
                generator=generator,
                progress=progress,
            )
        if outcome.result is None:
            raise InternalError("the procedure did not conclude")
        progress("verdict", 0, 0)
        signed = outcome.sign(self._key, digests, time=now)
        if self._runner is not None:
            self._runner.withdraw(jobs)
        return signed

    def result(self, verdict: bytes) -> str:
        """Return PASS, FAIL, EXCEEDED, CONDITIONAL or REFUSED of a verdict signed here.

        Raises:
            MalformedVerdict, VerdictRejected: not signed here.
        """
        return self._read(verdict).result

    def claims(self, verdict: bytes) -> Claims:
        """Return the claims of a verdict signed here; None of one that has none.

        Raises:
            MalformedVerdict, VerdictRejected: not signed here.
        """
        return self._read(verdict).predicate.claims

    def report_html(self, verdict: bytes) -> str:
        """Return the report for people, one HTML page."""
        from ragaudit.verifier.report import render_html  # noqa: PLC0415 - loads slowly

        return render_html(self._read(verdict))

    def report_text(self, verdict: bytes) -> str:
        """Return the report for people, plain text."""
        from ragaudit.verifier.report import render_text  # noqa: PLC0415 - loads slowly

        return render_text(self._read(verdict))

    def _read(self, verdict: bytes) -> Verdict:
        return Verdict.verify(verdict, self._key.public)
