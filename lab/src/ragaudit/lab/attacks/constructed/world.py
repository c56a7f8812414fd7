"""Times, embedder, accounts, indexes and answered queries of a constructed window."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import quantise
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.ledger.messages.records import (
    Record,
    Registration,
)
from ragaudit.ledger.messages.requests import Openings, Request

START = 1_900_000_000
END = START + 120
INSTANTS = (START - 10, START + 60, END + 50)
COUNTERSIGNED = START - 30
CLOSED = END + 1
HANDED_OVER = END + 5
CHALLENGED = END + 51
DEADLINE_SECONDS = 1000
BITS = 64
THETA = "0.9"


class HashEmbedder:
    """A deterministic embedder of d dimensions: a text's hash seeds its vector."""

    def __init__(self, dimension: int, name: str = "hash") -> None:
        self.dimension = dimension
        described = EmbedderManifest(name, dimension, "{text}", {}, {})
        self.manifest = described.encode()
        self.digest = described.digest()

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
        return quantise(np.random.default_rng(seed).normal(size=self.dimension))


@dataclass
class Account:
    """A tenant's user; with a nonce chain if it is anchored."""

    name: str
    tenant: str
    pseudonym: bytes
    chain: chains.NonceChain | None
    registration: Registration | None = None
    queries: int = 0

    @property
    def dispute_key(self) -> PrivateKey:
        return PrivateKey.from_seed(hashlib.sha256(f"dispute key of {self.name}".encode()).digest())


@dataclass
class TenantIndex:
    """A tenant's committed index with everything that opens it."""

    tenant: str
    texts: list[str]
    ids: list[str]
    salts: list[bytes]
    rows: npt.NDArray[np.int8]
    blindings: npt.NDArray[np.uint8]
    commitment: IndexCommitment

    @property
    def vectors(self) -> npt.NDArray[np.int8]:
        return np.ascontiguousarray(self.rows[:, :-4])


@dataclass
class Asked:
    """A query that was answered and logged."""

    account: Account
    request: Request
    record: Record
    body: bytes
    salt: bytes
    openings: Openings
    embedding: npt.NDArray[np.int16]
    key: bytes
    noise: npt.NDArray[np.int64]
    served_tenant: str
    selected: tuple[int, ...]
    selection_blinding: bytes
    index: int = -1
