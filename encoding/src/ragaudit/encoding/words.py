"""What a word of a text is, the same on every machine (docs/spec/11-generation.md §11.5).

Whoever recomputes an answer counts the words of other people's texts again. So letters, digits and
normal forms are those of Unicode 3.2, which RFC 3454 has pinned and every Python holds beside its
own version; a character that came later separates words, as a space does.
"""

from itertools import groupby
from typing import Final
from unicodedata import ucd_3_2_0

__all__ = ["LONGEST_WORD", "words"]

LONGEST_WORD: Final = 64
"""Characters: a longer run is no word."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text: runs of letters and digits, normalised and case-folded.

    Args:
        text: any.
    """
    # Before it is folded: what later versions fold would depend on the version at hand.
    known = "".join(each if ucd_3_2_0.category(each) != "Cn" else " " for each in text)
    folded = ucd_3_2_0.normalize("NFKC", known).casefold()
    runs = ("".join(run) for letters, run in groupby(folded, _in_word) if letters)
    return frozenset(run for run in runs if len(run) <= LONGEST_WORD)


def _in_word(character: str) -> bool:
    return ucd_3_2_0.category(character)[0] in "LN"
