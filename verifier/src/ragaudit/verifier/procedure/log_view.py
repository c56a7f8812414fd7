"""The window's log as the procedure sees it: entries, leaves, tree, decoded bodies."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.tagged import decode, enc
from ragaudit.ledger.log.tree import HASH_BYTES, MemoryTree
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.records import Close, Record, Registration, decode_body

_RECORD_TAG: Final = "ragaudit/v1/entry/record"
_RECORD_FIELDS: Final = 19


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record in the log.

    Attributes:
        body: its bytes without an eager proof digest, which is what a proof is bound to.
        eager: whether the body names an eager proof, which version 1 has not.
    """

    index: int
    record: Record
    body: bytes = field(repr=False)
    eager: bool
    salt_s: bytes = field(repr=False)
    sketch: bytes = field(repr=False)

    @property
    def name(self) -> str:
        return f"record {self.index}"


@dataclass(frozen=True, slots=True)
class LoggedRegistration:
    """A registration in the log."""

    index: int
    registration: Registration

    @property
    def name(self) -> str:
        return f"registration {self.index}"


@dataclass(frozen=True, slots=True)
class Log:
    """All leaves, and the entries that are at hand: without records in the public part."""

    tree: MemoryTree
    leaves: tuple[bytes, ...] = field(repr=False)
    entries: tuple[Entry, ...] = field(repr=False)

    def of_kind(self, kind: str) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.kind == kind)


def split_leaves(data: bytes) -> tuple[bytes, ...]:
    """The leaves of ``public/leaves.bin``; MalformedError unless they are 32 bytes each."""
    if len(data) % HASH_BYTES:
        raise MalformedError("leaves are cut short", expected="32 bytes each")
    return tuple(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES))


def read_entries(data: bytes) -> tuple[Entry, ...]:
    """The entries of ``public/entries.json``: kinds other than record, indices rising."""
    value = canonical_json.loads(data)
    if not isinstance(value, list):
        raise MalformedError("entries are not a list")
    entries = tuple(Entry.from_json(each) for each in value)
    indices = [each.index for each in entries]
    if indices != sorted(set(indices)):
        raise MalformedError("entries", expected="rising indices")
    return entries


def read_record(entry: Entry) -> LoggedRecord:
    """The record of an entry; MalformedError if its body is none."""
    body, eager = entry.body, False
    fields = decode(_RECORD_TAG, body, _RECORD_FIELDS)
    if fields[-1]:
        body, eager = enc(_RECORD_TAG, *fields[:-1], None), True
    record = Record.decode(body)
    return LoggedRecord(entry.index, record, body, eager, entry.salt_s, entry.sketch)


def read_registration(entry: Entry) -> LoggedRegistration:
    """The registration of an entry; MalformedError if its body is none."""
    return LoggedRegistration(entry.index, Registration.decode(entry.body))


def check_leaves(entries: tuple[Entry, ...], leaves: tuple[bytes, ...]) -> None:
    """RejectedError unless every entry rehashes to the leaf at its index."""
    for entry in entries:
        if entry.index >= len(leaves) or entry.leaf != leaves[entry.index]:
            raise RejectedError("rehashes to another leaf", where=f"entry {entry.index}")


def check_bodies(entries: tuple[Entry, ...]) -> None:
    """MalformedError for a body that is none of its kind; the opening's is not looked at."""
    for entry in entries:
        try:
            if entry.kind == Record.KIND:
                read_record(entry)
            elif entry.kind != "opening":
                decode_body(entry.kind, entry.body)
        except MalformedError as error:
            where = f"entry {entry.index}"
            raise MalformedError(error.what, where=where, expected=error.expected) from error


def read_close(entry: Entry) -> Close:
    """The close entry's body; MalformedError for any other entry."""
    if entry.kind != Close.KIND:
        raise MalformedError("the last entry is not the close", where=f"entry {entry.index}")
    return Close.decode(entry.body)
