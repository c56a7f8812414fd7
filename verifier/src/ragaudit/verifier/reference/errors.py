"""Errors of the reference verifier.

ReferenceVerifierError
├── ProofRejected            the statement, or the proof for it, does not hold
│   ├── InvalidStatement     no proof could be accepted for these public inputs
│   └── MalformedProof       the bytes are not the one encoding of a proof of this statement
└── InvalidNoiseRequest      noise parameters or sizes outside spec 3
"""


class ReferenceVerifierError(Exception):
    """Root of everything that this package raises on purpose."""


class ProofRejected(ReferenceVerifierError):
    """The proof does not establish the statement."""


class InvalidStatement(ProofRejected):
    """The public inputs are outside their ranges, so nothing can be proven about them."""


class MalformedProof(ProofRejected):
    """A point, a scalar or a length is not the canonical one."""


class InvalidNoiseRequest(ReferenceVerifierError):
    """The noise specification does not cover this request."""
