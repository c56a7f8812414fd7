"""The ways to ask about a document, apart from what they ask: help needs the names alone."""

from enum import StrEnum
from typing import Final


class Strategy(StrEnum):
    """A way to ask; each makes at least three questions of a document."""

    VERBATIM = "verbatim"
    CITATION = "citation"
    FACT = "fact"
    S2MIA = "s2mia"
    INTERROGATION = "interrogation"
    MASK = "mask"


DEFAULT: Final = (Strategy.VERBATIM, Strategy.CITATION, Strategy.FACT)
