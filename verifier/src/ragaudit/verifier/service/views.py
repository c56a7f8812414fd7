"""What the service shows of a window: its state, and the files made from its evidence."""

import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from ragaudit.encoding.errors import NotFound
from ragaudit.serving.bodies import MEMORY_BYTES
from ragaudit.verifier.bundle import Part, write_archive
from ragaudit.verifier.evidence import RESPONSES
from ragaudit.verifier.service import disputes, items, submissions, windows
from ragaudit.verifier.service.audit_runner import AuditRunner, stored_evidence
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database, Origin, checkpoints, entries
from sqlalchemy import Connection, Table, func, select

TIMES = (
    "registered",
    "countersigned",
    "refused",
    "records",
    "closed",
    "listed",
    "challenged",
    "deadline",
    "sealed",
    "decided",
)


def status(
    database: Database, auditor: Auditor, sampler: Sampler, origin: Origin
) -> dict[str, Any]:
    """State, times (Unix milliseconds) and counts of a window."""
    with database.read() as connection:
        window = windows.get(connection, origin)
        verdict = items.content(connection, origin, items.VERDICT)
        counts = {
            "entries": _rows(connection, entries, origin),
            "checkpoints": _rows(connection, checkpoints, origin),
            "receipts": submissions.count(connection, origin, submissions.RECEIPT),
            "refusals": submissions.count(connection, origin, submissions.REFUSAL),
            "claims": submissions.count(connection, origin, submissions.CLAIM),
            "disputes": disputes.count(connection, origin),
            "statements": submissions.count(connection, origin, submissions.STATEMENT),
            "responses": len(items.listed(connection, origin, RESPONSES)),
            "sampled": len(sampler.sample(connection, origin)) if window.challenged else 0,
        }
    return {
        "window": window.name,
        "provider": window.provider,
        "state": window.state,
        "policy_digest": window.policy_digest.hex(),
        "time": database.now(),
        "times": {each: getattr(window, each) for each in TIMES},
        "counts": counts,
        "result": None if verdict is None else auditor.result(verdict),
    }


def progress(database: Database, runner: AuditRunner, origin: Origin) -> dict[str, Any]:
    """Where the audit of a window stands."""
    with database.read() as connection:
        window = windows.get(connection, origin)
    current = runner.progress(origin)
    return {
        "state": window.state,
        "step": current.step,
        "done": current.done,
        "total": current.total,
    }


def verdict(database: Database, origin: Origin) -> bytes:
    """The signed verdict; NotFound while there is none."""
    with database.read() as connection:
        windows.get(connection, origin)
        content = items.content(connection, origin, items.VERDICT)
    if content is None:
        raise NotFound("no verdict yet", where=origin)
    return content


def bundle(database: Database, origin: Origin, part: Part) -> Iterator[bytes]:
    """The evidence bundle, in pieces; NotFound while there is no verdict."""
    signed = verdict(database, origin)
    file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 - closed by _pieces
    try:
        write_archive(cast(BinaryIO, file), stored_evidence(database, origin), signed, part=part)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return _pieces(cast(BinaryIO, file))


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while data := file.read(items.CHUNK_BYTES):
            yield data


def _rows(connection: Connection, table: Table, origin: Origin) -> int:
    query = select(func.count()).select_from(table).where(table.c.window == origin)
    return int(connection.execute(query).scalar_one())
