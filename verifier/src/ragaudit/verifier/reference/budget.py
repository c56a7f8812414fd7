"""The budget argument: no row is charged more than M times in a window (spec 4.10).

One proof for all charge entries of a tenant: every charge vector consists of bits, and so do M
vectors whose sum is theirs.
"""

from collections.abc import Sequence
from operator import index

from .errors import InvalidStatement
from .field import ORDER, dot, eq_table, le, variables_for
from .generators import generator, generators
from .opening import Terms, check_zero, verify_opening
from .reader import ProofReader
from .ristretto import Point, decode
from .statement import SQUARED_NORM
from .sumcheck import verify_rounds
from .transcript import Transcript

ARGUMENT = "budget/v1"
DEGREE = 3
MAX_ROWS = MAX_ENTRIES = 2**32 - 1
MAX_USES = 2**16
MAX_SQUARED_NORM = 2**24 - 1  # 4B² < 2^26


def verify_budget(
    context: bytes,
    rows: int,
    uses: int,
    charges: Sequence[bytes],
    proof: bytes,
    squared_norm: int = SQUARED_NORM,
) -> None:
    """Check that the A-parts b_t of all B_t are in {0,1}^N and that their sum is at most M.

    Args:
        context: 32 bytes of the caller that the proof is bound to.
        rows: N.
        uses: M, how often a row may be charged.
        charges: B_0, .., B_(R-1), *all* charge entries of the tenant and window, in log order.
        proof: the serialised proof.
        squared_norm: B², of the policy.

    Raises:
        ProofRejected: InvalidStatement or MalformedProof where one of these is the reason.
    """
    N, M, R, B2 = index(rows), index(uses), len(charges), index(squared_norm)
    if len(context) != 32 or not (1 <= N <= MAX_ROWS and 1 <= R <= MAX_ENTRIES):
        raise InvalidStatement("32 bytes of context, N and R in 1..2^32-1 are needed")
    if not (1 <= M <= MAX_USES and 1 <= B2 <= MAX_SQUARED_NORM):
        raise InvalidStatement("M in 1..2^16 and 1 <= 4B² < 2^26 are needed")
    B = [decode(bytes(charge)) for charge in charges]
    mx, my = variables_for(R + M + 1), max(1, variables_for(N))

    transcript = Transcript(ARGUMENT)
    absorb_statement(transcript, context, N, M, charges, B2)
    reader = ProofReader(bytes(proof), transcript)
    # P1: the M vectors; the mask row, the mask g; the blinding of the sums.
    W = [reader.point("point1") for _ in range(M)]
    C_m, C_g, T_H = (reader.point("point1") for _ in range(3))
    G_sum = reader.scalar("G")
    # V1
    eq_t = eq_table([transcript.scalar("t") for _ in range(mx)])
    eq_u = eq_table([transcript.scalar("u") for _ in range(my)])
    rho = transcript.scalar("rho")
    # P2
    degrees = [DEGREE] * (mx + my)
    outcome = verify_rounds(transcript, reader, degrees, rho * G_sum % ORDER, rho)
    eq_x, eq_y = eq_table(outcome.point[:mx]), eq_table(outcome.point[mx:])
    # P3
    v = reader.scalar("eval")
    # V2, P4
    gamma, theta, x = opening_challenges(transcript)
    c = transcript.scalar("schnorr")
    z = reader.scalar("z")

    weight = dot(spread(eq_t, R, M), eq_x) * dot(spread(eq_u, N, 0), eq_y)
    v_g = outcome.mask_value(summand(weight, v))

    # The sum of what was charged is the sum of the M vectors, up to a multiple of H.
    sums: Terms = [(z, generator("H")), (-1, T_H)]
    sums += [(-c, B_t) for B_t in B] + [(c, W_k) for W_k in W]
    check_zero(sums, "of the sums")

    # P5, (E1)
    weights = opening_weights(eq_x, R + M, gamma)
    commitment: Terms = list(zip(weights, [*B, *W, C_m, C_g], strict=True))
    verify_opening(
        transcript,
        reader,
        bases=opening_bases(N, degrees),
        form=opening_form(eq_y, N, outcome.mask_form(), theta),
        commitment=commitment,
        x=x,
        value=(v + theta * gamma * v_g) % ORDER,
    )


def absorb_statement(
    transcript: Transcript, context: bytes, N: int, M: int, charges: Sequence[bytes], B2: int
) -> None:
    """Absorb what the proof is about."""
    transcript.absorb("context", bytes(context))
    transcript.absorb("shape", le(N, 8) + le(len(charges), 8) + le(M, 4) + le(B2, 4))
    transcript.absorb("B", b"".join(bytes(charge) for charge in charges))


def spread(eq: Sequence[int], count: int, more: int) -> list[int]:
    """The weights of the claim: eq at the first ``count + more`` places, 0 elsewhere."""
    claimed = count + more
    return [*eq[:claimed], *[0] * (len(eq) - claimed)]


def summand(weight: int, v: int) -> int:
    """F at one point, from its weight and the value of the table there."""
    return weight * (v * v - v) % ORDER


def opening_challenges(transcript: Transcript) -> tuple[int, int, int]:
    """gamma, which keeps the commitments apart, theta, which keeps the blocks, and x."""
    gamma, theta = transcript.scalar("gamma"), transcript.scalar("theta")
    return gamma, theta, transcript.scalar("x")


def opening_weights(eq_x: Sequence[int], rows: int, gamma: int) -> list[int]:
    """The share in P_0 of the R + M rows, of C_m, which is the mask row, and of C_g."""
    return [*eq_x[:rows], eq_x[-1], gamma]


def opening_bases(N: int, degrees: Sequence[int]) -> list[Point]:
    """A_0, .., A_(N-1), bud/R_0, .."""
    return [*generators("A", N), *generators("bud/R", 1 + sum(degrees))]


def opening_form(eq_y: Sequence[int], N: int, mask_form: Sequence[int], theta: int) -> list[int]:
    """L over :func:`opening_bases`: two blocks, kept apart by theta."""
    return [*eq_y[:N], *(theta * value % ORDER for value in mask_form)]
