"""The selection argument: B_sel commits to noise-then-select over the committed rows (spec 4.6)."""

from collections.abc import Sequence
from operator import index

from .field import ORDER, dot, eq_table, powers
from .generators import generator, generators
from .opening import Terms, check_zero, verify_opening
from .reader import ProofReader
from .ristretto import Point, decode
from .statement import SQUARED_NORM, Statement, begin
from .sumcheck import verify_rounds
from .transcript import Transcript

SELECTED = 3  # columns b, b3, b4; those of u_0..u_(W-1) follow
DEGREE = 3


def verify_selection(
    context: bytes,
    rows: int,
    commitments: bytes,
    query: Sequence[int],
    noise: Sequence[int],
    top_k: int,
    selection_commitment: bytes,
    proof: bytes,
    allowed: Sequence[int] | None = None,
    squared_norm: int = SQUARED_NORM,
    ties: bool = False,
) -> None:
    """Check that ``selection_commitment`` is B_sel of T, the rows above the (K+1)-th noisy score.

    With ``ties``, T is the rows whose score is at least the K-th.

    The index argument for ``commitments`` must have been accepted before (spec 4.6.1).

    Args:
        context: 32 bytes of the caller that the proof is bound to.
        rows: N.
        commitments: C_0 || .. || C_(N-1), 32·N bytes.
        query: e, d integers with Euclidean norm at most B.
        noise: z, N integers of 64 bits.
        top_k: K >= 1.
        selection_commitment: B_sel, 32 bytes.
        proof: the serialised proof.
        allowed: positions that pass the filter, each once; None means all.
        squared_norm: B², of the policy.
        ties: whether the argument is the one that keeps ties (spec 4.6.9).

    Raises:
        ProofRejected: InvalidStatement or MalformedProof where one of these is the reason.
    """
    statement = Statement(
        context=bytes(context),
        rows=index(rows),
        commitments=bytes(commitments),
        query=tuple(index(v) for v in query),
        noise=tuple(index(v) for v in noise),
        top_k=index(top_k),
        selection=bytes(selection_commitment),
        allowed=range(index(rows)) if allowed is None else sorted(index(i) for i in allowed),
        squared_norm=index(squared_norm),
        ties=bool(ties),
    )
    B_sel = decode(statement.selection)
    C_U = [decode(statement.commitment(i)) for i in statement.U]
    transcript = begin(statement)
    reader = ProofReader(bytes(proof), transcript)
    if statement.everything:
        _verify_everything(statement, B_sel, transcript, reader)
    else:
        _verify_boundary(statement, B_sel, C_U, transcript, reader)


def _verify_everything(
    statement: Statement, B_sel: Point, transcript: Transcript, proof: ProofReader
) -> None:
    """Spec 4.6.8: B_sel - sum A_i is a multiple of H that the prover knows."""
    H = generator("H")
    T = proof.point("T")
    c = transcript.scalar("last")
    z = proof.scalar()
    proof.end()
    rest: Terms = [(1, B_sel), *((-1, generator("A", i)) for i in statement.allowed)]
    check_zero([(z, H), (-1, T), *((-c * scalar, point) for scalar, point in rest)], "E3")


def claimed_sum(alpha: list[int], remaining: int) -> int:
    """S_0; ``remaining`` is K - f, ``alpha`` the powers 0 to 7 + W of the challenge alpha."""
    return (alpha[-2] + alpha[-1] * remaining) % ORDER


def summand(
    alpha: list[int],
    M: int,
    chi: int,
    b: int,
    b3: int,
    b4: int,
    u: Sequence[int],
    Y: int,
    ties: bool = False,
) -> int:
    """F at one point, from the values of its factors there (spec 4.6.5, 4.6.9)."""
    # A row at the boundary is the best one left out, or the last one taken; b4 counts what lacks
    # to K rows, or what exceeds them.
    at_boundary, counted = (Y, b - b4) if ties else (Y + 1, b + b4)
    constraints = [b * b - b, b3 * b3 - b3, b4 * b4 - b4]
    constraints += [u_k * u_k - u_k for u_k in u]
    constraints += [b3 * b4]
    constraints += [(b3 + b4) * at_boundary]
    constraints += [(2 * b - 1) * Y - (1 - b) - sum(u_k << k for k, u_k in enumerate(u))]
    sums = alpha[-2] * b3 + alpha[-1] * counted
    return (M * dot(alpha[:-2], constraints) + chi * sums) % ORDER


