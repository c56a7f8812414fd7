"""Checks containment and embedding: another index, filter, vector or sketch than the query has."""

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import salted, structure
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.opening import Asked
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Admitted, Query

Embedding = npt.NDArray[np.int16]


embedded = partial(ServiceCheat, checks=("embedding",))


@ServiceCheat(
    "another-tenants-index",
    "CONTAINMENT",
    ("containment",),
    reason="tenant beta",
    complaint="tenant",
)
class OtherTenant(Query):
    """Serves accounts of one tenant from the index of another.

    The accounts are plain, and their records name that other tenant.

    Check 10 (`containment`) compares each record's tenant with its registration's.
    """

    def admit(self, *, anchored: bool) -> Admitted:
        admitted = super().admit(anchored=anchored)
        if anchored:
            return admitted
        own = admitted.registered
        other = next(tenant for tenant in self.window.indexes if tenant != own.tenant)
        return replace(admitted, registered=replace(own, tenant=other))


@ServiceCheat(
    "filter-that-was-not-asked-for",
    "RECEIPT",
    ("disputes", "embedding"),
    description="Commits to a filter in the account's name; the account disputes.",
    disputes=True,
    reason="upheld by the arbiter: step 5",
    complaint="step 5 (openings)",
)
@embedded(
    "filter-not-the-requests",
    "SELECTION",
    reason="a filter, which the policy does not have",
    complaint="filter",
)
class HidesAFilter(Admitted):
    """Commits to a filter, which this policy does not have, and hides it.

    Nobody asked for the filter.

    Check 18 (`embedding`) opens the filter to the empty text only.
    """

    def openings(self, request: Request) -> Openings:
        return replace(super().openings(request), filter="price < 10")


@embedded(
    "embedding-not-the-digests",
    "EMBEDDING",
    reason="another query vector than the committed one",
    complaint="embedding",
)
class OtherDigest(Admitted):
    """Opens another query vector than the record's digest is of.

    Check 18 (`embedding`) opens e under the record's digest.
    """

    def record(self, request: Request, openings: Openings) -> Record:
        record = super().record(request, openings)
        digest = salted(openings.salt_e, structure("another vector", record.embedding_digest))
        return replace(record, embedding_digest=digest)


@embedded(
    "embedding-off-the-text", "EMBEDDING", reason="the text's embedding is", complaint="query"
)
class OffTheText(Mechanism):
    """Embeds something else than the account asked.

    The vector is of the question and a text that the account did not write.

    Check 18 (`embedding`) embeds the text again and allows the policy's tolerance.
    """

    def embed(self, query: str) -> npt.NDArray[np.float32]:
        return super().embed(f"{query} (sponsored)")


@embedded(
    "sketch-not-of-the-embedding",
    "EMBEDDING",
    reason="not the sketch of the query vector",
    complaint="sketch",
)
class FalseSketch(Mechanism):
    """Commits to a sketch that is not the query vector's, to hide a coalition.

    It is the sketch of the opposite vector, so that the estimator sees other neighbours.

    Check 18 (`embedding`) recomputes the sketch from e.
    """

    def sketch(self, embedding: Embedding, seed: bytes, bits: int) -> bytes:
        return bytes(255 - byte for byte in super().sketch(embedding, seed, bits))


@ConstructedCheat(
    "embedding-of-norm-over-b",
    "EMBEDDING",
    ("embedding",),
    why="the proof core proves nothing about such a vector",
    reason="squared norm",
)
class LongQuery(Window):
    """Stretches the query vector, so that scores outgrow the noise.

    It has twice the length.

    Check 18 (`embedding`) wants |e|² <= B².
    """

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        vector = super().embed(text)
        return (2 * vector).astype(np.int16) if text == "second question of bob" else vector

    def prove(self, asked: Asked) -> bytes:
        # The core proves nothing about such a vector, and check 18 owns the defect (spec 9.6):
        # check 19 does not run for this record, with a proof or without.
        return b"" if asked.request.query == "second question of bob" else super().prove(asked)
