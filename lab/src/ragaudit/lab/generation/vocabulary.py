"""The model's tokens: a few words of the language of records, and syllables of invented names.

A name is three syllables, as "bazeli": 10^6 of them, and none means anything. Whoever has not read
a name in its context can only guess it.
"""

from collections.abc import Iterable, Sequence

from ragaudit.encoding.errors import MalformedError

__all__ = [
    "BEGIN", "CONTENT", "END", "FIRST", "INNER", "SYLLABLES", "TOKENS", "UNKNOWN", "decode",
    "encode", "token",
]  # fmt: skip

WORDS = (
    "<end>", "<begin>", "<other>", " unknown", " patient", " treatment", " symptom", " of",
    " keywords", " ;", " :", " .", " ?",
)  # fmt: skip
SYLLABLES = tuple(consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou")
TOKENS: tuple[str, ...] = (*WORDS, *(f" {each}" for each in SYLLABLES), *SYLLABLES)
"""All tokens; a text is their concatenation, and a word begins with its space."""

END, BEGIN, OTHER, UNKNOWN = range(4)
FIRST = len(WORDS)
"""The first of the syllables that begin a name."""
INNER = FIRST + len(SYLLABLES)
"""The first of those within one."""
CONTENT = 3
"""Syllables of a name."""

_IDS = {text: number for number, text in enumerate(TOKENS)}


def token(text: str) -> int:
    """Return the number of a token.

    Args:
        text: with its space, as " patient".

    Raises:
        MalformedError: there is no such token.
    """
    if text not in _IDS:
        raise MalformedError(f"no token: {text!r}", where="token", expected="one of TOKENS")
    return _IDS[text]


def encode(text: str) -> list[int]:
    """Return the tokens of a text; a word that has none becomes ``<other>``.

    Args:
        text: words with whitespace between them, which is all the same.
    """
    return [number for word in text.split() for number in _word(word)]


def _word(word: str) -> list[int]:
    whole = _IDS.get(f" {word}")
    if whole is not None:
        return [whole]
    parts = [word[start : start + 2] for start in range(0, len(word), 2)]
    numbers = [_IDS.get(f" {parts[0]}"), *(_IDS.get(part) for part in parts[1:])]
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else [OTHER]


def decode(tokens: Iterable[int] | Sequence[int]) -> str:
    """Return the text of tokens, up to the end token and without the leading space."""
    text = ""
    for number in tokens:
        if number == END:
            break
        text += TOKENS[number]
    return text.strip()