def row_weights(eq_t: list[int], eq_r: list[int], u: int) -> tuple[int, int]:
    """(M(r), chi(r)): sums over the u rows of U alone, never over the mask row."""
    M = dot(eq_t[:u], eq_r[:u])
    chi = sum(eq_r[:u])
    return M, chi % ORDER


def final_challenges(transcript: Transcript) -> tuple[int, int, int, int]:
    """gamma, theta, x, c_D."""
    gamma = transcript.scalar("gamma")
    theta = transcript.scalar("theta")
    x = transcript.scalar("x")
    return gamma, theta, x, transcript.scalar("schnorr")


def opening_bases(statement: Statement) -> list[Point]:
    """A_U[0..u-1], A*, G_0..G_(d+3), M_0, M_1, R_0..R_3m."""
    rows = [generator("A", i) for i in statement.U]
    coordinates = generators("G", len(statement.query) + 4)
    mask = generators("sel/R", 3 * statement.variables + 1)
    return [*rows, generator("sel/A*"), *coordinates, *generators("sel/M", 2), *mask]


def opening_form(
    query: Sequence[int], eq_r: list[int], u: int, chi: int, mask_form: list[int], theta: int
) -> list[int]:
    """L over :func:`opening_bases`: three blocks, kept apart by powers of theta."""
    columns = [*eq_r[:u], eq_r[-1]]
    rows = [*query, 0, 0, 0, 0, -chi, eq_r[-1]]
    mask = [theta * theta * value % ORDER for value in mask_form]
    return columns + [theta * value % ORDER for value in rows] + mask


def _verify_boundary(
    statement: Statement,
    B_sel: Point,
    C_U: list[Point],
    transcript: Transcript,
    proof: ProofReader,
) -> None:
    """Spec 4.6.4 to 4.6.7; P1, V1, .. are the moves named there."""
    F, U, u, m = statement.F, statement.U, len(statement.U), statement.variables
    count = SELECTED + statement.distance_bits  # of b, b3, b4, u_0..u_(W-1)

    # P1: b3, b4, u_0..u_(W-1); the mask of b; its Schnorr commitment; tau and sigma; the mask g.
    columns = [proof.point("point1") for _ in range(count - 1)]
    D_m, T_D, C_t, C_g = (proof.point("point1") for _ in range(4))
    G_sum = proof.scalar("G")
    # V1
    alpha = powers(transcript.scalar("alpha"), count + 5)
    t = [transcript.scalar("t") for _ in range(m)]
    rho = transcript.scalar("rho")
    # P2
    S_0 = claimed_sum(alpha, statement.top_k - len(F))
    outcome = verify_rounds(transcript, proof, [DEGREE] * m, S_0 + rho * G_sum, rho)
    # P3
    v = [proof.scalar("eval") for _ in range(count)]
    v_Y = proof.scalar("eval")
    # V2, P4
    gamma, theta, x, c_D = final_challenges(transcript)
    z_A, z_H = proof.scalar("zA"), proof.scalar("zH")

    eq_r = eq_table(outcome.point)
    M, chi = row_weights(eq_table(t), eq_r, u)
    v_g = outcome.mask_value(summand(alpha, M, chi, v[0], v[1], v[2], v[3:], v_Y, statement.ties))

    # (E2) The mask of b is on A* and H alone, so Col_0 has the A_U part of B_sel.
    check_zero([(z_A, generator("sel/A*")), (z_H, generator("H")), (-1, T_D), (-c_D, D_m)], "E2")

    # P5, (E1)
    gammas = powers(gamma, count + 2)
    rows_power, mask_power = gammas[count], gammas[count + 1]
    commitment: Terms = [(1, B_sel), (1, D_m)]
    commitment += [(-1, generator("A", i)) for i in F]
    commitment += list(zip(gammas[1:count], columns, strict=True))
    commitment += [(rows_power * eq_i, C_i) for eq_i, C_i in zip(eq_r, C_U, strict=False)]
    commitment += [(rows_power, C_t), (mask_power, C_g)]
    y_rest = v_Y - dot(eq_r[:u], [statement.noise[i] for i in U])
    value = dot(gammas[:count], v)
    value += theta * rows_power * y_rest + theta * theta * mask_power * v_g
    verify_opening(
        transcript,
        proof,
        bases=opening_bases(statement),
        form=opening_form(statement.query, eq_r, u, chi, outcome.mask_form(), theta),
        commitment=commitment,
        x=x,
        value=value % ORDER,
    )
