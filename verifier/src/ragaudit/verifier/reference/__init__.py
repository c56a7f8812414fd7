"""A second verifier of the arguments and of the noise, in plain Python.

Written from docs/spec alone, to be read beside it: standard library only, no code of ours, no
compiled code but CPython's own. Slow on purpose where speed would cost clarity.
"""

from .budget import verify_budget
from .charge import ChargeEntry, verify_charge
from .errors import (
    InvalidNoiseRequest,
    InvalidStatement,
    MalformedProof,
    ProofRejected,
    ReferenceVerifierError,
)
from .index import verify_index
from .noise import sample_noise
from .pairing import verify_round
from .selection import verify_selection
from .ties import verify_ties

__all__ = [
    "ChargeEntry",
    "InvalidNoiseRequest",
    "InvalidStatement",
    "MalformedProof",
    "ProofRejected",
    "ReferenceVerifierError",
    "sample_noise",
    "verify_budget",
    "verify_charge",
    "verify_index",
    "verify_round",
    "verify_selection",
    "verify_ties",
]
