"""The neighbouring relation: between which two data sets a privacy promise is made.

One word with one meaning for policies, guarantees, events and reports.
"""

from enum import StrEnum
from typing import Final, Self

from ragaudit.encoding.errors import InvalidArgumentError

__all__ = ["FIXED_SIZE", "NeighboringRelation"]


class NeighboringRelation(StrEnum):
    """Which two data sets are neighbours; the value is the word that documents use.

    Attributes:
        ADD_REMOVE: one has a record that the other lacks.
        REPLACE: one record differs; both have the same number of records.
        NULL_REPLACE: one record is the null record in one of them; the same number of records.
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
    NULL_REPLACE = "null-replace"

    @classmethod
    def of(cls, value: object, where: str = "relation") -> Self:
        """Return a relation from itself or from its word.

        Args:
            value: one of the words, or a relation.
            where: the argument's name, for the error.

        Raises:
            InvalidArgumentError: another text, or another type.
        """
        try:
            return cls(str(value) if isinstance(value, str) else "")
        except ValueError:
            actual = repr(value[:40]) if isinstance(value, str) else f"type {type(value).__name__}"
            raise InvalidArgumentError(
                f"unknown relation: {actual}", where=where, expected=", ".join(cls)
            ) from None


FIXED_SIZE: Final = (NeighboringRelation.REPLACE, NeighboringRelation.NULL_REPLACE)
"""The relations that a policy can name: positions are released, so the size is public."""
