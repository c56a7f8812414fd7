"""The length of stored vectors: one for all tenants, and one that is served."""

from collections.abc import Mapping

from ragaudit.prover.errors import MalformedDocument

MAX_DIMENSION = 3072  # the longest of the usual models; what is tested ends here


def checked_dimension(dimension: int, where: str) -> int:
    """Return d if vectors of this length are served.

    Args:
        where: names the place in an error.

    Raises:
        MalformedDocument: it is not 1 to 3,072.
    """
    if not 1 <= dimension <= MAX_DIMENSION:
        raise MalformedDocument(
            f"vectors of {dimension} entries", where=where, expected=f"1 to {MAX_DIMENSION}"
        )
    return dimension


def one_dimension(found: Mapping[str, int | None]) -> int:
    """Return d, which is the same for all tenants: a window has one.

    Args:
        found: d of each tenant's vectors; None where there are none.

    Raises:
        MalformedDocument: a tenant has no vectors, or two have vectors of different lengths.
    """
    first: tuple[str, int] | None = None
    for tenant, dimension in found.items():
        where = f"tenant {tenant}"
        if dimension is None:
            raise MalformedDocument("no vectors", where=where, expected="documents with vectors")
        checked_dimension(dimension, where)
        if first is None:
            first = (tenant, dimension)
        if dimension != first[1]:
            raise MalformedDocument(
                f"vectors of {dimension} entries",
                where=where,
                expected=f"{first[1]}, as those of tenant {first[0]}: a window has one dimension",
            )
    if first is None:
        raise MalformedDocument("no tenants", expected="a table of tenants in the settings")
    return first[1]
