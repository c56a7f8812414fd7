"""Write documents.json: id keys, an index that has them, and a document list, to the byte.

Run `python tests/vectors/make_documents.py` to regenerate; the tests compare bit for bit. Written
from docs/spec (1, 5.4, 5.7, 5.16) alone: standard library, nothing of ours.
"""

import hashlib
import hmac
import json

from make_encoding import pack as enc
from make_messages import FOLDER, WINDOW, sha, some
from make_missing import leaf, mth

TENANT = "clinic-a"
SECRET = some("document secret")
IDS = ("a-1", "a-2", "a-3", "a-4", "a-5")
COLUMNS = '{"year":2026}'
# Of each version: how many rows, and which of them are marked null rows. Row 1 goes and comes
# back, row 2 goes for good, row 3 comes with version 2, row 4 with version 3 and goes at once.
VERSIONS = ((3, ()), (4, (1,)), (5, (1, 2)), (5, (2, 4)))


def key(name: str) -> bytes:
    message = enc("ragaudit/v1/documents/id", WINDOW, TENANT, name)
    return hmac.new(SECRET, message, hashlib.sha256).digest()


def commitment(version: int, position: int) -> bytes:
    return some(f"C {version} {position}")


def row_digest(version: int, position: int) -> bytes:
    return some(f"row digest {version} {position}")


def columns(version: int, position: int) -> str:
    if position in VERSIONS[version - 1][1]:
        return "null"
    return COLUMNS if position == 0 else "{}"


def leaves(version: int) -> list[bytes]:
    return [
        enc(
            "ragaudit/v1/index/leaf",
            commitment(version, i),
            columns(version, i),
            row_digest(version, i),
            key(IDS[i]),
        )
        for i in range(VERSIONS[version - 1][0])
    ]


def index(version: int) -> bytes:
    count = VERSIONS[version - 1][0]
    rows = range(count)
    texts = [columns(version, i).encode() for i in rows]
    return enc(
        "ragaudit/v1/index/commitment", WINDOW, TENANT, version, count, 3,
        b"".join(commitment(version, i) for i in rows),
        b"".join(len(text).to_bytes(4, "little") + text for text in texts),
        b"".join(row_digest(version, i) for i in rows),
        b"".join(key(IDS[i]) for i in rows),
        some(f"pi_idx {version}"),
    )  # fmt: skip


def root(version: int) -> bytes:
    return mth([leaf(each) for each in leaves(version)])


def tenant_opening() -> bytes:
    proof = sha("index/proof", some("pi_idx 1"))
    secret = sha("documents/secret", WINDOW, TENANT, SECRET)
    return enc("ragaudit/v1/opening/tenant", TENANT, 1, VERSIONS[0][0], root(1), proof, secret)


def lives(position: int) -> list[tuple[int, int]]:
    """Maximal intervals of versions, found by looking at each version alone."""
    live = [position < count and position not in marked for count, marked in VERSIONS]
    found: list[tuple[int, int]] = []
    for version, there in enumerate(live, start=1):
        if there and found and found[-1][1] == version - 1:
            found[-1] = (found[-1][0], version)
        elif there:
            found.append((version, version))
    return found


def first(position: int) -> int:
    return next(v for v, (count, _) in enumerate(VERSIONS, start=1) if position < count)


def row(position: int) -> bytes:
    encoded = b"".join(v.to_bytes(4, "big") for life in lives(position) for v in life)
    digest = row_digest(first(position), position)
    name = key(IDS[position])
    return name + sha("documents/row", name, position, encoded, digest)


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    count = VERSIONS[-1][0]
    rows = [bytes(64), *sorted(row(i) for i in range(count)), b"\xff" * 32 + bytes(32)]
    tree = mth([leaf(each) for each in rows])
    body = enc("ragaudit/v1/entry/documents", WINDOW, TENANT, len(VERSIONS), count, tree)
    document = {
        "origin": "tests/vectors/make_documents.py, from docs/spec alone",
        "window": WINDOW,
        "tenant": TENANT,
        "secret": SECRET.hex(),
        "id_commitment": sha("documents/secret", WINDOW, TENANT, SECRET).hex(),
        "ids": [{"id": name, "key": key(name).hex()} for name in IDS],
        "opening": tenant_opening().hex(),
        "indexes": [
            {
                "commitment": index(version).hex(),
                "leaves": [each.hex() for each in leaves(version)],
                "root": root(version).hex(),
            }
            for version in range(1, len(VERSIONS) + 1)
        ],
        "lives": [lives(i) for i in range(count)],
        "rows": [each.hex() for each in rows],
        "body": body.hex(),
    }
    return {"documents.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
