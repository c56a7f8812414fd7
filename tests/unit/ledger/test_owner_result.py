"""What an owner found, signed: a test result that a verdict can refer to (spec 5.16, 10.11)."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from owner_scene import OTHER, OWNER, TENANT, VECTOR, policy
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.signed import Envelope, EnvelopeRejected
from ragaudit.ledger.messages.signed_results import (
    CommittedRows,
    OwnedDocuments,
    OwnerResult,
    ResultReference,
)

POLICY = policy()
ENVELOPE = VECTOR["result"].encode()
RESULT = OwnerResult.verified(ENVELOPE, POLICY, TENANT)
STATEMENT = RESULT.to_json()


def test_a_result_is_the_one_of_the_specification() -> None:
    assert RESULT.issue(OWNER) == ENVELOPE
    assert RESULT.result == "FAILED"
    assert (RESULT.owned.missing, RESULT.committed.gone) == (1, 1)


def test_a_verdict_can_refer_to_it() -> None:
    reference = ResultReference.of("owner", ENVELOPE, OWNER.public, POLICY.canonical)
    assert reference.digest == hashlib.sha256(ENVELOPE).digest()


@for_each(
    ("owned", "committed", "result"),
    [
        ((4, 4, 4, 0, 0), (4, 4, 0, 1), "PASSED"),
        ((4, 3, 3, 0, 0), (4, 4, 0, 0), "WARNED"),
        ((4, 4, 3, 0, 0), (4, 4, 0, 0), "WARNED"),
        ((4, 4, 4, 0, 0), (4, 3, 0, 0), "WARNED"),
        ((4, 4, 3, 1, 0), (4, 4, 0, 0), "FAILED"),
        ((4, 2, 0, 0, 1), (4, 4, 0, 0), "FAILED"),
        ((4, 4, 4, 0, 0), (4, 2, 1, 0), "FAILED"),
    ],
)
def test_a_sample_that_finds_nothing_warns(owned: Any, committed: Any, result: str) -> None:
    found = replace(RESULT, owned=OwnedDocuments(*owned), committed=CommittedRows(*committed))
    assert found.result == result
    assert OwnerResult.verified(found.issue(OWNER), POLICY, TENANT) == found


def test_it_is_of_the_owner_whom_the_policy_names() -> None:
    stranger = PrivateKey.from_seed(b"x" * 32)
    with pytest.raises(EnvelopeRejected):
        OwnerResult.verified(RESULT.issue(stranger), POLICY, TENANT)
    with pytest.raises(UnsupportedError, match="names no key of the owner"):
        OwnerResult.verified(ENVELOPE, POLICY, OTHER)
    changes: list[dict[str, Any]] = [
        {"policy": "00" * 32}, {"origin": "rag.example/x"}, {"tenant": OTHER},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(RejectedError, match="another window or tenant"):
            OwnerResult.verified(replace(RESULT, **change).issue(OWNER), POLICY, TENANT)


def forged(change: dict[str, Any], **predicate: Any) -> bytes:
    value = json.loads(json.dumps(STATEMENT))
    [detail] = [name for name in value["predicate"] if name.startswith("https")]
    value["predicate"][detail] |= change
    value["predicate"] |= predicate
    return Envelope.seal(canonical_json.dumps(value), OWNER)


@for_each(
    "envelope",
    [
        forged({}, result="PASSED"),
        forged({}, failedTests=[]),
        forged({}, configuration=[1]),
        forged({}, more=1),
        forged({"more": 1}),
        forged({"version": 0}),
        forged({"time": -1}),
        forged({"tenant": "A"}),
        forged(
            {"owned": {"documents": 1, "compared": 2, "vectors": 0, "missing": 0, "different": 0}}
        ),
        forged(
            {"owned": {"documents": 2, "compared": 1, "vectors": 0, "missing": 1, "different": 1}}
        ),
        forged({"committed": {"rows": 1, "compared": 2, "unknown": 0, "gone": 0}}),
        forged({"committed": {"rows": 2, "compared": 1, "unknown": 1, "gone": 1}}),
        Envelope.seal(canonical_json.dumps({**STATEMENT, "subject": []}), OWNER),
        Envelope.seal(canonical_json.dumps({"predicate": 1}), OWNER),
    ],
)
def test_another_form_is_malformed(envelope: bytes) -> None:
    with pytest.raises(MalformedError):
        OwnerResult.verified(envelope, POLICY, TENANT)
