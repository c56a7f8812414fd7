"""The ten checks of a receipt (docs/spec/05-records.md §5.9), for accounts and for disputes.

Group and sketch operations are handed in: this member holds no compiled code and no numpy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

from ragaudit.encoding.digests import salted, structure
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.cosignatures import CosignerPolicy
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.notes import VerifierKey
from ragaudit.ledger.policy import Policy
from ragaudit.ledger.tree import TreeHead, leaf_hash, verify_inclusion

__all__ = [
    "AccountView",
    "Embed",
    "GroupOperations",
    "StepResult",
    "WindowView",
    "check_receipt_file",
]

SQUARED_NORM = 16129
"""Norm of every completed row, the square of the norm bound 127 (docs/spec/02-integers.md)."""


class GroupOperations(Protocol):
    """What the check needs from `ragaudit.core` and `ragaudit.circuits`."""

    def commit_row(self, row: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to d + 4 integers; MalformedError outside their range."""

    def commit_selection(self, positions: Sequence[int], blinding: bytes) -> bytes:
        """Return the 32-byte commitment to a set of positions."""

    def sketch(self, query: Sequence[int], seed: bytes, bits: int) -> bytes:
        """Return the sketch of a query embedding."""


Embed = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Texts to quantised embeddings, by the committed embedder."""


@dataclass(frozen=True)
class StepResult:
    """One check: ``done`` and passed, or ``not done`` with what it lacked."""

    number: int
    name: str
    status: Literal["done", "not done"]
    detail: str = ""
