"""The value of a plan in the place of a number that does not exist."""

from dataclasses import dataclass

__all__ = ["Missing"]


@dataclass(frozen=True)
class Missing:
    """A number that does not exist.

    Attributes:
        reason: why, a clause without a full stop.
    """

    reason: str
