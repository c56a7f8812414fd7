"""Write encoding.json: known answers for docs/spec/01-encoding.md.

Run `python tests/vectors/make_encoding.py` to regenerate; the tests compare bit for bit.
The bytes are put together here by hand (struct, hashlib) and not by ragaudit.encoding, so a
change of the code cannot change the expected values with it. Signatures come from RFC 8032's
own first test key.
"""

import base64
import hashlib
import json
import struct
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

FOLDER = Path(__file__).parent
RFC8032_TEST1_SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"


def pack(tag: str, *fields: object) -> bytes:
    """Independent rendering of docs/spec/01-encoding.md §1.1."""
    name = tag.encode()
    out = struct.pack("<H", len(name)) + name + struct.pack("<H", len(fields))
    for field in fields:
        if field is None:
            data = b""
        elif isinstance(field, str):
            data = field.encode()
        elif isinstance(field, int):
            data = struct.pack("<q", field)
        else:
            data = bytes(field)  # type: ignore[call-overload]
        out += struct.pack("<Q", len(data)) + data
    return out


def typed(field: object) -> dict[str, object]:
    """Describe a field in JSON by one of the keys bytes (hex), text, int, absent."""
    if field is None:
        return {"absent": True}
    if isinstance(field, str):
        return {"text": field}
    if isinstance(field, int):
        return {"int": str(field)}
    return {"bytes": bytes(field).hex()}  # type: ignore[call-overload]


def tagged_cases() -> list[dict[str, object]]:
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("t", ()),
        ("t", (b"",)),
        ("t", (None, "", b"")),
        ("ragaudit/v1/example", (b"\x00\xff", "Grüße", 0, -1, None)),
        ("ragaudit/v1/integers", (2**63 - 1, -(2**63), 256)),
        ("ragaudit/v1/" + "long" * 20, (bytes(300),)),
    ]
    return [
        {"tag": tag, "fields": [typed(f) for f in fields], "encoded": pack(tag, *fields).hex()}
        for tag, fields in cases
    ]


def digest_cases() -> dict[str, object]:
    salt = bytes(range(32))

    def sha(tag: str, *fields: object) -> str:
        return hashlib.sha256(pack(tag, *fields)).hexdigest()

    return {
        "salt": salt.hex(),
        "salted": [
            {"value": typed(v), "digest": sha("ragaudit/v1/salted", salt, v)}
            for v in ("what is a lease?", b"", 7, None)
        ],
        "structure": [
            {
                "kind": "rnd",
                "fields": [typed(f) for f in ("2026-w47", 3, bytes(32), None)],
                "digest": sha("ragaudit/v1/rnd", "2026-w47", 3, bytes(32), None),
            }
        ],
        "leaf": [
            {
                "kind": "record",
                "body": b"body".hex(),
                "digest": sha("ragaudit/v1/leaf", salt, "record", b"body"),
            }
        ],
    }


def signature_cases() -> list[dict[str, object]]:
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(RFC8032_TEST1_SEED))
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    what, fields = "promise", (b"body", 5)
    return [
        {
            "origin": "RFC 8032 §7.1 test 1 (empty message, no framing)",
            "seed": RFC8032_TEST1_SEED,
            "public": public,
            "raw_message": "",
            "signature": "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        },
        {
            "origin": "ours",
            "seed": RFC8032_TEST1_SEED,
            "public": public,
            "what": what,
            "fields": [typed(f) for f in fields],
            "signature": key.sign(pack("ragaudit/v1/sign/" + what, *fields)).hex(),
        },
    ]


def canonical_cases() -> dict[str, list[str]]:
    accepted = [
        "null",
        "true",
        "0",
        "-9007199254740991",
        '""',
        '"\\u0001\\n\\"\\\\€😀\x7f"',
        "[]",
        "{}",
        '{"":[],"1":{"a":null},"a":"0.25"}',
        # Keys are sorted by UTF-16 code units: U+10000 (D800 DC00) comes before U+E000.
        '{"\U00010000":1,"\ue000":2}',
    ]
    refused = [
        "",
        " 1",
        "1 ",
        "1\n",
        "1.0",
        "1e3",
        "-0",
        "01",
        "9007199254740992",
        "1" * 5000,
        "NaN",
        "Infinity",
        "-Infinity",
        '{"b":1,"a":2}',
        '{"a":1,"a":1}',
        '{"a": 1}',
        '"\\u20ac"',
        '"\\/"',
        '"\\ud800"',
        '"\\u000A"',
        '{"\ue000":2,"\U00010000":1}',
        "[1,]",
        "[1][2]",
        "\ufeff1",
        '"\x01"',
        "[" * 33 + "]" * 33,
        "nul",
        "'a'",
    ]
    not_utf8 = (b'"\xff"', b'"\xed\xa0\x80"', b"\x80", b'"\xc0\xaf"')
    return {
        "accepted": [base64.b64encode(t.encode()).decode() for t in accepted],
        "refused": [
            base64.b64encode(data).decode()
            for data in (*(text.encode() for text in refused), *not_utf8)
        ],
    }


def small_order_points() -> list[str]:
    """All encodings (canonical or not, both sign bits) of the eight points of small order."""
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p
    root = pow(2, (p - 1) // 4, p)

    def x_of(y: int) -> int | None:
        u, v = (y * y - 1) % p, (d * y * y + 1) % p
        x = u * pow(v, 3, p) * pow(u * pow(v, 7, p), (p - 5) // 8, p) % p
        if (v * x * x - u) % p:
            x = x * root % p
        return None if (v * x * x - u) % p else x

    def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        k = d * a[0] * b[0] * a[1] * b[1] % p
        x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + k, -1, p) % p
        y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, p) % p
        return x, y

    order = 2**252 + 27742317777372353535851937790883648493
    ys: set[int] = set()
    candidate = 2
    while len(ys) < 5:  # 1, -1, 0 and the two y of order 8
        x = x_of(candidate)
        if x is not None:
            point, multiple, scalar = (x, candidate), (0, 1), order
            while scalar:
                if scalar & 1:
                    multiple = add(multiple, point)
                point, scalar = add(point, point), scalar >> 1
            torsion = multiple
            for _ in range(8):
                ys.add(torsion[1])
                torsion = add(torsion, multiple)
        candidate += 1
    encodings = sorted(y for y in ys) + [y + p for y in sorted(ys) if y + p < 2**255]
    return [(y | sign << 255).to_bytes(32, "little").hex() for y in encodings for sign in (0, 1)]


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_encoding.py, from docs/spec/01-encoding.md alone",
        "tagged": tagged_cases(),
        "digests": digest_cases(),
        "signatures": signature_cases(),
        "refused_public_keys": small_order_points(),
        "canonical_json_base64": canonical_cases(),
    }
    return {"encoding.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
