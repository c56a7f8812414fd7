"""Contexts that bind a proof to its window, tenant and record (spec 5.4, 5.7)."""

from ragaudit.encoding.digests import structure
from ragaudit.encoding.tagged import read_digest

__all__ = ["index_context", "selection_context"]


def selection_context(
    *,
    policy_digest: bytes,
    window: str,
    tenant: str,
    version: int,
    index_root: bytes,
    seed_root: bytes,
    activation_randomness: bytes,
    body: bytes,
) -> bytes:
    """Return the 32-byte context of a record's selection argument.

    Args:
        policy_digest: C_policy.
        window, tenant, version: as in the record body.
        index_root: root of C_idx[t, v].
        seed_root: root of C_seed of the record's epoch.
        activation_randomness: rnd_a.
        body: the record body without an eager proof digest.

    Raises:
        MalformedError: a digest that is not 32 bytes.
    """
    return structure(
        "context/selection",
        read_digest(policy_digest),
        window,
        tenant,
        version,
        read_digest(index_root),
        read_digest(seed_root),
        read_digest(activation_randomness),
        body,
    )


def index_context(
    *, policy_digest: bytes, window: str, tenant: str, version: int, index_root: bytes
) -> bytes:
    """Return the 32-byte context of an index argument; digests as in a selection context."""
    return structure(
        "context/index",
        read_digest(policy_digest),
        window,
        tenant,
        version,
        read_digest(index_root),
    )
