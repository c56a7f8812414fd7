"""Write integrity.json: policy, filters, questions, leaves, receipts of a window without noise.

Run `python tests/vectors/make_integrity.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (chapters 1, 5, 8) alone: standard library, nothing of ours. Points of the group are
digests that stand for them, since no format depends on what they are.
"""

import base64
import hashlib
import json
import struct
from pathlib import Path

from make_encoding import pack as enc
from make_messages import canonical, public, signing_key, some

FOLDER = Path(__file__).parent
WINDOW, TENANT, PROVIDER = "2026-w48", "clinic-a", "rag.example.com"
ORIGIN = f"{PROVIDER}/ragaudit/{WINDOW}"
START = 1_800_000_000
B = 4095
# Texts of columns as RFC 8785 writes them, values as JavaScript's doubles.
COLUMNS = [
    '{"draft":false,"lang":"de","size":0.1,"year":2001}',
    '{"lang":"en","size":100000000000000000000}',
    '{"draft":true,"lang":"é","size":1e-7}',
    "{}",
    '{"lang":"en","year":9007199254740991}',
    "null",
]
NULL_ROW = 5
"""Position of a deleted document: its leaf says so, and nothing of it is left."""
ROWS = len(COLUMNS)


def sha(tag: str, *fields: object) -> bytes:
    return hashlib.sha256(enc(tag, *fields)).digest()


def salted(salt: bytes, value: bytes) -> bytes:
    return sha("ragaudit/v1/salted", salt, value)


def vkey(name: str, algorithm: int, label: str) -> str:
    """C2SP signed-note: name + hash of the key + key, with its algorithm in front."""
    key = bytes([algorithm]) + public(signing_key(label))
    number = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    return f"{name}+{number.hex()}+{base64.b64encode(key).decode()}"


def policy_value() -> dict[str, object]:
    return {
        "format": "ragaudit/v1/policy", "provider": PROVIDER, "window": WINDOW,
        "start": START, "end": START + 86_400, "previous_checkpoint": None,
        "privacy": "none", "epsilon_acc": None, "delta_acc": None, "delta_policy": None,
        "sigma": None, "relation": None, "rows_per_document": None, "calibration": None,
        "coalition_max": None, "sampler": None, "experiment_seed": None,
        "norm_bound": B, "dimension": 3, "top_k_max": 3, "queries_per_account": 50, "slots": 10,
        "metric": "inner-product", "largest_norm": "12.5",
        "public_columns": [
            {"name": "draft", "type": "boolean"}, {"name": "lang", "type": "string"},
            {"name": "size", "type": "number"}, {"name": "year", "type": "integer"},
        ],
        "filter_grammar": "ragaudit/v1/filter", "query_kinds": ["text", "vector"],
        "retry_seconds": 60, "versions": True,
        "tenants": [{"id": TENANT, "owner_key": None}],
        "activation_instants": [START - 60, START + 3600, START + 90_000],
        "activation_rounds": [None, None, None], "beacon": {"kind": "none"},
        "query_text_disclosure": "sampled", "embedder_tolerance": 0,
        "estimator": {
            "theta": "0.9", "tau_seconds": 60, "sketch_bits": 64, "seed": some("sketch").hex(),
            "hamming_threshold": 9,
        },
        "proof_mode": "on-demand",
        "audit": {
            "mode": "A", "beta": "0.1", "deadline_seconds": 3600,
            "tenants": {"eta": "0.05", "minimum": 1},
            "submitters": {"by": "account", "eta": "0.05", "minimum": 1},
        },
        "merge_delay_seconds": 60, "clock_skew_seconds": 5, "promise_life_seconds": 60,
        "claim_margin_seconds": 60, "release_seconds": 60,
        "keys": {
            "arbiter": None, "log": vkey(ORIGIN, 1, "log"),
            "provider": public(signing_key("provider")).hex(),
            "cosigner": vkey("regulator.example/cosigner", 4, "cosigner"),
            "verifier": public(signing_key("verifier key")).hex(),
            "verdict": public(signing_key("verdict key")).hex(),
        },
    }  # fmt: skip


POLICY = canonical(policy_value())
POLICY_DIGEST = sha("ragaudit/v1/policy", POLICY)


