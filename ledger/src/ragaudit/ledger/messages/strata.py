"""The strata of a challenge, by what they are of (docs/spec/09-audit.md §9.1, §9.11)."""

from collections.abc import Sequence
from typing import Annotated, Final, Self, TypeAlias

from ragaudit.ledger.messages.kernel import Integer, Items, Message, Text

__all__ = ["MAX_RECORDS", "Stratum"]

MAX_RECORDS: Final = 2**40
MAX_STRATUM_ID_BYTES: Final = 128

_Index: TypeAlias = Annotated[int, Integer(0, MAX_RECORDS)]
Indices: TypeAlias = Annotated[tuple[_Index, ...], Items(0, MAX_RECORDS)]

_ROWS: Final = "rows:"
_WHOLE: Final = ("tenant:", "charges:", _ROWS)
"""What the ids of strata begin with that hold all there is of a tenant."""


class Stratum(Message):
    """A stratum as the challenge names it.

    Attributes:
        id: ``tenant:<tenant>``, ``account:<pseudonym>``, ``receipts:<tenant>``,
            ``charges:<tenant>`` or ``rows:<tenant>``.
        population: leaf indices; None stands for all of the tenant, which log or index say.
        sample: leaf indices of the entries to open; of ``rows`` positions of the index.
    """

    id: Annotated[str, Text(1, MAX_STRATUM_ID_BYTES)]
    population: Indices | None
    sample: Indices

    @classmethod
    def of(cls, name: str, population: Sequence[int], sample: tuple[int, ...]) -> Self:
        """Return a drawn stratum as a challenge names it.

        Args:
            name: its id.
            population: what it was drawn from; named for submitted receipts alone.
            sample: what was drawn, rising.
        """
        return cls(name, None if name.startswith(_WHOLE) else tuple(population), sample)

    @property
    def whole(self) -> bool:
        """Whether it holds all records, charge entries or rows of a tenant."""
        return self.id.startswith(_WHOLE)

    @property
    def rows_of(self) -> str | None:
        """The tenant whose rows it holds; None of a stratum of log entries."""
        return self.id.removeprefix(_ROWS) if self.id.startswith(_ROWS) else None
