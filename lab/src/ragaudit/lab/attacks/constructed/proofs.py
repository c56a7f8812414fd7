"""Cheats in selections and arguments that an honest prover function cannot make."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores, select
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.constructed.window import Window
from ragaudit.lab.attacks.constructed.world import START, Account, Asked
from ragaudit.lab.attacks.forging import selection_prover
from ragaudit.verifier import reference

NEAR = 2 * SQUARED_NORM
_MOST_TEXTS = 200_000

Event = tuple[Any, ...]
Values = npt.NDArray[np.int64]


class OtherIndex(Window):
    """bob's second answer comes from another tenant's index; the record does not say so."""

    def served_tenant(self, account: Account) -> str:
        other = account.name == "bob" and account.queries == 1
        return "beta" if other else super().served_tenant(account)


class LongQuery(Window):
    """A query vector of twice the length: beside such scores the noise is small."""

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        vector = super().embed(text)
        return (2 * vector).astype(np.int16) if text == "second question of bob" else vector

    def prove(self, asked: Asked) -> bytes:
        return b"" if asked.request.query == "second question of bob" else super().prove(asked)


class Tied(Window):
    """bob's second question is one whose noised scores tie at the boundary."""

    top_k = 30

    def __init__(self) -> None:
        super().__init__(rows=64, overrides={"top_k_max": self.top_k})

    def query(self, name: str, text: str, top_k: int, time: int) -> Asked:
        account = self.accounts[name]
        if (name, account.queries) != ("bob", 1):
            return super().query(name, text, top_k, time)
        return super().query(name, self.tying(account, time), self.top_k, time)

    def tying(self, account: Account, time: int) -> str:
        """A text whose embedding ties; the noise does not depend on the text."""
        openings, _ = self.open_query(account, "any")
        record = self.promised(account, openings, self.top_k, 1000 * (START + time))
        noise = self.noise(record, self.noise_secret(record))
        vectors = self.indices[account.tenant].vectors
        for number in range(_MOST_TEXTS):
            text = f"question {number} of bob"
            ranked = np.sort(scores(vectors, self.embed(text)) + noise)[::-1]
            if ranked[self.top_k - 1] == ranked[self.top_k]:
                return text
        raise AssertionError("no text ties")

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: Values, top_k: int
    ) -> tuple[int, ...]:
        exact = scores(self.indices[tenant].vectors, embedding)
        honest = super().select(tenant, embedding, noise, top_k)
        noised = exact + noise
        boundary = np.sort(noised)[::-1][top_k]
        tied = [int(i) for i in np.flatnonzero(noised == boundary)]
        missing = top_k - len(honest)
        return tuple(sorted((*honest, *self.chosen(tied, exact, missing))))

    def chosen(self, tied: list[int], exact: Values, missing: int) -> list[int]:
        """Tied rows that are selected nevertheless."""
        raise NotImplementedError


class KeepsTies(Tied):
    """Fills the answer up to K rows with tied ones."""

    def chosen(self, tied: list[int], exact: Values, missing: int) -> list[int]:
        return tied[:missing]


class BreaksTiesByScore(Tied):
    """Of the tied rows, those with the best true scores are selected."""

    def chosen(self, tied: list[int], exact: Values, missing: int) -> list[int]:
        return sorted(tied, key=lambda i: -int(exact[i]))[:missing]


class OwnThresholds(Window):
    """Two rows trade places, each measured against a threshold of its own."""

    traded: tuple[int, int] | None = None

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: Values, top_k: int
    ) -> tuple[int, ...]:
        honest = super().select(tenant, embedding, noise, top_k)
        zeta = np.sort(noise)[::-1][top_k]
        near = [int(i) for i in np.flatnonzero(np.abs(noise - zeta) <= NEAR)]
        inside = [i for i in near if i in honest]
        outside = [i for i in near if i not in honest]
        if self.traded is not None or not inside or not outside:
            return honest
        self.traded = inside[0], outside[0]
        return tuple(sorted({*honest, outside[0]} - {inside[0]}))

    def prove(self, asked: Asked) -> bytes:
        index, query = self.indices[asked.served_tenant], asked.embedding
        noised = scores(index.vectors, query) + asked.noise
        if asked.selected == select(noised, asked.record.top_k):
            return super().prove(asked)
        assert self.traded is not None
        one, other = self.traded
        statement = selection_prover.reference_statement(self.statement(asked))
        pretended = noised.copy()
        pretended[[one, other]] = noised[[other, one]]
        honest = selection_prover.honest_assignment(statement, pretended.tolist())
        shift = [int(pretended[i] - noised[i]) for i in statement.U]
        committed = selection_prover.Index(
            index.rows.tolist(),
            [int.from_bytes(each.tobytes(), "little") for each in index.blindings],
            index.commitment.commitments,
        )
        blinding = int.from_bytes(asked.selection_blinding, "little")
        assignment = replace(honest, shift=shift)
        return selection_prover.prove_boundary(
            reference, statement, committed, assignment, blinding
        )


CHEATS: Final = (
    ConstructedCheat(
        name="row-dependent-threshold", family="SELECTION",
        description="Proves the selection with thresholds that differ from row to row.",
        why="the honest prover function has one threshold",
        window=OwnThresholds,
        checks=("selection",), reason="selection argument does not hold",
    ),
    ConstructedCheat(
        name="tie-kept", family="SELECTION",
        description="Keeps a row that ties with one that is left out.",
        why="no provider can bring a tie about",
        window=KeepsTies,
        checks=("selection",), reason="selection argument does not hold",
    ),
    ConstructedCheat(
        name="tie-broken-by-the-score", family="SELECTION",
        description="Breaks a tie of noised scores by the true ones.",
        why="no provider can bring a tie about",
        window=BreaksTiesByScore,
        checks=("selection",), reason="selection argument does not hold",
    ),
    ConstructedCheat(
        name="proof-over-another-tenants-index", family="CONTAINMENT",
        description="Logs a record of the account's tenant and proves it over another's index.",
        why="the prover service has no answer whose record and index differ in tenant",
        window=OtherIndex,
        checks=("selection",), reason="selection argument does not hold",
    ),
    ConstructedCheat(
        name="embedding-of-norm-over-b", family="EMBEDDING",
        description="Stretches the query vector, so that scores outgrow the noise.",
        why="the proof core proves nothing about such a vector",
        window=LongQuery,
        checks=("embedding",), reason="squared norm",
    ),
)  # fmt: skip
