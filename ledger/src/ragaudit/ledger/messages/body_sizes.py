"""How long the JSON of a provider's call may be: as its format needs (docs/spec 8.3)."""

from collections.abc import Mapping
from typing import Final

from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.messages.bodies import (
    Body,
    CloseBody,
    CosignedBody,
    EntriesBody,
    OpeningBody,
    StampsBody,
    WindowBody,
)
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES

__all__ = ["LONGEST", "SHORT_BYTES"]

SHORT_BYTES: Final = 2**16
"""Of a call's body that is not named below, or that has none."""

LONGEST: Final[Mapping[type[Body], int]] = {
    WindowBody: 4 * MAX_OPENING_BYTES,
    OpeningBody: 4 * MAX_OPENING_BYTES,
    EntriesBody: 2**24,
    CosignedBody: 2**25,
    StampsBody: 2**21,
    CloseBody: 2 * MAX_NOTE_BYTES,
}
"""Bytes, in any spelling that a program would choose."""
