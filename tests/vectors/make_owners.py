"""Write owners.json: row proofs, document proofs and an owner's result, to the byte.

Run `python tests/vectors/make_owners.py` to regenerate; the tests compare bit for bit. Written from
docs/spec (1, 5.2, 5.4, 5.7, 5.16, 6.3 to 6.7, 10.3, 10.9) alone: standard library and Ed25519,
nothing of ours. Points of the group are digests that stand for them.
"""

import base64
import hashlib
import hmac
import json
import struct

from make_accounts import line
from make_encoding import pack as enc
from make_integrity import ORIGIN, START, WINDOW, policy_value, sha, vkey
from make_messages import FOLDER, canonical, public, signing_key, some
from make_missing import leaf, mth, path
from make_references import envelope, sha256

A, B = "clinic-a", "clinic-b"
NORM, COSIGNER_NAME = 4095, "regulator.example/cosigner"
LOG, COSIGNER, OWNER = signing_key("log"), signing_key("cosigner"), signing_key("owner of clinic-a")
SECRETS = {tenant: some(f"document secret of {tenant}") for tenant in (A, B)}
IDS = {A: ("a-1", "a-2", "a-3", "a-4"), B: ("b-1", "b-2")}
# Of each version of A: how many rows, and which are marked: a-2 goes with version 2, a-3 goes with
# version 2 and is back in version 3, a-4 comes with version 2.
VERSIONS = {A: ((3, ()), (4, (1, 2)), (4, (1,))), B: ((2, ()),)}
VECTORS = ((4095, 0, 0), (0, 4095, 0), (0, 0, -4095), (2457, -3276, 0))
NULL = (0, 0, 0)


def policy() -> bytes:
    tenants = [{"id": A, "owner_key": public(OWNER).hex()}, {"id": B, "owner_key": None}]
    return canonical({**policy_value(), "tenants": tenants, "owners": {"rows": None}})


POLICY = policy()
POLICY_DIGEST = sha("ragaudit/v1/policy", POLICY)


def id_key(tenant: str, name: str) -> bytes:
    message = enc("ragaudit/v1/documents/id", WINDOW, tenant, name)
    return hmac.new(SECRETS[tenant], message, hashlib.sha256).digest()


def row(tenant: str, version: int, i: int) -> dict[str, object]:
    """What opens a row, but for its path."""
    null = i in VERSIONS[tenant][version - 1][1]
    content, attributes = ("", "") if null else (f"text {i}", '{"page":1}' if i == 0 else "")
    vector = NULL if null else VECTORS[i]
    return {
        "position": i, "id": IDS[tenant][i], "content": content, "attributes": attributes,
        "content_digest": sha("ragaudit/v1/content", content, attributes).hex(),
        "columns": "null" if null else "{}",
        "salt": some(f"row salt {tenant} {version} {i}").hex(),
        "vector": base64.b64encode(struct.pack("<3h", *vector)).decode(),
        "squares": [NORM if null else 0, 0, 0, 0],
        "blinding": some(f"blinding {tenant} {version} {i}").hex(),
        "commitment": some(f"C {tenant} {version} {i}").hex(),
    }  # fmt: skip


def row_digest(tenant: str, version: int, i: int) -> bytes:
    opened = row(tenant, version, i)
    salt, content = (bytes.fromhex(str(opened[name])) for name in ("salt", "content_digest"))
    return sha("ragaudit/v1/row", salt, opened["id"], content)


def leaves(tenant: str, version: int) -> list[bytes]:
    found = []
    for i in range(VERSIONS[tenant][version - 1][0]):
        opened = row(tenant, version, i)
        point = bytes.fromhex(str(opened["commitment"]))
        digest, key = row_digest(tenant, version, i), id_key(tenant, IDS[tenant][i])
        found.append(leaf(enc("ragaudit/v1/index/leaf", point, opened["columns"], digest, key)))
    return found


