"""Write ties.json: ties openings, accepted and rejected (docs/spec/04-arguments.md §4.6.10).

Run `python tests/vectors/make_ties.py` to regenerate; the tests compare bit for bit. Written from
the specification alone: transcript, argument and opening are made here, and only the group and its
generators are the reference verifier's. A `why` names the weaker verification that would accept a
case that is to be rejected.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha512
from math import isqrt
from pathlib import Path
from typing import Any

from ragaudit.verifier.reference.generators import generator
from ragaudit.verifier.reference.ristretto import Point, encode, multiscalar

FOLDER = Path(__file__).parent
L = 2**252 + 27742317777372353535851937790883648493
CONTEXT = bytes(range(32))
Change = Callable[[bytes], bytes]


class Transcript:
    """§4.3."""

    def __init__(self, argument: str) -> None:
        self.state = sha512(b"ragaudit/transcript/v1").digest()
        self.absorb("argument", argument.encode())

    def absorb(self, tag: str, message: bytes) -> None:
        framed = len(tag).to_bytes(2, "little") + tag.encode() + len(message).to_bytes(8, "little")
        self.state = sha512(b"\1" + self.state + framed + message).digest()

    def scalar(self, tag: str) -> int:
        self.state = sha512(
            b"\2" + self.state + len(tag).to_bytes(2, "little") + tag.encode()
        ).digest()
        return int.from_bytes(sha512(b"\3" + self.state).digest(), "little") % L


class Randomness:
    """Scalars of the prover, the same in every run: these rows are no secret."""

    def __init__(self, label: str) -> None:
        self.label, self.count = label, 0

    def scalar(self) -> int:
        self.count += 1
        return int.from_bytes(sha512(f"{self.label} {self.count}".encode()).digest(), "little") % L


@dataclass(frozen=True)
class Index:
    """Committed vectors."""

    vectors: tuple[tuple[int, ...], ...]
    bound: int = 127

    @property
    def rows(self) -> list[list[int]]:
        return [[*v, *four_squares(self.bound**2 - dot(v, v))] for v in self.vectors]

    def blinding(self, position: int) -> int:
        return Randomness(f"ties blinding {position}").scalar()

    def commitment(self, position: int) -> bytes:
        row = self.rows[position]
        return encode(combined([(x, generator("G", j)) for j, x in enumerate(row)],
                               self.blinding(position)))  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A statement as a prover makes it, true or not, and what it does otherwise."""

    index: Index
    query: tuple[int, ...]
    top_k: int
    served: tuple[int, ...]
    withdrawn: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    scores: dict[int, int] = field(default_factory=dict)  # where they are not the true ones
    least: int | None = None  # v, where the rows behind are claimed to have another
    absent: str = ""  # what the prover's transcript leaves out
    lambda_: int | None = None  # where it is not drawn
    positions: dict[int, int] = field(default_factory=dict)  # row -> what the prover calls it
    rows: int | None = None  # N, where it is not the number of vectors
    change: Change = bytes  # of the proof

    def score(self, row: int) -> int:
        return self.scores.get(row, dot(self.query, self.index.vectors[row]))

    def named(self, row: int) -> int:
        return self.positions.get(row, row)


def dot(left: Iterable[int], right: Iterable[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True))


def combined(terms: list[tuple[int, Point]], blinding: int) -> Point:
    return multiscalar([*((a % L, p) for a, p in terms), (blinding % L, generator("H"))])


def four_squares(n: int) -> tuple[int, int, int, int]:
    for a in range(isqrt(n), -1, -1):
        for b in range(isqrt(n - a * a), max(-1, isqrt(n - a * a) - 60), -1):
            rest = n - a * a - b * b
            for c in range(isqrt(rest), -1, -1):
                if isqrt(rest - c * c) ** 2 == rest - c * c:
                    return a, b, c, isqrt(rest - c * c)
                if c < isqrt(rest) - 200:
                    break
    raise AssertionError(n)


