"""Our classes read and write what the specification says of custody and exports, to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.signing import PublicKey, SignatureRejected
from ragaudit.ledger.messages.custody import Deletion, EvidenceAccess, ProviderDeletion
from ragaudit.ledger.messages.verdict_exports import AuditFinding, VerificationResult

VECTORS = Path(__file__).parents[1] / "vectors"
CASES: dict[str, Any] = json.loads((VECTORS / "custody.json").read_bytes())
VERIFIER = PublicKey.from_raw(bytes.fromhex(CASES["verifier_key"]))
PROVIDER = PublicKey.from_raw(bytes.fromhex(CASES["provider_key"]))
VERDICT = PublicKey.from_raw(bytes.fromhex(CASES["verdict_key"]))


def test_accesses() -> None:
    read = [EvidenceAccess.parse(each.encode()) for each in CASES["accesses"]]
    EvidenceAccess.verify_all(read, VERIFIER, origin=CASES["log"])
    assert [canonical_json.dumps(each.to_json()).decode() for each in read] == CASES["accesses"]
    with pytest.raises(SignatureRejected):
        EvidenceAccess.verify_all(read, VERDICT, origin=CASES["log"])


@pytest.mark.parametrize("case", CASES["deletions"], ids=["closed", "never closed"])
def test_deletions(case: str) -> None:
    read = Deletion.parse(case.encode())
    read.verify(VERIFIER)
    assert canonical_json.dumps(read.to_json()).decode() == case
    with pytest.raises(SignatureRejected):
        read.verify(VERDICT)


@pytest.mark.parametrize("case", CASES["provider_deletions"], ids=["archived", "abandoned"])
def test_deletions_by_providers(case: str) -> None:
    read = ProviderDeletion.parse(case.encode())
    read.verify(PROVIDER)
    assert canonical_json.dumps(read.to_json()).decode() == case
    with pytest.raises(SignatureRejected):
        read.verify(VERIFIER)


def test_the_verification_result() -> None:
    case = CASES["verification_result"]
    read = VerificationResult.verify(case["envelope"].encode(), VERDICT)
    assert read == VerificationResult.parse(case["statement"].encode())
    assert read.encode().decode() == case["statement"]
    with pytest.raises(RejectedError):
        VerificationResult.verify(case["envelope"].encode(), VERIFIER)


def test_a_finding() -> None:
    assert AuditFinding.parse(CASES["finding"].encode()).encode().decode() == CASES["finding"]
