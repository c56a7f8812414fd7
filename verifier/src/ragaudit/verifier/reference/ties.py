"""The ties opening: the rows of an answer are the first K of T (spec 4.6.10)."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

from .errors import InvalidStatement
from .field import ORDER, dot, le, powers
from .generators import generators
from .opening import verify_opening
from .reader import ProofReader
from .ristretto import POINT_BYTES, decode
from .transcript import Transcript

COMPLETION = 4  # entries of a completed row after the d of a vector


class TiesStatement(Protocol):
    """The public inputs; positions rise in every list."""

    @property
    def context(self) -> bytes:
        """32 bytes."""

    @property
    def rows(self) -> int:
        """N."""

    @property
    def query(self) -> Sequence[int]:
        """e."""

    @property
    def top_k(self) -> int:
        """K."""

    @property
    def served(self) -> Sequence[tuple[int, int]]:
        """(position, score) of the rows of the answer."""

    @property
    def withdrawn(self) -> Sequence[tuple[int, int]]:
        """(position, score) of the first rows left out."""

    @property
    def others(self) -> Sequence[int]:
        """the positions of T behind the first K."""

    @property
    def commitments(self) -> bytes:
        """C_i of withdrawn rows and others, in one rising list."""

    @property
    def squared_norm(self) -> int:
        """B²."""


def verify_ties(statement: TiesStatement, proof: bytes) -> None:
    """Check that the served and withdrawn rows are the first K of T, given the rest of T.

    Args:
        statement: T is the served and withdrawn rows and the others, and was accepted; the
            commitments are those of the index at these positions.
        proof: the serialised proof.

    Raises:
        ProofRejected: InvalidStatement or MalformedProof where one of these is the reason.
    """
    _check(statement)
    v = min(score for _, score in [*statement.served, *statement.withdrawn])
    scores = dict(statement.withdrawn) | dict.fromkeys(statement.others, v)
    opened = sorted(scores)  # i_0 < i_1 < ..
    C = statement.commitments
    points = [decode(C[POINT_BYTES * j : POINT_BYTES * (j + 1)]) for j in range(len(opened))]

    transcript = _begin(statement)
    lam = powers(transcript.scalar("lambda"), len(opened))
    x = transcript.scalar("x")
    d = len(statement.query)
    verify_opening(
        transcript,
        ProofReader(bytes(proof), transcript),
        bases=generators("G", d + COMPLETION),
        form=[entry % ORDER for entry in statement.query] + [0] * COMPLETION,
        commitment=list(zip(lam, points, strict=True)),
        x=x,
        value=dot(lam, [scores[i] for i in opened]),
    )


def _check(statement: TiesStatement) -> None:
    def require(condition: bool, what: str) -> None:
        if not condition:
            raise InvalidStatement(what)

    B2, first = statement.squared_norm, [*statement.served, *statement.withdrawn]
    require(len(statement.context) == 32, "the context must have 32 bytes")
    require(1 <= statement.rows < 2**32, "N must be in 1..2^32-1")
    require(1 <= statement.top_k < 2**32, "K must be in 1..2^32-1")
    require(B2 >= 1 and 4 * B2 < 2**26, "4B² must be below 2^26")
    require(1 <= len(statement.query) < 2**16, "e must have a dimension in 1..2^16-1")
    require(sum(e * e for e in statement.query) <= B2, "e is longer than B")
    require(all(abs(s) <= B2 for _, s in first), "scores must be in -B²..B²")
    require(len(first) == statement.top_k, "the served and withdrawn rows must be K")
    require(len(statement.others) >= 1, "T must have more than K rows")
    lists = [[i for i, _ in statement.served], [i for i, _ in statement.withdrawn]]
    lists.append(list(statement.others))
    require(all(_rise(positions) for positions in lists), "positions must rise in each list")
    named = [i for positions in lists for i in positions]
    require(len(set(named)) == len(named), "a position is named twice")
    require(all(0 <= i < statement.rows for i in named), "positions are 0..N-1")
    unserved = len(statement.withdrawn) + len(statement.others)
    require(len(statement.commitments) == POINT_BYTES * unserved, "one C_i for each of these rows")
    v = min(s for _, s in first)
    last = max(i for i, s in first if s == v)
    require(last < statement.others[0], "rows of score v precede the others")


def _rise(positions: list[int]) -> bool:
    return all(left < right for left, right in pairwise(positions))


def _begin(statement: TiesStatement) -> Transcript:
    """The transcript with the statement absorbed."""
    transcript = Transcript("ties/v1")
    transcript.absorb("context", statement.context)
    shape = le(statement.rows, 8) + le(len(statement.query), 4) + le(statement.squared_norm, 4)
    transcript.absorb("shape", shape)
    signed = (entry.to_bytes(2, "little", signed=True) for entry in statement.query)
    transcript.absorb("e", b"".join(signed))
    transcript.absorb("K", le(statement.top_k, 4))
    transcript.absorb("served", _ranked(statement.served))
    transcript.absorb("withdrawn", _ranked(statement.withdrawn))
    transcript.absorb("others", b"".join(le(i, 4) for i in statement.others))
    transcript.absorb("C", statement.commitments)
    return transcript


def _ranked(rows: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(le(i, 4) + s.to_bytes(8, "little", signed=True) for i, s in rows)
