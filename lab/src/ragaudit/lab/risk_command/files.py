"""Numbers and labels that are given as text, or in a file."""

import json
from pathlib import Path

from ragaudit.encoding.errors import MalformedError

__all__ = ["read_labels", "read_matrix", "read_numbers"]

LARGEST_BYTES = 256 * 2**20


def read_numbers(text: str, option: str) -> list[float]:
    """Return a list of numbers.

    Args:
        text: JSON, or numbers apart by commas and spaces; or the name of a file of them.
        option: of the command line, for the error.

    Raises:
        MalformedError: named after the option.
    """
    text = _content(text, option)
    values = _json(text, option) if _is_json(text) else text.replace(",", " ").split()
    return _floats(values, option)


def read_matrix(path: Path, option: str) -> list[list[float]]:
    """Return rows of numbers.

    Args:
        path: a JSON list of lists, or CSV without a heading; at most 256 MiB.
        option: of the command line, for the error.

    Raises:
        MalformedError: named after the option.
    """
    text = _read(path, option)
    if not _is_json(text):
        rows: object = [line.replace(",", " ").split() for line in text.splitlines() if line]
    else:
        rows = _json(text, option)
    if not isinstance(rows, list):
        raise MalformedError("not a matrix", where=option, expected="a list of rows")
    return [_floats(row, f"{option} row {number}") for number, row in enumerate(rows, start=1)]


def read_labels(text: str, option: str) -> list[str]:
    """Return one label per record.

    Args:
        text: a JSON list, or labels apart by commas or lines; or the name of a file of them.
        option: of the command line, for the error.

    Raises:
        MalformedError: named after the option.
    """
    text = _content(text, option)
    if not _is_json(text):
        return [label.strip() for label in text.strip().replace("\n", ",").split(",")]
    labels = _json(text, option)
    if not isinstance(labels, list) or not all(isinstance(each, str | int) for each in labels):
        raise MalformedError("not labels", where=option, expected="a list of texts or integers")
    return [str(label) for label in labels]


def _content(text: str, option: str) -> str:
    """The text itself, or that of the file of this name."""
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):
        is_file = False
    return _read(Path(text), option) if is_file else text


def _read(path: Path, option: str) -> str:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise MalformedError("file too large", where=option, expected="at most 256 MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError("not readable as text", where=f"{option} {path}") from error


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("[")


def _json(text: str, option: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON", where=option, expected="a list") from error


def _floats(values: object, option: str) -> list[float]:
    # Python would read true as 1.
    if not isinstance(values, list) or any(isinstance(value, bool) for value in values):
        raise MalformedError("not a list of numbers", where=option, expected="0.5,0.3,0.2")
    try:
        return [float(value) for value in values]
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedError(
            "not a list of numbers, nor a file", where=option, expected="0.5,0.3,0.2"
        ) from error
