"""Constructed cheats in the rows of an index: entries of any size, proven to be short.

The prover's rows are 8-bit integers, so no service stages them. The proofs are made in pure Python.
"""

from collections.abc import Sequence
from typing import Any, Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.constructed.window import Window
from ragaudit.lab.attacks.constructed.world import Asked, TenantIndex
from ragaudit.lab.attacks.forging import index_prover, selection_prover
from ragaudit.ledger.messages import merkle_commitments
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.verifier import reference
from ragaudit.verifier.reference.field import ORDER
from ragaudit.verifier.reference.statement import SQUARED_NORM

Rows = list[list[int]]

HUGE: Final = 10**19
"""Far beyond what 8 bits hold; the projections would see it."""


class ForgedIndex(Window):
    """beta's index is committed to rows of any integers, under a proof of the forging prover."""

    committed: Rows

    def script(self) -> list[tuple[Any, ...]]:
        idle = ("carol", "dora", 81)  # a second checkpoint of the same size adds nothing
        return [event for event in super().script() if event[1] not in idle]

    def build_index(self, tenant: str) -> TenantIndex:
        index = super().build_index(tenant)
        return self.forged(index) if tenant == "beta" else index

    def forged(self, index: TenantIndex) -> TenantIndex:
        """The index with other rows, and an argument about them all the same."""
        self.committed, claim = self.forge(index.rows.tolist())
        blindings = blindings_of(index)
        commitments = index_prover.commit_field_rows(reference, self.committed, blindings, claim)
        digests = index.commitment.row_digests
        root = merkle_commitments.index_root(commitments, digests)
        statement = self.index_statement(index.tenant, commitments, root)
        _, proof = index_prover.prove_index(
            reference, statement.context, self.committed, blindings, claim
        )
        index.commitment = IndexCommitment(
            self.window, index.tenant, 1, self.dimension, commitments, digests, proof
        )
        return index

    def forge(self, rows: Rows) -> tuple[Rows, index_prover.Claim]:
        """The rows to commit to, and what is claimed of them."""
        raise NotImplementedError


class WrapsTheField(ForgedIndex):
    """A row of beta has entries near 2^251 whose squares sum to B² modulo the group order."""

    def forge(self, rows: Rows) -> tuple[Rows, index_prover.Claim]:
        rows[3] = [*wrapping_pair(self.random.getrandbits), *[0] * (len(rows[3]) - 2)]
        return rows, index_prover.HONEST


class HidesAnOffset(ForgedIndex):
    """All rows of beta have entries of 10^19: the difference to short rows is hidden in C_m.

    A common shift of all scores changes no selection, so beta's records are proven over these rows,
    and hold.
    """

    def script(self) -> list[tuple[Any, ...]]:
        last = ("dora", 81, "second question of carol")
        return [each for each in Window.script(self) if not set(each) & set(last)]

    def forge(self, rows: Rows) -> tuple[Rows, index_prover.Claim]:
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
    """rho_i of every row."""
    return [int.from_bytes(each.tobytes(), "little") for each in index.blindings]


def wrapping_pair(random_bits: Any) -> Sequence[int]:
    """(x, y), both huge, with x² + y² = B² modulo the group order."""
    while True:
        x = random_bits(250)
        y = _square_root((SQUARED_NORM - x * x) % ORDER)
        if y is not None and min(x, ORDER - x, y, ORDER - y) > 2**43:
            return x, y


def _square_root(value: int) -> int | None:
    """A root modulo the group order, which is 5 modulo 8; None for a non-residue."""
    root = pow(value, (ORDER + 3) // 8, ORDER)
    for candidate in (root, root * pow(2, (ORDER - 1) // 4, ORDER) % ORDER):
        if candidate * candidate % ORDER == value:
            return candidate
    return None


CHEATS: Final = (
    ConstructedCheat(
        name="entry-that-wraps-the-field", family="INDEX",
        description="Commits to huge entries whose squared norm is right modulo the group order.",
        why="the prover's rows are 8-bit integers",
        window=WrapsTheField, slow=True,
        checks=("index-proof",), reason="index of beta",
    ),
    ConstructedCheat(
        name="offset-hidden-in-the-mask", family="INDEX",
        description="Commits to rows of any size and hides what shortens them in the row of masks.",
        why="the prover's rows are 8-bit integers",
        window=HidesAnOffset, slow=True,
        checks=("index-proof",), reason="index of beta",
    ),
)  # fmt: skip
