"""The masked sumcheck (spec 4.5)."""

from collections.abc import Sequence
from typing import NamedTuple

from .errors import ProofRejected
from .field import ORDER, dot, inverse, powers
from .reader import ProofReader
from .transcript import Transcript


class Outcome(NamedTuple):
    """What the rounds leave to be shown: (F + rho·g)(point) = claim."""

    degrees: Sequence[int]
    rho: int
    point: list[int]  # r, one challenge per variable
    claim: int

    def mask_value(self, f_at_point: int) -> int:
        """v_g, which g(r) must be when F(r) is ``f_at_point``."""
        return (self.claim - f_at_point) * inverse(self.rho) % ORDER

    def mask_form(self) -> list[int]:
        """mask(r) = (1, r_1, .., r_1^deg_1, r_2, ..)."""
        form = [1]
        for r_k, degree in zip(self.point, self.degrees, strict=True):
            form += powers(r_k, degree, start=r_k)
        return form


def verify_rounds(
    transcript: Transcript, proof: ProofReader, degrees: Sequence[int], claim: int, rho: int
) -> Outcome:
    """Read the round messages of F + rho·g, whose sum over the cube is ``claim``.

    Args:
        degrees: of each variable, in the order in which they are bound.
        claim: S_0 + rho·G_sum.
        rho: the challenge that mixes the mask in.
    """
    if rho == 0:
        raise ProofRejected("challenge rho is 0")
    point = []
    for degree in degrees:
        c_0, *higher = [proof.scalar("round") for _ in range(degree)]
        c_1 = claim - 2 * c_0 - sum(higher)
        r_k = transcript.scalar("point")
        claim = dot([c_0, c_1, *higher], powers(r_k, degree + 1))
        point.append(r_k)
    return Outcome(degrees, rho, point, claim)
