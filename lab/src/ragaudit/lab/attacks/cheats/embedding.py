"""Checks containment and embedding: another index, filter, vector or sketch than the query has."""

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.encoding.digests import salted, structure
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.accounts import Asked
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.requests import Openings, Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Admitted, Query, Stages

Embedding = npt.NDArray[np.int16]


class OtherTenant(Query):
    """Plain accounts are served from, and logged under, another tenant's index.

    Check 10 (`containment`) compares each record's tenant with its registration's.
    """

    def admit(self, *, anchored: bool) -> Admitted:
        admitted = super().admit(anchored=anchored)
        if anchored:
            return admitted
        own = admitted.registered
        other = next(tenant for tenant in self.window.indexes if tenant != own.tenant)
        return replace(admitted, registered=replace(own, tenant=other))


class HidesAFilter(Admitted):
    """Commits to a filter that nobody asked for.

    Check 18 (`embedding`) opens the filter to the empty text only.
    """

    def openings(self, request: Request) -> Openings:
        return replace(super().openings(request), filter="price < 10")


class OtherDigest(Admitted):
    """The record's digest is of another vector than the one that is opened.

    Check 18 (`embedding`) opens e under the record's digest.
    """

    def record(self, request: Request, openings: Openings) -> Record:
        record = super().record(request, openings)
        digest = salted(openings.salt_e, structure("another vector", record.embedding_digest))
        return replace(record, embedding_digest=digest)


class OffTheText(Mechanism):
    """The vector is of the question and something that the account did not write.

    Check 18 (`embedding`) embeds the text again and allows the policy's tolerance.
    """

    def embed(self, query: str) -> npt.NDArray[np.float32]:
        return super().embed(f"{query} (sponsored)")


class FalseSketch(Mechanism):
    """The sketch of the opposite vector: the estimator sees other neighbours.

    Check 18 (`embedding`) recomputes the sketch from e.
    """

    def sketch(self, embedding: Embedding, seed: bytes, bits: int) -> bytes:
        return bytes(255 - byte for byte in super().sketch(embedding, seed, bits))


class LongQuery(Window):
    """A query vector of twice the length: beside such scores the noise is small.

    Check 18 (`embedding`) wants |e|² <= B².
    """

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        vector = super().embed(text)
        return (2 * vector).astype(np.int16) if text == "second question of bob" else vector

    def prove(self, asked: Asked) -> bytes:
        # The core proves nothing about such a vector, and check 18 owns the defect (spec 9.6):
        # check 19 does not run for this record, with a proof or without.
        return b"" if asked.request.query == "second question of bob" else super().prove(asked)


CHEATS: Final = (
    ServiceCheat(
        name="another-tenants-index", family="CONTAINMENT",
        description="Serves accounts of one tenant from the index of another.",
        parts={"stages": Stages(query=OtherTenant)},
        checks=("containment",), reason="tenant beta", complaint="tenant",
    ),
    ServiceCheat(
        name="filter-not-the-requests", family="SELECTION",
        description="Commits to a filter, which this policy does not have, and hides it.",
        parts={"stages": Stages(admitted=HidesAFilter)},
        checks=("embedding",), reason="a filter, which the policy does not have",
        complaint="filter",
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
    ConstructedCheat(
        name="embedding-of-norm-over-b", family="EMBEDDING",
        description="Stretches the query vector, so that scores outgrow the noise.",
        why="the proof core proves nothing about such a vector",
        window=LongQuery,
        checks=("embedding",), reason="squared norm",
    ),
)  # fmt: skip
