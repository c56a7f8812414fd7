"""WordNet's glosses as a corpus: 117,659 short texts (Debian's wordnet-base)."""

from pathlib import Path

from ragaudit.encoding.errors import RefusedError

__all__ = ["FOLDER", "glosses"]

FOLDER = Path("/usr/share/wordnet")


def glosses(count: int, folder: Path = FOLDER) -> list[str]:
    """Return the first texts of nouns, verbs, adjectives and adverbs, in the order of the files.

    Args:
        count: of texts, at most; there are 117,659.
        folder: with the files of wndb(5).

    Raises:
        RefusedError: the files are not there.
    """
    found: list[str] = []
    for part in ("noun", "verb", "adj", "adv"):
        try:
            lines = (folder / f"data.{part}").read_text(encoding="ascii").splitlines()
        except OSError as error:
            raise RefusedError(
                "WordNet is not installed", where=str(folder), expected="Debian's wordnet-base"
            ) from error
        # The licence stands before the first synset, indented.
        found += [
            line.partition(" | ")[2].strip() for line in lines if not line.startswith(" ")
        ]  # fmt: skip
        if len(found) >= count:
            break
    return found[:count]
