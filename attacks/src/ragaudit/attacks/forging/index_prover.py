"""A tiny prover of the index argument (spec 4.7); it runs on any rows.

Rows may hold any field elements, so that wrapped rows and wrong norms can be claimed. Tables over
rows and coordinates are sparse: a few rows are real and the rest of the cube is empty.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ragaudit.attacks.forging.moves import Mask, Moves, modules, weighted_sum

PROJECTIONS, LIMBS, LIMB_BITS = 309, 3, 14
R = PROJECTIONS * LIMBS
OFFSET = 2**41

Sparse = dict[int, int]


def commit_field_rows(package: ModuleType, rows: list[list[int]], blindings: list[int]) -> bytes:
    """C_i for rows of arbitrary field elements."""
    tools = modules(package)
    generator = tools.generators.generator
    encoded = b""
    for row, blinding in zip(rows, blindings, strict=True):
        terms = [(v, generator("G", j)) for j, v in enumerate(row)]
        encoded += tools.ristretto.encode(weighted_sum(tools, [*terms, (blinding, generator("H"))]))
    return encoded


def begin(
    package: ModuleType, context: bytes, rows: int, width: int, commitments: bytes, early: bool
) -> tuple[Any, list[tuple[list[int], list[int]]]]:
    """The transcript after V0, and (u_q, v_q); ``early`` draws before C is absorbed."""
    tools = modules(package)
    le = tools.field.le
    transcript = tools.transcript.Transcript("index/v1")
    transcript.absorb("context", context)
    transcript.absorb("shape", le(rows, 8) + le(width - 4, 4) + le(127**2, 4))
    if not early:
        transcript.absorb("C", commitments)
    bits = transcript.bits("projections", PROJECTIONS * (rows + width))
    if early:
        transcript.absorb("C", commitments)
    size = rows + width
    pieces = [list(bits[q * size : (q + 1) * size]) for q in range(PROJECTIONS)]
    return transcript, [(piece[:rows], piece[rows:]) for piece in pieces]


def prove_index(
    package: ModuleType,
    context: bytes,
    rows: list[list[int]],
    blindings: list[int],
    *,
    early_projections: bool = False,
    dropped: int | None = None,
) -> tuple[bytes, bytes]:
    """(commitments, proof) for completed rows of d + 4 entries; nothing checks that they are true.

    ``early_projections`` proves to the mutant that draws them before the commitments, ``dropped``
    to the one in which this power of alpha is 0.
    """
    commitments = commit_field_rows(package, rows, blindings)
    transcript, projections = begin(
        package, context, len(rows), len(rows[0]), commitments, early_projections
    )
    prover = _Index(modules(package), transcript, rows, blindings, projections)
    prover.dropped = dropped
    return commitments, prover.prove()


class _Index(Moves):
    dropped: int | None = None

    def __init__(
        self,
        tools: Any,
        transcript: Any,
        rows: list[list[int]],
        blindings: list[int],
        projections: list[tuple[list[int], list[int]]],
    ) -> None:
        super().__init__(tools, transcript)
        self.rows = [[v % self.order for v in row] for row in rows]
        self.blindings, self.projections = blindings, projections
        self.N, self.width = len(rows), len(rows[0])
        self.m = tools.field.variables_for(max(self.N, R) + 1)
        self.md = tools.field.variables_for(self.width)

    def limbs(self) -> list[int]:
        """n_i for i < R; of a projection out of range only the low 42 bits."""
        limbs = []
        for u, v in self.projections:
            p = sum(
                value
                for chosen, row in zip(u, self.rows, strict=True)
                if chosen
                for value, taken in zip(row, v, strict=True)
                if taken
            )
            value = (p + OFFSET) % self.order
            limbs += [value >> LIMB_BITS * limb & (1 << LIMB_BITS) - 1 for limb in range(LIMBS)]
        return limbs

    def prove(self) -> bytes:
        field, generators = self.tools.field, self.tools.generators
        dot, m, md = field.dot, self.m, self.md
        degrees = [3] * m + [2] * md
        P, P_star = generators.generators("idx/P", R), generators.generator("idx/P*")
        H, M = generators.generator("H"), generators.generator("idx/M")
        R_list = generators.generators("idx/R", 1 + sum(degrees))

        # P1
        limbs = self.limbs()
        columns = [[n >> k & 1 for n in limbs] for k in range(LIMB_BITS)]
        masks = [self.random() for _ in columns]
        blinds = [self.random() for _ in columns]
        sigma, r_m, r_g = self.random(), self.random(), self.random()
        a = [self.random() for _ in R_list]
        for column, mask, blind in zip(columns, masks, blinds, strict=True):
            terms = [*zip(column, P, strict=True), (mask, P_star), (blind, H)]
            self.send_point("point1", terms)
        self.send_point("point1", [(sigma, M), (r_m, H)])
        self.send_point("point1", [*zip(a, R_list, strict=True), (r_g, H)])
        g = Mask(a, degrees, self.order)
        self.send_scalar("G", g.total())

        # V1
        alpha = field.powers(self.transcript.scalar("alpha"), LIMB_BITS + 2)
        if self.dropped is not None:
            alpha[self.dropped] = 0
        lam = field.powers(self.transcript.scalar("lambda"), PROJECTIONS)
        eq_t = field.eq_table([self.transcript.scalar("t") for _ in range(m)])
        rho = self.transcript.scalar("rho")

        # P2, P3
        r, values, v_X = self._sumcheck(columns, masks, sigma, alpha, lam, eq_t, rho, g)
        for value in (*values, v_X):
            self.send_scalar("eval", value)

        # V2, P4
        gamma, theta, x = (self.transcript.scalar(tag) for tag in ("gamma", "theta", "x"))
        eq_x, eq_y = field.eq_table(r[:m]), field.eq_table(r[m:])
        gammas = field.powers(gamma, LIMB_BITS + 2)
        witness = [dot(gammas[:14], [column[i] for column in columns]) for i in range(R)]
        witness.append(dot(gammas[:14], masks))
        witness += [
            gammas[14] * dot(eq_x[: self.N], [row[j] for row in self.rows])
            for j in range(self.width)
        ]
        witness += [gammas[14] * sigma, *(gammas[15] * value for value in a)]
        total = dot(gammas[:14], blinds) + gammas[15] * r_g
        total += gammas[14] * (dot(eq_x[: self.N], self.blindings) + r_m)
        form = [*eq_x[:R], eq_x[-1]]
        form += [theta * value for value in (*eq_y[: self.width], eq_x[-1] * eq_y[0])]
        powers = [
            r_k**e for r_k, degree in zip(r, degrees, strict=True) for e in range(1, degree + 1)
        ]
        form += [theta * theta * value for value in (1, *powers)]
        bases = [*P, P_star, *generators.generators("G", self.width), M, *R_list]
        self.open(
            bases,
            [value % self.order for value in form],
            [value % self.order for value in witness],
            total % self.order,
            x,
        )
        return self.proof

    def _sumcheck(
        self,
        columns: list[list[int]],
        masks: list[int],
        sigma: int,
        alpha: list[int],
        lam: list[int],
        eq_t: list[int],
        rho: int,
        g: Mask,
    ) -> tuple[list[int], list[int], int]:
        size, order = 1 << self.m, self.order
        kap = [
            column + [0] * (size - 1 - R) + [mask]
            for column, mask in zip(columns, masks, strict=True)
        ]
        M_R = eq_t[:R] + [0] * (size - R)
        M_N = eq_t[: self.N] + [0] * (size - self.N)
        omega = [lam_q << LIMB_BITS * limb for lam_q in lam for limb in range(LIMBS)]
        omega += [0] * (size - R)
        X, W = self._row_tables(sigma, lam)
        eq_y0, r = 1, []
        for k, degree in enumerate(g.degrees):
            over_rows = k < self.m
            variables = self.m + self.md - k
            values = []
            for point in range(degree + 1):
                X_at, W_at = (self._sparse_fold(t, variables, point) for t in (X, W))
                if over_rows:
                    weights = self.fold(M_N, point)
                    tables = [self.fold(table, point) for table in (*kap, M_R, omega)]
                    limb_part = self._limb_sum(alpha, tables)
                else:
                    weights = M_N
                    final = [column[0] for column in kap]
                    limb_part = eq_y0 * (1 - point) * self._limb_at(alpha, final, M_R[0], omega[0])
                shift = self.md if over_rows else variables
                row_part = 0
                for key, value in X_at.items():
                    row_part += alpha[14] * weights[key >> shift] * value * value
                    row_part += alpha[15] * W_at.get(key, 0) * value
                values.append((limb_part + row_part + rho * g.at(k, point)) % order)
            r.append(self.send_round(values))
            g.bind(k, r[-1])
            X, W = (self._sparse_fold(t, variables, r[-1]) for t in (X, W))
            if over_rows:
                kap = [self.fold(column, r[-1]) for column in kap]
                M_R, M_N, omega = (self.fold(t, r[-1]) for t in (M_R, M_N, omega))
            else:
                eq_y0 = eq_y0 * (1 - r[-1]) % order
        return r, [column[0] for column in kap], X[0]

    def _row_tables(self, sigma: int, lam: list[int]) -> tuple[Sparse, Sparse]:
        X: Sparse = {((1 << self.m) - 1) << self.md: sigma}
        W: Sparse = {}
        for i, row in enumerate(self.rows):
            for j, value in enumerate(row):
                key = i << self.md | j
                X[key] = value
                pairs = zip(lam, self.projections, strict=True)
                W[key] = sum(lam_q for lam_q, (u, v) in pairs if u[i] and v[j]) % self.order
        return X, W

    def _sparse_fold(self, table: Sparse, variables: int, X: int) -> Sparse:
        half = 1 << variables - 1
        folded: Sparse = {}
        for key, value in table.items():
            weight = X if key & half else 1 - X
            low = key & half - 1
            folded[low] = (folded.get(low, 0) + weight * value) % self.order
        return folded

    def _limb_sum(self, alpha: list[int], tables: list[list[int]]) -> int:
        rows = zip(*tables, strict=True)
        return sum(self._limb_at(alpha, list(bits), M_R, w) for *bits, M_R, w in rows)

    def _limb_at(self, alpha: list[int], bits: list[int], M_R: int, omega: int) -> int:
        boolean = sum(a * (v * v - v) for a, v in zip(alpha, bits, strict=False))
        limb = sum(v << k for k, v in enumerate(bits))
        return (M_R * boolean - alpha[15] * omega * limb) % self.order
