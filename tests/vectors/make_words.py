"""Write words.json: the receipt file of a generated answer, and a dispute about it, to the byte.

Run `python tests/vectors/make_words.py` to regenerate; the tests compare bit for bit. Written from
docs/spec (1, 5.7, 5.8, 5.10, 8.8, 11.9, 11.10) alone: standard library and Ed25519, nothing of
ours.
"""

import base64
import json
import struct

from make_encoding import pack as enc
from make_messages import (
    FOLDER,
    ORIGIN,
    START_MS,
    TENANT,
    WINDOW,
    canonical,
    message,
    public,
    salted,
    sha,
    signing_key,
    some,
)

PROVIDER, ACCOUNT = signing_key("provider key"), signing_key("dispute key")
CHARGED, ANSWERED = 17, 21
QUERY, EMBEDDING, SKETCH = "treatment of bazeli ?", (3, -4, 5, 0), bytes(range(8))
PSEUDONYM = some("ann")


def files() -> dict[str, object]:
    """The parts of the file that no signature is in."""
    embedding = struct.pack("<4h", *EMBEDDING)
    salts = {f"salt_{name}": some(f"salt {name}").hex() for name in "qefsa"}
    return {
        "request": {"counter": None, "filter": "", "query": QUERY},
        "answer": {"private": 1, "text": "mirazo", "tokens": [4, 2]},
        "private": {
            "format": "ragaudit/v1/generated/private",
            "kind": "text",
            "query": QUERY,
            "embedding": base64.b64encode(embedding).decode(),
            "filter": "",
            "sketch": SKETCH.hex(),
            **salts,
        },
    }


def charge_body() -> bytes:
    embedding = struct.pack("<4h", *EMBEDDING)
    return enc(
        "ragaudit/v1/entry/charge", some("policy digest"), WINDOW, TENANT, 1, 100,
        salted(some("salt f"), b""), PSEUDONYM, 1, 2, 3, 1, START_MS,
        salted(some("salt q"), enc("ragaudit/v1/query", "text", QUERY.encode())),
        salted(some("salt e"), embedding), salted(some("salt s"), SKETCH),
        0, 9000, some("charge point"), None,
    )  # fmt: skip


def answer_body(answer: object) -> bytes:
    generated = sha("generated", some("salt a"), canonical(answer))
    return enc("ragaudit/v1/entry/answer", WINDOW, TENANT, CHARGED, START_MS + 9, None, generated)


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    parts = files()
    entries = [
        (CHARGED, some("salt of the charge"), charge_body()),
        (ANSWERED, some("salt of the answer"), answer_body(parts["answer"])),
    ]
    halves = [canonical(parts[name]) for name in ("request", "answer", "private")]
    digest = sha("answer", some("salt a"), *halves)
    signed = (ORIGIN, *[part for entry in entries for part in entry], START_MS + 2000, digest)
    shown = [
        {"index": index, "salt": salt.hex(), "body": body.hex(), "proof": None}
        for index, salt, body in entries
    ]
    half = {
        "format": "ragaudit/v1/generated-receipt",
        "origin": ORIGIN,
        "charge": shown[0],
        "answer": shown[1],
        "issued": START_MS + 2000,
        "answer_digest": digest.hex(),
        "signature": PROVIDER.sign(enc("ragaudit/v1/sign/generated-receipt", *signed)).hex(),
    }
    file = {"format": "ragaudit/v1/generated/file", "public": half, **parts}
    dispute = {
        "origin": ORIGIN,
        "pseudonym": PSEUDONYM,
        "index": CHARGED,
        "answer_digest": digest,
        "file_digest": sha("receipt/file", canonical(file)),
    }
    document = {
        "origin": "tests/vectors/make_words.py, from docs/spec alone",
        "provider_key": public(PROVIDER).hex(),
        "dispute_seed": some("dispute key").hex(),
        "file": canonical(file).decode(),
        "identity": sha("generated-receipt", *signed).hex(),
        "dispute": canonical(message("dispute", dispute, ACCOUNT)).decode(),
    }
    return {"words.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
