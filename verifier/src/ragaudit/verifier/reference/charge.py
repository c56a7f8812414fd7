"""The charge argument: exactly the live relevant rows were charged (spec 4.11).

One proof for a group of charge entries of one tenant, version and window. It holds only together
with the index argument for the rows and the budget argument over all charge entries.
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import index
from typing import NamedTuple

from .budget import opening_challenges
from .errors import InvalidStatement
from .field import ORDER, dot, eq_table, le, powers, variables_for
from .generators import generator, generators
from .opening import Terms, verify_opening
from .reader import ProofReader
from .ristretto import IDENTITY, POINT_BYTES, Point, add, decode, encode
from .statement import SQUARED_NORM
from .sumcheck import verify_rounds
from .transcript import Transcript

ARGUMENT = "charge/v1"
DEGREE = 3
MAX_ENTRIES = MAX_USES = 2**16
MAX_ROWS = 2**32 - 1
MAX_SQUARED_NORM = 2**24 - 1  # 4B² < 2^26
ALWAYS = 3  # tables b, c, h


class ChargeEntry(NamedTuple):
    """What is public of one charge entry.

    Attributes:
        context: 32 bytes.
        query: e, d integers.
        threshold: tau, 0 to B²; a row is relevant above it.
        allowed: positions that the filter passes, rising; None for all.
        charged_before: S, the sum of B over the tenant's charge entries with a smaller log index.
        charge: B.
    """

    context: bytes
    query: Sequence[int]
    threshold: int
    allowed: Sequence[int] | None
    charged_before: bytes
    charge: bytes


def verify_charge(
    uses: int,
    commitments: bytes,
    entries: Sequence[ChargeEntry],
    proof: bytes,
    squared_norm: int = SQUARED_NORM,
) -> None:
    """Check that b_(t,i) = 1 iff row i is allowed, scores above tau_t and was charged below M.

    Args:
        uses: M, how often a row may be charged.
        commitments: C_0 || .. || C_(N-1), 32·N bytes.
        entries: T of them, in log order, all of one dimension.
        proof: the serialised proof.
        squared_norm: B², of the policy.

    Raises:
        ProofRejected: InvalidStatement or MalformedProof where one of these is the reason.
    """
    N, M, T, B2 = len(commitments) // POINT_BYTES, index(uses), len(entries), index(squared_norm)
    if not (1 <= T <= MAX_ENTRIES and 1 <= M <= MAX_USES and 1 <= B2 <= MAX_SQUARED_NORM):
        raise InvalidStatement("T and M in 1..2^16 and 1 <= 4B² < 2^26 are needed")
    if len(commitments) != POINT_BYTES * N or not 1 <= N <= MAX_ROWS:
        raise InvalidStatement("there must be 1..2^32-1 commitments")
    d = len(entries[0].query)
    for entry in entries:
        _check(entry, N, d, B2)
    C = [decode(commitments[32 * i : 32 * (i + 1)]) for i in range(N)]
    B = [decode(bytes(entry.charge)) for entry in entries]
    S = [decode(bytes(entry.charged_before)) for entry in entries]
    mx, my = variables_for(T + 1), max(1, variables_for(N))
    Wc = (2 * B2).bit_length()

    transcript = begin(N, d, B2, M, entries, commitments)
    reader = ProofReader(bytes(proof), transcript)
    # P1: of each entry the columns h, u_0..; the mask rows of all tables; Y's; the mask g.
    columns = [[reader.point("point1") for _ in range(Wc + 1)] for _ in entries]
    masks = [reader.point("point1") for _ in range(ALWAYS + Wc)]
    C_m, C_g = reader.point("point1"), reader.point("point1")
    G_sum = reader.scalar("G")
    # V1
    alpha = powers(transcript.scalar("alpha"), Wc + 3)
    eq_t = eq_table([transcript.scalar("t") for _ in range(mx)])
    eq_u = eq_table([transcript.scalar("u") for _ in range(my)])
    rho = transcript.scalar("rho")
    # P2
    degrees = [DEGREE] * (mx + my)
    outcome = verify_rounds(transcript, reader, degrees, rho * G_sum % ORDER, rho)
    eq_x, eq_y = eq_table(outcome.point[:mx]), eq_table(outcome.point[mx:])
    # P3, V2
    v = [reader.scalar("eval") for _ in range(ALWAYS + Wc)]
    v_Y = reader.scalar("eval")
    gamma, theta, x = opening_challenges(transcript)

    inside, everywhere = _weights(entries, N, eq_t, eq_x, eq_u, eq_y)
    v_g = outcome.mask_value(summand(alpha, M, inside, everywhere, v, v_Y))

    # P4, (E1)
    gammas = powers(gamma, ALWAYS + Wc + 2)
    rows_power, mask_power = gammas[ALWAYS + Wc], gammas[ALWAYS + Wc + 1]
    commitment: Terms = []
    for weight, B_t, S_t, drawn in zip(eq_x, B, S, columns, strict=False):
        table: list[Point] = [B_t, S_t, *drawn]
        commitment += [(power * weight, P) for power, P in zip(gammas, table, strict=False)]
    commitment += [(power * mask_weight(eq_x), P) for power, P in zip(gammas, masks, strict=False)]
    commitment += [(rows_power * eq_i, C_i) for eq_i, C_i in zip(eq_y, C, strict=False)]
    commitment += [(rows_power * mask_weight(eq_x), C_m), (mask_power, C_g)]
    taus = sum(weight * entry.threshold for weight, entry in zip(eq_x, entries, strict=False))
    y_rest = v_Y + taus * sum(eq_y[:N])
    value = dot(gammas[: ALWAYS + Wc], v)
    value += theta * rows_power * y_rest + theta * theta * mask_power * v_g
    verify_opening(
        transcript,
        reader,
        bases=bases(N, d, degrees),
        form=form(entries, eq_x, eq_y[:N], d, outcome.mask_form(), theta),
        commitment=commitment,
        x=x,
        value=value % ORDER,
    )


def _check(entry: ChargeEntry, N: int, d: int, B2: int) -> None:
    """Refuse what no proof can be about, before anything of it is serialised."""
    if len(entry.context) != 32:
        raise InvalidStatement("32 bytes of context are needed")
    if not 1 <= len(entry.query) == d < 2**16 or sum(index(e) ** 2 for e in entry.query) > B2:
        raise InvalidStatement("all queries have d entries and a squared norm of at most B²")
    if not 0 <= index(entry.threshold) <= B2:
        raise InvalidStatement("a threshold lies in 0..B²")
    allowed = entry.allowed
    if allowed is not None and (
        any(not 0 <= index(i) < N for i in allowed) or any(a >= b for a, b in pairwise(allowed))
    ):
        raise InvalidStatement("allowed positions are below N, and rise")


def begin(
    N: int, d: int, B2: int, M: int, entries: Sequence[ChargeEntry], commitments: bytes
) -> Transcript:
    """Return the transcript after the statement."""
    transcript = Transcript(ARGUMENT)
    transcript.absorb("shape", le(N, 8) + le(d, 4) + le(B2, 4))
    transcript.absorb("M", le(M, 4))
    transcript.absorb("entries", le(len(entries), 4))
    for entry in entries:
        query = b"".join(int(e).to_bytes(2, "little", signed=True) for e in entry.query)
        transcript.absorb("context", bytes(entry.context))
        transcript.absorb("e", query)
        transcript.absorb("tau", int(entry.threshold).to_bytes(8, "little", signed=True))
        allowed = range(N) if entry.allowed is None else entry.allowed
        transcript.absorb("allowed", b"".join(le(int(i), 4) for i in allowed))
        transcript.absorb("S", bytes(entry.charged_before))
        transcript.absorb("B", bytes(entry.charge))
    transcript.absorb("rows", bytes(commitments))
    return transcript


def _weights(
    entries: Sequence[ChargeEntry],
    N: int,
    eq_t: list[int],
    eq_x: list[int],
    eq_u: list[int],
    eq_y: list[int],
) -> tuple[int, int]:
    """M_in(r) and M_all(r): over allowed places, and over all; never over the mask row."""
    of_rows = [a * b % ORDER for a, b in zip(eq_u[:N], eq_y[:N], strict=True)]
    every = sum(of_rows)
    inside = everywhere = 0
    for weight_t, weight_x, entry in zip(eq_t, eq_x, entries, strict=False):
        weight = weight_t * weight_x
        everywhere += weight * every
        passed = entry.allowed
        inside += weight * (every if passed is None else sum(of_rows[i] for i in passed))
    return inside % ORDER, everywhere % ORDER


def summand(
    alpha: list[int], M: int, inside: int, everywhere: int, v: Sequence[int], Y: int
) -> int:
    """F at one point, from the values of its tables there."""
    b, c, h, *u = v
    q = b + h
    bits = dot(alpha[: len(u)], [u_k * u_k - u_k for u_k in u])
    distance = (2 * q - 1) * Y - q - sum(u_k << k for k, u_k in enumerate(u))
    relevant = alpha[len(u)] * h * (M - c) + alpha[len(u) + 1] * distance
    outside = alpha[len(u) + 2] * b
    return (everywhere * bits + inside * relevant + (everywhere - inside) * outside) % ORDER


def mask_weight(eq_x: Sequence[int]) -> int:
    """The share in P_0 of what is the mask row: of its own, so that it moves no other row."""
    return eq_x[-1]


def bases(N: int, d: int, degrees: list[int]) -> list[Point]:
    """A_0..A_(N-1), G_0..G_(d+3), the mask of Y, R_0, .."""
    rows = [*generators("A", N), *generators("G", d + 4), generator("chg/M")]
    return [*rows, *generators("chg/R", 1 + sum(degrees))]


def form(
    entries: Sequence[ChargeEntry],
    eq_x: list[int],
    eq_rows: list[int],
    d: int,
    mask_form: list[int],
    theta: int,
) -> list[int]:
    """L over :func:`bases`: three blocks, kept apart by powers of theta."""
    query = [
        dot(eq_x[: len(entries)], (int(entry.query[j]) for entry in entries)) for j in range(d)
    ]
    rows = [theta * value % ORDER for value in [*query, 0, 0, 0, 0, 1]]
    return [*eq_rows, *rows, *(theta * theta * value % ORDER for value in mask_form)]


def running_sums(points: bytes, numbers: Sequence[int]) -> list[bytes]:
    """The sum of the points before each of these rising places, encoded."""
    total, upto, sums = IDENTITY, 0, []
    for number in numbers:
        for place in range(upto, number):
            total = add(total, decode(points[POINT_BYTES * place : POINT_BYTES * (place + 1)]))
        upto = max(upto, number)
        sums.append(encode(total))
    return sums
