"""Parts of a handover, kept until all of them are there (docs/spec/08-services.md §8.3)."""

import hashlib
from typing import BinaryIO

from ragaudit.encoding.errors import Conflict, MalformedError, RejectedError
from ragaudit.ledger.messages.handover import PART_ENTRIES, read_frames
from ragaudit.serving.bodies import Body
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import Origin, Transaction
from ragaudit.verifier.service.errors import CapReached
from ragaudit.verifier.service.windows import Item
from sqlalchemy import Connection

# No item of the evidence (spec 10.1): they are gone once the handover is one.
_PREFIX = "handover/"


def check(file: BinaryIO, number: int, most: int) -> None:
    """Check the form of a part, before anything of it is kept.

    Args:
        file: of its bytes.
        number: of the part, from 0.
        most: entries that the log may have.

    Raises:
        MalformedError: not frames of the entries that belong here.
        RejectedError: more entries than the log has.
    """
    start = number * PART_ENTRIES
    last = start - 1
    for entry, _ in read_frames(file, start):
        entry.demand_sketch()
        last = entry.index
        if last >= start + PART_ENTRIES:
            raise MalformedError(
                "too many frames", where=f"part {number}", expected=f"at most {PART_ENTRIES}"
            )
        if last >= most:
            raise RejectedError(
                "more entries than the log has", where="handover", expected=f"at most {most}"
            )
    if last < start:
        raise MalformedError("no frames", where=f"part {number}", expected="at least one")


def put(transaction: Transaction, origin: Origin, number: int, body: Body, limit: int) -> None:
    """Keep a part.

    Args:
        number: of the part.
        body: of `check`.
        limit: bytes that all parts together may have.

    Raises:
        Conflict: another one of this number is there, or the one before is not.
        CapReached: too many bytes.
    """
    there = held(transaction.connection, origin)
    if number > len(there):
        raise Conflict(
            "a part before it is missing", where=f"part {number}", expected=f"{len(there)}"
        )
    if number < len(there):
        if there[number].digest != body.digest:
            raise Conflict("another part was given", where=f"part {number}")
        return
    if sum(item.size for item in there) + body.size > limit:
        raise CapReached("too many bytes", where=f"part {number}", expected=f"at most {limit}")
    windows.put_item(transaction, origin, _name(number), body.file)


def held(connection: Connection, origin: Origin) -> list[Item]:
    """Return the parts that there are, in order: 0, 1, 2, .. without a gap."""
    return windows.list_items(connection, origin, _PREFIX)


def joined(connection: Connection, origin: Origin, parts: list[Item], file: BinaryIO) -> Body:
    """Return the parts as one body.

    Args:
        parts: of `held`.
        file: that it is written to.
    """
    digest, size = hashlib.sha256(), 0
    for item in parts:
        for data in windows.stream_item(connection, origin, item.name):
            file.write(data)
            digest.update(data)
            size += len(data)
    return Body(file, size, digest.digest())


def forget(transaction: Transaction, origin: Origin) -> None:
    """Remove all parts."""
    for item in held(transaction.connection, origin):
        windows.remove_item(transaction, origin, item.name)


def _name(number: int) -> str:
    return f"{_PREFIX}{number:09}"  # their order is that of the numbers