def filters() -> list[dict[str, object]]:
    """Texts with the positions of `COLUMNS` that pass, or null for what is no filter (5.12).

    The null row passes none, the empty text included.
    """
    english = '{"key":"lang","op":"eq","value":"en"}'
    return [
        {"text": text, "allowed": allowed}
        for text, allowed in (
            ("", [0, 1, 2, 3, 4]),
            (english, [1, 4]),
            ('{"key":"lang","op":"ne","value":"en"}', [0, 2, 3]),
            ('{"of":[' + english + '],"op":"not"}', [0, 2, 3]),
            ('{"key":"lang","op":"in","value":["de","é"]}', [0, 2]),
            ('{"key":"lang","op":"nin","value":["de","é"]}', [1, 3, 4]),
            # e and a combining accent: other bytes, another string.
            ('{"key":"lang","op":"eq","value":"e\u0301"}', []),
            ('{"key":"size","op":"lt","value":0.1}', [2]),
            ('{"key":"size","op":"le","value":0.1}', [0, 2]),
            ('{"key":"size","op":"ge","value":100000000000000000000}', [1]),
            ('{"key":"year","op":"gt","value":2001}', [4]),
            ('{"of":[{"key":"year","op":"gt","value":2001}],"op":"not"}', [0, 1, 2, 3]),
            ('{"key":"draft","op":"eq","value":false}', [0]),
            ('{"key":"draft","op":"ne","value":true}', [0, 1, 3, 4]),
            (
                '{"of":[' + english + ',{"key":"draft","op":"eq","value":true}],"op":"or"}',
                [1, 2, 4],
            ),
            ('{"of":[' + english + ',{"key":"year","op":"ge","value":0}],"op":"and"}', [4]),
            ("null", None),
            ("{}", None),
            ('{"key":"lang","op":"lt","value":"en"}', None),
            ('{"key":"draft","op":"eq","value":1}', None),
            ('{"key":"year","op":"eq","value":1.5}', None),
            ('{"key":"secret","op":"eq","value":1}', None),
            ('{"key":"size","op":"eq","value":1.0}', None),
            ('{"key":"lang","op":"in","value":[]}', None),
            ('{"of":[],"op":"and"}', None),
            ('{"of":[' + english + "," + english + '],"op":"not"}', None),
            ('{"key":"lang","value":"en","op":"eq"}', None),
            ('{"of":[' * 8 + english + '],"op":"not"}' * 8, None),
        )
    ]


def questions() -> list[dict[str, object]]:
    """What query_digest covers, and the digest under a salt (5.7)."""
    numbers = struct.pack("<3f", 0.5, -1.25, 3.0)
    made: list[dict[str, object]] = []
    for kind, asked in (("text", b"what helps?"), ("vector", numbers)):
        data = enc("ragaudit/v1/query", kind, asked)
        made.append({
            "kind": kind, "asked": asked.hex(), "data": data.hex(),
            "digest": salted(some("salt q"), data).hex(),
        })  # fmt: skip
    return made


def node(*children: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + b"".join(children)).digest()


