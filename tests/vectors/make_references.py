"""Write references.json: a test result that a verdict refers to, and results that it must not.

Run `python tests/vectors/make_references.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (10.3, 10.9, 10.11) alone: standard library and Ed25519, nothing of ours.
"""

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from make_messages import FOLDER, canonical, public, signing_key, some

TESTER = signing_key("tester key")
POLICY = canonical({"stands": "for the policy of a window"})
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def envelope(
    statement: dict[str, object], key: Ed25519PrivateKey = TESTER, signature: bytes | None = None
) -> str:
    kind, payload = "application/vnd.in-toto+json", canonical(statement)
    signed = key.sign(f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload)
    line = {
        "keyid": sha256(public(key)),
        "sig": base64.b64encode(signed if signature is None else signature).decode(),
    }
    shown = {"payload": base64.b64encode(payload).decode(), "payloadType": kind}
    return canonical({**shown, "signatures": [line]}).decode()


def statement(
    policy: bytes = POLICY, kind: str = TEST_RESULT, **other: object
) -> dict[str, object]:
    named = {"exchanges.jsonl": b"exchanges", "public/policy.json": policy}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": n, "digest": {"sha256": sha256(d)}} for n, d in named.items()],
        "predicateType": kind,
        "predicate": {
            "https://ragaudit.dev/membership-test/v1": {"auc": "0.501000", "verdict": "PASS"},
            "configuration": [{"digest": {"sha256": sha256(b"plan")}}],
            "result": "PASSED",
            "passedTests": ["membership_auc"],
            "warnedTests": [],
            "failedTests": [],
            **other,
        },
    }


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    result = envelope(statement())
    reference = {
        "digest": sha256(result.encode()),
        "key": public(TESTER).hex(),
        "name": "membership",
        "predicate_type": TEST_RESULT,
    }
    nobody = statement()
    nobody["subject"] = [{"name": "exchanges.jsonl", "digest": {"sha256": sha256(b"e")}}]
    twice = statement()
    twice["subject"] = 2 * [{"name": "public/policy.json", "digest": {"sha256": sha256(POLICY)}}]
    document = {
        "origin": "tests/vectors/make_references.py, from docs/spec alone",
        "policy": POLICY.decode(),
        "key": public(TESTER).hex(),
        "result": result,
        "reference": canonical(reference).decode(),
        "item": canonical([reference]).decode(),
        "refused": {
            "not signed": envelope(statement(), signature=bytes(64)),
            "signed by another key": envelope(statement(), signing_key("somebody")),
            "of another window": envelope(statement(canonical({"another": "policy"}))),
            "of no window": envelope(nobody),
            "with a subject twice": envelope(twice),
            "of another type": envelope(statement(kind="https://ragaudit.dev/verdict/v2")),
            "with another outcome": envelope(statement(result="EXCELLENT")),
        },
        "another_digest": some("another digest").hex(),
    }
    return {"references.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
