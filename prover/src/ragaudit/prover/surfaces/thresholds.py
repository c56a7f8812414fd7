"""Score thresholds of applications (docs/surfaces.md).

In a private window every score is the same constant, so a threshold passes all rows or none: one
that none can pass is refused, before it costs a query. In an integrity window the true scores
leave, and the rows below the threshold are left out of what the application sees; the receipt has
them all.
"""

from collections.abc import Sequence

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.prover.surfaces.queries import PRIVATE_SIMILARITY, Hit


def check_threshold(threshold: float | None) -> None:
    """Check that a row can pass a threshold.

    Args:
        threshold: a similarity; None for none.

    Raises:
        UnsupportedError: above what any row has.
    """
    if threshold is not None and not threshold <= PRIVATE_SIMILARITY:
        raise UnsupportedError("nothing can pass", where="score_threshold", expected="at most 1.0")


def passing(hits: Sequence[Hit], threshold: float | None) -> list[Hit]:
    """Return the rows from a threshold on, in their order; all of them if it is None."""
    return [hit for hit in hits if threshold is None or hit.similarity >= threshold]
