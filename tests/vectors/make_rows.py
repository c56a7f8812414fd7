"""Write rows.json: the sample of an index's rows, and the response that opens it, to the byte.

Run `python tests/vectors/make_rows.py` to regenerate; the tests compare bit for bit. Written from
docs/spec (1, 5.4, 9.1, 9.11) alone: standard library, nothing of ours.
"""

import hashlib
import hmac
import json
import struct
from fractions import Fraction
from math import ceil, comb

from make_encoding import pack as enc
from make_messages import FOLDER, some

TENANT = "clinic-a"
VERSION = 3
SECRET = some("document secret")
SEED = some("seed of the sample")
BETA, ETA, MINIMUM = "0.2", "0.05", 4
SIZES = (1, 2, 9, 40, 1000)
DIMENSION = 3
# Content and attributes; absent of the second, empty of the third.
TEXTS = (("Aspirin 100 mg", '{"ward":"3"}'), None, ("", ""), ("Ωmega\n", ""))


def size(rows: int) -> int:
    """The least sample that misses all bad rows with at most eta, by trying each."""
    beta, eta = Fraction(BETA), Fraction(ETA)
    bad = ceil(beta * rows)
    if bad == rows:
        return rows
    least = next(s for s in range(rows + 1) if Fraction(comb(rows - bad, s), comb(rows, s)) <= eta)
    return max(least, min(rows, MINIMUM))


def sample(rows: int) -> list[int]:
    def rank(position: int) -> bytes:
        message = enc("ragaudit/v1/sample", f"rows:{TENANT}", position)
        return hmac.new(SEED, message, hashlib.sha256).digest()

    return sorted(sorted(range(rows), key=rank)[: size(rows)])


def content_digest(texts: tuple[str, str] | None) -> bytes:
    if texts is None:
        return some("digest of what nobody has any more")
    return hashlib.sha256(enc("ragaudit/v1/content", *texts)).digest()


def row(number: int, position: int) -> bytes:
    texts = TEXTS[number]
    vector = [7 * number, -position, 32767 - number]
    squares = [number, 2, -3, 4]
    return enc(
        "ragaudit/v1/response/row",
        position,
        f"document-{position}",
        *(texts or (b"", b"")),
        content_digest(texts),
        some(f"salt {position}"),
        struct.pack("<3h", *vector),
        struct.pack("<4h", *squares),
        some(f"rho {position}"),
    )


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    positions = sample(9)
    rows = [row(number, position) for number, position in enumerate(positions[: len(TEXTS)])]
    response = enc("ragaudit/v1/response/rows", TENANT, VERSION, SECRET, *rows)
    document = {
        "origin": "tests/vectors/make_rows.py, from docs/spec alone",
        "tenant": TENANT,
        "version": VERSION,
        "secret": SECRET.hex(),
        "seed": SEED.hex(),
        "terms": {"beta": BETA, "eta": ETA, "minimum": MINIMUM},
        "samples": [{"rows": rows, "sample": sample(rows)} for rows in SIZES],
        "dimension": DIMENSION,
        "texts": [None if texts is None else list(texts) for texts in TEXTS],
        "positions": positions[: len(TEXTS)],
        "content_digests": [content_digest(texts).hex() for texts in TEXTS],
        "response": response.hex(),
    }
    return {"rows.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
