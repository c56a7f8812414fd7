"""Write accounts.json: an account index, and proofs of what it says, to the byte.

Run `python tests/vectors/make_accounts.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (1, 5.7, 5.14, 6.1, 6.3 to 6.5, 6.7) alone: standard library and Ed25519, nothing of
ours.
"""

import base64
import hashlib
import json

from make_encoding import pack as enc
from make_messages import (
    FOLDER,
    ORIGIN,
    START_MS,
    WINDOW,
    canonical,
    public,
    sha,
    signing_key,
    some,
)
from make_missing import LOG, entry, leaf, mth, path, vkey

COSIGNER, COSIGNER_NAME = signing_key("cosigner key"), "regulator.example/cosigner"
TIME = START_MS // 1000 + 130
# Which account each record is of; dora is registered and asked nothing, eve is nobody here.
RECORDS = {3: "ann", 4: "bob", 6: "ann", 7: "carol", 8: "ann", 9: "bob"}
REGISTERED = ("ann", "bob", "carol", "dora")


def salt_of(index: int) -> bytes:
    return some(f"record salt {index}")


SECRET = sha("account-index/secret", b"".join(map(salt_of, sorted(RECORDS))))


def key(name: str) -> bytes:
    return sha("account-index/key", WINDOW, some(name))


def salt(name: str) -> bytes:
    return sha("account-index/salt", SECRET, some(name))


def records(name: str) -> list[int]:
    return [index for index in sorted(RECORDS) if RECORDS[index] == name]


def digest(name: str) -> bytes:
    listed = [leaf(index.to_bytes(8, "big")) for index in records(name)]
    root = mth(listed) if listed else hashlib.sha256(b"").digest()
    return sha("account-index/row", salt(name), len(listed), root)


ROWS = [
    (bytes(32), bytes(32)),
    *sorted((key(name), digest(name)) for name in REGISTERED),
    (b"\xff" * 32, bytes(32)),
]
TREE = [leaf(k + d) for k, d in ROWS]
BODY = enc("ragaudit/v1/entry/accounts", WINDOW, len(REGISTERED), mth(TREE))
ENTRY_SALT = some("accounts salt")
AT = 10
CLOSE = enc("ragaudit/v1/entry/close", WINDOW, len(RECORDS), 1, START_MS + 120_000)
LEAVES = [
    *(leaf(entry(some(f"salt {i}"), "record", some(f"body {i}"))) for i in range(AT)),
    leaf(entry(ENTRY_SALT, "accounts", BODY)),
    leaf(entry(some("close salt"), "close", CLOSE)),
]


def cosigner_vkey() -> str:
    kind = b"\4" + public(COSIGNER)
    key_id = hashlib.sha256(f"{COSIGNER_NAME}\n".encode() + kind).digest()[:4]
    return f"{COSIGNER_NAME}+{key_id.hex()}+{base64.b64encode(kind).decode()}"


def line(name: str, vkey_text: str, blob: bytes) -> str:
    signed = bytes.fromhex(vkey_text.split("+")[1]) + blob
    return f"\N{EM DASH} {name} {base64.b64encode(signed).decode()}\n"


def cosigned() -> str:
    """The final checkpoint with the log's signature and the cosigner's (6.4, 6.5)."""
    text = f"{ORIGIN}\n{len(LEAVES)}\n{base64.b64encode(mth(LEAVES)).decode()}\n"
    message = f"cosignature/v1\ntime {TIME}\n{text}".encode()
    by_cosigner = TIME.to_bytes(8, "big") + COSIGNER.sign(message)
    return (
        text
        + "\n"
        + line(ORIGIN, vkey(LOG), LOG.sign(text.encode()))
        + line(COSIGNER_NAME, cosigner_vkey(), by_cosigner)
    )


def tlog_proof() -> str:
    """Of the accounts entry (6.7)."""
    hashes = "".join(base64.b64encode(each).decode() + "\n" for each in path(AT, LEAVES))
    return f"c2sp.org/tlog-proof@v1\nindex {AT}\n{hashes}\n{cosigned()}"


def row(position: int) -> dict[str, object]:
    k, d = ROWS[position]
    siblings = [sibling.hex() for sibling in path(position, TREE)]
    return {"position": position, "key": k.hex(), "digest": d.hex(), "path": siblings}


def proof(name: str) -> str:
    """An account proof (5.14); of a name that is not registered, the two rows around its key."""
    after = next(i for i, (k, _) in enumerate(ROWS) if k >= key(name))
    there = name in REGISTERED
    value = {
        "format": "ragaudit/v1/account-proof",
        "origin": ORIGIN,
        "pseudonym": some(name).hex(),
        "entry": {"salt": ENTRY_SALT.hex(), "body": BODY.hex()},
        "proof": tlog_proof(),
        "rows": [row(after)] if there else [row(after - 1), row(after)],
        "opening": {"salt": salt(name).hex(), "records": records(name)} if there else None,
    }
    return canonical(value).decode()


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_accounts.py, from docs/spec alone",
        "window": WINDOW,
        "log": vkey(LOG),
        "log_seed": some("log key").hex(),
        "cosigner": cosigner_vkey(),
        "cosigner_seed": some("cosigner key").hex(),
        "registered": [some(name).hex() for name in REGISTERED],
        "records": [
            {"index": index, "salt": salt_of(index).hex(), "pseudonym": some(name).hex()}
            for index, name in sorted(RECORDS.items())
        ],
        "leaves": [each.hex() for each in LEAVES],
        "body": BODY.hex(),
        "salt": ENTRY_SALT.hex(),
        "proofs": {name: proof(name) for name in (*REGISTERED, "eve")},
    }
    return {"accounts.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
