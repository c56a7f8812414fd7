"""Accounts, indexes and answered queries of a window."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.quantise import IntegerRows
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.entries import (
    Record,
    Registration,
)
from ragaudit.ledger.messages.requests import Openings, Request


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
        """Return the key, made from the name, that signs what the account says (spec 5.10)."""
        return seeded(f"dispute key of {self.name}")


@dataclass
class TenantIndex:
    """A tenant's committed index with everything that opens it.

    Attributes:
        rows: int8 or int16[N, d+4], completed.
        columns, attributes: texts of each row; empty: no row has any.
        version: v.
    """

    tenant: str
    texts: list[str]
    ids: list[str]
    salts: list[bytes]
    rows: IntegerRows
    blindings: npt.NDArray[np.uint8]
    commitment: IndexCommitment
    columns: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    version: int = 1

    @property
    def vectors(self) -> IntegerRows:
        """Return [N, d]: the rows without the four integers that complete their norm to B²."""
        return self.rows[:, :-4].copy()


@dataclass
class Asked:
    """A query that was answered and logged.

    Attributes:
        record, body: the record, and the bytes that were logged; a cheat may let them differ.
        salt: of the leaf.
        embedding: int16[d], the query vector e.
        key: k, the key of the noise (docs/spec/05-records.md §5.5), 32 bytes.
        noise: int64[N], z for every row of the index.
        served_tenant: whose index was scored; an honest window's is the account's.
        selected: T, row positions in rising order.
        selection_blinding: rho_sel, a canonical scalar of 32 bytes.
        index: place in the log; -1 until the record is logged.
        answered_by: the index that was scored; None for version 1 of the served tenant's.
        served: positions of the answer in their order; of a noised window all of T, rising.
        withdrawn: positions of the answer that were left out since their documents changed.
    """

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
    answered_by: TenantIndex | None = None
    served: tuple[int, ...] = ()
    withdrawn: tuple[int, ...] = ()
