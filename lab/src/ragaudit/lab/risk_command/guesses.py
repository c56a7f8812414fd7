"""Reading the (target, guess) pairs of an attack from a file."""

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ragaudit.encoding.errors import MalformedError

if TYPE_CHECKING:
    from ragaudit.lab.risk.simulation import Guesses

__all__ = ["read_guesses"]

LARGEST_FILE = 2**30
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


def read_guesses(path: Path) -> "Guesses":
    """Return the pairs of targets and guesses in a file.

    Args:
        path: CSV with the columns target and guess, or a JSON list of pairs; records are numbered
            from 0. At most 1 GiB.

    Raises:
        MalformedError: no such file, too large, or a row that is no pair of record numbers.
    """
    import numpy as np  # noqa: PLC0415
    from ragaudit.lab.risk.simulation import Guesses  # noqa: PLC0415

    try:
        if path.stat().st_size > LARGEST_FILE:
            raise MalformedError("file too large", where=str(path), expected="at most 1 GiB")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError("not readable as text", where=str(path)) from error
    rows = _json(text, path) if text.lstrip().startswith("[") else _csv(text, path)
    if not rows:
        raise MalformedError("no pairs", where=str(path), expected="target,guess")
    table = np.array(rows, dtype=np.int64)
    return Guesses(table[:, 0], table[:, 1])


def _csv(text: str, path: Path) -> list[tuple[int, int]]:
    reader = csv.DictReader(text.splitlines())
    if reader.fieldnames is None or not {"target", "guess"} <= set(reader.fieldnames):
        raise MalformedError(
            "no such columns", where=f"{path} line 1", expected="target,guess as the first line"
        )
    try:
        return [
            _pair(row["target"], row["guess"], f"{path} line {number}")
            for number, row in enumerate(reader, start=2)
        ]
    except csv.Error as error:
        raise MalformedError("not CSV", where=str(path)) from error


def _json(text: str, path: Path) -> list[tuple[int, int]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON", where=str(path)) from error
    found = []
    for number, row in enumerate(rows):
        match row:
            case [target, guess] | {"target": target, "guess": guess}:
                found.append(_pair(target, guess, f"{path} entry {number}"))
            case _:
                raise MalformedError(
                    "not a pair", where=f"{path} entry {number}", expected="[target, guess]"
                )
    return found


def _pair(target: object, guess: object, where: str) -> tuple[int, int]:
    values = []
    for value in (target, guess):
        text = str(value).strip()
        if isinstance(value, bool | float) or not _NUMBER.fullmatch(text):
            raise MalformedError("no record number", where=where, expected="0 to 999999999")
        values.append(int(text))
    return values[0], values[1]
