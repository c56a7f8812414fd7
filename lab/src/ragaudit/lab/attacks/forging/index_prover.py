"""A tiny prover of the index argument (spec 4.7); it runs on any rows.

Rows may hold any field elements, so that wrapped rows and wrong norms can be claimed; what is
claimed of them need not be what is committed, and every commitment may hold more than it should. It
takes the package of the verifier as an argument and uses that package's argument name, generators,
form and weights: given a mutated copy, it proves the mutated relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from ragaudit.lab.attacks.forging.moves import Mask, Moves, Spelled, modules, weighted_sum

# Spec 4.7.1 and 4.7.3: 309 projections of 42 bits, in limbs of 14.
PROJECTIONS, LIMBS, LIMB_BITS = 309, 3, 14
R = PROJECTIONS * LIMBS
# Makes the range of honest projections, -2^41 to 2^41, one of 42 bits without a sign.
OFFSET = 2**41

Sparse = dict[int, int]

Stray = Mapping[str, Mapping[int, int]]
"""What commitments hold besides their due: by name ("C_0", "Kap_3", "C_m", "C_g"), the coefficient
of each generator, numbered as in the opening's basis. "C_m" is the whole of that mask, then."""

FIRST_COLUMN: Final = R + 1
"""The number of G_0 in the opening's basis; G_1 follows, and whatever is put after G_(d+3)."""


@dataclass(frozen=True)
class Claim:
    """What a dishonest prover says of rows that it has committed to otherwise.

    Attributes:
        rows: the rows of the sumcheck's table; None: the committed ones.
        elsewhere: what the table holds in every row of the cube that is no row of the index.
        stray: see `Stray`.
        early_projections: for a verifier that draws them before the commitments.
        dropped: for a verifier in which this power of alpha is 0.
        spelled, spelled_rows: elements of the proof, and of the commitments, in another spelling.
    """

    rows: list[list[int]] | None = None
    elsewhere: Sequence[int] = ()
    stray: Stray = field(default_factory=dict)
    early_projections: bool = False
    dropped: int | None = None
    spelled: Spelled = field(default_factory=dict)
    spelled_rows: Spelled = field(default_factory=dict)


HONEST: Final = Claim()


def offset_claim(rows: list[list[int]], offset: Sequence[int]) -> tuple[list[list[int]], Claim]:
    """Return rows to commit to, and the claim that they are ``rows``: the offset is hidden in C_m.

    What is committed is rows - offset, of any size. A verifier that gives C_m weight 1 adds the
    offset to every row, and finds ``rows``.

    Args:
        rows: N completed rows of d + 4 integers, each of squared norm B².
        offset: d + 4 integers.
    """
    committed = [[a - b for a, b in zip(row, offset, strict=True)] for row in rows]
    hidden = {FIRST_COLUMN + j: value for j, value in enumerate(offset)}
    return committed, Claim(rows=rows, elsewhere=offset, stray={"C_m": hidden})


def junk_claim(rows: list[list[int]], junk: Sequence[int]) -> tuple[list[list[int]], Claim]:
    """Return rows to commit to, and the claim that they are ``rows``, with a mask generator's help.

    Row i is committed with its entry 0 less by ``junk[i]``, and with ``junk[i]`` times the
    generator after G_(d+3). A verifier that has one there for the mask of entry 0 adds the two.

    Args:
        rows: N completed rows of d + 4 integers, each of squared norm B².
        junk: N integers.
    """
    committed = [[row[0] - more, *row[1:]] for row, more in zip(rows, junk, strict=True)]
    place = FIRST_COLUMN + len(rows[0])
    return committed, Claim(
        rows=rows, stray={f"C_{i}": {place: more} for i, more in enumerate(junk)}
    )


