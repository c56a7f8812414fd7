"""SELECTION, NOISE, CONTAINMENT, EMBEDDING and RECEIPT: cheats in single answers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.selection import select
from ragaudit.encoding.digests import salted, structure
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Admitted, Logged, Query, Selected, Stages
from ragaudit.prover.index import CommittedIndex
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import SelectedRow

Embedding = npt.NDArray[np.int16]
Scores = npt.NDArray[np.int64]


class SelectsThenAddsNoise(Mechanism):
    """The best rows by true score; the noise decides nothing."""

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return tuple(sorted(np.argsort(-exact, kind="stable")[:top_k].tolist()))


class NoiseOnWinnersOnly(Mechanism):
    """Noise for the 2 K best rows, none for the others, which it keeps out."""

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        winners = np.argsort(-exact, kind="stable")[: 2 * top_k].tolist()
        return select(exact + noise, top_k, sorted(winners))


class HalfTheSigma(Mechanism):
    """The right key, a distribution half as wide."""

    def draw_noise(
        self, live: OpenWindow, index: CommittedIndex, record: Record, nonce: bytes | None
    ) -> Scores:
        return super().draw_noise(live, index, record, nonce) // 2


class OtherSampler(Mechanism):
    """Rounded Gaussians of the right width from a generator of its own."""

    def draw_noise(
        self, live: OpenWindow, index: CommittedIndex, record: Record, nonce: bytes | None
    ) -> Scores:
        seed = int.from_bytes(live.seed.key(record.slot, record.counter), "little")
        width = float(live.policy.sigma) * SQUARED_NORM
        drawn = np.random.default_rng(seed).normal(scale=width, size=index.count)
        return np.rint(drawn).astype(np.int64)


class SwapsOneRow(Mechanism):
    """One selected row makes room for another."""

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        chosen = super().select(exact, noise, top_k)
        left_out = next(i for i in range(len(exact)) if i not in chosen)
        return tuple(sorted((*chosen[1:], left_out)))


class OneRowTooMany(Mechanism):
    """K + 1 rows."""

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return super().select(exact, noise, top_k + 1)


class FeignsTies(Mechanism):
    """One row fewer, as if it had been tied at the boundary."""

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return super().select(exact, noise, top_k)[1:]


class CommitsBeyondTheIndex(Mechanism):
    """The committed selection holds a position that no committed row has."""

    def selection_commitment(self, selected: Sequence[int], blinding: bytes) -> bytes:
        return core.commit_selection([*selected, 10**6], blinding)


class OtherK(Admitted):
    """Logs, and answers with, one row fewer than were asked for."""

    def record(self, request: Request, openings: Openings) -> Record:
        record = super().record(request, openings)
        return replace(record, top_k=max(1, request.top_k - 1))


class HidesAFilter(Admitted):
    """Commits to a filter that nobody asked for."""

    def openings(self, request: Request) -> Openings:
        return replace(super().openings(request), filter="price < 10")


class OtherTenant(Query):
    """Plain accounts are served from, and logged under, another tenant's index."""

    def admit(self, *, anchored: bool) -> Admitted:
        admitted = super().admit(anchored=anchored)
        if anchored:
            return admitted
        own = admitted.registered
        other = next(tenant for tenant in self.window.indexes if tenant != own.tenant)
        return replace(admitted, registered=replace(own, tenant=other))


class StaleIndex(Mechanism):
    """Scores an older version of the index, whose rows stood elsewhere and had no bounded norm.

    With bounded rows the noise would hide the change in most records.
    """

    def scores(
        self, index: CommittedIndex, embedding: Embedding, rows: Scores | None = None
    ) -> Scores:
        exact = 50 * np.roll(super().scores(index, embedding), 1)
        return exact if rows is None else exact[rows]


class OtherDigest(Admitted):
    """The record's digest is of another vector than the one that is opened."""

    def record(self, request: Request, openings: Openings) -> Record:
        record = super().record(request, openings)
        digest = salted(openings.salt_e, structure("another vector", record.embedding_digest))
        return replace(record, embedding_digest=digest)


class OffTheText(Mechanism):
    """The vector is of the question and something that the account did not write."""

    def embed(self, query: str) -> npt.NDArray[np.float32]:
        return super().embed(f"{query} (sponsored)")


class FalseSketch(Mechanism):
    """The sketch of the opposite vector: the estimator sees other neighbours."""

    def sketch(self, embedding: Embedding, seed: bytes, bits: int) -> bytes:
        return bytes(255 - byte for byte in super().sketch(embedding, seed, bits))


class WithholdsADocument(Logged):
    """The last selected document is not in the answer."""

    def answer_documents(self) -> Answer:
        return Answer(super().answer_documents().documents[:-1])


class RewritesContent(Selected):
    """Serves other content than was committed to."""

    def documents(self) -> list[SelectedRow]:
        rows = super().documents()
        return [
            replace(row, document=replace(row.document, content=f"{row.document.content} (edited)"))
            for row in rows
        ]


class _AnyOrder(Answer):
    """An answer whose documents stand in any order."""

    def __post_init__(self) -> None:
        pass