def committed(tenant: str, version: int) -> tuple[object, ...]:
    """v, N, root and proof digest."""
    proof = sha("ragaudit/v1/index/proof", some(f"pi_idx {tenant} {version}"))
    return version, VERSIONS[tenant][version - 1][0], mth(leaves(tenant, version)), proof


def opening() -> bytes:
    tenants = [
        enc(
            "ragaudit/v1/opening/tenant", tenant, *committed(tenant, 1),
            sha("ragaudit/v1/documents/secret", WINDOW, tenant, SECRETS[tenant]),
        )
        for tenant in (A, B)
    ]  # fmt: skip
    return enc("ragaudit/v1/entry/opening", POLICY_DIGEST, some("C_emb"), b"", *tenants)


def version_entry(version: int) -> bytes:
    time = 1000 * START + version
    return enc("ragaudit/v1/entry/version", WINDOW, A, *committed(A, version), time)


def lives(tenant: str, i: int) -> list[list[int]]:
    """Maximal intervals of versions, found by looking at each version alone."""
    found: list[list[int]] = []
    for version, (count, marked) in enumerate(VERSIONS[tenant], start=1):
        if i >= count or i in marked:
            continue
        if found and found[-1][1] == version - 1:
            found[-1][1] = version
        else:
            found.append([version, version])
    return found


def first(tenant: str, i: int) -> int:
    return next(v for v, (count, _) in enumerate(VERSIONS[tenant], start=1) if i < count)


def listed(tenant: str) -> list[bytes]:
    """The document list: key and digest of each row."""
    rows = []
    for i, name in enumerate(IDS[tenant]):
        key = id_key(tenant, name)
        flat = b"".join(v.to_bytes(4, "big") for life in lives(tenant, i) for v in life)
        digest = row_digest(tenant, first(tenant, i), i)
        rows.append(key + sha("ragaudit/v1/documents/row", key, i, flat, digest))
    return [bytes(64), *sorted(rows), b"\xff" * 32 + bytes(32)]


def documents(tenant: str) -> bytes:
    last = len(VERSIONS[tenant])
    root = mth([leaf(each) for each in listed(tenant)])
    return enc("ragaudit/v1/entry/documents", WINDOW, tenant, last, len(IDS[tenant]), root)


ENTRIES = [
    ("opening", opening()),
    ("version", version_entry(2)),
    ("version", version_entry(3)),
    ("documents", documents(A)),
    ("documents", documents(B)),
    ("close", enc("ragaudit/v1/entry/close", WINDOW, 0, 0, 1000 * START + 86_400_000)),
]
LEAVES = [
    leaf(sha("ragaudit/v1/leaf", some(f"entry salt {i}"), kind, body))
    for i, (kind, body) in enumerate(ENTRIES)
]


def proven(index: int) -> dict[str, object]:
    """An entry with its .tlog-proof under the cosigned final checkpoint (6.4, 6.5, 6.7)."""
    text = f"{ORIGIN}\n{len(LEAVES)}\n{base64.b64encode(mth(LEAVES)).decode()}\n"
    time = START + 90_000
    cosigned = time.to_bytes(8, "big") + COSIGNER.sign(
        f"cosignature/v1\ntime {time}\n{text}".encode()
    )
    note = (
        text
        + "\n"
        + line(ORIGIN, vkey(ORIGIN, 1, "log"), LOG.sign(text.encode()))
        + line(COSIGNER_NAME, vkey(COSIGNER_NAME, 4, "cosigner"), cosigned)
    )
    hashes = "".join(base64.b64encode(each).decode() + "\n" for each in path(index, LEAVES))
    return {
        "entry": {"salt": some(f"entry salt {index}").hex(), "body": ENTRIES[index][1].hex()},
        "proof": f"c2sp.org/tlog-proof@v1\nindex {index}\n{hashes}\n{note}",
    }