def commit_field_rows(
    package: ModuleType, rows: list[list[int]], blindings: list[int], claim: Claim = HONEST
) -> bytes:
    """Return C_0 || .. || C_(N-1) for rows of arbitrary field elements, 32 bytes each.

    Args:
        package: the reference package or a mutated copy.
        rows: N rows of d + 4 integers.
        blindings: rho_i.
        claim: its stray components and spellings are in the commitments.
    """
    tools = modules(package)
    generator = tools.generators.generator
    width = len(rows[0])
    bases = tools.index.opening_bases(width, _degrees(tools, len(rows), width))
    encoded = b""
    for i, (row, blinding) in enumerate(zip(rows, blindings, strict=True)):
        terms = [(v, generator("G", j)) for j, v in enumerate(row)]
        terms += [(v, bases[at]) for at, v in claim.stray.get(f"C_{i}", {}).items()]
        data = tools.ristretto.encode(weighted_sum(tools, [*terms, (blinding, generator("H"))]))
        encoded += claim.spelled_rows.get(i, bytes)(data)
    return encoded


def _degrees(tools: Any, rows: int, width: int) -> list[int]:
    variables_for = tools.field.variables_for
    return [3] * variables_for(max(rows, R) + 1) + [2] * variables_for(width)


def begin(
    package: ModuleType, context: bytes, rows: int, width: int, commitments: bytes, early: bool
) -> tuple[Any, list[tuple[list[int], list[int]]]]:
    """Return the transcript after V0, and (u_q, v_q) of every projection (spec 4.7.2).

    Args:
        package: the reference package or a mutated copy.
        context: 32 bytes.
        rows: N.
        width: d + 4.
        commitments: C, which is absorbed before the projections are drawn,
        early: or after, for a verifier with that fault.
    """
    tools = modules(package)
    le = tools.field.le
    transcript = tools.transcript.Transcript(tools.index.ARGUMENT)
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
    claim: Claim = HONEST,
) -> tuple[bytes, bytes]:
    """Return (commitments, proof) for rows; nothing checks what they hold.

    Args:
        package: the reference package or a mutated copy.
        context: 32 bytes, of the statement.
        rows: N completed rows of d + 4 integers, which are committed to.
        blindings: rho_i.
        claim: what is claimed of the rows instead; honest by default.
    """
    commitments = commit_field_rows(package, rows, blindings, claim)
    transcript, projections = begin(
        package, context, len(rows), len(rows[0]), commitments, claim.early_projections
    )
    prover = _Index(modules(package), transcript, rows, blindings, projections, claim)
    return commitments, prover.prove()