def tree(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, on hashes of leaves."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return node(tree(leaves[:split]), tree(leaves[split:]))


def path(leaves: list[bytes], at: int) -> list[bytes]:
    """RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    if at < split:
        return [*path(leaves[:split], at), tree(leaves[split:])]
    return [*path(leaves[split:], at - split), tree(leaves[:split])]


def row(position: int) -> dict[str, bytes | str]:
    content, attributes = f"content {position}", f'{{"page":{position}}}' if position else ""
    if position == NULL_ROW:
        content = attributes = ""
    digest = sha("ragaudit/v1/content", content, attributes)
    name = f"doc-{position}"
    row_digest = sha("ragaudit/v1/row", some(f"salt {position}"), name, digest)
    commitment = some(f"commitment {position}")
    leaf = enc("ragaudit/v1/index/leaf", commitment, COLUMNS[position], row_digest)
    return {
        "id": name, "content": content, "attributes": attributes, "columns": COLUMNS[position],
        "salt": some(f"salt {position}"), "commitment": commitment, "content_digest": digest,
        "row_digest": row_digest, "leaf": leaf,
    }  # fmt: skip


TABLE = [row(position) for position in range(ROWS)]
LEAVES = [hashlib.sha256(b"\x00" + bytes(row["leaf"])).digest() for row in TABLE]  # type: ignore[arg-type]


def index() -> dict[str, object]:
    """Rows with columns and attributes, their leaves, root and index commitment (5.4)."""
    texts = [text.encode() for text in COLUMNS]
    commitment = enc(
        "ragaudit/v1/index/commitment", WINDOW, TENANT, 2, ROWS, 3,
        b"".join(bytes(row["commitment"]) for row in TABLE),  # type: ignore[arg-type]
        b"".join(struct.pack("<I", len(text)) + text for text in texts),
        b"".join(bytes(row["row_digest"]) for row in TABLE),  # type: ignore[arg-type]
        b"proof",
    )  # fmt: skip
    rows = [
        {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
        for row in TABLE
    ]
    return {"rows": rows, "root": tree(LEAVES).hex(), "commitment": commitment.hex()}


def entries() -> dict[str, object]:
    """Opening without a seed commitment, and a later version (5.7, 5.13)."""
    proof = sha("ragaudit/v1/index/proof", b"proof")
    tenant = enc("ragaudit/v1/opening/tenant", TENANT, 1, ROWS, some("root 1"), proof)
    opening = enc("ragaudit/v1/entry/opening", POLICY_DIGEST, some("embedder"), b"", tenant)
    time = 1000 * (START + 600)
    version = enc("ragaudit/v1/entry/version", WINDOW, TENANT, 2, ROWS, tree(LEAVES), proof, time)
    leaf = sha("ragaudit/v1/leaf", some("salt of an entry"), "version", version)
    return {"opening": opening.hex(), "version": version.hex(), "version_leaf": leaf.hex()}


def vector(entries: tuple[int, ...]) -> str:
    return base64.b64encode(struct.pack(f"<{len(entries)}h", *entries)).decode()


def receipt() -> dict[str, object]:
    """An answer to a vector with a filter: row 4 served, 1 withdrawn, none tied (5.8)."""
    numbers = base64.b64encode(struct.pack("<3f", 0.5, -1.25, 3.0)).decode()
    text = '{"key":"lang","op":"eq","value":"en"}'
    request = {
        "counter": None, "filter": text, "kind": "vector", "vector": numbers, "top_k": 2,
    }  # fmt: skip
    served = TABLE[4]
    document = {
        "attributes": served["attributes"], "columns": served["columns"],
        "content": served["content"], "id": served["id"], "position": 4, "score": 1234567,
    }  # fmt: skip
    answer = {"documents": [document]}
    private = {
        "format": "ragaudit/v1/receipt/private", "kind": "vector", "vector": numbers,
        "salt_q": some("salt q").hex(), "embedding": vector((600, -1500, 3600)),
        "salt_e": some("salt e").hex(), "filter": text, "salt_f": some("salt f").hex(),
        "sketch": "0123456789abcdef", "salt_s": some("salt s").hex(), "selected": [1, 4],
        "selection_blinding": some("rho").hex(), "salt_r": some("salt r").hex(),
        "rows": [{
            "attributes": served["attributes"], "columns": served["columns"],
            "content": served["content"], "id": served["id"], "position": 4,
            "salt": some("salt 4").hex(), "vector": vector((4000, 1, -2)),
            "squares": [876, 3, 2, 1], "blinding": some("blinding").hex(),
            "commitment": some("commitment 4").hex(),
            "path": [digest.hex() for digest in path(LEAVES, 4)],
        }],
        "withdrawn": [{"id": "doc-1", "position": 1, "score": None}], "ties": None,
    }  # fmt: skip
    opened = {
        "rows": [{
            "position": 1, "commitment": some("commitment 1").hex(), "columns": COLUMNS[1],
            "row_digest": bytes(TABLE[1]["row_digest"]).hex(),  # type: ignore[arg-type]
            "path": [digest.hex() for digest in path(LEAVES, 1)],
        }],
        "proof": base64.b64encode(some("proof") * 3).decode(),
    }  # fmt: skip
    parts = [canonical(part) for part in (request, answer, private)]
    return {
        "request": parts[0].decode(), "answer": parts[1].decode(), "private": parts[2].decode(),
        "answer_digest": sha("ragaudit/v1/answer", some("salt r"), *parts).hex(),
        "filter_digest": salted(some("salt f"), text.encode()).hex(),
        "ties": canonical(opened).decode(),
    }  # fmt: skip


def build() -> dict[str, bytes]:
    """All files of this script by name."""
    value = {
        "policy": POLICY.decode(),
        "policy_digest": POLICY_DIGEST.hex(),
        "columns": COLUMNS,
        "filters": filters(),
        "questions": questions(),
        "index": index(),
        "entries": entries(),
        "receipt": receipt(),
    }
    return {"integrity.json": (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