def case(name: str, expect: str, claim: Claim, why: str = "") -> dict[str, Any]:
    """The statement and its proof as the vectors hold them."""
    d, rows = len(claim.query), claim.rows or len(claim.index.vectors)
    served = sorted((claim.named(i), claim.score(i)) for i in claim.served)
    withdrawn = sorted((claim.named(i), claim.score(i)) for i in claim.withdrawn)
    opened = sorted((*claim.withdrawn, *claim.others), key=claim.named)
    others = sorted(claim.named(i) for i in claim.others)
    C = [claim.index.commitment(i) for i in opened]
    least = min((s for _, s in (*served, *withdrawn)), default=0)

    transcript = Transcript("ties/v1")
    for tag, message in (
        ("context", CONTEXT),
        ("shape", le(rows, 8) + le(d, 4) + le(claim.index.bound**2, 4)),
        ("e", b"".join(signed(entry, 2) for entry in claim.query)),
        ("K", le(claim.top_k, 4)),
        ("served", b"".join(le(i, 4) + signed(s, 8) for i, s in served)),
        ("withdrawn", b"".join(le(i, 4) + signed(s, 8) for i, s in withdrawn)),
        ("others", b"".join(le(i, 4) for i in others)),
        ("C", b"".join(C)),
    ):
        if tag != claim.absent:
            transcript.absorb(tag, message)
    drawn = transcript.scalar("lambda")
    lam = drawn if claim.lambda_ is None else claim.lambda_
    weights = [pow(lam, j, L) for j in range(len(opened))]
    x = transcript.scalar("x")
    row_of = claim.index.rows
    a = [sum(w * row_of[i][j] for w, i in zip(weights, opened, strict=True)) for j in range(d + 4)]
    rho = sum(w * claim.index.blinding(i) for w, i in zip(weights, opened, strict=True))
    proof = opening(transcript, a, [*claim.query, 0, 0, 0, 0], rho, x, Randomness(name))
    # What an honest prover claims is true; a cheating one proves the sum that its rows have.
    if expect == "accept":
        scores = [claim.score(i) if i in claim.withdrawn else least for i in opened]
        assert dot(weights, scores) % L == dot(a, [*claim.query, 0, 0, 0, 0]) % L
    found = {
        "name": name, "expect": expect, "N": rows, "d": d, "B2": claim.index.bound**2,
        "K": claim.top_k, "e": list(claim.query), "served": [list(pair) for pair in served],
        "withdrawn": [list(pair) for pair in withdrawn], "others": others,
        "C": [point.hex() for point in C], "context": CONTEXT.hex(),
        "proof": claim.change(proof).hex(),
    }  # fmt: skip
    return found | ({"why": why} if why else {})


def opening(
    transcript: Transcript, a: list[int], form: list[int], rho: int, x: int, random: Randomness
) -> bytes:
    """OPEN (§4.4), the prover's side."""
    length = 2 ** max(1, (len(a) - 1).bit_length())
    g = [generator("G", j) for j in range(len(a))]
    g += [multiscalar([])] * (length - len(a))
    a, form = [*a, *[0] * (length - len(a))], [*form, *[0] * (length - len(form))]
    q = multiscalar([(x, generator("Q"))])
    proof = b""
    while len(a) > 1:
        half = len(a) // 2
        lo, hi = slice(0, half), slice(half, None)
        masks = random.scalar(), random.scalar()
        for tag, left, right, mask in (("L", lo, hi, masks[0]), ("R", hi, lo, masks[1])):
            terms = list(zip(a[left], g[right], strict=True))
            message = encode(combined([*terms, (dot(a[left], form[right]), q)], mask))
            transcript.absorb(tag, message)
            proof += message
        c = transcript.scalar("fold")
        inverse = pow(c, -1, L)
        a = [(u + inverse * v) % L for u, v in zip(a[lo], a[hi], strict=True)]
        form = [(u + c * v) % L for u, v in zip(form[lo], form[hi], strict=True)]
        g = [multiscalar([(1, u), (c, v)]) for u, v in zip(g[lo], g[hi], strict=True)]
        rho = rho + c * masks[0] + inverse * masks[1]
    s, t = random.scalar(), random.scalar()
    message = encode(combined([(s, g[0]), (s * form[0], q)], t))
    transcript.absorb("T", message)
    c = transcript.scalar("last")
    return proof + message + le((s + c * a[0]) % L, 32) + le((t + c * rho) % L, 32)


