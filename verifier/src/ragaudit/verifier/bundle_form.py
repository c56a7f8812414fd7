"""The ZIP records of an evidence bundle, each in its one form (docs/spec/10-verdict.md §10.2)."""

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final

from ragaudit.encoding.errors import MalformedError

BLOCK_BYTES: Final = 2**14  # held in memory at a time, and compared when it is read again

# PKWARE APPNOTE 6.3.10: records 4.3.7, 4.3.12, 4.3.14, 4.3.15, 4.3.16.
LOCAL: Final = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64 = struct.Struct("<4sIQI")
_EXTRA_64 = struct.Struct("<2HQ")
_VERSION_STORED, _VERSION_64 = 10, 45
_DATE_1980_01_01 = 0x21
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_FAR = _MAX_32  # offsets from here on stand in a ZIP64 field


class MalformedBundle(MalformedError):
    """The file is not a bundle in its one accepted form."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """An item in the archive.

    Attributes:
        offset: of its header, from the archive's first byte.
    """

    name: bytes
    size: int
    crc: int
    offset: int

    def local_header(self) -> bytes:
        """Return the header before the item's bytes (APPNOTE 4.3.7)."""
        fields = (0, 0, 0, _DATE_1980_01_01, self.crc, self.size, self.size, len(self.name), 0)
        return LOCAL.pack(b"PK\3\4", _VERSION_STORED, *fields) + self.name

    def central_header(self) -> bytes:
        """Return the item's header in the directory (APPNOTE 4.3.12)."""
        far = self.offset >= _FAR
        extra = _EXTRA_64.pack(1, 8, self.offset) if far else b""
        version = _VERSION_64 if far else _VERSION_STORED
        head = (version, version, 0, 0, 0, _DATE_1980_01_01, self.crc, self.size, self.size)
        tail = (len(self.name), len(extra), 0, 0, 0, 0, _MAX_32 if far else self.offset)
        return _CENTRAL.pack(b"PK\1\2", *head, *tail) + self.name + extra

    @property
    def data_offset(self) -> int:
        """Where the item's bytes begin in the file."""
        return self.offset + LOCAL.size + len(self.name)

    @property
    def end(self) -> int:
        """Where the item's bytes end in the file."""
        return self.data_offset + self.size


def trailer(entries: Sequence[ZipEntry]) -> bytes:
    """Return the central directory and the end records after the last entry."""
    offset = entries[-1].end if entries else 0
    directory = b"".join(entry.central_header() for entry in entries)
    count, size = len(entries), len(directory)
    tail = b""
    # Only then (10.2): with optional records one set of items would have two archives.
    if count >= _MAX_16 or size >= _MAX_32 or offset >= _FAR:
        versions = (_VERSION_64, _VERSION_64, 0, 0)
        sizes = (count, count, size, offset)
        tail = _END_64.pack(b"PK\6\6", _END_64.size - 12, *versions, *sizes)
        tail += _LOCATOR_64.pack(b"PK\6\7", 0, offset + size, 1)
        count, size = min(count, _MAX_16), min(size, _MAX_32)
        offset = _MAX_32 if offset >= _FAR else offset
    return directory + tail + _END.pack(b"PK\5\6", 0, 0, count, count, size, offset, 0)


@dataclass(frozen=True, slots=True)
class Sums:
    """What is known of an item that was read through.

    Attributes:
        digest: hexadecimal SHA-256.
        blocks: SHA-256 of each block, one after the other; a small part of the item.
    """

    size: int
    crc: int
    digest: str
    blocks: bytes

    @classmethod
    def of(cls, source: IO[bytes], target: IO[bytes] | None = None, most: int = -1) -> "Sums":
        """Read ``source`` through.

        Args:
            target: gets what is read.
            most: bytes to read; to the end if it is not said.
        """
        size, crc, whole, blocks = 0, 0, hashlib.sha256(), bytearray()
        while block := source.read(BLOCK_BYTES if most < 0 else min(BLOCK_BYTES, most - size)):
            size, crc = size + len(block), zlib.crc32(block, crc)
            whole.update(block)
            blocks += hashlib.sha256(block).digest()
            if target is not None:
                target.write(block)
        return cls(size, crc, whole.hexdigest(), bytes(blocks))
