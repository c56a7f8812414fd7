"""Recomputing commitments from their openings (spec 4.1.5): rows of an index, selections."""

from collections.abc import Iterable, Sequence
from operator import index

from .errors import InvalidStatement
from .field import ORDER, decode_scalar
from .generators import generator
from .ristretto import encode, multiscalar

MAX_POSITION = 2**32


def commit_row(row: Sequence[int], blinding: bytes) -> bytes:
    """C = sum_j row_j G_j + rho H.

    Args:
        row: a completed row, d + 4 integers (any size: whether they are short is not asked here).
        blinding: rho, 32 bytes, a canonical scalar.

    Raises:
        InvalidStatement: an empty row.
        MalformedProof: the blinding is not a canonical scalar.
    """
    if not row:
        raise InvalidStatement("a row has at least one coordinate")
    terms = [(index(x) % ORDER, generator("G", j)) for j, x in enumerate(row)]
    return encode(multiscalar([*terms, (decode_scalar(blinding), generator("H"))]))


def commit_selection(positions: Iterable[int], blinding: bytes) -> bytes:
    """B_sel = sum over the positions of A_i + rho_sel H.

    Args:
        positions: distinct, each in 0..2^32-1.
        blinding: rho_sel, 32 bytes, a canonical scalar.

    Raises:
        InvalidStatement: a position repeated or out of range.
        MalformedProof: the blinding is not a canonical scalar.
    """
    chosen = [index(i) for i in positions]
    if len(set(chosen)) != len(chosen) or not all(0 <= i < MAX_POSITION for i in chosen):
        raise InvalidStatement("positions are distinct, each in 0..2^32-1")
    terms = [(1, generator("A", i)) for i in chosen]
    return encode(multiscalar([*terms, (decode_scalar(blinding), generator("H"))]))