def index_members(version: int) -> dict[str, object]:
    return {
        "origin": ORIGIN, "tenant": A, "version": version, "document_secret": SECRETS[A].hex(),
        "opening": proven(0), "announced": None if version == 1 else proven(version - 1),
    }  # fmt: skip


def proven_row(version: int, i: int, *, kept: bool = True) -> dict[str, object]:
    opened = row(A, version, i)
    held = {} if kept else {"content": None, "attributes": None}
    return {**opened, **held, "path": [each.hex() for each in path(i, leaves(A, version))]}


def row_proof(version: int, i: int, *, kept: bool = True) -> str:
    """A row proof (5.16); without content where the store has it no longer."""
    shown = {"row": proven_row(version, i, kept=kept)}
    return canonical(
        {"format": "ragaudit/v1/row-proof", **index_members(version), **shown}
    ).decode()


def row_proofs() -> str:
    """What a request for a-3, an id that nobody has, and a-1 is answered with (8.6)."""
    rows = [proven_row(3, 2), None, proven_row(3, 0, kept=False)]
    shown = {"format": "ragaudit/v1/row-proofs", **index_members(3), "rows": rows}
    return canonical(shown).decode()


def document_proof(name: str) -> str:
    """A document proof (5.16)."""
    rows, key = listed(A), id_key(A, name)
    after = next(at for at, each in enumerate(rows) if each[:32] >= key)
    shown = [
        {
            "position": at, "key": rows[at][:32].hex(), "digest": rows[at][32:].hex(),
            "path": [each.hex() for each in path(at, [leaf(each) for each in rows])],
        }
        for at in ((after,) if name in IDS[A] else (after - 1, after))
    ]  # fmt: skip
    opened, gone = None, None
    if name in IDS[A]:
        i = IDS[A].index(name)
        digest = row_digest(A, first(A, i), i).hex()
        opened = {"position": i, "lives": lives(A, i), "row_digest": digest}
        last = lives(A, i)[-1][1]
        gone = proven(last) if last < len(VERSIONS[A]) else None
    members = {
        "format": "ragaudit/v1/document-proof", "origin": ORIGIN, "tenant": A, "id": name,
        "document_secret": SECRETS[A].hex(), "opening": proven(0), "documents": proven(3),
        "rows": shown, "listed": opened, "gone": gone, "last_row": None,
    }  # fmt: skip
    return canonical(members).decode()


def owner_result() -> str:
    """An owner's result (5.16): one document is missing, and the rows were compared in part."""
    detail = {
        "origin": ORIGIN, "tenant": A, "version": 3, "time": 1000 * START + 5,
        "owned": {"documents": 4, "compared": 4, "vectors": 2, "missing": 1, "different": 0},
        "committed": {"rows": 4, "compared": 2, "unknown": 0, "gone": 1},
    }  # fmt: skip
    statement: dict[str, object] = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "public/policy.json", "digest": {"sha256": sha256(POLICY)}}],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "https://ragaudit.dev/owner-audit/v1": detail,
            "configuration": [],
            "result": "FAILED",
            "passedTests": [],
            "warnedTests": ["committed_rows"],
            "failedTests": ["owned_documents"],
        },
    }
    return envelope(statement, OWNER)


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_owners.py, from docs/spec alone",
        "policy": POLICY.decode(),
        "log_seed": some("log").hex(),
        "cosigner_seed": some("cosigner").hex(),
        "owner_seed": some("owner of clinic-a").hex(),
        "entries": [{"kind": kind, "body": body.hex()} for kind, body in ENTRIES],
        "rows": {
            "there": row_proof(1, 0),
            "gone": row_proof(2, 1),
            "text gone from the store": row_proof(3, 3, kept=False),
        },
        "row_proofs": row_proofs(),
        "documents": {name: document_proof(name) for name in (*IDS[A], "a-5")},
        "result": owner_result(),
    }
    return {"owners.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
