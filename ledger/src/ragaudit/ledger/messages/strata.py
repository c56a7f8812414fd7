"""The strata of a challenge, by what they are of (docs/spec/09-audit.md §9.1, §9.11)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from ragaudit.ledger.messages.fields import Fields, JsonMessage

__all__ = ["MAX_RECORDS", "Stratum"]

MAX_RECORDS: Final = 2**40
MAX_STRATUM_ID_BYTES: Final = 128

_ROWS: Final = "rows:"
_WHOLE: Final = ("tenant:", "charges:", _ROWS)
"""What the ids of strata begin with that hold all there is of a tenant."""


@dataclass(frozen=True, slots=True)
class Stratum(JsonMessage):
    """A stratum as the challenge names it.

    Attributes:
        id: ``tenant:<tenant>``, ``account:<pseudonym>``, ``receipts:<tenant>``,
            ``charges:<tenant>`` or ``rows:<tenant>``.
        population: leaf indices; None stands for all of the tenant, which log or index say.
        sample: leaf indices of the entries to open; of ``rows`` positions of the index.
    """

    MEMBERS: ClassVar[str] = "id population sample"

    id: str
    population: tuple[int, ...] | None
    sample: tuple[int, ...]

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

    def _members(self) -> dict[str, Any]:
        population = None if self.population is None else list(self.population)
        return {"id": self.id, "population": population, "sample": list(self.sample)}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        bounds = ((0, MAX_RECORDS), 0, MAX_RECORDS)
        population = f.optional(f.integers, "population", *bounds)
        return cls(f.text("id", 1, MAX_STRATUM_ID_BYTES), population, f.integers("sample", *bounds))
