"""Write missing.json: proofs that the record of a receipt is not in its log, to the byte.

Run `python tests/vectors/make_missing.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (1, 5.7, 5.8, 6.1, 6.3, 6.4, 6.11) alone: standard library and Ed25519, nothing of
ours. The record's body is the one of messages.json.
"""

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from make_encoding import pack as enc
from make_messages import (
    FOLDER,
    ORIGIN,
    START_MS,
    WINDOW,
    canonical,
    public,
    record_body,
    sha,
    signing_key,
    some,
)

LOG, PROVIDER = signing_key("log key"), signing_key("provider key")
BODY, SALT = record_body(), some("entry salt")


def leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def entry(salt: bytes, kind: str, body: bytes) -> bytes:
    """Leaf data of an entry (5.7)."""
    return sha("leaf", salt, kind, body)


def half(n: int) -> int:
    return 1 << (n - 1).bit_length() - 1


def mth(leaves: list[bytes]) -> bytes:
    """The root over leaf hashes (6.1)."""
    if len(leaves) == 1:
        return leaves[0]
    k = half(len(leaves))
    return node(mth(leaves[:k]), mth(leaves[k:]))


def path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, the leaf's sibling first."""
    if len(leaves) == 1:
        return []
    k = half(len(leaves))
    if index < k:
        return [*path(index, leaves[:k]), mth(leaves[k:])]
    return [*path(index - k, leaves[k:]), mth(leaves[:k])]


def vkey(key: Ed25519PrivateKey) -> str:
    kind = b"\1" + public(key)
    key_id = hashlib.sha256(f"{ORIGIN}\n".encode() + kind).digest()[:4]
    return f"{ORIGIN}+{key_id.hex()}+{base64.b64encode(kind).decode()}"


def checkpoint(leaves: list[bytes], key: Ed25519PrivateKey = LOG) -> str:
    """A signed note (6.3, 6.4)."""
    text = f"{ORIGIN}\n{len(leaves)}\n{base64.b64encode(mth(leaves)).decode()}\n"
    key_id = bytes.fromhex(vkey(key).split("+")[1])
    line = base64.b64encode(key_id + key.sign(text.encode())).decode()
    return f"{text}\n\N{EM DASH} {ORIGIN} {line}\n"


def receipt(index: int) -> dict[str, object]:
    """A public part without proof (5.8)."""
    said = (ORIGIN, index, SALT, BODY, START_MS + 60_000, some("answer"))
    return {
        "format": "ragaudit/v1/receipt",
        "origin": ORIGIN,
        "index": index,
        "salt": SALT.hex(),
        "body": BODY.hex(),
        "issued": START_MS + 60_000,
        "answer_digest": some("answer").hex(),
        "signature": PROVIDER.sign(enc("ragaudit/v1/sign/receipt", *said)).hex(),
        "proof": None,
    }


CLOSE = enc("ragaudit/v1/entry/close", WINDOW, 5, 1, START_MS + 120_000)
CLOSE_SALT = some("close salt")
LEAVES = [leaf(entry(some(f"salt {i}"), "record", some(f"body {i}"))) for i in range(6)]
LEAVES.append(leaf(entry(CLOSE_SALT, "close", CLOSE)))


def missing(index: int, shown: int, **more: object) -> str:
    proof = {
        "format": "ragaudit/v1/missing-record",
        "receipt": receipt(index),
        "checkpoint": checkpoint(LEAVES),
        "path": [sibling.hex() for sibling in path(shown, LEAVES)],
        "leaf": None,
        "close": None,
    }
    return canonical({**proof, **more}).decode()


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    opened = {"salt": CLOSE_SALT.hex(), "body": CLOSE.hex()}
    document = {
        "origin": "tests/vectors/make_missing.py, from docs/spec alone",
        "window": WINDOW,
        "log": vkey(LOG),
        "log_seed": some("log key").hex(),
        "provider": public(PROVIDER).hex(),
        "provider_seed": some("provider key").hex(),
        "leaves": [each.hex() for each in LEAVES],
        "another_leaf": missing(4, 4, leaf=LEAVES[4].hex()),
        "ended": missing(7, 6, close=opened),
    }
    return {"missing.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
