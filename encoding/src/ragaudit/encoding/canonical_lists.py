"""Canonical JSON lists that are too long to be held: one element at a time (spec 1.4)."""

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from ragaudit.encoding.canonical_json import MAX_BYTES, loads
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.json_structure import check_structure

__all__ = ["elements", "located"]

_PIECE_BYTES: Final = 2**16
# It finds where an element ends, no more: numbers are not even read.
_SHORT: Final = 2**17  # characters that take no more than `SPARE_BYTES`, whatever they are
_FIND: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def elements(file: BinaryIO) -> Iterator[Any]:
    """Yield the elements of a canonical JSON list, which is refused where `loads` refuses it.

    An element may be yielded before a later one is found to be malformed.

    Args:
        file: the list's bytes, from the file's position to its end.

    Raises:
        MalformedError: not a list, or not canonical.
    """
    return (value for value, _, _ in located(file))


def located(file: BinaryIO) -> Iterator[tuple[Any, int, int]]:
    """Yield the elements, each with the offsets at which it begins and ends in the list's bytes.

    Args:
        file: as for :func:`elements`.

    Raises:
        MalformedError: as :func:`elements`.
    """
    text, start = _Text(file), 1
    if text.take() != "[":
        raise MalformedError("not a list")
    if text.peek() == "]":
        text.take()
    else:
        separator = ","
        while separator == ",":
            # In a list, as it is in the file: so that it may be nested as deeply, and no deeper.
            alone = f"[{text.element()}]".encode()
            end = start + len(alone) - 2
            yield loads(alone)[0], start, end
            start = end + 1
            separator = text.take()
        if separator != "]":
            raise MalformedError("not JSON", expected="',' or ']' after an element")
    if text.peek():
        raise MalformedError("not in canonical form", expected="nothing behind the list")


class _Text:
    """The text of a file, of which no more is held than the present element needs."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._size = "", 0, 0

    def peek(self) -> str:
        """Return the next character, "" at the end."""
        if self._at == len(self._text):
            self._read(_PIECE_BYTES)
        return self._text[self._at : self._at + 1]

    def take(self) -> str:
        """Return the next character and go behind it."""
        found = self.peek()
        self._at += len(found)
        return found

    def element(self) -> str:
        """Return the JSON value that begins here, as it is written, and go behind it."""
        size = _PIECE_BYTES
        while True:
            end = self._end()
            # A number may go on in what was not read yet.
            if end is not None and end < len(self._text):
                found, self._at = self._text[self._at : end], end
                return found
            if not self._read(size):
                raise MalformedError("not JSON")
            size *= 2  # a long element is not looked through again for each piece

    def _end(self) -> int | None:
        try:
            return _FIND.raw_decode(self._text, self._at)[1]
        except json.JSONDecodeError:
            return None
        except RecursionError as error:
            raise MalformedError("nested too deeply") from error

    def _read(self, size: int) -> bool:
        """Read on; return False at the end."""
        data = self._file.read(size)
        self._size += len(data)
        if self._size > MAX_BYTES:
            raise MalformedError("document too long", expected=f"at most {MAX_BYTES} bytes")
        try:
            more = self._decode.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise MalformedError("document is not UTF-8") from error
        self._text, self._at = self._text[self._at :] + more, 0
        if len(self._text) > _SHORT:
            check_structure(self._text.encode())
        return bool(data)
