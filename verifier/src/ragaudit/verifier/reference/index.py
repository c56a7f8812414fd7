"""The index argument: every committed row is an integer vector of squared norm B² (spec 4.7)."""

from itertools import compress
from operator import index

from .errors import InvalidStatement
from .field import ORDER, dot, eq_table, le, powers, variables_for
from .generators import generator, generators
from .opening import Terms, verify_opening
from .reader import ProofReader
from .ristretto import POINT_BYTES, Point, decode
from .statement import SQUARED_NORM
from .sumcheck import verify_rounds
from .transcript import Transcript

PROJECTIONS = 309
ARGUMENT = "index/v2"  # a proof of index/v1 says less and is refused
LIMBS, LIMB_BITS = 3, 14  # of p_q + 2^41, a number of 42 bits
RANGE_ROWS = PROJECTIONS * LIMBS  # R
OFFSET = 2**41
MAX_ROWS = 2**32 - 1
MAX_SQUARED_NORM = 2**24 - 1  # 4B² < 2^26


def verify_index(
    context: bytes,
    rows: int,
    dimension: int,
    commitments: bytes,
    proof: bytes,
    squared_norm: int = SQUARED_NORM,
) -> None:
    """Check that C_0..C_(N-1) commit to integer rows with squared norm exactly B².

    Args:
        context: 32 bytes of the caller that the proof is bound to.
        rows: N.
        dimension: d, without the four completing coordinates.
        commitments: C_0 || .. || C_(N-1), 32·N bytes.
        proof: the serialised proof.
        squared_norm: B², of the policy.

    Raises:
        ProofRejected: InvalidStatement or MalformedProof where one of these is the reason.
    """
    if len(context) != 32 or not 1 <= rows <= MAX_ROWS or not 1 <= dimension < 2**16:
        raise InvalidStatement("32 bytes of context, N in 1..2^32-1 and d in 1..2^16-1 are needed")
    if len(commitments) != POINT_BYTES * rows:
        raise InvalidStatement("there must be N commitments")
    N, d, R, B2 = index(rows), index(dimension), RANGE_ROWS, index(squared_norm)
    if not 1 <= B2 <= MAX_SQUARED_NORM or N * N * B2 * (d + 4) >= OFFSET**2:
        raise InvalidStatement("1 <= 4B² < 2^26 and N² B² (d + 4) < 2^82 are needed")
    C = [decode(commitments[32 * i : 32 * (i + 1)]) for i in range(N)]
    m, md = variables_for(max(N, R) + 1), variables_for(d + 4)

    transcript = Transcript(ARGUMENT)
    transcript.absorb("context", bytes(context))
    transcript.absorb("shape", le(N, 8) + le(d, 4) + le(B2, 4))
    transcript.absorb("C", bytes(commitments))
    # V0
    bits = transcript.bits("projections", PROJECTIONS * (N + d + 4))

    reader = ProofReader(bytes(proof), transcript)
    # P1: the bits of the limbs; the mask row of X; the mask g.
    columns = [reader.point("point1") for _ in range(LIMB_BITS)]
    C_m, C_g = reader.point("point1"), reader.point("point1")
    G_sum = reader.scalar("G")
    # V1
    alpha = powers(transcript.scalar("alpha"), LIMB_BITS + 2)
    lam = powers(transcript.scalar("lambda"), PROJECTIONS)
    eq_t = eq_table([transcript.scalar("t") for _ in range(m)])
    rho = transcript.scalar("rho")
    # P2
    degrees = [3] * m + [2] * md
    S_0 = alpha[14] * B2 * sum(eq_t[:N]) - alpha[15] * OFFSET * sum(lam)
    outcome = verify_rounds(transcript, reader, degrees, S_0 + rho * G_sum, rho)
    eq_x, eq_y = eq_table(outcome.point[:m]), eq_table(outcome.point[m:])
    # P3, V2
    v = [reader.scalar("eval") for _ in range(LIMB_BITS)]
    v_X = reader.scalar("eval")
    gamma, theta, x = (transcript.scalar(tag) for tag in ("gamma", "theta", "x"))

    M_R, M_N = dot(eq_t[:R], eq_x[:R]), dot(eq_t[:N], eq_x[:N])
    limb = sum(v_k << k for k, v_k in enumerate(v))
    boolean = dot(alpha[:14], [v_k * v_k - v_k for v_k in v])
    F = eq_y[0] * (M_R * boolean - alpha[15] * _omega(lam, eq_x) * limb)
    W = _projected(bits, lam, eq_x[:N], eq_y[: d + 4])
    F += alpha[14] * M_N * v_X * v_X + alpha[15] * W * v_X
    v_g = outcome.mask_value(F)

    # P4, (E1)
    gammas = powers(gamma, LIMB_BITS + 2)
    commitment: Terms = list(zip(gammas[:14], columns, strict=True))
    commitment += [(gammas[14] * eq_i, C_i) for eq_i, C_i in zip(eq_x, C, strict=False)]
    commitment += [(gammas[14] * mask_row_weight(eq_x), C_m), (gammas[15], C_g)]
    value = dot(gammas[:14], v) + theta * gammas[14] * v_X + theta * theta * gammas[15] * v_g
    verify_opening(
        transcript,
        reader,
        bases=opening_bases(d + 4, degrees),
        form=opening_form(eq_x, eq_y[: d + 4], outcome.mask_form(), theta),
        commitment=commitment,
        x=x,
        value=value % ORDER,
    )


def mask_row_weight(eq_x: list[int]) -> int:
    """The weight of C_m, which is the mask row: with weight 1 it would be added to every row."""
    return eq_x[-1]


def opening_bases(width: int, degrees: list[int]) -> list[Point]:
    """P_0, .., P_926, P*, G_0..G_(d+3), R_0, ..: nothing that masks alone would use."""
    rows = [*generators("idx/P", RANGE_ROWS), generator("idx/P*"), *generators("G", width)]
    return [*rows, *generators("idx/R", 1 + sum(degrees))]


def opening_form(
    eq_x: list[int], eq_columns: list[int], mask_form: list[int], theta: int
) -> list[int]:
    """L over :func:`opening_bases`: three blocks, kept apart by powers of theta."""
    rows = [theta * value % ORDER for value in eq_columns]
    mask = [theta * theta * value % ORDER for value in mask_form]
    return [*eq_x[:RANGE_ROWS], eq_x[-1], *rows, *mask]


def _omega(lam: list[int], eq_x: list[int]) -> int:
    """omega(r_x): limb l of projection q weighs lambda^q 2^(14 l)."""
    weights = [lam_q << LIMB_BITS * limb for lam_q in lam for limb in range(LIMBS)]
    return dot(weights, eq_x[:RANGE_ROWS])


def _projected(bits: bytes, lam: list[int], eq_rows: list[int], eq_columns: list[int]) -> int:
    """W(r_x, r_y): sum of lambda^q u~_q(r_x) v~_q(r_y), bits holding u_0, v_0, u_1, v_1, .."""
    total, width = 0, len(eq_rows) + len(eq_columns)
    for q, lam_q in enumerate(lam):
        chosen = bits[q * width : (q + 1) * width]
        u_q = sum(compress(eq_rows, chosen))
        v_q = sum(compress(eq_columns, chosen[len(eq_rows) :]))
        total += lam_q * (u_q % ORDER) * (v_q % ORDER)
    return total % ORDER
