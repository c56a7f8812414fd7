"""Write noise.json: known answers for docs/spec/03-noise.md.

Run `python tests/vectors/make_noise.py` to regenerate; the tests compare bit for bit.
Independent of ragaudit.circuits: parameters by plain search, thresholds by 120-digit
floating point (mpmath), key stream by a ChaCha20 written out from RFC 8439, look-ups by
counting. A threshold whose fraction is too close to an integer to be sure stops the script.
"""

import hashlib
import hmac
import json
import struct
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

from mpmath import mp, mpf

FOLDER = Path(__file__).parent
DIGITS = 120
LIMIT = mpf(10) ** -60

UNITS: dict[str, Fraction] = {
    "0.25": Fraction("0.25") * 16129,
    "2": Fraction(2 * 16129),
    "10": Fraction(10 * 16129),
    "50": Fraction(50 * 16129),
    "0.031744063488": Fraction("0.031744063488")
    * 16129,  # just below 512: the largest direct table
    "sigma_units = 16": Fraction(16),
    "sigma_units = 512": Fraction(512),
    "sigma_units = 2^40": Fraction(2**40),
}


def parameters(units: Fraction) -> tuple[int, int, Fraction, int]:
    """L, K, s², w of docs/spec/03-noise.md §3.1 and §3.2."""

    def powers(k: int, levels: int) -> int:
        return sum(k ** (2 * i) for i in range(levels + 1))

    levels, k = 0, 1
    if units > 512:
        while True:
            levels += 1
            k = 1
            while k <= 257 and units**2 >= 4 * (1 + (k + 1) ** 2) * powers(k + 1, levels):
                k += 1
            if k <= 256:
                break
    variance = units**2 / powers(k, levels) if levels else units**2
    w = 0
    while w * w < 169 * variance:
        w += 1
    return levels, k, variance, w


def thresholds(variance: Fraction, w: int) -> list[int]:
    mp.dps = DIGITS
    scale = -mpf(variance.denominator) / (2 * mpf(variance.numerator))
    p = [mp.exp(scale * v * v) for v in range(w + 1)]
    z = p[0] + 2 * mp.fsum(p[1:])
    found, total = [], mpf(0)
    for v in range(-w, w):
        total += p[abs(v)]
        exact = total / z * 2**128
        floor = int(mp.floor(exact))
        assert LIMIT < exact - floor < 1 - LIMIT, "raise DIGITS"
        found.append(floor)
    return found


def chacha20(key: bytes, length: int) -> bytes:
    """RFC 8439 §2.4 key stream with a zero nonce, from block 0."""
    out = b""
    for counter in range(-(-length // 64)):
        start = list(
            struct.unpack(
                "<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + bytes(12)
            )
        )
        x = start.copy()

        def quarter(a: int, b: int, c: int, d: int, x: list[int] = x) -> None:
            for into, plus, turn, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[into] = (x[into] + x[plus]) & 0xFFFFFFFF
                value = x[turn] ^ x[into]
                x[turn] = (value << by | value >> (32 - by)) & 0xFFFFFFFF

        for _ in range(10):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        out += struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(start, x, strict=True)))
    return out[:length]


def samples(table: list[int], w: int, levels: int, k: int, key: bytes, count: int) -> list[int]:
    stream = chacha20(key, 16 * (levels + 1) * count)
    result = []
    for i in range(count):
        z = 0
        for j in range(levels + 1):
            at = 16 * ((levels + 1) * i + j)
            u = int.from_bytes(stream[at : at + 16], "little")
            z += (bisect_right(table, u) - w) * k**j
        result.append(z)
    return result


def noise_key_case() -> dict[str, object]:
    fields: list[bytes] = [
        b"2026-w47",
        b"clinic-a",
        struct.pack("<q", 1),
        bytes(range(32)),
        struct.pack("<q", 1),
        struct.pack("<q", 7),
        struct.pack("<q", 41),
        bytes(range(32, 64)),
        bytes(range(64, 96)),
    ]

    def enc(parts: list[bytes]) -> bytes:
        tag = b"ragaudit/v1/noise"
        head = struct.pack("<H", len(tag)) + tag + struct.pack("<H", len(parts))
        return head + b"".join(struct.pack("<Q", len(part)) + part for part in parts)

    k = bytes(range(96, 128))
    return {
        "k": k.hex(),
        "window": "2026-w47",
        "tenant": "clinic-a",
        "version": 1,
        "pseudonym": fields[3].hex(),
        "epoch": 1,
        "slot": 7,
        "counter": 41,
        "activation_randomness": fields[7].hex(),
        "nonce": fields[8].hex(),
        "key": hmac.digest(k, enc(fields), "sha256").hex(),
        "key_with_empty_nonce": hmac.digest(k, enc([*fields[:8], b""]), "sha256").hex(),
    }


def table_case(name: str, units: Fraction) -> dict[str, object]:
    levels, k, variance, w = parameters(units)
    table = thresholds(variance, w)
    data = b"".join(t.to_bytes(16, "little") for t in table)
    key = hashlib.sha256(b"ragaudit noise vector " + name.encode()).digest()
    drawn = samples(table, w, levels, k, key, 1000)
    case: dict[str, object] = {
        "name": name,
        "sigma_units": str(units),
        "levels": levels,
        "factor": k,
        "base_variance": str(variance),
        "half_width": w,
        "thresholds_sha256": hashlib.sha256(data).hexdigest(),
        "middle_threshold": str(table[w]),
        "key": key.hex(),
        "first_samples": drawn[:32],
        "samples_1000_sha256": hashlib.sha256(struct.pack("<1000q", *drawn)).hexdigest(),
    }
    if w < 300:
        case["thresholds"] = data.hex()
    return case


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_noise.py, from docs/spec/03-noise.md alone",
        "chacha20_origin": "RFC 8439 Appendix A.1, test vector 1 (zero key, nonce and counter)",
        "chacha20_zero_key": chacha20(bytes(32), 64).hex(),
        "noise_key": noise_key_case(),
        "tables": [table_case(name, units) for name, units in UNITS.items()],
    }
    return {"noise.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