class OrdersByScore(Logged):
    """Answers best first: the order tells what the noise hid."""

    def answer(self) -> ReceiptFile:
        embedding = np.array(self.record.openings.openings.embedding, dtype=np.int16)
        exact = self.context.mechanism.scores(self.index, embedding)
        best_first = sorted(self.rows, key=lambda row: -int(exact[row.position]))
        return Logged.answer(replace(self, rows=best_first))

    def answer_documents(self) -> Answer:
        return _AnyOrder(
            tuple(
                Document(row.position, row.document.id, row.document.content) for row in self.rows
            )
        )


CHEATS: Final = (
    ServiceCheat(
        name="select-then-noise", family="SELECTION",
        description="Selects by true scores and adds noise to what is shown.",
        parts={"mechanism": SelectsThenAddsNoise},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="noise-only-on-the-winners", family="SELECTION",
        description="Adds noise to the best candidates only, so that others cannot win.",
        parts={"mechanism": NoiseOnWinnersOnly},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="half-the-sigma", family="SELECTION",
        description="Draws noise of half the promised width.",
        parts={"mechanism": HalfTheSigma},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="one-row-swapped", family="SELECTION",
        description="Replaces one selected row by another.",
        parts={"mechanism": SwapsOneRow},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="one-row-too-many", family="SELECTION",
        description="Selects K + 1 rows.",
        parts={"mechanism": OneRowTooMany},
        checks=("selection",), reason="selection argument does not hold",
        complaint="step 6 (selection)",
    ),
    ServiceCheat(
        name="ties-dropped-without-a-tie", family="SELECTION",
        description="Drops a selected row as if it had been tied at the boundary.",
        parts={"mechanism": FeignsTies},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="k-not-the-requests", family="SELECTION",
        description="Answers with another K than the account asked for.",
        parts={"stages": Stages(admitted=OtherK)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 3", complaint="top_k",
    ),
    ServiceCheat(
        name="filter-not-the-requests", family="SELECTION",
        description="Commits to a filter, which this policy does not have, and hides it.",
        parts={"stages": Stages(admitted=HidesAFilter)},
        checks=("embedding",), reason="a filter, which the policy does not have",
        complaint="filter",
    ),
    ServiceCheat(
        name="another-sampler", family="NOISE",
        description="Draws the noise with a generator of its own instead of the committed key's.",
        parts={"mechanism": OtherSampler},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="row-outside-the-committed-ones", family="INDEX",
        description="Commits to a selection that holds a position beyond the index.",
        parts={"mechanism": CommitsBeyondTheIndex},
        checks=("selection",), reason="selection argument does not hold",
        complaint="step 6 (selection)",
    ),
    ServiceCheat(
        name="another-tenants-index", family="CONTAINMENT",
        description="Serves accounts of one tenant from the index of another.",
        parts={"stages": Stages(query=OtherTenant)},
        checks=("containment",), reason="tenant beta", complaint="tenant",
    ),
    ServiceCheat(
        name="stale-index-version", family="CONTAINMENT",
        description="Scores an earlier version of the index than the committed one.",
        parts={"mechanism": StaleIndex},
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="embedding-not-the-digests", family="EMBEDDING",
        description="Opens another query vector than the record's digest is of.",
        parts={"stages": Stages(admitted=OtherDigest)},
        checks=("embedding",), reason="another query vector than the committed one",
        complaint="embedding",
    ),
    ServiceCheat(
        name="embedding-off-the-text", family="EMBEDDING",
        description="Embeds something else than the account asked.",
        parts={"mechanism": OffTheText},
        checks=("embedding",), reason="the text's embedding is", complaint="query",
    ),
    ServiceCheat(
        name="sketch-not-of-the-embedding", family="EMBEDDING",
        description="Commits to a sketch that is not the query vector's, to hide a coalition.",
        parts={"mechanism": FalseSketch},
        checks=("embedding",), reason="not the sketch of the query vector", complaint="sketch",
    ),
    ServiceCheat(
        name="answer-differs-from-the-selection", family="RECEIPT",
        description="Leaves a selected document out of the answer.",
        parts={"stages": Stages(logged=WithholdsADocument)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 7", complaint="step 7 (rows)",
    ),
    ServiceCheat(
        name="content-not-of-its-row", family="RECEIPT",
        description="Serves content that the row's digest is not of.",
        parts={"stages": Stages(selected=RewritesContent)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 8",
        complaint="step 8 (commitments)",
    ),
    ServiceCheat(
        name="rows-ordered-by-score", family="RECEIPT",
        description="Answers best first, which tells more than the noised selection.",
        parts={"stages": Stages(logged=OrdersByScore)}, disputes=True,
        checks=("disputes",), reason="upheld by the arbiter: step 4",
        complaint="positions not rising",
    ),
    ServiceCheat(
        name="filter-that-was-not-asked-for", family="RECEIPT",
        description="Commits to a filter in the account's name; the account disputes.",
        parts={"stages": Stages(admitted=HidesAFilter)}, disputes=True,
        checks=("disputes", "embedding"), reason="upheld by the arbiter: step 5",
        complaint="step 5 (openings)",
    ),
)  # fmt: skip
