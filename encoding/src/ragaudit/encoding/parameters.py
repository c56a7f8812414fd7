"""Sizes and bounds that every statement shares (docs/spec/02-integers.md, 03-noise.md)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

B: Final = 127
"""Bound of the Euclidean norm of quantised vectors, in lattice units."""

SQUARED_NORM: Final = B * B
"""Norm of every completed row, and the largest score (cosine 1): 16129 lattice units."""


@dataclass(frozen=True)
class Limits:
    """Largest values accepted anywhere; beyond them input is refused before any work.

    Attributes:
        dimension: d, entries of an embedding.
        rows: N, rows of an index.
        top_k: K.
        sketch_bits_min, sketch_bits_max: b, bits of a sketch.
        sigma_units_min, sigma_units_max: S, noise on the lattice of scores.
    """

    dimension: int = 4096
    rows: int = 2**24
    top_k: int = 1000
    sketch_bits_min: int = 64
    sketch_bits_max: int = 512
    sigma_units_min: Fraction = Fraction(16)
    sigma_units_max: Fraction = Fraction(2**40)


LIMITS: Final = Limits()