class _Index(Moves):
    def __init__(
        self,
        tools: Any,
        transcript: Any,
        rows: list[list[int]],
        blindings: list[int],
        projections: list[tuple[list[int], list[int]]],
        claim: Claim,
    ) -> None:
        super().__init__(tools, transcript)
        self.committed, self.claim, self.spelled = rows, claim, claim.spelled
        claimed = rows if claim.rows is None else claim.rows
        self.rows = [[v % self.order for v in row] for row in claimed]
        self.blindings, self.projections = blindings, projections
        self.N, self.width = len(rows), len(rows[0])
        self.m = tools.field.variables_for(max(self.N, R) + 1)
        self.md = tools.field.variables_for(self.width)

    def limbs(self) -> list[int]:
        """Return n_i for i < R; of a projection out of range only the low 42 bits."""
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
        tools, field = self.tools, self.tools.field
        dot, m = field.dot, self.m
        degrees = _degrees(tools, self.N, self.width)
        bases = tools.index.opening_bases(self.width, degrees)
        P, P_star, H = bases[:R], bases[R], tools.generators.generator("H")
        stray = self.claim.stray

        # P1
        limbs = self.limbs()
        columns = [[n >> k & 1 for n in limbs] for k in range(LIMB_BITS)]
        masks = [self.random() for _ in columns]
        blinds = [self.random() for _ in columns]
        sigma, r_m, r_g = self.random(), self.random(), self.random()
        a = [self.random() for _ in range(1 + sum(degrees))]
        R_list = bases[-len(a) :]
        # Honestly the mask row of X has sigma at column 0 and nothing else (spec 4.7.3).
        C_m = stray.get("C_m", {FIRST_COLUMN: sigma})
        for k, (column, mask, blind) in enumerate(zip(columns, masks, blinds, strict=True)):
            terms = [*zip(column, P, strict=True), (mask, P_star), (blind, H)]
            terms += [(v, bases[at]) for at, v in stray.get(f"Kap_{k}", {}).items()]
            self.send_point("point1", terms)
        self.send_point("point1", [*((v, bases[at]) for at, v in C_m.items()), (r_m, H)])
        terms = [*zip(a, R_list, strict=True), (r_g, H)]
        terms += [(v, bases[at]) for at, v in stray.get("C_g", {}).items()]
        self.send_point("point1", terms)
        g = Mask(a, degrees, self.order)
        self.send_scalar("G", g.total())

        # V1
        alpha = field.powers(self.transcript.scalar("alpha"), LIMB_BITS + 2)
        if self.claim.dropped is not None:
            alpha[self.claim.dropped] = 0
        lam = field.powers(self.transcript.scalar("lambda"), PROJECTIONS)
        eq_t = field.eq_table([self.transcript.scalar("t") for _ in range(m)])
        rho = self.transcript.scalar("rho")

        # P2, P3
        r, values, v_X = self._sumcheck(columns, masks, C_m, alpha, lam, eq_t, rho, g)
        for value in (*values, v_X):
            self.send_scalar("eval", value)

        # V2, P4
        gamma, theta, x = (self.transcript.scalar(tag) for tag in ("gamma", "theta", "x"))
        eq_x, eq_y = field.eq_table(r[:m]), field.eq_table(r[m:])
        gammas = field.powers(gamma, LIMB_BITS + 2)
        w_m = tools.index.mask_row_weight(eq_x)
        witness = [0] * len(bases)
        for i in range(R):
            witness[i] = dot(gammas[:14], [column[i] for column in columns])
        witness[R] = dot(gammas[:14], masks)
        for j in range(self.width):
            weighted = dot(eq_x[: self.N], [row[j] for row in self.committed])
            witness[FIRST_COLUMN + j] = gammas[14] * weighted
        for place, value in enumerate(a, start=len(bases) - len(a)):
            witness[place] = gammas[15] * value
        weights = {f"C_{i}": gammas[14] * eq_x[i] for i in range(self.N)}
        weights |= {f"Kap_{k}": gammas[k] for k in range(LIMB_BITS)} | {"C_g": gammas[15]}
        held = {**stray, "C_m": C_m}
        for name, weight in {**weights, "C_m": gammas[14] * w_m}.items():
            for place, value in held.get(name, {}).items():
                witness[place] += weight * value
        total = dot(gammas[:14], blinds) + gammas[15] * r_g
        total += gammas[14] * (dot(eq_x[: self.N], self.blindings) + w_m * r_m)
        powers = [
            r_k**e for r_k, degree in zip(r, degrees, strict=True) for e in range(1, degree + 1)
        ]
        form = tools.index.opening_form(eq_x, eq_y[: self.width], [1, *powers], theta)
        self.open(bases, form, [value % self.order for value in witness], total % self.order, x)
        return self.proof

    def _sumcheck(
        self,
        columns: list[list[int]],
        masks: list[int],
        C_m: Mapping[int, int],
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
        X, W = self._row_tables(C_m, lam)
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
                    # The factor eq(y, 0) of spec 4.7.4: limbs stand at y = 0 only.
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

    def _row_tables(self, C_m: Mapping[int, int], lam: list[int]) -> tuple[Sparse, Sparse]:
        X: Sparse = {}
        W: Sparse = {}
        if self.claim.elsewhere:
            empty, offset = range(self.N, 1 << self.m), self.claim.elsewhere
            X |= {i << self.md | j: v % self.order for i in empty for j, v in enumerate(offset)}
        else:
            mask_row = (1 << self.m) - 1
            coordinates = range(FIRST_COLUMN, FIRST_COLUMN + self.width)
            X |= {mask_row << self.md | at - FIRST_COLUMN: C_m.get(at, 0) for at in coordinates}
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
