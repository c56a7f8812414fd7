"""An auditor for tests of the verifier's service: it does as told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.verdict import Claims
from ragaudit.verifier.engines import CoreEngine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.indexes import verify_version
from ragaudit.verifier.procedure.statement_checks import Judgement, judge
from ragaudit.verifier.service.auditor import Auditor, ReportProgress


@dataclass
class RecordingAuditor(Auditor):
    """An auditor that decides as told and remembers what it was given."""

    refusal: bytes | None = None
    verdict: bytes = canonical_json.dumps({"payload": "UEFTUw==", "signatures": []})
    seen: list[Evidence] = field(default_factory=list)

    def check_opening(self, evidence: Evidence, now: int) -> bytes | None:
        self.seen.append(evidence)
        return self.refusal

    def judge_dispute(self, file: dict[str, Any], view: WindowView) -> Judgement:
        return judge(file, view, CoreEngine())

    def audit(self, evidence: Evidence, now: int, progress: ReportProgress) -> bytes:
        self.seen.append(Evidence.of({name: evidence[name] for name in evidence}))
        progress("policy", 1, 2)
        return self.verdict

    def result(self, verdict: bytes) -> str:
        return "PASS"

    def claims(self, verdict: bytes) -> Claims:
        return Claims("PASS", "PASS")

    def check_version(self, data: bytes, policy: Policy, tenant: str, version: int) -> None:
        verify_version(data, policy, tenant, version, CoreEngine())

    def report_html(self, verdict: bytes) -> str:
        return "<p>report</p>"

    def report_text(self, verdict: bytes) -> str:
        return "report"
