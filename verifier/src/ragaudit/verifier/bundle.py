"""Evidence bundles: a ZIP archive with exactly one encoding (docs/spec/10-verdict.md §10.2).

The writer stores items uncompressed, in rising name order, with fixed times and attributes. The
reader walks the file from its first byte, builds the headers that the writer would have written
for what it finds, and compares: an archive is accepted iff the writer would have made it. So no
directory is trusted, and nothing can hide between entries, in comments or behind the end.

Both go through an item block by block, twice, and compare what they read the second time with what
they read first: whoever can write the file cannot swap an item between its check and its use.
"""

import hashlib
import io
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, BinaryIO, Final, Literal

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.items import PUBLIC
from ragaudit.verifier.evidence import Evidence

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


FORMAT: Final = "ragaudit/v1/bundle"
MANIFEST: Final = "manifest.json"
VERDICT: Final = "verdict.json"
_OWN: Final = (MANIFEST, VERDICT)

Part = Literal["public", "all"]

# Larger ones are refused before they are read.
MAX_ITEM_BYTES: Final = 2**31
MAX_NAME_BYTES: Final = 128
# A policy allows no log with more sampled records; each has an item of its own.
MAX_ITEMS: Final = 2**21


def write_bundle(target: Path, evidence: Evidence, verdict: bytes, *, part: Part) -> None:
    """Write the bundle of ``evidence`` and the signed verdict; the file appears when it is whole.

    Args:
        target: the file, which is replaced where it exists.
        evidence: all items.
        verdict: the DSSE envelope's bytes.
        part: "public" leaves the confidential items out.

    Raises:
        MalformedBundle: an item over MAX_ITEM_BYTES.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=target.parent, suffix=".partial", delete=False) as file:
        temporary = Path(file.name)
        try:
            write_archive(file, evidence, verdict, part=part)
        except BaseException:
            temporary.unlink()
            raise
    # A reader sees the old file or the whole new one, never a part.
    temporary.replace(target)


def write_archive(file: IO[bytes], evidence: Evidence, verdict: bytes, *, part: Part) -> None:
    """Write the bundle to a binary file that is open for writing at its start.

    Args:
        file: as a download is streamed; nothing of it is read.
        evidence, verdict, part: as for :func:`write_bundle`.

    Raises:
        MalformedBundle: an item over MAX_ITEM_BYTES.
    """
    for piece in Archive.of(evidence, verdict, part=part).pieces():
        file.write(piece)


@dataclass(frozen=True, slots=True)
class Archive:
    """A bundle that is not written yet: what it is, and any part of its bytes.

    Attributes:
        size: of the whole, bytes.
        tag: hexadecimal SHA-256 of manifest and verdict: equal for equal bundles, byte for byte.
    """

    size: int
    tag: str
    _entries: tuple[tuple[ZipEntry, Sums], ...]
    _own: Mapping[str, bytes]
    _items: Evidence

    @classmethod
    def of(cls, evidence: Evidence, verdict: bytes, *, part: Part) -> "Archive":
        """Return the bundle of evidence; reads every item once.

        Args:
            evidence, verdict, part: as for :func:`write_bundle`.

        Raises:
            MalformedBundle: an item over MAX_ITEM_BYTES.
        """
        items = evidence if part == "all" else evidence.public()
        found = {name: _summed(items, name) for name in items}
        digests = {name: each.digest for name, each in found.items()}
        manifest = {"format": FORMAT, "items": digests, "part": part}
        own = {MANIFEST: canonical_json.dumps(manifest), VERDICT: verdict}
        found |= {name: Sums.of(io.BytesIO(data)) for name, data in own.items()}
        entries: list[tuple[ZipEntry, Sums]] = []
        for name in sorted(found):
            sums, offset = found[name], entries[-1][0].end if entries else 0
            entries.append((ZipEntry(name.encode(), sums.size, sums.crc, offset), sums))
        end = entries[-1][0].end + len(trailer([entry for entry, _ in entries]))
        tag = hashlib.sha256(own[MANIFEST] + own[VERDICT]).hexdigest()
        return cls(end, tag, tuple(entries), own, items)

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Yield the archive's bytes in order, block by block.

        Args:
            start: bytes to leave out at the beginning; no item before them is read.

        Raises:
            MalformedBundle: an item is not any more what it was when the archive was made.
        """
        for entry, sums in self._entries:
            if entry.end <= start:
                continue
            yield entry.local_header()[max(0, start - entry.offset) :]
            yield from self._item(entry, sums, max(0, start - entry.data_offset))
        end = trailer([entry for entry, _ in self._entries])
        yield end[max(0, start - (self.size - len(end))) :]

    def _item(self, entry: ZipEntry, sums: Sums, start: int) -> Iterator[bytes]:
        name = entry.name.decode("ascii")
        number, skipped = divmod(start, BLOCK_BYTES)
        with io.BytesIO(self._own[name]) if name in self._own else self._items.open(name) as data:
            data.seek(number * BLOCK_BYTES)
            left = entry.size - number * BLOCK_BYTES
            # To the end of the file: one that grew has changed, too.
            while (block := data.read(BLOCK_BYTES)) or left > 0:
                left -= len(block)
                if hashlib.sha256(block).digest() != sums.blocks[32 * number : 32 * number + 32]:
                    raise MalformedBundle("the item changed while it was read", where=name)
                yield block[skipped:]
                number, skipped = number + 1, 0


