"""Check index-proof: rows that the index argument does not allow, and what it is about."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement, NormOpening
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.attacks.forging import index_prover, selection_prover
from ragaudit.lab.scenario.integrity import IntegrityWindow, Row
from ragaudit.lab.scenario.opening import Asked, Event, TenantIndex
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.commitments import IndexCommitment, index_root
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.index.committed import Rows, Scalars
from ragaudit.verifier import reference
from ragaudit.verifier.reference.field import ORDER

# --- rows and openings ---------------------------------------------------------------------------

refused = partial(ServiceCheat, family="INDEX", checks=("index-proof",), refused=True)
wrapped = partial(
    ConstructedCheat,
    family="INDEX",
    checks=("index-proof",),
    why="the prover's rows are 8-bit integers",
    slow=True,
    reason="index of beta",
)


@refused("row-of-norm-128", reason="index of acme")
class LongRow(IndexBuilder):
    """Commits to a row of norm 128, whose scores the noise does not cover.

    Check 4 (`index-proof`) wants every completed row of squared norm B².
    """

    def complete_rows(self, vectors: Rows) -> Rows:
        rows = super().complete_rows(vectors)
        rows[3] = 0
        # 4·64² = 128²: one above B, and every entry still fits 8 bits.
        rows[3, :4] = 64
        return rows


@refused("squares-do-not-complete", reason="index of acme")
class WrongSquares(IndexBuilder):
    """Commits to a row that its four squares do not complete to norm 127.

    So the norm of that row may be anything.

    Check 4 (`index-proof`) wants every completed row of squared norm B².
    """

    def complete_rows(self, vectors: Rows) -> Rows:
        rows = super().complete_rows(vectors)
        rows[5, -1] += 1
        return rows


@refused("commitment-to-another-row", reason="index of acme")
class ForeignRow(IndexBuilder):
    """Publishes a commitment that is not to the row that the argument is about.

    The row that is proven is the one that is served.

    Check 4 (`index-proof`): the argument is about the commitments that are published.
    """

    def commit_rows(self, rows: Rows, blindings: Scalars) -> bytes:
        return super().commit_rows(np.concatenate([rows[1:2], rows[1:]]), blindings)


Integers = list[list[int]]

HUGE: Final = 10**19
"""Far beyond what 8 bits hold; the projections would see it."""


class ForgedIndex(Window):
    """beta's index is committed to rows of any integers, under a proof of the forging prover.

    Attributes:
        committed: the rows of d + 4 integers that are committed to.
    """

    committed: Integers

    def script(self) -> list[Event]:
        idle = ("carol", "dora", 81)  # a second checkpoint of the same size adds nothing
        return [event for event in super().script() if event[1] not in idle]

    def build_index(self, tenant: str) -> TenantIndex:
        index = super().build_index(tenant)
        return self.forged(index) if tenant == "beta" else index

    def forged(self, index: TenantIndex) -> TenantIndex:
        """Return the index with other commitments, and an argument about them all the same.

        Args:
            index: the honest one; its digests, blindings and answers stay.
        """
        self.committed, claim = self.forge(index.rows.tolist())
        blindings = blindings_of(index)
        commitments = index_prover.commit_field_rows(reference, self.committed, blindings, claim)
        digests = index.commitment.row_digests
        root = index_root(commitments, digests)
        statement = self.index_statement(index.tenant, commitments, root)
        _, proof = index_prover.prove_index(
            reference, statement.context, self.committed, blindings, claim
        )
        index.commitment = IndexCommitment(
            self.window, index.tenant, 1, self.dimension, commitments, digests, proof
        )
        return index

    def forge(self, rows: Integers) -> tuple[Integers, index_prover.Claim]:
        """Return the rows to commit to, and what is claimed of them.

        Args:
            rows: N honest rows of d + 4 integers; they may be changed in place.
        """
        raise NotImplementedError


@wrapped("entry-that-wraps-the-field")
class WrapsTheField(ForgedIndex):
    """Commits to huge entries whose squared norm is right modulo the group order.

    It is a row of beta with entries near 2^251, and the right squared norm is B².

    Check 4 (`index-proof`): projections by random bits of such a row exceed 42 bits (§4.7.3).
    """

    def forge(self, rows: Integers) -> tuple[Integers, index_prover.Claim]:
        rows[3] = [*wrapping_pair(self.random.getrandbits), *[0] * (len(rows[3]) - 2)]
        return rows, index_prover.HONEST


@wrapped("offset-hidden-in-the-mask")
class HidesAnOffset(ForgedIndex):
    """Commits to rows of any size and hides what shortens them in the row of masks.

    All rows of beta have entries of 10^19, and C_m is the commitment to the masks.

    A common shift of all scores changes no selection, so beta's records are proven over these rows,
    and hold. Check 4 (`index-proof`) weighs C_m as a row of its own, where `index/v1` gave it
    weight 1 (docs/spec/04-arguments.md §4.7.6).
    """

    def script(self) -> list[Event]:
        last = ("dora", 81, "second question of carol")
        return [each for each in Window.script(self) if not set(each) & set(last)]

    def forge(self, rows: Integers) -> tuple[Integers, index_prover.Claim]:
        offset = [self.random.choice([HUGE, -HUGE]) for _ in rows[0]]
        return index_prover.offset_claim(rows, offset)

    def prove(self, asked: Asked) -> bytes:
        if asked.served_tenant != "beta":
            return super().prove(asked)
        index = self.indices["beta"]
        statement = selection_prover.reference_statement(self.statement(asked))
        held = selection_prover.Index(
            self.committed, blindings_of(index), index.commitment.commitments
        )
        noised = selection_prover.scores(held, [*statement.query], [*statement.noise])
        return selection_prover.prove_boundary(
            reference,
            statement,
            held,
            selection_prover.honest_assignment(statement, noised),
            int.from_bytes(asked.selection_blinding, "little"),
        )


def blindings_of(index: TenantIndex) -> list[int]:
    """Return rho_i of every row as integers below the group order."""
    return [int.from_bytes(each.tobytes(), "little") for each in index.blindings]


def wrapping_pair(random_bits: Any) -> Sequence[int]:
    """Return (x, y) with x² + y² = B² modulo the group order, both far from any short integer.

    Args:
        random_bits: returns an integer of so many random bits, as `random.Random.getrandbits`.

    Returns:
        Two integers in 0..l-1, each more than 2^43 away from 0 modulo l.
    """
    while True:
        x = random_bits(250)
        y = _square_root((SQUARED_NORM - x * x) % ORDER)
        # Beyond the 42 bits that a projection may have (spec 4.7.3).
        if y is not None and min(x, ORDER - x, y, ORDER - y) > 2**43:
            return x, y


def _square_root(value: int) -> int | None:
    """A root modulo the group order, which is 5 modulo 8; None for a non-residue."""
    root = pow(value, (ORDER + 3) // 8, ORDER)
    for candidate in (root, root * pow(2, (ORDER - 1) // 4, ORDER) % ORDER):
        if candidate * candidate % ORDER == value:
            return candidate
    return None


# --- inner products: the largest norm ------------------------------------------------------------

INNER_PRODUCTS: Final = {"metric": "inner-product", "largest_norm": "1"}


unproven = partial(
    ConstructedCheat,
    family="INTEGRITY",
    checks=("index-proof",),
    why="the verifier countersigns no such window",
)


@dataclass
class InnerProducts(IntegrityWindow):
    """An honest window of inner products."""

    overrides: dict[str, Any] = field(default_factory=lambda: dict(INNER_PRODUCTS))


@unproven("rows-rounded-to-nothing", reason="most_norm_ratio")
class RoundsToNothing(InnerProducts):
    """States a largest norm at which every row is rounded to zeros.

    It is 999,999,999, and every score is then a tie.

    The opening says so truly. Check 4 (`index-proof`) holds the norm of the longest row against the
    verifier's terms.
    """

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        nothing = np.zeros((len(rows), self.dimension), dtype=np.int16)
        return core.complete_rows(nothing, self.policy.squared_norm).astype(np.int16)


@unproven("norm-overstated", reason="the verification equation does not hold")
class OverstatesTheNorm(RoundsToNothing):
    """Says that a row of zeros is a long one.

    All rows are zeros, as in `RoundsToNothing`; one is said to be as long as any may be.

    Check 4 (`index-proof`): the argument shows what completes the row.
    """

    def show_norm(
        self,
        opening: NormOpening,
        statement: IndexStatement,
        rows: npt.NDArray[Any],
        blindings: npt.NDArray[np.uint8],
    ) -> NormOpening:
        honest = super().show_norm(opening, statement, rows, blindings)
        return replace(honest, value=1, squares=(1, 0, 0, 0), anchor=self.dimension)
