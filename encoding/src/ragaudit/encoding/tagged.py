"""Tagged, injective encoding of field lists (docs/spec/01-encoding.md §1.1)."""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import BinaryIO, TypeAlias

from ragaudit.encoding.errors import MalformedError

Field: TypeAlias = bytes | str | int | None

INT_BYTES = 8
DIGEST_BYTES = 32
MAX_TAG_BYTES = 2**16 - 1
MAX_FIELDS = 2**16 - 1

_INT_MIN = -(2**63)
_INT_MAX = 2**63 - 1
_LENGTH = Struct("<Q")
_MOST_LAYOUTS = 1024  # a stranger chooses lengths: what is remembered of them is bounded
_MOST_REMEMBERED = 64  # fields: messages with more are rare, and their layouts large
# By head and size: how the last message was laid out, and the lengths of its fields.
_layouts: dict[tuple[bytes, int], tuple[Struct, tuple[int, ...]]] = {}


def enc(tag: str, *fields: Field) -> bytes:
    """Return ``le(|tag|,2) || tag || le(n,2) || le(|f|,8) || f ...``.

    Texts are UTF-8, integers 8 bytes two's complement little endian, None is zero bytes. The
    encoding is injective in (tag, byte strings of the fields); the *type* of a field is fixed by
    its place under the tag.

    Args:
        tag: 1 to 65,535 bytes of UTF-8.
        fields: at most 65,535.

    Raises:
        MalformedError: an integer outside [-2^63, 2^63), text that is not Unicode (lone
            surrogates), an empty or too long tag, too many fields.
        TypeError: a field of any other type (bool included).
    """
    # Every length stands before what it measures: no field can run over into the next.
    parts = [_head(tag, len(fields))]
    for field in fields:
        data = _field_bytes(field)
        parts += (_LENGTH.pack(len(data)), data)
    return b"".join(parts)


def decode(tag: str, data: bytes, count: int) -> tuple[bytes, ...]:
    """Return the ``count`` fields of ``data``; the strict inverse of ``enc``.

    Args:
        tag: that ``data`` must have.
        data: all of the encoding.
        count: number of fields.

    Raises:
        MalformedError: another tag, another number of fields, a field that runs past the end, or
            bytes left over.
    """
    # Tag and count are the reader's: the data has no say in how it is read.
    head = _head(tag, count)
    # Messages of one kind and size mostly have fields of the same lengths: a million records of a
    # log take a third of the time that the loop takes. Lengths that differ are read one by one.
    known = _layouts.get((head, len(data)))
    if known is not None:
        layout, lengths = known
        parts = layout.unpack(data)
        if parts[0] == head and parts[1::2] == lengths:
            return parts[2::2]
    fields = _split(tag, head, data, count)
    if count > _MOST_REMEMBERED:
        return fields
    if len(_layouts) >= _MOST_LAYOUTS:
        _layouts.clear()
    lengths = tuple(map(len, fields))
    form = "".join(f"Q{length}s" for length in lengths)
    _layouts[head, len(data)] = Struct(f"<{len(head)}s{form}"), lengths
    return fields


def _split(tag: str, head: bytes, data: bytes, count: int) -> tuple[bytes, ...]:
    """The fields of `decode`, one by one."""
    if not data.startswith(head):
        raise MalformedError("wrong tag or field count", where=tag, expected=f"{count} fields")
    fields: list[bytes] = []
    at, size = len(head), len(data)
    for number in range(count):
        if size - at < INT_BYTES:
            raise MalformedError("truncated", where=f"{tag} field {number}")
        start = at + INT_BYTES
        at = start + _LENGTH.unpack_from(data, at)[0]
        # Before the slice, which would take what there is and say nothing.
        if at > size:
            raise MalformedError("field runs past the end", where=f"{tag} field {number}")
        fields.append(data[start:at])
    # Bytes left over would give one message many encodings, and so many digests.
    if at != size:
        raise MalformedError("bytes left over", where=tag, expected=f"{at} bytes in all")
    return tuple(fields)


def stream(tag: str, file: BinaryIO, count: int, most: int) -> Iterator[bytes]:
    """Yield the ``count`` fields of an encoding that is too long to be read whole.

    Args:
        tag, count: as of ``decode``.
        file: at the first byte of the encoding, which is all that follows.
        most: bytes of the longest field; of a longer one nothing is read.

    Raises:
        MalformedError: as ``decode``, where the reader gets there, or a field is too long.
    """
    head = _head(tag, count)
    if file.read(len(head)) != head:
        raise MalformedError("wrong tag or field count", where=tag, expected=f"{count} fields")
    for number in range(count):
        where = f"{tag} field {number}"
        length = file.read(INT_BYTES)
        if len(length) < INT_BYTES:
            raise MalformedError("truncated", where=where)
        (size,) = _LENGTH.unpack(length)
        # Before it is read: a length is eight bytes, whatever it says.
        if size > most:
            raise MalformedError("field too long", where=where, expected=f"at most {most} bytes")
        field = file.read(size)
        if len(field) < size:
            raise MalformedError("field runs past the end", where=where)
        yield field
    if file.read(1):
        raise MalformedError("bytes left over", where=tag, expected=f"{count} fields")


@lru_cache(256)
def _head(tag: str, count: int) -> bytes:
    name = _text_bytes(tag)
    if not 1 <= len(name) <= MAX_TAG_BYTES:
        raise MalformedError("tag length out of range", expected=f"1 to {MAX_TAG_BYTES} bytes")
    if count > MAX_FIELDS:
        raise MalformedError("too many fields", where=tag, expected=f"at most {MAX_FIELDS}")
    return len(name).to_bytes(2, "little") + name + count.to_bytes(2, "little")


def read_int(field: bytes) -> int:
    """Return the integer of an 8-byte field.
    Raises:
        MalformedError: another length.
    """
    if len(field) != INT_BYTES:
        raise MalformedError("integer field has a wrong length", expected="8 bytes")
    return int.from_bytes(field, "little", signed=True)


def read_text(field: bytes) -> str:
    """Return the text of a field.

    Args:
        field: as `decode` returns it; Unicode is not normalised.

    Raises:
        MalformedError: not strict UTF-8.
    """
    try:
        return field.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError("text field is not UTF-8") from error


def read_digest(field: bytes) -> bytes:
    """Return a 32-byte digest field.
    Raises:
        MalformedError: another length.
    """
    if len(field) != DIGEST_BYTES:
        raise MalformedError("digest field has a wrong length", expected="32 bytes")
    return field


def read_optional_digest(field: bytes) -> bytes | None:
    """Return a 32-byte digest field, or None when the field is absent (zero length).
    Raises:
        MalformedError: another length.
    """
    return read_digest(field) if field else None


def read_optional_int(field: bytes) -> int | None:
    """Return an integer field, or None when the field is absent (zero length).

    Raises:
        MalformedError: another length.
    """
    return read_int(field) if field else None


def _field_bytes(field: Field) -> bytes:
    if field is None:
        return b""
    if isinstance(field, bytes):
        return field
    if isinstance(field, str):
        return _text_bytes(field)
    # To Python true is an int; it would be encoded as the number 1.
    if isinstance(field, int) and not isinstance(field, bool):
        if not _INT_MIN <= field <= _INT_MAX:
            raise MalformedError("integer out of range", expected="-2^63 to 2^63 - 1")
        return int(field).to_bytes(INT_BYTES, "little", signed=True)
    raise TypeError(f"a field is bytes, str, int or None, not {type(field).__name__}")


def _text_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MalformedError("text has lone surrogates", expected="Unicode text") from error
