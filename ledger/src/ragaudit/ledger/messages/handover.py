"""What the provider hands to the verifier: log entries, indexes (docs/spec/08-services.md §8.3).

Entries travel as JSON during the window (all kinds but record), and after it as one stream of
frames (all of them). Whether they are the log's is check 5 of the audit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any, BinaryIO, ClassVar, Final, Self

from ragaudit.encoding.digests import PREFIX, SALT_BYTES, leaf_data
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import decode, enc, read_int, read_text
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.commitments import INDEX_PARTS, INDEX_TAG, POINT_BYTES
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.ledger.messages.kernel import Choice, Count, Digest, Hex, Message

MAX_INDEX_PROOF_BYTES: Final = 2**20  # pi_idx of 2^32 rows has less than 64 kB
FRAME_TAG: Final = PREFIX + "handover"
KINDS: Final = frozenset(
    {
        *("opening", "registration", "version", "epoch", "documents", "accounts", "close"),
        *(Record.KIND, Charge.KIND, Generated.KIND, Void.KIND),
    }
)
LENGTH_BYTES: Final = 8
MAX_OPENING_BYTES: Final = 2**22  # ten thousand tenants of the longest names take 2.6 MB
MAX_FRAME_BYTES: Final = 4096  # of any other entry; a record with its sketch takes a third of it
PART_ENTRIES: Final = 4096  # of a part of a handover; the last one may have fewer
MAX_PART_BYTES: Final = MAX_OPENING_BYTES + PART_ENTRIES * (LENGTH_BYTES + MAX_FRAME_BYTES)
_FIELDS: Final = 6


class _Shown(Message):
    """An entry other than a record, as JSON."""

    ERROR: ClassVar[type[MalformedError]] = MalformedError

    index: Count
    kind: Annotated[str, Choice(*sorted(KINDS - {Record.KIND}))]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)]


@dataclass(frozen=True, slots=True)
class Entry:
    """A log entry as handed over.

    Attributes:
        index: its place in the log, from 0.
        kind: of its body.
        salt: 32 bytes.
        salt_s, sketch: of the committed sketch; empty unless it is a record in a frame.
    """

    index: int
    kind: str
    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)
    salt_s: bytes = field(default=b"", repr=False)
    sketch: bytes = field(default=b"", repr=False)

    @property
    def leaf(self) -> bytes:
        """The 32 bytes that stand in the log; MalformedError for a salt of another length."""
        return leaf_data(self.salt, self.kind, self.body)

    def to_json(self) -> dict[str, Any]:
        """Return an entry other than a record as a JSON object."""
        return _Shown(self.index, self.kind, self.salt, self.body).to_json()

    @classmethod
    def from_json(cls, value: Any, where: str = "") -> Self:
        """Return the entry of a JSON value, the strict inverse of `to_json`.

        Args:
            where: the value's place, for errors.

        Raises:
            MalformedError: not an entry other than a record.
        """
        shown = _Shown.from_json(value, where)
        return cls(shown.index, shown.kind, shown.salt, shown.body)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON schema, for OpenAPI."""
        return _Shown.json_schema()

    def encode(self) -> bytes:
        """Return the frame of this entry, its length in front."""
        salt_s, sketch = self.salt_s or None, self.sketch or None
        data = enc(FRAME_TAG, self.index, self.kind, self.salt, self.body, salt_s, sketch)
        return len(data).to_bytes(LENGTH_BYTES, "little") + data

    @classmethod
    def parse(cls, data: bytes, index: int) -> Self:
        """Return the entry of a frame, the strict inverse of `encode` (without the length).

        Args:
            index: the frame's place in the handover, from 0.

        Raises:
            MalformedError: another encoding or index, an unknown kind, a salt that is not 32
                bytes, a sketch beside another kind than record.
        """
        where = f"handover entry {index}"
        # The index is in the frame and counted: none can be left out, or come twice.
        try:
            number, kind, salt, body, salt_s, sketch = decode(FRAME_TAG, data, _FIELDS)
            entry = cls(read_int(number), read_text(kind), salt, body, salt_s, sketch)
        except MalformedError as error:
            raise MalformedError(error.what, where=where, expected=error.expected) from error
        if entry.index != index:
            raise MalformedError(f"index {entry.index}", where=where, expected=str(index))
        # The reserved kinds too: it is check 9 that fails a window with such an entry, so the entry
        # has to be handed over.
        if entry.kind not in KINDS:
            raise MalformedError("unknown kind", where=where, expected=", ".join(sorted(KINDS)))
        if len(salt) != SALT_BYTES:
            raise MalformedError("salt of the wrong length", where=where, expected="32 bytes")
        # The body of a record commits to its sketch; beside another kind nothing would bind it.
        if entry.kind != Record.KIND and (salt_s or sketch):
            raise MalformedError("a sketch beside no record", where=where)
        return entry

    def demand_sketch(self) -> None:
        """Return unless this is a record without its sketch.

        Whether the sketch is the committed one is check 20 of the audit, which says the same of
        one that is missing: this is for whoever takes the handover, who can still refuse it.

        Raises:
            MalformedError: no sketch, or its salt is not 32 bytes.
        """
        where = f"handover entry {self.index}"
        if self.kind != Record.KIND:
            return
        if len(self.salt_s) != SALT_BYTES:
            raise MalformedError("salt of the wrong length", where=where, expected="32 bytes")
        if not self.sketch:
            raise MalformedError("sketch", where=where, expected="one for each record, no other")


