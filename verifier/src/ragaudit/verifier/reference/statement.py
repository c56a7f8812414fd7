"""Public inputs of the selection argument, their checks, and their transcript (spec 4.6)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .errors import InvalidStatement
from .field import le, variables_for
from .ristretto import POINT_BYTES
from .transcript import Transcript

SQUARED_NORM = 127**2  # B²
DISTANCE_BITS = (16, 26)  # W, for 4B² below 2^16 and below 2^26


@dataclass(frozen=True)
class Statement:
    """The public inputs of spec 4.6.1, checked; F, U and zeta follow from them."""

    context: bytes
    rows: int  # N
    commitments: bytes  # C_0 || .. || C_(N-1)
    query: tuple[int, ...]  # e
    noise: tuple[int, ...]  # z
    top_k: int  # K
    selection: bytes  # B_sel
    allowed: Sequence[int]  # rising
    squared_norm: int = SQUARED_NORM  # B²
    ties: bool = False  # whether rows with the last score that is selected are all selected
    # Derived where more than K rows are allowed; otherwise T is known and they are not used.
    zeta: int = field(init=False, default=0)
    F: tuple[int, ...] = field(init=False, default=())
    U: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self._check()
        if self.everything:
            return
        noise = sorted((self.noise[i] for i in self.allowed), reverse=True)
        zeta = noise[self.top_k - 1 if self.ties else self.top_k]
        margin = 2 * self.squared_norm
        object.__setattr__(self, "zeta", zeta)
        above = tuple(i for i in self.allowed if self.noise[i] > zeta + margin)
        near = tuple(i for i in self.allowed if abs(self.noise[i] - zeta) <= margin)
        object.__setattr__(self, "F", above)
        object.__setattr__(self, "U", near)

    @property
    def everything(self) -> bool:
        """Whether at most K rows are allowed, so that T is all of them."""
        return len(self.allowed) <= self.top_k

    @property
    def distance_bits(self) -> int:
        """W: bits of |y - tau| for rows of U, at most 4B²."""
        return next(W for W in DISTANCE_BITS if 4 * self.squared_norm < 2**W)

    @property
    def variables(self) -> int:
        """m: the table of U and one mask row has 2^m entries."""
        return variables_for(len(self.U) + 1)

    def commitment(self, position: int) -> bytes:
        """The encoding of C_position."""
        return self.commitments[POINT_BYTES * position : POINT_BYTES * (position + 1)]

    def _check(self) -> None:
        def require(condition: bool, what: str) -> None:
            if not condition:
                raise InvalidStatement(what)

        require(len(self.context) == 32, "the context must have 32 bytes")
        require(1 <= self.rows < 2**32, "N must be in 1..2^32-1")
        require(1 <= self.top_k < 2**32, "K must be in 1..2^32-1")
        require(self.squared_norm >= 1 and 4 * self.squared_norm < 2**26, "4B² must be below 2^26")
        require(len(self.commitments) == POINT_BYTES * self.rows, "there must be N commitments")
        require(len(self.noise) == self.rows, "there must be N noise values")
        require(all(-(2**63) <= z < 2**63 for z in self.noise), "noise must fit 64 bits")
        require(1 <= len(self.query) < 2**16, "e must have a dimension in 1..2^16-1")
        require(sum(e * e for e in self.query) <= self.squared_norm, "e is longer than B")
        require(len(set(self.allowed)) == len(self.allowed), "a position is allowed twice")
        require(all(0 <= i < self.rows for i in self.allowed), "allowed positions are 0..N-1")


def begin(statement: Statement) -> Transcript:
    """The transcript after the statement has been absorbed (spec 4.6.3)."""
    everything = statement.everything
    argument = "selection-ties/v1" if statement.ties else "selection/v1"
    transcript = Transcript("selection-all/v1" if everything else argument)
    transcript.absorb("context", statement.context)
    shape = le(statement.rows, 8) + le(len(statement.query), 4) + le(statement.squared_norm, 4)
    transcript.absorb("shape", shape)
    if everything:
        transcript.absorb("K", le(statement.top_k, 4))
        transcript.absorb("allowed", b"".join(le(i, 4) for i in statement.allowed))
    else:
        signed = b"".join(e.to_bytes(2, "little", signed=True) for e in statement.query)
        transcript.absorb("e", signed)
        transcript.absorb("K", le(statement.top_k, 4))
        transcript.absorb("zeta", _i64(statement.zeta))
        transcript.absorb("F", b"".join(le(i, 4) for i in statement.F))
        rows = [le(i, 4) + _i64(statement.noise[i]) + statement.commitment(i) for i in statement.U]
        transcript.absorb("U", b"".join(rows))
    transcript.absorb("B", statement.selection)
    return transcript


def _i64(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)
