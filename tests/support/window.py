"""The window that tests of the procedure are about; the cheating suite ships it."""

from ragaudit.lab.attacks.constructed.window import Window
from ragaudit.lab.attacks.constructed.world import (
    BITS,
    CHALLENGED,
    CLOSED,
    COUNTERSIGNED,
    DEADLINE_SECONDS,
    END,
    HANDED_OVER,
    INSTANTS,
    START,
    THETA,
    Account,
    Asked,
    HashEmbedder,
    TenantIndex,
)

__all__ = [
    "BITS",
    "CHALLENGED",
    "CLOSED",
    "COUNTERSIGNED",
    "DEADLINE_SECONDS",
    "END",
    "HANDED_OVER",
    "INSTANTS",
    "START",
    "THETA",
    "Account",
    "Asked",
    "HashEmbedder",
    "TenantIndex",
    "Window",
]
