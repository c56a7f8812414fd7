"""Words of a text, and which of them carry content."""

import re
from typing import Final

__all__ = ["content", "is_text", "sentences", "words"]

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")

_COMMON: Final = frozenset(
    """a about above after again all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing down during each few for from further had
    has have having he her here hers him his how i if in into is it its itself just me more most my
    no nor not now of off on once only or other our out over own same she should so some such than
    that the their them then there these they this those through to too under until up very was we
    were what when where which while who whom why will with would you your yes""".split()  # noqa: SIM905
)


def is_text(text: str) -> bool:
    """Return whether a text can be sent: JSON can name halves of surrogate pairs, UTF-8 cannot."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def words(text: str) -> list[str]:
    """Return the words of a text in their order, in small letters."""
    return [each.casefold() for each in _WORD.findall(text)]


def content(text: str) -> list[str]:
    """Return the words that are neither common nor of fewer than three letters, in their order."""
    return [each for each in words(text) if len(each) > 2 and each not in _COMMON]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in their order, none empty."""
    return [each.strip() for each in _SENTENCE.split(text.strip()) if each.strip()]
