"""Write custody.json: what a verifier signs about evidence, and what is made from a verdict.

Run `python tests/vectors/make_custody.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (8.4, 8.12, 10.3, 10.7) alone: standard library and Ed25519, nothing of ours.
"""

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from make_messages import (
    FOLDER,
    ORIGIN,
    START_MS,
    VERDICT,
    VERIFIER,
    canonical,
    message,
    public,
    signing_key,
    some,
)

DAY_MS = 86_400_000
PROVIDER = signing_key("provider key")


def accesses() -> list[str]:
    """8.4: three accesses, each of which names the one before it."""
    account = f"account/{some('pseudonym').hex()}"
    said = [
        ("bundle", "A. Ito", "complaint 17"),
        (account, "B. Ito", "Anfrage des Kontos: Übersicht"),
    ]
    said.append(("bundle", "A. Ito", "complaint 17, again"))
    found, previous = [], bytes(32)
    for number, (what, reader, reason) in enumerate(said):
        fields: dict[str, object] = {
            "origin": ORIGIN, "number": number, "previous": previous, "what": what,
            "reader": reader, "reason": reason, "time": START_MS + number * DAY_MS,
        }  # fmt: skip
        data = canonical(message("evidence-access", fields))
        found.append(data.decode())
        previous = hashlib.sha256(data).digest()
    return found


def deletion(checkpoint: dict[str, object] | None) -> str:
    """8.4: the signature is over the origin and a digest of all members."""
    members: dict[str, object] = {
        "origin": ORIGIN,
        "verdict": some("verdict envelope").hex(),
        "items": {
            "confidential/records.bin": some("records").hex(),
            "confidential/responses/5.bin": some("response 5").hex(),
        },
        "checkpoint": checkpoint,
        "time": START_MS + 30 * DAY_MS,
    }
    return signed("deletion", members, VERIFIER)


def provider_deletion(verdict: str | None, checkpoint: dict[str, object] | None) -> str:
    """8.12: the same by the provider's key."""
    members: dict[str, object] = {
        "origin": ORIGIN,
        "verdict": verdict,
        "entries": 0 if checkpoint is None else 20,
        "checkpoint": checkpoint,
        "time": START_MS + 30 * DAY_MS,
    }
    return signed("provider-deletion", members, PROVIDER)


def signed(kind: str, members: dict[str, object], key: Ed25519PrivateKey) -> str:
    digest = hashlib.sha256(canonical(members)).digest()
    signature = message(kind, {"origin": ORIGIN, "digest": digest}, key)["signature"]
    return canonical({"format": f"ragaudit/v1/{kind}", **members, "signature": signature}).decode()


def verification_result() -> dict[str, str]:
    """10.7: the statement, and its envelope by the verdict key."""
    key_id = hashlib.sha256(public(VERDICT)).hexdigest()
    subjects = {
        name: some(name).hex()
        for name in ("confidential/records.bin", "public/policy.json", "public/terms.json")
    }
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": n, "digest": {"sha256": subjects[n]}} for n in sorted(subjects)],
        "predicateType": "https://in-toto.io/attestation/svr/v0.2",
        "predicate": {
            "https://ragaudit.dev/verdict-digest": {"sha256": some("verdict envelope").hex()},
            "properties": [
                "RAGAUDIT_INTEGRITY_PASS_OF_SAMPLE",
                "RAGAUDIT_CHECK_INDEX_PROOF_PASS",
                "RAGAUDIT_CHECK_SELECTION_PASS_OF_SAMPLE",
            ],
            "timeCreated": "2027-01-15T08:00:00Z",
            "verifier": {
                "id": f"https://ragaudit.dev/verdict/v1#{key_id}",
                "policies": [
                    {"name": n, "digest": {"sha256": subjects[n]}}
                    for n in ("public/policy.json", "public/terms.json")
                ],
            },
        },
    }
    body, kind = canonical(statement), b"application/vnd.in-toto+json"
    signature = VERDICT.sign(b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body))
    envelope = {
        "payload": base64.b64encode(body).decode(),
        "payloadType": kind.decode(),
        "signatures": [{"keyid": key_id, "sig": base64.b64encode(signature).decode()}],
    }
    return {"statement": body.decode(), "envelope": canonical(envelope).decode()}


def finding() -> str:
    """10.7: one line, of a check that did not pass."""
    line = {
        "evidence": ["record 7", "record 12"],
        "format": "ragaudit/v1/audit-finding",
        "id": "check/selection",
        "number": 19,
        "provider": "rag.example.com",
        "result": "FAIL",
        "status": "FAIL",
        "text": "2 of 35 selection arguments do not verify",
        "time": START_MS,
        "verdict": some("verdict envelope").hex(),
        "window": "2026-w47",
        "worthless": False,
    }
    return canonical(line).decode() + "\n"


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_custody.py, from docs/spec alone",
        "log": ORIGIN,
        "verifier_key": public(VERIFIER).hex(),
        "verdict_key": public(VERDICT).hex(),
        "accesses": accesses(),
        "provider_key": public(PROVIDER).hex(),
        "provider_deletions": [
            provider_deletion(
                some("verdict envelope").hex(), {"size": 27, "root": some("root").hex()}
            ),
            provider_deletion(None, None),
        ],
        "deletions": [deletion({"size": 27, "root": some("root").hex()}), deletion(None)],
        "verification_result": verification_result(),
        "finding": finding(),
    }
    return {"custody.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
