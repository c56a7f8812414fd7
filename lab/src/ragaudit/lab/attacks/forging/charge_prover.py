"""Tiny provers of the budget argument (spec 4.10) and of the charge argument (spec 4.11).

They run on any charges. Each takes the package of the verifier as an argument and proves that
package's relation: given a mutated copy, the mutated one. What is claimed of a commitment need not
be what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from ragaudit.lab.attacks.forging.moves import Mask, Moves, modules, weighted_sum

DEGREE: Final = 3


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
    flat = [value for row in table for value in row]
    point, (_, v) = moves.sumcheck([weights, flat], budgets.summand, mask, rho)
    # P3, V2
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


SQUARED_NORM = 127**2
BITS = (2 * SQUARED_NORM).bit_length()


@dataclass(frozen=True)
class Charge:
    """One charge entry: what a prover commits to, and what it says of it.

    Attributes:
        rows: N completed rows of d + 4 integers.
        query: e, d integers.
        threshold: tau.
        uses: M.
        before: c, N integers: the A-part of S.
        charge: b, N integers: the A-part of B.
        exhausted: h, N integers.
        distances: what the u_k encode, N lists of Wc integers, lowest first.
        allowed: positions that the filter passes; None for all.
        claimed: tables of the sumcheck that differ from the committed ones, by name ("b", "h"):
            2^my integers.
        shift: what Y is claimed to be more everywhere, the mask row included.
        stray: what commitments hold besides, by name ("B", "C_m"): the coefficient of each
            generator, numbered as in the opening's basis.
        masked: whether mask rows have random values.
        context: 32 bytes.
    """

    rows: list[list[int]]
    query: list[int]
    threshold: int
    uses: int
    before: list[int]
    charge: list[int]
    exhausted: list[int]
    distances: list[list[int]]
    allowed: list[int] | None = None
    claimed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shift: int = 0
    stray: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    masked: bool = True
    context: bytes = bytes(range(32))

    @property
    def scores(self) -> list[int]:
        """Return <e, X_i> of every row."""
        return [sum(e * x for e, x in zip(self.query, row, strict=False)) for row in self.rows]


def bits_of(value: int) -> list[int]:
    """Return the Wc bits of a distance, lowest first; of one that is none, all of it in the first.

    Args:
        value: of 0 to 2B², or not.
    """
    if 0 <= value < 1 << BITS:
        return [value >> k & 1 for k in range(BITS)]
    return [value, *[0] * (BITS - 1)]


def stating(
    rows: list[list[int]], query: list[int], threshold: int, uses: int, before: list[int],
    charge: list[int], exhausted: list[int], allowed: list[int] | None = None, shift: int = 0,
) -> Charge:  # fmt: skip
    """Return a charge with the distances that its b and h ask for, which may be no distances.

    Args:
        rows, query, threshold, uses, before, charge, exhausted, allowed, shift: see `Charge`.
    """
    entry = Charge(
        rows, query, threshold, uses, before, charge, exhausted, [], allowed, shift=shift
    )
    wanted = []
    for i, score in enumerate(entry.scores):
        difference = score - threshold + shift
        passes = allowed is None or i in allowed
        asked = difference - 1 if charge[i] + exhausted[i] else -difference
        wanted.append(bits_of(asked if passes else 0))
    return Charge(
        rows, query, threshold, uses, before, charge, exhausted, wanted, allowed, shift=shift
    )


def prove_charge(package: ModuleType, entry: Charge) -> tuple[bytes, Any, bytes]:
    """Return C_0 || .. || C_(N-1), the public entry and the proof.

    Args:
        package: the reference package or a mutated copy.
        entry: what is committed to and claimed.
    """
    tools = modules(package)
    charges, order, encode = tools.charge, tools.field.ORDER, tools.ristretto.encode
    N, d = len(entry.rows), len(entry.query)
    mx, my = 1, max(1, tools.field.variables_for(N))
    degrees = [DEGREE] * (mx + my)
    bases = charges.bases(N, d, degrees)
    width, last = N + d + 4, N + d + 5  # chg/M, chg/R_0
    transcript = tools.transcript.Transcript("none")
    moves = Moves(tools, transcript)
    # By name: what it holds on the opening's basis, and the multiple of H.
    held: dict[str, tuple[dict[int, int], int]] = {}

    def hold(name: str, parts: Mapping[int, int]) -> list[tuple[int, Any]]:
        moved = {**parts}
        for at, more in entry.stray.get(name, {}).items():
            moved[at] = moved.get(at, 0) + more
        held[name] = (moved, moves.random())
        H = tools.generators.generator("H")
        return [*((value, bases[at]) for at, value in moved.items()), (held[name][1], H)]

    def point(name: str, parts: Mapping[int, int]) -> bytes:
        return bytes(encode(weighted_sum(tools, hold(name, parts))))

    C = b"".join(
        point(f"C_{i}", {N + j: value for j, value in enumerate(row)})
        for i, row in enumerate(entry.rows)
    )
    before, charge = (
        point(name, dict(enumerate(parts)))
        for name, parts in (("S", entry.before), ("B", entry.charge))
    )
    public = charges.ChargeEntry(
        entry.context, entry.query, entry.threshold, entry.allowed, before, charge
    )
    transcript = charges.begin(N, d, SQUARED_NORM, entry.uses, [public], C)
    moves.transcript = transcript

    # P1
    names = ["b", "c", "h", *(f"u_{k}" for k in range(BITS))]
    columns = dict(zip(names[:3], (entry.charge, entry.before, entry.exhausted), strict=True))
    for k in range(BITS):
        columns[f"u_{k}"] = [bits[k] for bits in entry.distances]
    for name in names[2:]:
        moves.send_point("point1", hold(name, dict(enumerate(columns[name]))))
    masks = {name: moves.random() if entry.masked else 0 for name in names}
    for name in names:
        moves.send_point("point1", hold(f"mask {name}", {0: masks[name]}))
    sigma = moves.random() if entry.masked else 0
    moves.send_point("point1", hold("C_m", {width: sigma}))
    mask = Mask([moves.random() for _ in range(1 + sum(degrees))], degrees, order)
    moves.send_point("point1", hold("C_g", {last + j: a for j, a in enumerate(mask.coefficients)}))
    moves.send_scalar("G", mask.total())
    # V1
    alpha = tools.field.powers(transcript.scalar("alpha"), BITS + 3)
    eq_t = tools.field.eq_table([transcript.scalar("t") for _ in range(mx)])
    eq_u = tools.field.eq_table([transcript.scalar("u") for _ in range(my)])
    rho = transcript.scalar("rho")

    # P2: row 0 of the cube is the entry, row 1 the mask row.
    pads = [0] * ((1 << my) - N)
    tables = {}
    for name in names:
        real = list(entry.claimed.get(name, [*columns[name], *pads]))
        tables[name] = [*real, masks[name], *[0] * ((1 << my) - 1)]
    real = [score - entry.threshold + entry.shift for score in entry.scores]
    tables["Y"] = [*real, *[entry.shift] * len(pads), *[sigma + entry.shift] * (1 << my)]
    allowed = range(N) if entry.allowed is None else entry.allowed
    weight = [eq_t[0] * eq_u[i] % order if i < N else 0 for i in range(1 << my)]
    nothing = [0] * (1 << my)
    tables["all"] = [*weight, *nothing]
    tables["in"] = [*(w if i in allowed else 0 for i, w in enumerate(weight)), *nothing]

    def value(*row: int) -> int:
        at = dict(zip(tables, row, strict=True))
        found = [at[name] for name in names]
        return int(charges.summand(alpha, entry.uses, at["in"], at["all"], found, at["Y"]))

    r, folded = moves.sumcheck([*tables.values()], value, mask, rho)
    at = dict(zip(tables, folded, strict=True))
    # P3, V2
    for name in [*names, "Y"]:
        moves.send_scalar("eval", at[name])
    gamma, theta, x = tools.budget.opening_challenges(transcript)

    # P4
    eq_x, eq_y = tools.field.eq_table(r[:mx]), tools.field.eq_table(r[mx:])
    powers = tools.field.powers(gamma, len(names) + 2)
    of_mask = charges.mask_weight(eq_x)
    shares = {"B": powers[0] * eq_x[0], "S": powers[1] * eq_x[0]}
    shares |= {name: powers[j] * eq_x[0] for j, name in enumerate(names) if j >= 2}
    shares |= {f"mask {name}": powers[j] * of_mask for j, name in enumerate(names)}
    shares |= {f"C_{i}": powers[-2] * eq_y[i] for i in range(N)}
    shares |= {"C_m": powers[-2] * of_mask, "C_g": powers[-1]}
    vector, blinding = [0] * len(bases), 0
    for name, share in shares.items():
        parts, hidden = held[name]
        for place, part in parts.items():
            vector[place] = (vector[place] + share * part) % order
        blinding += share * hidden
    form = charges.form([public], eq_x, eq_y[:N], d, mask_form(tools, degrees, r), theta)
    moves.open(bases, form, vector, blinding % order, x)
    return C, public, moves.proof