def _summed(items: Evidence, name: str) -> Sums:
    with items.open(name) as file:
        found = Sums.of(file)
    if found.size > MAX_ITEM_BYTES:
        raise MalformedBundle("item too long", where=name, expected="at most 2 GiB")
    return found


class _Item(io.RawIOBase):
    """An item inside the archive, as a file; each block is compared with what was read first."""

    def __init__(self, file: IO[bytes], entry: ZipEntry, blocks: bytes) -> None:
        super().__init__()
        self._file, self._entry, self._blocks = file, entry, blocks
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._entry.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        number, skipped = divmod(self._at, BLOCK_BYTES)
        data = self._block(number)[skipped:][: len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _block(self, number: int) -> bytes:
        start = number * BLOCK_BYTES
        size = min(BLOCK_BYTES, self._entry.size - start)
        if size <= 0:
            return b""
        self._file.seek(self._entry.data_offset + start)
        block = self._file.read(size)
        digest = self._blocks[32 * number : 32 * number + 32]
        if hashlib.sha256(block).digest() != digest:
            where = f"{self._entry.name.decode('ascii')}, block {number}"
            raise MalformedBundle("the file changed while it was read", where=where)
        return block


@dataclass(frozen=True, slots=True)
class Bundle:
    """An open bundle whose form and digests have been checked.

    Attributes:
        part: which items it holds.
        evidence: the items, read from the file when asked for; valid while it is open.
        digests: hexadecimal SHA-256 of each of them.
        verdict: bytes of the DSSE envelope, not yet verified.
    """

    part: Part
    evidence: Evidence
    digests: Mapping[str, str]
    verdict: bytes


@contextmanager
def open_bundle(path: Path) -> Iterator[Bundle]:
    """Check the bundle at ``path`` and yield it.

    Args:
        path: the file, which stays open meanwhile.

    Raises:
        MalformedBundle: anything that :func:`write_bundle` would not have written; ``where`` begins
            with the file.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise MalformedBundle(f"cannot be read: {error.strerror}", where=str(path)) from None
    with file:
        if file.read(4) != b"PK\3\4":
            raise MalformedBundle("not an evidence bundle", where=str(path), expected="a .zip")
        try:
            bundle = read_archive(file)
        except MalformedBundle as error:
            where = f"{path}, {error.where}" if error.where else str(path)
            raise MalformedBundle(error.what, where=where, expected=error.expected) from error
        yield bundle


def read_archive(file: IO[bytes]) -> Bundle:
    """Return the bundle in a binary file.

    Args:
        file: seekable; must stay open, as the items are read when they are asked for.

    Raises:
        MalformedBundle: anything that :func:`write_archive` would not have written.
    """
    entries: dict[str, tuple[ZipEntry, Sums]] = {}
    for entry, sums in _walk(file):
        entries[entry.name.decode("ascii")] = entry, sums
    for name in _OWN:
        if name not in entries:
            raise MalformedBundle("an item is missing", where=name)
        # These two are read as a whole.
        if entries[name][0].size > canonical_json.MAX_BYTES:
            raise MalformedBundle(
                "item too long", where=name, expected=f"at most {canonical_json.MAX_BYTES} bytes"
            )

    def opened(name: str) -> BinaryIO:
        entry, sums = entries[name]
        return io.BufferedReader(_Item(file, entry, sums.blocks), BLOCK_BYTES)

    def read(name: str) -> bytes:
        with opened(name) as item:
            return item.read()

    part, items = _read_manifest(read(MANIFEST))
    own = {name: sums.digest for name, (_, sums) in entries.items() if name not in _OWN}
    _compare(items, own)
    return Bundle(part, _evidence(items, read, opened, part), items, read(VERDICT))


def _walk(file: IO[bytes]) -> Iterator[tuple[ZipEntry, Sums]]:
    """Entries in file order, each read through; MalformedBundle at the first deviation."""
    file.seek(0)
    entries: list[ZipEntry] = []
    while (head := file.read(LOCAL.size))[:4] == b"PK\3\4":
        entry, sums = _read_entry(file, head, entries[-1] if entries else None)
        entries.append(entry)
        # Before more is remembered of an archive that has nothing but names.
        if len(entries) > MAX_ITEMS:
            raise MalformedBundle("too many items", expected=f"at most {MAX_ITEMS}")
        yield entry, sums
    end = trailer(entries)
    # One byte more than belongs here: what stands behind the end is refused.
    rest = head + file.read(max(0, len(end) + 1 - len(head)))
    if rest != end:
        raise MalformedBundle("the archive's directory or end is not the one that belongs here")


def _read_entry(file: IO[bytes], head: bytes, previous: ZipEntry | None) -> tuple[ZipEntry, Sums]:
    if len(head) != LOCAL.size:
        raise MalformedBundle("archive is cut short")
    _, _, flags, method, _, _, _, size, _, name_size, _ = LOCAL.unpack(head)
    name = file.read(min(name_size, MAX_NAME_BYTES + 1))
    where = name.decode("ascii", "replace")
    if flags & 1:
        raise MalformedBundle("encrypted entry", where=where, expected="plain entries")
    if method:
        raise MalformedBundle("compressed entry", where=where, expected="stored entries")
    # Before anything is built from the name: a stranger chose it.
    if len(name) > MAX_NAME_BYTES or not name.isascii():
        raise MalformedBundle("not an item name", where=where[:80])
    if previous is not None and name <= previous.name:
        raise MalformedBundle("names repeat or are out of order", where=where)
    if size > MAX_ITEM_BYTES:
        raise MalformedBundle("item too long", where=where, expected="at most 2 GiB")
    sums = Sums.of(file, most=size)
    if sums.size != size:
        raise MalformedBundle("archive is cut short", where=where)
    entry = ZipEntry(name, size, sums.crc, previous.end if previous else 0)
    # Flags, times, extra fields and sizes at once: two archives of the same items would be two
    # bundles to whoever compares files, and a field that nobody reads is a place to hide something.
    if entry.local_header() != head + name:
        raise MalformedBundle("entry header is not the one accepted form", where=where)
    return entry, sums


def _read_manifest(data: bytes) -> tuple[Part, dict[str, str]]:
    try:
        value = canonical_json.loads(data)
    except MalformedError as error:
        raise MalformedBundle(error.what, where=MANIFEST, expected=error.expected) from error
    match value:
        case {"format": str(form), "items": dict(items), "part": "public" | "all" as part} if (
            len(value) == 3 and form == FORMAT
        ):
            return part, items
    raise MalformedBundle("not a manifest of this format", where=MANIFEST, expected=FORMAT)


def _compare(manifest: Mapping[str, object], actual: Mapping[str, str]) -> None:
    for name in sorted(manifest.keys() | actual.keys()):
        if name not in actual:
            raise MalformedBundle("listed in the manifest and absent", where=name)
        if name not in manifest:
            raise MalformedBundle("not listed in the manifest", where=name)
        if manifest[name] != actual[name]:
            raise MalformedBundle("another digest than the manifest's", where=name)


def _evidence(
    items: Iterable[str],
    read: Callable[[str], bytes],
    opened: Callable[[str], BinaryIO],
    part: Part,
) -> Evidence:
    names = list(items)
    # Who takes a public bundle must not find somebody's queries in it.
    if part == "public" and not all(name.startswith(PUBLIC) for name in names):
        raise MalformedBundle("confidential item in a public bundle")
    try:
        return Evidence(names, read, opened)
    except MalformedError as error:
        raise MalformedBundle(error.what, expected=error.expected) from error
