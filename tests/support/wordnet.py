"""WordNet's glosses: 117,659 short texts, and the words that they explain (wordnet-base)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path("/usr/share/wordnet")


class Gloss(NamedTuple):
    """What a synset means.

    Attributes:
        id: part of speech and offset, unique.
        words: of the synset.
        text: the definition, with its examples.
    """

    id: str
    words: tuple[str, ...]
    text: str


def installed() -> bool:
    """Whether the files are there."""
    return (FOLDER / "data.noun").is_file()


def glosses(count: int) -> list[Gloss]:
    """The first glosses of nouns, verbs, adjectives and adverbs, in the order of the files."""
    found: list[Gloss] = []
    for part in ("noun", "verb", "adj", "adv"):
        with (FOLDER / f"data.{part}").open(encoding="ascii") as file:
            # The licence stands before the first synset, indented.
            for line in file:
                if len(found) == count:
                    return found
                if not line.startswith(" "):
                    found.append(_gloss(part, line))
    return found


def _gloss(part: str, line: str) -> Gloss:
    """A line of wndb(5): offset, file, type, count of words (hexadecimal), words, ... | gloss."""
    fields, _, text = line.partition(" | ")
    offset, _, _, count, *rest = fields.split()
    words = tuple(word.replace("_", " ") for word in rest[: 2 * int(count, 16) : 2])
    return Gloss(f"{part}-{offset}", words, text.strip())
