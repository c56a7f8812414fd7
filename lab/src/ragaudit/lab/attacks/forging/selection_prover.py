"""A tiny prover of the selection argument, honest or not (spec 4.4 to 4.6).

It runs the moves of the selection argument on *any* assignment of the secret tables, so an attack
is an assignment and not another program. It takes the package of the verifier as an argument and
uses that package's polynomial, forms and challenges: given a mutated copy, it proves the mutated
relation. For tables of a few rows only; its randomness is OS entropy and it hides nothing else.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

from ragaudit.circuits.statements import SelectionStatement
from ragaudit.lab.attacks.forging.moves import Mask, Moves, modules, weighted_sum
from ragaudit.verifier.reference.statement import Statement

# W of spec 4.1.2 for B = 127: distances to the threshold lie in 0..4B² < 2^16.
BITS = 16


def four_squares(total: int) -> tuple[int, int, int, int]:
    """Return four integers >= 0 whose squares sum to ``total``, by search (0 <= total <= 127²)."""
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
    """Committed rows.

    Attributes:
        completed: N rows of d + 4 integers.
        blindings: rho_i.
        commitments: C_0 || .. || C_(N-1).
    """

    completed: list[list[int]]
    blindings: list[int]
    commitments: bytes


@dataclass
class Assignment:
    """What the prover claims about the rows of U, and where it may lie (spec 4.6.2, 4.6.4).

    All but the first four are zero or empty for an honest prover.

    Attributes:
        b, b3, b4: the tables, one entry for each row of U.
        tau: the threshold.
        shift: a component on A_U[q] of C_t, and the same amount on Y_q: a threshold of its own for
            row q.
        moved: a component on A_U[q] of D_m: the b that is proven is then the A part of B_sel plus
            ``moved``.
        lift: a vector on G_0.. in C_t: it adds <lift, e> to *every* Y, and ``tau`` must have it
            too.
        masks: values of mask rows, by the table's name ("b", "u0", "Y", ...), that are not random.
    """

    b: list[int]
    b3: list[int]
    b4: list[int]
    tau: int
    shift: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    lift: list[int] = field(default_factory=list)
    masks: dict[str, int] = field(default_factory=dict)


def reference_statement(statement: SelectionStatement) -> Statement:
    """Return the statement as the reference verifier reads it, with what it derives."""
    allowed = range(statement.rows) if statement.allowed is None else sorted(statement.allowed)
    return Statement(
        context=statement.context,
        rows=statement.rows,
        commitments=statement.commitments,
        query=tuple(statement.query.tolist()),
        noise=tuple(statement.noise.tolist()),
        top_k=statement.top_k,
        selection=statement.selection_commitment,
        allowed=allowed,
    )


def commit_rows(package: ModuleType, rows: list[list[int]]) -> Index:
    """Complete and commit rows.

    Args:
        package: the reference package or a mutated copy.
        rows: N rows of d integers, each of norm at most 127.
    """
    tools = modules(package)
    completed = [[*row, *four_squares(127**2 - sum(v * v for v in row))] for row in rows]
    blindings = [secrets.randbelow(tools.field.ORDER) for _ in rows]
    encoded = b""
    for row, blinding in zip(completed, blindings, strict=True):
        terms = [(v, tools.generators.generator("G", j)) for j, v in enumerate(row)]
        encoded += tools.ristretto.encode(
            weighted_sum(tools, [*terms, (blinding, tools.generators.generator("H"))])
        )
    return Index(completed, blindings, encoded)


def commit_selection(package: ModuleType, positions: list[int], blinding: int) -> bytes:
    """Return B_sel of any multiset of positions.

    Args:
        package: the reference package or a mutated copy.
        positions: any, also repeated or beyond the index.
        blinding: rho_sel.
    """
    tools = modules(package)
    terms = [(1, tools.generators.generator("A", i)) for i in positions]
    return bytes(
        tools.ristretto.encode(
            weighted_sum(tools, [*terms, (blinding, tools.generators.generator("H"))])
        )
    )


def scores(index: Index, query: list[int], noise: list[int]) -> list[int]:
    """Return y_i = <e, X_i> + z_i of every row, as exact integers.

    Args:
        index: its rows are completed; the last four entries of each meet no entry of ``query``.
        query: e, d integers.
        noise: z, N integers.
    """
    return [
        sum(a * b for a, b in zip(row, query, strict=False)) + z
        for row, z in zip(index.completed, noise, strict=True)
    ]


def select(y: list[int], top_k: int, allowed: list[int]) -> list[int]:
    """Return T (spec 4.6.1), in the order of ``allowed``.

    Args:
        y: noised scores of all rows.
        top_k: K.
        allowed: positions, rising.
    """
    if len(allowed) <= top_k:
        return list(allowed)
    boundary = sorted((y[i] for i in allowed), reverse=True)[top_k]
    return [i for i in allowed if y[i] > boundary]


def honest_assignment(statement: Any, y: list[int]) -> Assignment:
    """Return the values of spec 4.6.2 for the statement's own T.

    Args:
        statement: of the reference verifier, with U, F and more than K allowed positions.
        y: noised scores of all rows; false ones give the tables of a lie.
    """
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
    """Return the proof of selection-all (spec 4.6.8): B_sel - sum A_i = blinding·H.

    Args:
        package: the reference package or a mutated copy.
        statement: with at most K allowed positions.
        blinding: rho_sel.
    """
    tools = modules(package)
    transcript = tools.selection.begin(statement)
    t = secrets.randbelow(tools.field.ORDER)
    T = tools.ristretto.encode(weighted_sum(tools, [(t, tools.generators.generator("H"))]))
    transcript.absorb("T", T)
    c = transcript.scalar("last")
    return bytes(T) + bytes(tools.field.le((t + c * blinding) % tools.field.ORDER, 32))


def prove_boundary(
    package: ModuleType, statement: Any, index: Index, assignment: Assignment, blinding: int
) -> bytes:
    """Run the selection argument (spec 4.6.4 to 4.6.7); nothing checks that the claim is true.

    Args:
        package: the reference package or a mutated copy.
        statement: with more than K allowed positions.
        index: rows and blindings that open the statement's commitments, or do not.
        assignment: the secret tables.
        blinding: rho_sel.
    """
    return _Boundary(modules(package), statement, index, assignment, blinding).prove()


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
        self.lift = given.lift or [0] * len(index.completed[0])
        self.lifted = sum(h * e for h, e in zip(self.lift, statement.query, strict=False))

    def column_values(self) -> list[list[int]]:
        """Return b, b3, b4, u_0..u_15 over the rows of U."""
        given = self.given
        bits: list[list[int]] = [[] for _ in range(BITS)]
        for q, Y in enumerate(self.threshold_distances()):
            value = Y if given.b[q] else -1 - Y
            for k in range(BITS):
                bits[k].append(value >> k & 1)
        return [given.b, given.b3, given.b4, *bits]

    def threshold_distances(self) -> list[int]:
        """Return Y_q as integers, with the claimed shifts and lift."""
        y = scores(self.index, list(self.statement.query), list(self.statement.noise))
        lifted = self.lifted - self.given.tau
        return [y[i] + lifted + self.shift[q] for q, i in enumerate(self.statement.U)]

    def prove(self) -> bytes:
        selection, statement, m = self.tools.selection, self.statement, self.m
        names = ["b", "b3", "b4", *(f"u{k}" for k in range(BITS))]
        columns = self.column_values()
        masks = [self.given.masks.get(name, self.random()) for name in names]
        blinds = [self.random() for _ in names]
        Y_mask = self.given.masks.get("Y", self.random())
        unit = [0] * (self.size - 1) + [1]
        _, chi_on_mask_row = selection.row_weights(unit, unit, self.u)
        # The form adds -chi(r) tau and the lift on the mask row: sigma makes up for both, so that
        # the row holds Y_mask whatever is claimed.
        sigma = Y_mask + chi_on_mask_row * self.given.tau - self.lifted
        r_t, r_g, s1, s2 = (self.random() for _ in range(4))
        a = [self.random() for _ in range(3 * m + 1)]

        # P1
        # Column 0 is not sent: the verifier takes B_sel for it, less the rows of F, with D_m's
        # mask.
        for column, mask, blind in list(zip(columns, masks, blinds, strict=True))[1:]:
            terms = list(zip(column, self.A, strict=True))
            self.send_point("point1", [*terms, (mask, self.A_star), (blind, self.H)])
        moved = list(zip(self.moved, self.A, strict=True))
        self.send_point("point1", [*moved, (masks[0], self.A_star), (blinds[0], self.H)])
        self.send_point("point1", [(s1, self.A_star), (s2, self.H)])
        M_0, M_1 = self.tools.generators.generators("sel/M", 2)
        shift = list(zip(self.shift, self.A, strict=True))
        G = self.tools.generators.generators("G", len(self.lift))
        shift += zip(self.lift, G, strict=True)
        self.send_point("point1", [*shift, (self.given.tau, M_0), (sigma, M_1), (r_t, self.H)])
        R = self.tools.generators.generators("sel/R", 3 * m + 1)
        self.send_point("point1", [*zip(a, R, strict=True), (r_g, self.H)])
        g = Mask(a, [3] * m, self.order)
        self.send_scalar("G", g.total())

        # V1
        alpha = self.tools.field.powers(self.transcript.scalar("alpha"), 24)
        eq_t = self.tools.field.eq_table([self.transcript.scalar("t") for _ in range(m)])
        rho = self.transcript.scalar("rho")

        # P2, P3
        tables = [self._table(c, mask) for c, mask in zip(columns, masks, strict=True)]
        tables.append(self._table(self.threshold_distances(), Y_mask, self.lifted))
        units = [[int(i == j) for j in range(self.size)] for i in range(self.size)]
        weights = [selection.row_weights(eq_t, row, self.u) for row in units]
        tables += [[M for M, _ in weights], [chi for _, chi in weights]]
        r, values = self.sumcheck(tables, partial(self._summand, alpha), g, rho)
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
            gammas[19] * (dot(eq_r[: self.u], [row[j] for row in rows]) + more)
            for j, more in enumerate(self.lift)
        ]
        block2 += [gammas[19] * self.given.tau, gammas[19] * sigma]
        witness = [v % self.order for v in (*block1, *block2, *(gammas[20] * v for v in a))]
        total = self.rho_sel + dot(gammas[:19], blinds)
        total += gammas[19] * (dot(eq_r[: self.u], row_blinds) + r_t) + gammas[20] * r_g
        mask_form = [1] + [pow(r_k, e, self.order) for r_k in r for e in (1, 2, 3)]
        form = selection.opening_form(statement.query, eq_r, self.u, chi, mask_form, theta)
        self.open(selection.opening_bases(statement), form, witness, total % self.order, x)
        return self.proof

    def _table(self, column: list[int], mask: int, padding: int = 0) -> list[int]:
        values = [v % self.order for v in column]
        pads = [padding % self.order] * (self.size - 1 - self.u)
        return [*values, *pads, mask % self.order]

    def _summand(self, alpha: list[int], *row: int) -> int:
        b, b3, b4, *bits, Y, M, chi = row
        return int(self.tools.selection.summand(alpha, M, chi, b, b3, b4, bits, Y))
