"""Write quantise.json: known answers for docs/spec/02-integers.md §2.1.

Run `python tests/vectors/make_quantise.py` to regenerate; the tests compare bit for bit.
Independent of ragaudit.circuits: fractions only, the scales at which an entry steps in one sorted
list. Real entries are written as hexadecimal binary64;
`integers` are for B = 127, `wide_integers` for B = 4095.
"""

import hashlib
import json
from fractions import Fraction
from itertools import groupby
from math import ceil, isqrt
from pathlib import Path

FOLDER = Path(__file__).parent
BOUND = 127
WIDE_BOUND = 4095


def quantised(vector: list[float], bound: int) -> list[int]:
    sizes = [abs(Fraction(x)) for x in vector]
    # Rounding moves the norm by sqrt(d)/2 at most: the steps to look at lie between these scales.
    norm = max(sizes) * Fraction(
        isqrt(int(sum((s / max(sizes)) ** 2 for s in sizes) * 4**99)), 2**99
    )
    reach = isqrt(len(vector)) + 1
    low, high = max(0, bound - reach) / norm, (bound + reach) / norm
    found = [max(0, ceil(low * size - Fraction(1, 2))) for size in sizes]
    assert sum(x * x for x in found) <= bound * bound
    scales = sorted(
        (Fraction(2 * k + 1, 2) / size, j)
        for j, size in enumerate(sizes)
        if size
        for k in range(found[j], ceil(high * size + 1))
    )
    for _, together in groupby(scales, key=lambda step: step[0]):
        raised = list(found)
        for _, j in together:
            raised[j] += 1
        if sum(x * x for x in raised) > bound * bound:
            break
        found = raised
    else:
        raise AssertionError("the largest scale lies beyond those looked at")
    return [x if value > 0 else -x for x, value in zip(found, vector, strict=True)]


def keyed(label: str, count: int, bits: int) -> list[float]:
    """Signed numbers of `bits` bits from SHAKE-256, roughly bell-shaped: sums of four."""
    stream = hashlib.shake_256(label.encode()).digest(32 * count)
    words = [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(4 * count)]
    sums = [sum(words[4 * i : 4 * i + 4]) - 2**65 for i in range(count)]
    return [float((each >> (66 - bits)) * 2.0**-bits) for each in sums]


def vectors() -> dict[str, list[float]]:
    return {
        "one entry": [-2.5],
        "one entry among zeros": [0.0, -0.0, 3.0, 0.0],
        "3, 4": [3.0, 4.0],
        "equal entries step together or not at all": [1.0, -1.0, 1.0, 1.0, -1.0],
        "unequal entries with equal scales of steps: 1/2 : 1 = 3/2 : 3": [1.0, 3.0, -3.0, 1.0],
        "nearly equal entries": [1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53],
        "smallest and largest numbers": [5e-324, 1.7976931348623157e308, -1.0],
        "subnormal": [3e-323, -2.5e-323, 5e-324],
        "huge": [1e308, -1.5e308, 7e307, 1e308],
        "all equal, d = 200": [0.25] * 200,
        "ternary, d = 150": [float((7 * i * i + i) % 3 - 1) for i in range(150)],
        "multiples of 1/127, d = 100": [float((37 * i + 11) % 255 - 127) / 127 for i in range(100)],
        "24 bits, d = 64": keyed("quantise a", 64, 24),
        "24 bits, d = 256": keyed("quantise b", 256, 24),
        "53 bits, d = 64": keyed("quantise c", 64, 53),
        "53 bits, d = 300": keyed("quantise d", 300, 53),
    }


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    document = {
        "origin": "tests/vectors/make_quantise.py, from docs/spec/02-integers.md alone",
        "cases": [
            {
                "name": name,
                "vector": [x.hex() for x in vector],
                "integers": quantised(vector, BOUND),
                "wide_integers": quantised(vector, WIDE_BOUND),
            }
            for name, vector in vectors().items()
        ],
    }
    return {"quantise.json": (json.dumps(document, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
