"""The signed verdict: DSSE, in-toto Statement, predicate (docs/spec/10-verdict.md §10.3)."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages import verdict
from ragaudit.ledger.messages.signed import PAYLOAD_TYPE, key_id, pae
from ragaudit.ledger.messages.verdict import MalformedVerdict, Status, Verdict, VerdictRejected
from ragaudit.privacy.accounting.events import GAMMA
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.verifier.procedure.framework import CheckResult, Outcome, claims, signed_epsilon

KEY = PrivateKey.from_seed(b"k" * 32)
DIGESTS = {"public/policy.json": "ab" * 32, "confidential/records.bin": "cd" * 32}
CHECKS = (
    CheckResult(1, "policy", "Policy", Status.PASS, "in order"),
    CheckResult(18, "embedding", "Embedding", Status.NOT_ESTABLISHED, "no text", ("3 records",)),
    CheckResult(20, "coalition", "Coalition", Status.PASS, "in order"),
)
TABLE = epsilon_report("4", "replace", 1, 4, 2, "0.00001", GAMMA, 5, [3, 2, 2, 1], "20", "0.00001")
OUTCOME = Outcome("w", "p", "core", "PASS", False, CHECKS, epsilon=TABLE)


def signed() -> bytes:
    return OUTCOME.sign(KEY, DIGESTS, time=1_700_000_000_000)


def test_pae_of_the_dsse_specification() -> None:
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_round_trip() -> None:
    read = Verdict.verify(signed(), KEY.public)
    assert read.subjects == DIGESTS
    assert read.result == "PASS"
    statuses = [(check.number, check.id, check.status) for check in read.predicate.checks]
    assert statuses == [
        (1, "policy", "PASS"), (18, "embedding", "NOT ESTABLISHED"), (20, "coalition", "PASS"),
    ]  # fmt: skip
    assert read.predicate.epsilon == TABLE.to_json()
    assert signed_epsilon(read.predicate) == TABLE
    assert (
        verdict.Verdict.unverified(signed())
        == read.predicate
        == OUTCOME.predicate(time=1_700_000_000_000)
    )
    assert signed() == signed()


def test_a_reader_that_shares_no_code_verifies_it() -> None:
    envelope = json.loads(signed())
    body = base64.b64decode(envelope["payload"], validate=True)
    message = b" ".join(
        [
            b"DSSEv1", str(len(envelope["payloadType"])).encode(), envelope["payloadType"].encode(),
            str(len(body)).encode(), body,
        ]
    )  # fmt: skip
    public = Ed25519PublicKey.from_public_bytes(KEY.public.raw)
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), message)
    statement = json.loads(body)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0] == {
        "name": "confidential/records.bin",
        "digest": {"sha256": "cd" * 32},
    }


def test_another_key_is_rejected() -> None:
    other = PrivateKey.from_seed(b"o" * 32)
    with pytest.raises(VerdictRejected, match="another key"):
        Verdict.verify(signed(), other.public)
    # The key id is a hint: naming the right key does not make the signature right.
    envelope = canonical_json.loads(OUTCOME.sign(other, DIGESTS, time=1))
    envelope["signatures"][0]["keyid"] = key_id(KEY.public)
    with pytest.raises(VerdictRejected, match="does not verify"):
        Verdict.verify(canonical_json.dumps(envelope), KEY.public)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(signed()) - 1), st.integers(0, 7))
def test_no_changed_byte_is_accepted(at: int, bit: int) -> None:
    bad = bytearray(signed())
    bad[at] ^= 1 << bit
    with pytest.raises((MalformedVerdict, VerdictRejected)):
        Verdict.verify(bytes(bad), KEY.public)


def envelope_of(value: Any) -> bytes:
    """An envelope with a good signature over any payload."""
    body = canonical_json.dumps(value)
    signature = KEY.sign_raw(pae(PAYLOAD_TYPE, body))
    return canonical_json.dumps(
        {
            "payload": base64.b64encode(body).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [
                {"keyid": key_id(KEY.public), "sig": base64.b64encode(signature).decode()}
            ],
        }
    )


def good_statement() -> dict[str, Any]:
    value: dict[str, Any] = verdict.statement(DIGESTS, OUTCOME.predicate(time=1).to_json())
    return json.loads(json.dumps(value))


def _set(path: list[Any], value: Any) -> Any:
    def change(statement: dict[str, Any]) -> None:
        target: Any = statement
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set(["_type"], "https://in-toto.io/Statement/v0.1"),
        _set(["predicateType"], "https://ragaudit.dev/verdict/v2"),
        _set(["more"], 1),
        _set(["subject"], {}),
        _set(["subject", 0, "name"], "other/name"),
        _set(["subject", 0, "name"], "public/policy.json"),
        _set(["subject", 0, "digest"], {"sha256": "ab" * 32, "sha512": ""}),
    ],
)
def test_signed_nonsense_is_refused(change: Any) -> None:
    Verdict.verify(envelope_of(good_statement()), KEY.public)
    value = good_statement()
    change(value)
    with pytest.raises(MalformedVerdict):
        Verdict.verify(envelope_of(value), KEY.public)


def test_other_envelopes_are_refused() -> None:
    good = canonical_json.loads(signed())
    two = {**good, "signatures": good["signatures"] * 2}
    none: dict[str, Any] = {**good, "signatures": []}
    kind = {**good, "payloadType": "application/json"}
    more = {**good, "more": 1}
    values: tuple[Any, ...] = (two, none, kind, more, [], None)
    for value in values:
        with pytest.raises(MalformedVerdict):
            Verdict.verify(canonical_json.dumps(value), KEY.public)
    with pytest.raises(MalformedVerdict):
        Verdict.verify(json.dumps(good).encode(), KEY.public)


def test_a_verdict_without_a_result_is_not_signed() -> None:
    with pytest.raises(MalformedError):
        replace(OUTCOME, result=None).sign(KEY, DIGESTS, time=1)


def result(check_id: str, status: Status, *needs: str) -> CheckResult:
    return CheckResult(1, check_id, check_id, status, "", (), needs)


@pytest.mark.parametrize(
    ("results", "conclusion"),
    [
        ([result("log", Status.PASS), result("embedding", Status.NOT_ESTABLISHED)], "PASS"),
        ([result("log", Status.NOT_ESTABLISHED)], "FAIL"),
        ([result("log", Status.PASS), result("coalition", Status.EXCEEDED)], "EXCEEDED"),
        ([result("log", Status.FAIL), result("coalition", Status.EXCEEDED)], "FAIL"),
        ([result("log", Status.FAIL), result("seed", Status.NOT_RUN, "log")], "FAIL"),
        # What is lacking belongs to nobody, or to a check that found nothing: not established.
        ([result("log", Status.PASS), result("seed", Status.NOT_RUN)], "FAIL"),
        ([result("log", Status.PASS), result("seed", Status.NOT_RUN, "log")], "FAIL"),
        ([result("log", Status.PASS), result("seed", Status.NOT_RUN, "log", "gone")], "FAIL"),
        # The owner was taken off the list: nothing that is still on it is broken.
        ([result("log", Status.PASS), result("seed", Status.NOT_RUN, "gone")], "PASS"),
        # An owner that is no check at all excuses nothing.
        ([result("log", Status.PASS), result("seed", Status.NOT_RUN, "typo")], "FAIL"),
        ([result("log", Status.PASS), result("seed", Status.NOT_RUN, "confidential part")], "FAIL"),
        # Where no privacy check ran, none is established.
        ([result("log", Status.PASS), result("coalition", Status.NOT_RUN)], "FAIL"),
    ],
)
def test_conclusions(results: list[CheckResult], conclusion: str) -> None:
    assert claims([result("accounting", Status.PASS), *results], {"gone"}).result == conclusion
