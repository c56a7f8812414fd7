"""A tiny prover of the budget argument (spec 4.10); it runs on any charges.

It takes the package of the verifier as an argument and proves that package's relation: given a
mutated copy, the mutated one. What is claimed of a commitment need not be what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from ragaudit.lab.attacks.forging.moves import Mask, Moves, modules, weighted_sum

DEGREE: Final = 3

Tables = dict[str, list[int]]


@dataclass(frozen=True)
class Budget:
    """What a prover commits to, and what it says of it.

    Attributes:
        rows: N.
        uses: M.
        charges: b_t, R rows of N integers: the A-parts of the B_t.
        vectors: w_k, M rows of N integers: the A-parts of the W_k.
        claimed: the R + M rows of the sumcheck's table, of all 2^my columns; None: the committed
            ones, and 0 beyond N.
        elsewhere: what the table holds in every other row, the mask row among them.
        stray: what commitments hold besides, by name ("B_0", "W_0", "C_m", "C_g"): the coefficient
            of each generator, numbered as in the opening's basis.
        masked: whether the mask row has a random value; without, the proof hides less.
        context: 32 bytes.
    """

    rows: int
    uses: int
    charges: list[list[int]]
    vectors: list[list[int]]
    claimed: list[list[int]] | None = None
    elsewhere: Sequence[int] = ()
    stray: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    masked: bool = True
    context: bytes = bytes(range(32))


def honest(rows: int, uses: int, charges: list[list[int]]) -> Budget:
    """Return what an honest prover commits to for these charges, R rows of N bits."""
    counts = [sum(column) for column in zip(*charges, strict=True)]
    vectors = [[int(count > k) for count in counts] for k in range(uses)]
    return Budget(rows, uses, charges, vectors)


def sumcheck(
    moves: Moves,
    tables: Tables,
    value: Callable[[dict[str, int]], int],
    mask: Mask,
    rho: int,
) -> tuple[list[int], dict[str, int]]:
    """Send the rounds for the sum of ``value`` over the cube; return r and the tables there.

    Args:
        moves: that have absorbed everything before P2.
        tables: by name, of one length.
        value: F at a point, from what the tables are there.
        mask: g, with the degrees of the variables.
        rho: the challenge that mixes it in.
    """
    point = []
    for k in range(len(mask.degrees)):
        values = []
        for X in range(DEGREE + 1):
            folded = {name: moves.fold(table, X) for name, table in tables.items()}
            columns = zip(*folded.values(), strict=True)
            total = sum(value(dict(zip(folded, column, strict=True))) for column in columns)
            values.append((total + rho * mask.at(k, X)) % moves.order)
        r_k = moves.send_round(values)
        mask.bind(k, r_k)
        tables = {name: moves.fold(table, r_k) for name, table in tables.items()}
        point.append(r_k)
    return point, {name: table[0] for name, table in tables.items()}


def prove_budget(package: ModuleType, budget: Budget) -> tuple[list[bytes], bytes]:
    """Return B_0, .., B_(R-1) and the proof.

    Args:
        package: the reference package or a mutated copy.
        budget: what is committed to and claimed.
    """
    tools = modules(package)
    budgets, order = tools.budget, tools.field.ORDER
    N, M, R = budget.rows, budget.uses, len(budget.charges)
    mx, my = tools.field.variables_for(R + M + 1), max(1, tools.field.variables_for(N))
    degrees = [DEGREE] * (mx + my)
    bases = budgets.opening_bases(N, degrees)
    H = tools.generators.generator("H")
    hidden: dict[str, int] = {}

    def terms(name: str, parts: Sequence[int]) -> list[tuple[int, Any]]:
        moved = budget.stray.get(name, {})
        hidden[name] = moves.random()
        held = {**dict(enumerate(parts)), **{at: 0 for at in moved if at >= len(parts)}}
        found = [(value + moved.get(at, 0), bases[at]) for at, value in held.items()]
        return [*found, (hidden[name], H)]

    transcript = tools.transcript.Transcript(budgets.ARGUMENT)
    moves = Moves(tools, transcript)
    points = [weighted_sum(tools, terms(f"B_{t}", b)) for t, b in enumerate(budget.charges)]
    charges = [tools.ristretto.encode(point) for point in points]
    budgets.absorb_statement(transcript, budget.context, N, M, charges, 127**2)

    # P1
    for k, w in enumerate(budget.vectors):
        moves.send_point("point1", terms(f"W_{k}", w))
    sigma = moves.random() if budget.masked else 0
    moves.send_point("point1", terms("C_m", [sigma]))
    mask = Mask([moves.random() for _ in range(1 + sum(degrees))], degrees, order)
    # bud/R stands after A_0 .. A_(N-1).
    moves.send_point("point1", terms("C_g", [*[0] * N, *mask.coefficients]))
    s = moves.random()
    moves.send_point("point1", [(s, H)])
    moves.send_scalar("G", mask.total())
    # V1
    eq_t = tools.field.eq_table([transcript.scalar("t") for _ in range(mx)])
    eq_u = tools.field.eq_table([transcript.scalar("u") for _ in range(my)])
    rho = transcript.scalar("rho")

    # P2
    width = 1 << my
    padded = [[*row, *[0] * (width - N)] for row in [*budget.charges, *budget.vectors]]
    rows = padded if budget.claimed is None else budget.claimed
    rest = [*budget.elsewhere, *[0] * (width - len(budget.elsewhere))]
    table = [*rows, *[rest] * ((1 << mx) - R - M)]
    table[-1] = [table[-1][0] + sigma, *table[-1][1:]]
    spread_x, spread_y = budgets.spread(eq_t, R, M), budgets.spread(eq_u, N, 0)
    weights = [a * b % order for a in spread_x for b in spread_y]
    tables = {"b": [value for row in table for value in row], "weight": weights}
    point, at = sumcheck(
        moves, tables, lambda v: int(budgets.summand(v["weight"], v["b"])), mask, rho
    )
    # P3, V2
    v = at["b"]
    moves.send_scalar("eval", v)
    gamma, theta, x = budgets.opening_challenges(transcript)
    c = transcript.scalar("schnorr")
    # P4
    held = sum(hidden[f"B_{t}"] for t in range(R)) - sum(hidden[f"W_{k}"] for k in range(M))
    moves.send_scalar("z", s + c * held)

    # P5: what each commitment holds, with its weight in P_0.
    eq_x, eq_y = tools.field.eq_table(point[:mx]), tools.field.eq_table(point[mx:])
    form = budgets.opening_form(eq_y, N, mask_form(tools, degrees, point), theta)
    held_parts = {f"B_{t}": [*b] for t, b in enumerate(budget.charges)}
    held_parts |= {f"W_{k}": [*w] for k, w in enumerate(budget.vectors)}
    held_parts |= {"C_m": [sigma], "C_g": [*[0] * N, *mask.coefficients]}
    names = [*(f"B_{t}" for t in range(R)), *(f"W_{k}" for k in range(M)), "C_m", "C_g"]
    shares = budgets.opening_weights(eq_x, R + M, gamma)
    vector, blinding = [0] * len(bases), 0
    for name, weight in zip(names, shares, strict=True):
        for i, value in [*enumerate(held_parts[name]), *budget.stray.get(name, {}).items()]:
            vector[i] = (vector[i] + weight * value) % order
        blinding += weight * hidden[name]
    moves.open(bases, form, vector, blinding % order, x)
    return charges, moves.proof


def mask_form(tools: Any, degrees: list[int], point: list[int]) -> list[int]:
    """Return mask(r): (1, r_1, .., r_1^deg_1, r_2, ..)."""
    form = [1]
    for r_k, degree in zip(point, degrees, strict=True):
        form += tools.field.powers(r_k, degree, start=r_k)
    return form
