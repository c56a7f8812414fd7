"""OPEN: knowledge of (a, rho) with P = sum a_i (g_i + L_i x Q) + rho H (spec 4.4)."""

from .errors import ProofRejected
from .field import ORDER, dot, inverse, variables_for
from .generators import generator
from .reader import ProofReader
from .ristretto import Point, is_identity, multiscalar
from .transcript import Transcript

Terms = list[tuple[int, Point]]


def check_zero(terms: Terms, equation: str) -> None:
    """Raise ProofRejected unless the sum of scalar·point is the identity."""
    if not is_identity(multiscalar((scalar % ORDER, point) for scalar, point in terms)):
        raise ProofRejected(f"equation {equation} does not hold")


def verify_opening(
    transcript: Transcript,
    proof: ProofReader,
    *,
    bases: list[Point],
    form: list[int],
    commitment: Terms,
    x: int,
    value: int,
) -> None:
    """Check (E1) for P = commitment + x·value·Q, reading the rest of the proof.

    Args:
        bases: g_1..g_n.
        form: L_1..L_n, public.
        commitment: P without its Q term, as scalar·point terms.
        x: challenge drawn after everything that ``value`` depends on.
        value: the claimed <a, L>.
    """
    Q, H = generator("Q"), generator("H")
    target: Terms = [*commitment, (x * value, Q)]
    s = [1]
    for _ in range(max(1, variables_for(len(bases)))):
        left, right = proof.point("L"), proof.point("R")
        c_k = transcript.scalar("fold")
        if c_k == 0:
            raise ProofRejected("challenge c_k is 0")
        target += [(c_k, left), (inverse(c_k), right)]
        # Round 1 folds the two halves of the index range: it decides by the top bit of i.
        s = [entry for t in s for entry in (t, t * c_k % ORDER)]
    T = proof.point("T")
    c = transcript.scalar("last")
    z1, z2 = proof.scalar(), proof.scalar()
    proof.end()

    s = s[: len(bases)]  # the padding has g = identity and L = 0
    terms: Terms = [(z1 * s_i, g_i) for s_i, g_i in zip(s, bases, strict=True)]
    terms += [(z1 * x * dot(s, form), Q), (z2, H), (-1, T)]
    terms += [(-c * scalar, point) for scalar, point in target]
    check_zero(terms, f"E1 of {transcript.argument}")
