"""The window's cosigner: C2SP tlog-witness over the service's database.

A checkpoint is judged and persisted in one writing transaction; its cosignature leaves the process
only after the commit. A checkpoint that was cosigned before gets the same cosignature again, so
there is exactly one cosigned note for each size.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ragaudit.encoding.errors import NotFound
from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.cosigner_protocol import (
    BAD_REQUEST,
    COSIGNED,
    SIZE_CONTENT_TYPE,
    UNKNOWN_ORIGIN,
    UNTRUSTED_LOG,
    AddCheckpointRequest,
    encode_cosignatures,
    judge,
)
from ragaudit.ledger.log.notes import Note, NoteSignature, SigningKey, parse_note
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import Database, Origin, Transaction, checkpoints
from ragaudit.verifier.service.windows import Window
from sqlalchemy import Connection, Row, Select, func, insert, select

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer of the cosigner."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


@dataclass(frozen=True)
class StoredCheckpoint:
    """A cosigned checkpoint: its head, when it was cosigned (Unix seconds), the note."""

    head: TreeHead
    time: int
    note: bytes


def add_checkpoint(
    database: Database, key: SigningKey, body: bytes, *, cap: int, read: int | None = None
) -> Answer:
    """Answer an add-checkpoint request.

    Args:
        cap: bounds the checkpoints of one window.
        read: when the log says that it read the head, Unix milliseconds. A request that is older
            than the policy's skew is not cosigned: entries made since would seem back-dated.
    """
    try:
        request = AddCheckpointRequest.parse(body)
        origin = parse_checkpoint(request.checkpoint).checkpoint.origin
    except MalformedNote as error:
        return _refusal(BAD_REQUEST, error.what)
    with database.write() as transaction:
        window = windows.find(transaction.connection, Origin(origin))
        if window is None or window.countersigned is None:
            return _refusal(UNKNOWN_ORIGIN, "unknown origin")
        policy = windows.policy(transaction.connection, window)
        late = read is not None and transaction.now > read + 1000 * policy.clock_skew_seconds
        return _decide(transaction, window, policy, key, request, cap, late=late)


def _decide(
    transaction: Transaction,
    window: Window,
    policy: Policy,
    key: SigningKey,
    request: AddCheckpointRequest,
    cap: int,
    *,
    late: bool,
) -> Answer:
    if transaction.now >= 1000 * policy.sampling_instant:
        return _refusal(UNTRUSTED_LOG, "the sampling instant has passed")
    latest = last(transaction.connection, window.origin)
    stored = {policy.origin: latest.head} if latest else {}
    verdict = judge(request, {policy.origin: policy.keys.log}, stored)
    if verdict.checkpoint is None:
        conflict = verdict.stored_size is not None
        return Answer(verdict.status, verdict.body, SIZE_CONTENT_TYPE if conflict else TEXT)
    if latest is not None and latest.head == verdict.checkpoint.head:
        line = parse_note(latest.note).signature_of(key.verifier_key)
    elif late:
        return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the request waited longer than the skew")
    elif window.closed is not None:
        return _refusal(UNTRUSTED_LOG, "the log is closed")
    elif _count(transaction.connection, window.origin) >= cap:
        return _refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many checkpoints")
    else:
        line = _persist(transaction, window.origin, policy, key, verdict.checkpoint)
    return Answer(COSIGNED, encode_cosignatures((line,) if line else ()))


def _persist(
    transaction: Transaction,
    window: Origin,
    policy: Policy,
    key: SigningKey,
    checkpoint: SignedCheckpoint,
) -> NoteSignature:
    time = transaction.now // 1000
    line = cosign(checkpoint.note.text, key, time)
    # Lines of other keys are not kept: nobody verified them.
    own = checkpoint.note.signature_of(policy.keys.log)
    lines = (own, line) if own is not None else (line,)
    note = Note(checkpoint.note.text, lines).encode()
    row = {
        "window": window,
        "size": checkpoint.head.size,
        "root": checkpoint.head.root_hash,
        "time": time,
        "note": note,
    }
    transaction.connection.execute(insert(checkpoints).values(row))
    return line


def last(connection: Connection, window: Origin) -> StoredCheckpoint | None:
    """The largest cosigned checkpoint of a window."""
    query = _query(window).order_by(checkpoints.c.size.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _stored(row)


def has(connection: Connection, window: Origin, head: TreeHead) -> bool:
    """Whether this very tree head was cosigned."""
    same = (checkpoints.c.size == head.size) & (checkpoints.c.root == head.root_hash)
    query = select(func.count()).where((checkpoints.c.window == window) & same)
    return bool(connection.execute(query).scalar_one())


def latest_note(database: Database, origin_hash: bytes) -> bytes:
    """The largest cosigned checkpoint of the log whose origin has this SHA-256.

    Raises:
        NotFound: nothing was cosigned under such an origin.
    """
    with database.read() as connection:
        window = windows.find_by_origin_hash(connection, origin_hash)
        latest = last(connection, window.origin) if window is not None else None
    if latest is None:
        raise NotFound("no cosigned checkpoint", where=origin_hash.hex())
    return latest.note


def all_of(connection: Connection, window: Origin) -> list[StoredCheckpoint]:
    """Every checkpoint that was cosigned, by rising size."""
    rows = connection.execute(_query(window).order_by(checkpoints.c.size))
    return [_stored(row) for row in rows]


def _query(window: Origin) -> Select[Any]:
    columns = (checkpoints.c.size, checkpoints.c.root, checkpoints.c.time, checkpoints.c.note)
    return select(*columns).where(checkpoints.c.window == window)


def _stored(row: Row[Any]) -> StoredCheckpoint:
    return StoredCheckpoint(TreeHead(row.size, bytes(row.root)), row.time, bytes(row.note))


def _count(connection: Connection, window: Origin) -> int:
    query = select(func.count()).select_from(checkpoints).where(checkpoints.c.window == window)
    return int(connection.execute(query).scalar_one())


def _refusal(status: HTTPStatus, reason: str) -> Answer:
    return Answer(status, f"{reason}\n".encode())
