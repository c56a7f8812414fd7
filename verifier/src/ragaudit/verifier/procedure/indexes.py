"""What an index commitment must be before it is believed: its place, its size, its argument."""

from ragaudit.circuits.statements import IndexStatement, check_index_size
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.engines import Engine


def check_place(index: IndexCommitment, policy: Policy, tenant: str, version: int) -> None:
    """Check that a commitment says of itself what it is handed over as.

    Args:
        index: parsed.
        policy: of the window.
        tenant, version: as it is handed over.

    Raises:
        RejectedError: of another window, tenant, version or dimension.
    """
    place = (index.window, index.tenant, index.version, index.dimension)
    due = (policy.window, tenant, version, policy.dimension)
    if place != due:
        raise RejectedError(f"of {place}", expected=f"{due}")


def verify_argument(index: IndexCommitment, policy: Policy, engine: Engine) -> None:
    """Check pi_idx: every row is an integer vector of squared norm B² (spec 4.7).

    Args:
        index: parsed.
        policy: of the window.
        engine: who checks.

    Raises:
        RejectedError: the argument does not hold, or the index is too large for it.
    """
    try:
        check_index_size(index.rows, index.dimension, policy.squared_norm)
    except MalformedError as error:
        raise RejectedError(error.what, expected=error.expected) from None
    statement = IndexStatement.of(
        policy_digest=policy.digest,
        window=index.window,
        tenant=index.tenant,
        version=index.version,
        index_root=index.root,
        dimension=index.dimension,
        commitments=index.commitments,
        squared_norm=policy.squared_norm,
    )
    engine.verify_index(statement, index.proof)


def verify_version(
    data: bytes, policy: Policy, tenant: str, version: int, engine: Engine
) -> IndexCommitment:
    """Return a later version of an index, which holds by itself; the log says whether it counts.

    Args:
        data: the commitment as handed over.
        policy: of the window.
        tenant, version: as it is handed over.
        engine: who checks.

    Raises:
        MalformedError: not an index commitment, or columns that the policy does not declare.
        RejectedError: as `check_place` and `verify_argument`.
    """
    index = IndexCommitment.parse(data)
    check_place(index, policy, tenant, version)
    index.column_values(policy)
    verify_argument(index, policy, engine)
    return index
