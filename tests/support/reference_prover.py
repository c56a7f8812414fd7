"""A tiny prover for the tests of the reference verifier, honest or not (spec 4.4 to 4.6).

It runs the moves of the selection argument on *any* assignment of the secret tables, so an attack
is an assignment and not another program. It takes the package of the verifier as an argument and
uses that package's polynomial, forms and challenges: given a mutated copy, it proves the mutated
relation. For tables of a few rows only; its randomness is OS entropy and it hides nothing else.
"""

from __future__ import annotations

import importlib
import secrets
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

BITS = 16


def modules(package: ModuleType) -> SimpleNamespace:
    """The modules of the reference package, or of a mutated copy of it."""
    names = ("field", "ristretto", "generators", "transcript", "selection")
    return SimpleNamespace(
        **{name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    )


def four_squares(total: int) -> tuple[int, int, int, int]:
    """w with sum w² = total, by search (total <= 127²)."""
    for a in range(int(total**0.5) + 1, -1, -1):
        for b in range(min(a, int(max(total - a * a, 0) ** 0.5) + 1), -1, -1):
            rest = total - a * a - b * b
            if rest < 0:
                continue
            for c in range(int(rest**0.5) + 1, -1, -1):
                d2 = rest - c * c
                if d2 >= 0 and round(d2**0.5) ** 2 == d2:
                    return a, b, c, round(d2**0.5)
    raise AssertionError("every natural number is a sum of four squares")


@dataclass
class Index:
    """Committed rows: ``completed`` has d + 4 entries per row."""

    completed: list[list[int]]
    blindings: list[int]
    commitments: bytes


@dataclass
class Assignment:
    """What the prover claims about the rows of U, and where it may lie.

    ``shift`` adds a component on A_U[q] to C_t and the same amount to Y_q: a threshold of its own
    for row q. ``moved`` adds a component on A_U[q] to D_m: the b that is proven is then the A part
    of B_sel plus ``moved``. Both are zero for an honest prover.
    """

    b: list[int]
    b3: list[int]
    b4: list[int]
    tau: int
    shift: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    masks: dict[str, int] = field(default_factory=dict)


def commit_rows(package: ModuleType, rows: list[list[int]]) -> Index:
    """Complete and commit rows of norm at most 127."""
    tools = modules(package)
    completed = [[*row, *four_squares(127**2 - sum(v * v for v in row))] for row in rows]
    blindings = [secrets.randbelow(tools.field.ORDER) for _ in rows]
    encoded = b""
    for row, blinding in zip(completed, blindings, strict=True):
        terms = [(v, tools.generators.generator("G", j)) for j, v in enumerate(row)]
        encoded += tools.ristretto.encode(
            _sum(tools, [*terms, (blinding, tools.generators.generator("H"))])
        )
    return Index(completed, blindings, encoded)


def commit_selection(package: ModuleType, positions: list[int], blinding: int) -> bytes:
    """B_sel of any multiset of positions."""
    tools = modules(package)
    terms = [(1, tools.generators.generator("A", i)) for i in positions]
    return tools.ristretto.encode(
        _sum(tools, [*terms, (blinding, tools.generators.generator("H"))])
    )


def scores(index: Index, query: list[int], noise: list[int]) -> list[int]:
    """y_i = <e, X_i> + z_i."""
    return [
        sum(a * b for a, b in zip(row, query, strict=False)) + z
        for row, z in zip(index.completed, noise, strict=True)
    ]


def select(y: list[int], top_k: int, allowed: list[int]) -> list[int]:
    """T of the specification."""
    if len(allowed) <= top_k:
        return list(allowed)
    boundary = sorted((y[i] for i in allowed), reverse=True)[top_k]
    return [i for i in allowed if y[i] > boundary]


def honest_assignment(statement: Any, y: list[int]) -> Assignment:
    """The values of spec 4.6.2 for the statement's own T."""
    boundary = sorted((y[i] for i in statement.allowed), reverse=True)[statement.top_k]
    b = [int(y[i] > boundary) for i in statement.U]
    tied = [q for q, i in enumerate(statement.U) if y[i] == boundary]
    more = statement.top_k - len(statement.F) - sum(b)
    return Assignment(
        b=b,
        b3=[int(q == tied[0]) for q in range(len(b))],
        b4=[int(q in tied[1 : 1 + more]) for q in range(len(b))],
        tau=boundary + 1,
    )


def prove_everything(package: ModuleType, statement: Any, blinding: int) -> bytes:
    """The proof of selection-all: B_sel - sum A_i = blinding·H."""
    tools = modules(package)
    transcript = tools.selection.begin(statement)
    t = secrets.randbelow(tools.field.ORDER)
    T = tools.ristretto.encode(_sum(tools, [(t, tools.generators.generator("H"))]))
    transcript.absorb("T", T)
    c = transcript.scalar("last")
    return T + tools.field.le((t + c * blinding) % tools.field.ORDER, 32)


def prove_boundary(
    package: ModuleType, statement: Any, index: Index, assignment: Assignment, blinding: int
) -> bytes:
    """Run the selection argument on ``assignment``; nothing checks that it is true."""
    return _Boundary(modules(package), statement, index, assignment, blinding).prove()


def _sum(tools: SimpleNamespace, terms: list[tuple[int, Any]]) -> Any:
    order = tools.field.ORDER
    return tools.ristretto.multiscalar((scalar % order, point) for scalar, point in terms)


def _times(tools: SimpleNamespace, scalar: int, point: Any) -> Any:
    result = tools.ristretto.IDENTITY
    if point == result:  # padding
        return point
    for bit in f"{scalar:b}":
        result = tools.ristretto.add(result, result)
        if bit == "1":
            result = tools.ristretto.add(result, point)
    return result


@dataclass
class Mask:
    """g(v) = a_0 + sum a_(k,e) v_k^e, summed over the cube while variables get bound."""

    coefficients: list[int]
    degrees: list[int]
    order: int

    def __post_init__(self) -> None:
        rest = iter(self.coefficients[1:])
        self.own = [[next(rest) for _ in range(degree)] for degree in self.degrees]
        self.bound = self.coefficients[0]

    def total(self) -> int:
        n = len(self.degrees)
        return (1 << n) * self.coefficients[0] + (1 << n - 1) * sum(self.coefficients[1:])

    def at(self, k: int, X: int) -> int:
        """Sum over the variables after k, variable k at X, the earlier ones bound."""
        left = len(self.degrees) - k - 1
        value = self.bound + sum(c * X**e for e, c in enumerate(self.own[k], start=1))
        later = sum(c for own in self.own[k + 1 :] for c in own)
        return (1 << left) * value + ((1 << left - 1) * later if left else 0)

    def bind(self, k: int, r_k: int) -> None:
        self.bound += sum(c * r_k**e for e, c in enumerate(self.own[k], start=1))
        self.bound %= self.order


class Moves:
    """What both provers do: send, run a masked sumcheck's mask, open."""

    def __init__(self, tools: SimpleNamespace, transcript: Any) -> None:
        self.tools, self.transcript = tools, transcript
        self.order: int = tools.field.ORDER
        self.proof = b""

    def random(self) -> int:
        return secrets.randbelow(self.order)

    def send(self, tag: str | None, data: bytes) -> None:
        if tag is not None:
            self.transcript.absorb(tag, data)
        self.proof += data

    def send_point(self, tag: str, terms: list[tuple[int, Any]]) -> None:
        self.send(tag, self.tools.ristretto.encode(_sum(self.tools, terms)))

    def send_scalar(self, tag: str | None, value: int) -> None:
        self.send(tag, self.tools.field.le(value % self.order, 32))

    def send_round(self, values: list[int]) -> int:
        """Send the polynomial with these values at 0, 1, ..; returns the challenge."""
        coefficients = self._interpolate(values)
        for j, coefficient in enumerate(coefficients):
            if j != 1:
                self.send_scalar("round", coefficient)
        return int(self.transcript.scalar("point"))

    def _interpolate(self, values: list[int]) -> list[int]:
        """Coefficients of the polynomial with these values at 0, 1, 2 and perhaps 3."""
        y0, y1, y2, *rest = values
        sixth = pow(6, -1, self.order)
        c3 = (rest[0] - 3 * y2 + 3 * y1 - y0) * sixth if rest else 0
        c2 = (y2 - 2 * y1 + y0) * 3 * sixth - 3 * c3
        return [v % self.order for v in (y0, y1 - y0 - c2 - c3, c2, c3)][: len(values)]

    def fold(self, table: list[int], X: int) -> list[int]:
        middle = len(table) // 2
        pairs = zip(table[:middle], table[middle:], strict=True)
        return [(low + X * (high - low)) % self.order for low, high in pairs]

    def open(self, g: list[Any], L: list[int], a: list[int], rho: int, x: int) -> None:
        tools, order = self.tools, self.order
        Q, H = tools.generators.generator("Q"), tools.generators.generator("H")
        size = 1 << max(1, tools.field.variables_for(len(g)))
        missing = size - len(g)
        g = [*g, *[tools.ristretto.IDENTITY] * missing]
        L, a = [*L, *[0] * missing], [*a, *[0] * missing]
        dot = tools.field.dot
        while size > 1:
            size //= 2
            lam, mu = self.random(), self.random()
            for part, bases, form, blind in (
                (a[:size], g[size:], L[size:], lam),
                (a[size:], g[:size], L[:size], mu),
            ):
                terms = [*zip(part, bases, strict=True), (x * dot(part, form), Q), (blind, H)]
                self.send_point("L" if blind is lam else "R", terms)
            c = self.transcript.scalar("fold")
            inverse = tools.field.inverse(c)
            halves = range(size)
            a = [(a[i] + inverse * a[size + i]) % order for i in halves]
            L = [(L[i] + c * L[size + i]) % order for i in halves]
            g = [tools.ristretto.add(g[i], _times(tools, c, g[size + i])) for i in halves]
            rho = (rho + c * lam + inverse * mu) % order
        s, t = self.random(), self.random()
        self.send_point("T", [(s, g[0]), (s * L[0] * x, Q), (t, H)])
        c = self.transcript.scalar("last")
        self.send_scalar(None, s + c * a[0])
        self.send_scalar(None, t + c * rho)


class _Boundary(Moves):
    def __init__(
        self, tools: SimpleNamespace, statement: Any, index: Index, given: Assignment, blinding: int
    ) -> None:
        super().__init__(tools, tools.selection.begin(statement))
        self.statement, self.index, self.given = statement, index, given
        self.u, self.m = len(statement.U), statement.variables
        self.size = 1 << self.m
        self.rho_sel = blinding
        generator = tools.generators.generator
        self.A = [generator("A", i) for i in statement.U]
        self.A_star, self.H = generator("sel/A*"), generator("H")
        self.shift = given.shift or [0] * self.u
        self.moved = given.moved or [0] * self.u

    def column_values(self) -> list[list[int]]:
        """b, b3, b4, u_0..u_15 over the rows of U."""
        given = self.given
        bits: list[list[int]] = [[] for _ in range(BITS)]
        for q, Y in enumerate(self.threshold_distances()):
            value = Y if given.b[q] else -1 - Y
            for k in range(BITS):
                bits[k].append(value >> k & 1)
        return [given.b, given.b3, given.b4, *bits]

    def threshold_distances(self) -> list[int]:
        """Y_q as integers."""
        y = scores(self.index, list(self.statement.query), list(self.statement.noise))
        return [y[i] - self.given.tau + self.shift[q] for q, i in enumerate(self.statement.U)]

    def prove(self) -> bytes:
        selection, statement, m = self.tools.selection, self.statement, self.m
        names = ["b", "b3", "b4", *(f"u{k}" for k in range(BITS))]
        columns = self.column_values()
        masks = [self.given.masks.get(name, self.random()) for name in names]
        blinds = [self.random() for _ in names]
        Y_mask = self.given.masks.get("Y", self.random())
        unit = [0] * (self.size - 1) + [1]
        _, chi_on_mask_row = selection.row_weights(unit, unit, self.u)
        sigma = Y_mask + chi_on_mask_row * self.given.tau
        r_t, r_g, s1, s2 = (self.random() for _ in range(4))
        a = [self.random() for _ in range(3 * m + 1)]

        # P1
        for column, mask, blind in list(zip(columns, masks, blinds, strict=True))[1:]:
            terms = list(zip(column, self.A, strict=True))
            self.send_point("point1", [*terms, (mask, self.A_star), (blind, self.H)])
        moved = list(zip(self.moved, self.A, strict=True))
        self.send_point("point1", [*moved, (masks[0], self.A_star), (blinds[0], self.H)])
        self.send_point("point1", [(s1, self.A_star), (s2, self.H)])
        M_0, M_1 = self.tools.generators.generators("sel/M", 2)
        shift = list(zip(self.shift, self.A, strict=True))
        self.send_point("point1", [*shift, (self.given.tau, M_0), (sigma, M_1), (r_t, self.H)])
        R = self.tools.generators.generators("sel/R", 3 * m + 1)
        self.send_point("point1", [*zip(a, R, strict=True), (r_g, self.H)])
        mask = Mask(a, [3] * m, self.order)
        self.send_scalar("G", mask.total())

        # V1
        alpha = self.tools.field.powers(self.transcript.scalar("alpha"), 24)
        eq_t = self.tools.field.eq_table([self.transcript.scalar("t") for _ in range(m)])
        rho = self.transcript.scalar("rho")

        # P2, P3
        tables = [self._table(c, mask) for c, mask in zip(columns, masks, strict=True)]
        tables.append(self._table(self.threshold_distances(), Y_mask))
        units = [[int(i == j) for j in range(self.size)] for i in range(self.size)]
        weights = [selection.row_weights(eq_t, row, self.u) for row in units]
        tables += [[M for M, _ in weights], [chi for _, chi in weights]]
        r, values = self._sumcheck(alpha, rho, mask, tables)
        for value in values[:20]:
            self.send_scalar("eval", value)

        # V2, P4
        gamma, theta, x, c_D = selection.final_challenges(self.transcript)
        self.send_scalar("zA", s1 + c_D * masks[0])
        self.send_scalar("zH", s2 + c_D * blinds[0])

        # P5
        eq_r = self.tools.field.eq_table(r)
        chi = selection.row_weights(eq_t, eq_r, self.u)[1]
        gammas = self.tools.field.powers(gamma, 21)
        rows = [self.index.completed[i] for i in statement.U]
        row_blinds = [self.index.blindings[i] for i in statement.U]
        dot = self.tools.field.dot
        block1 = [
            dot(gammas[:19], [column[q] for column in columns]) + gammas[19] * self.shift[q]
            for q in range(self.u)
        ]
        block1.append(dot(gammas[:19], masks))
        block2 = [
            gammas[19] * dot(eq_r[: self.u], [row[j] for row in rows]) for j in range(len(rows[0]))
        ]
        block2 += [gammas[19] * self.given.tau, gammas[19] * sigma]
        witness = [v % self.order for v in (*block1, *block2, *(gammas[20] * v for v in a))]
        total = self.rho_sel + dot(gammas[:19], blinds)
        total += gammas[19] * (dot(eq_r[: self.u], row_blinds) + r_t) + gammas[20] * r_g
        mask_form = [1] + [pow(r_k, e, self.order) for r_k in r for e in (1, 2, 3)]
        form = selection.opening_form(statement.query, eq_r, self.u, chi, mask_form, theta)
        self.open(selection.opening_bases(statement), form, witness, total % self.order, x)
        return self.proof

    def _table(self, column: list[int], mask: int) -> list[int]:
        values = [v % self.order for v in column]
        return values + [0] * (self.size - 1 - self.u) + [mask % self.order]

    def _sumcheck(
        self, alpha: list[int], rho: int, mask: Mask, tables: list[list[int]]
    ) -> tuple[list[int], list[int]]:
        r: list[int] = []
        for k in range(self.m):
            values = []
            for X in range(4):
                half = [self.fold(table, X) for table in tables]
                value = sum(self._summand(alpha, row) for row in zip(*half, strict=True))
                values.append((value + rho * mask.at(k, X)) % self.order)
            r.append(self.send_round(values))
            mask.bind(k, r[-1])
            tables = [self.fold(table, r[-1]) for table in tables]
        return r, [table[0] for table in tables]

    def _summand(self, alpha: list[int], row: tuple[int, ...]) -> int:
        b, b3, b4, *bits, Y, M, chi = row
        return int(self.tools.selection.summand(alpha, M, chi, b, b3, b4, bits, Y))