def write_handover(entries: Iterable[Entry]) -> bytes:
    """Return the handover of a whole log, of one that is small.

    Args:
        entries: all of them, in order; each alone is its frame, for a log that is not.
    """
    return b"".join(entry.encode() for entry in entries)


def read_handover(file: BinaryIO) -> Iterator[Entry]:
    """Return the entries of a handover one by one, from the start of the file.

    Args:
        file: the frames; at most one of them is in memory.

    Raises:
        MalformedError: a truncated or too long frame, or as `Entry.parse`: indices count
            from 0.
    """
    return (entry for entry, _ in read_frames(file))


def read_frames(file: BinaryIO, start: int = 0) -> Iterator[tuple[Entry, int]]:
    """Return the entries of a handover, each with the place where its frame begins.

    Args:
        file: as for `read_handover`; a frame can be read again with `read_frame`.
        start: index of the first one, of a part.

    Raises:
        MalformedError: as for `read_handover`.
    """
    offset = 0
    for index in count(start):
        file.seek(offset)
        data = _read_frame(file, index)
        if not data:
            return
        yield Entry.parse(data, index), offset
        offset += LENGTH_BYTES + len(data)


def read_frame(file: BinaryIO, offset: int, index: int) -> Entry:
    """Return one entry of a handover again.

    Args:
        offset: where its frame begins, as `read_frames` gave it.
        index: of the entry.

    Raises:
        MalformedError: as for `read_handover`: the file is another one by now.
    """
    file.seek(offset)
    return Entry.parse(_read_frame(file, index), index)


def _read_frame(file: BinaryIO, index: int) -> bytes:
    """Read a frame without its length; nothing at the end of the file."""
    header = file.read(LENGTH_BYTES)
    if not header:
        return b""
    where = f"handover entry {index}"
    length = int.from_bytes(header, "little")
    # Only the opening, entry 0, grows with the number of tenants.
    most = MAX_FRAME_BYTES if index else MAX_OPENING_BYTES
    # Before it is read: eight bytes can ask for 2^64. Not even a tag fits into nothing.
    if len(header) < LENGTH_BYTES or not 0 < length <= most:
        raise MalformedError("frame length", where=where, expected=f"1..{most}")
    data = file.read(length)
    if len(data) < length:
        raise MalformedError("truncated", where=where, expected=f"{length} bytes")
    return data


def check_index_lengths(
    file: BinaryIO, size: int, *, columns_allowed: bool = False, owned: bool = False
) -> None:
    """Check that ``size`` bytes are an index commitment by the lengths of its parts.

    Reads the lengths and small parts only, so that nothing large is in memory; what the parts hold
    is `IndexCommitment.parse`'s to say.

    Args:
        file: read from its start.
        size: of the file, in bytes.
        columns_allowed: whether its rows may have texts of columns.
        owned: whether its rows have id keys.

    Raises:
        MalformedRecord: any other lengths.
    """
    tag, parts = INDEX_TAG.encode(), INDEX_PARTS + owned
    head = len(tag).to_bytes(2, "little") + tag + parts.to_bytes(2, "little")
    file.seek(0)
    wrong = MalformedRecord("not an index commitment", where=INDEX_TAG, expected=f"{parts} parts")
    if file.read(len(head)) != head:
        raise wrong
    # Only seeks depend on what is claimed: a false length cannot make this read or allocate more.
    lengths, at = [], len(head)
    for _ in range(parts):
        file.seek(at)
        prefix = file.read(8)
        if len(prefix) != 8:
            raise wrong
        lengths.append(int.from_bytes(prefix, "little"))
        at += 8 + lengths[-1]
        if at > size:
            raise wrong
    commitments, columns, digests, *keys, proof = lengths[5:]
    # version, N and d are integers of 8 bytes.
    fixed = all(length == 8 for length in lengths[2:5])
    alike = all(each == commitments for each in (digests, *keys)) and not commitments % POINT_BYTES
    undeclared = columns and not columns_allowed
    if at != size or not fixed or not alike or undeclared or proof > MAX_INDEX_PROOF_BYTES:
        raise wrong
