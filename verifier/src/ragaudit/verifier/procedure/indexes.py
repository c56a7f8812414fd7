"""What an index commitment must be before it is believed: its place, its size, its argument."""

from fractions import Fraction

from ragaudit.circuits.metrics import INNER_PRODUCT
from ragaudit.circuits.statements import IndexStatement, NormOpening, check_index_size, split_proof
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.messages.columns import NULL_ROW
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.engines import Engine


def check_place(index: IndexCommitment, policy: Policy, tenant: str, version: int) -> None:
    """Check that a commitment says of itself what it is handed over as.

    Args:
        index: parsed.
        policy: of the window.
        tenant, version: as it is handed over.

    Raises:
        RejectedError: of another window, tenant, version or dimension; or its rows have id keys
            where the policy has no ``owners``, or none where it has.
    """
    place = (index.window, index.tenant, index.version, index.dimension)
    due = (policy.window, tenant, version, policy.dimension)
    if place != due:
        raise RejectedError(f"of {place}", expected=f"{due}")
    if bool(index.id_keys) != (policy.owners is not None):
        expected = "none without owners" if policy.owners is None else "one of each row"
        raise RejectedError("id keys", expected=expected)


def verify_argument(index: IndexCommitment, policy: Policy, engine: Engine) -> None:
    """Check pi_idx: every row is an integer vector of squared norm B² (spec 4.7).

    Args:
        index: parsed.
        policy: of the window.
        engine: who checks.

    Raises:
        RejectedError: the argument does not hold, or the index is too large for it; or, with inner
            products, what is said of the norm of a row.
        MalformedError: a proof without that.
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
    if not at_one_scale(policy):
        engine.verify_index(statement, index.proof)
        return
    proof, opening = split_proof(index.proof)
    engine.verify_index(statement, proof)
    _verify_opening(statement, opening, engine)


def at_one_scale(policy: Policy) -> bool:
    """Return whether rows keep their lengths, so that one number scales all of them."""
    return policy.retrieval.metric == INNER_PRODUCT


def _verify_opening(statement: IndexStatement, opening: NormOpening, engine: Engine) -> None:
    """Check a norm opening (spec 4.7.7); RejectedError, MalformedError."""
    if not 0 <= opening.position < statement.rows:
        raise RejectedError(f"the norm of row {opening.position}", expected="a row of the index")
    own = statement.commitments[32 * opening.position :][:32]
    commitments = []
    for vector in opening.shifts(statement.dimension, statement.squared_norm):
        away = engine.commit_row([-entry for entry in vector], bytes(32))
        # The sum of the points before the third place.
        commitments += engine.running_sums(own + away + own, [2])
    engine.verify_index(opening.statement(statement, b"".join(commitments)), opening.proof)


def check_norm(index: IndexCommitment, policy: Policy, most: Fraction) -> None:
    """Check that the largest norm of a policy is not far above that of every row (spec 4.7.7).

    Args:
        index: whose argument was verified.
        policy: of the window.
        most: by which factor at most, of the verifier's terms.

    Raises:
        RejectedError: it is, so that rows are rounded to nothing.
    """
    # Deleted documents have no length; where all are, nothing is answered.
    if not at_one_scale(policy) or set(index.columns) == {NULL_ROW}:
        return
    _, opening = split_proof(index.proof)
    length = opening.squared_length(policy.squared_norm)
    if length * most * most < policy.squared_norm:
        raise RejectedError(
            f"the longest row that is shown has squared norm {length} of {policy.squared_norm}: "
            f"largest_norm is {policy.retrieval.largest_norm}",
            where="most_norm_ratio",
            expected=f"at most {float(most):g} times the largest norm of a row",
        )


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