def le(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


def signed(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little", signed=True)


# Scores with the query (3, -1): 9, 9, 4, 10, 9, 9, -5.
TIED = Index(((3, 0), (4, 3), (1, -1), (3, -1), (2, -3), (3, 0), (-2, -1)))
WIDE = Index(tuple((40 * x + 7, 40 * y + 21) for x, y in TIED.vectors), 4095)
QUERY = (3, -1)
FINE = Claim(TIED, QUERY, 2, served=(0, 3), others=(1, 4, 5))
FALLING = Index(((10,), (9,), (9,), (9,)))
EXTREME = Index(((127,), (-127,), (127,), (127,)))
WIDEST = Index(((4095,), (4095,), (-4095,), (4095,)), 4095)


def accepted() -> dict[str, Claim]:
    equal = Index(((5, 5, 5),) * 6)
    return {
        "two of four tied rows": FINE,
        "K = 1": Claim(TIED, QUERY, 1, served=(0,), others=(1, 4, 5)),
        "a first row withdrawn": replace(FINE, served=(0,), withdrawn=(3,)),
        "the tied row withdrawn": replace(FINE, served=(3,), withdrawn=(0,)),
        "all first rows withdrawn": replace(FINE, served=(), withdrawn=(0, 3)),
        "withdrawn and served rows tied": Claim(
            TIED, QUERY, 4, served=(0, 3), withdrawn=(1, 4), others=(5,)
        ),
        "all rows equal": Claim(equal, (1, -2, 3), 3, served=(0, 1, 2), others=(3, 4, 5)),
        "all scores zero": Claim(equal, (0, 0, 0), 2, served=(0,), withdrawn=(1,), others=(2, 5)),
        "the largest score": Claim(EXTREME, (127,), 1, served=(0,), others=(2, 3)),
        "the smallest score": Claim(EXTREME, (-127,), 2, served=(0, 1), others=(2, 3)),
        "B = 4095": Claim(WIDE, QUERY, 2, served=(0, 3), others=(1, 4, 5)),
        "B = 4095, withdrawn": Claim(WIDE, QUERY, 2, served=(0,), withdrawn=(3,), others=(1, 4, 5)),
        "B = 4095, the largest score": Claim(WIDEST, (4095,), 1, served=(0,), others=(1, 3)),
        "positions far apart": replace(
            FINE, positions={3: 2**31, 4: 2**32 - 4, 5: 2**32 - 2}, rows=2**32 - 1
        ),
    }


def rejected() -> dict[str, tuple[Claim, str]]:
    order = "a verification that does not compare positions"
    form = "a verification without (E1)"
    alone = "a verification that opens the other rows alone"
    left_out = Claim(TIED, QUERY, 2, served=(0, 1), others=(3, 4, 5))
    return {
        "the best row kept back": (left_out, form),
        "a worse row in T": (replace(FINE, others=(1, 2, 4, 5)), form),
        "a later tied row served": (replace(FINE, served=(3, 4), others=(0, 1, 5)), order),
        "a later tied row withdrawn": (
            replace(FINE, served=(3,), withdrawn=(1,), others=(0, 4, 5)), order),
        "a later tied row withdrawn, said to be better": (
            Claim(TIED, QUERY, 3, served=(0, 3), withdrawn=(4,), others=(1, 5), scores={4: 10}),
            alone),
        "a withdrawn row said to be worse": (
            Claim(FALLING, (1,), 2, served=(1,), withdrawn=(0,), others=(2, 3), scores={0: 9}),
            alone),
        "the least score withdrawn, said to be smaller": (
            replace(FINE, served=(3,), withdrawn=(0,), scores={0: 8}), form),
        "a served score said to be smaller": (replace(FINE, scores={0: 8}), form),
        "errors that cancel": (
            Claim(Index(((9,), (10,), (8,), (20,))), (1,), 2, served=(0, 3), others=(1, 2),
                  lambda_=1),
            "a verification with lambda = 1"),
        **{f"a transcript without {tag}": (
            replace(FINE, served=(0,), withdrawn=(3,), absent=tag), f"one that leaves {tag} out")
           for tag in ("context", "shape", "e", "K", "served", "withdrawn", "others", "C")},
        "none behind the first rows": (Claim(TIED, QUERY, 2, served=(3,), withdrawn=(0,)), ""),
        "fewer than K first rows": (replace(FINE, top_k=3), "one that does not count them"),
        "more than K first rows": (replace(FINE, top_k=1), "one that does not count them"),
        "a position that is not below N": (
            replace(FINE, rows=5), "one that does not compare positions with N"),
        "a row that is served and behind": (
            replace(FINE, positions={5: 3}, others=(1, 5)), "one that lets a row be named twice"),
        "a row that is withdrawn and behind": (
            replace(FINE, served=(3,), withdrawn=(0,), others=(1, 4, 5), positions={4: 0}),
            "one that lets a row be named twice"),
        "a query longer than B": (
            Claim(Index(((1,), (1,))), (128,), 1, served=(0,), others=(1,)),
            "one without the bound of e"),
        "a score beyond the bound": (
            Claim(Index(((127, 0), (127, 0))), (127, 0), 1, served=(0,), others=(1,),
                  scores={0: 127**2 + 1}),
            ""),
        "cut": (replace(FINE, change=lambda proof: proof[:-32]), ""),
        "extended": (replace(FINE, change=lambda proof: proof + bytes(32)), ""),
        "z1 not reduced": (replace(FINE, change=unreduced), "one that reduces scalars"),
        "T with its high bit set": (
            replace(FINE, change=lambda p: p[:-65] + bytes([p[-65] | 128]) + p[-64:]),
            "one that clears the high bit"),
    }  # fmt: skip


def unreduced(proof: bytes) -> bytes:
    z1 = int.from_bytes(proof[-64:-32], "little")
    return proof[:-64] + le(z1 + L, 32) + proof[-32:]


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    cases = [case(name, "accept", claim) for name, claim in accepted().items()]
    cases += [case(name, "reject", claim, why) for name, (claim, why) in rejected().items()]
    document = {
        "origin": "tests/vectors/make_ties.py, from docs/spec/04-arguments.md alone",
        "argument": "ties/v1",
        "cases": cases,
    }
    return {"ties.json": (json.dumps(document, indent=1) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
