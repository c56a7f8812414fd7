"""The cosigner over HTTP: C2SP tlog-witness, with the status table of docs/spec 6.6."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated

from anyio import to_thread
from fastapi import FastAPI, Path, Request, Response
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.cosigner_protocol import (
    BAD_REQUEST,
    COSIGNED,
    MAX_REQUEST_BYTES,
    UNKNOWN_ORIGIN,
    AddCheckpointRequest,
    Answer,
    judge,
)
from ragaudit.ledger.log.database import await_server
from ragaudit.ledger.log.notes import Note, NoteSignature, SigningKey, parse_note
from ragaudit.serving.application import application
from ragaudit.serving.bodies import BodyLimit
from ragaudit.serving.clock import UNTIL_IT_STAYS, EvenClock
from ragaudit.serving.observed import Observed, Observer
from ragaudit.serving.problems import documented
from ragaudit.verifier.cosigner.settings import Settings, load_keys
from ragaudit.verifier.cosigner.store import Decision, KnownLog, Store
from ragaudit.verifier.settings import make_data_folder


class Cosigner:
    """The keys and the store of one cosigner."""

    def __init__(self, keys: tuple[SigningKey, ...], store: Store) -> None:
        """Use a store.

        Args:
            keys: of type 0x04 or 0x06; each of them cosigns every checkpoint.
            store: stays the caller's to close.
        """
        self._keys = keys
        self.store = store

    def add_checkpoint(self, body: bytes) -> Answer:
        """Return the answer to an add-checkpoint request; what it attests is durable by then.

        Args:
            body: as received, from anybody.

        Raises:
            ClockStepped, StoreUnavailable: nothing can be attested now.
        """
        try:
            request = AddCheckpointRequest.parse(body)
            origin = request.origin
        except MalformedNote as error:
            return Answer.refusal(BAD_REQUEST, error.what)
        with self.store.deciding(origin) as decision:
            log = decision.log
            if log is None:
                return Answer.refusal(UNKNOWN_ORIGIN, "unknown origin")
            stored = {origin: log.head} if log.head is not None else {}
            judged = judge(request, {origin: log.key}, stored)
            if isinstance(judged, Answer):
                return judged
            lines = self._cosign(decision, log, judged)
        # Only here, after the commit and the fence, does a cosignature leave.
        return Answer.cosigned(lines)

    def _cosign(
        self, decision: Decision, log: KnownLog, checkpoint: SignedCheckpoint
    ) -> tuple[NoteSignature, ...]:
        known = self._known(log) if log.head == checkpoint.head else {}
        # What was cosigned before gets the same lines again: one size has one cosigned note.
        if len(known) == len(self._keys):
            return tuple(known.values())
        now = decision.now()
        text = checkpoint.note.text
        lines = tuple(known.get(key) or cosign(text, key, now // 1000) for key in self._keys)
        own = checkpoint.note.signature_of(log.key)
        # Lines of other keys are not kept: nobody verified them.
        note = Note(text, (*((own,) if own is not None else ()), *lines))
        decision.keep(checkpoint.head, note.encode(), now)
        return lines

    def _known(self, log: KnownLog) -> dict[SigningKey, NoteSignature]:
        """Return the lines of our keys under the last head."""
        note = parse_note(log.note)
        found = {key: note.signature_of(key.verifier_key) for key in self._keys}
        return {key: line for key, line in found.items() if line is not None}


_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_STATUSES = (
    (200, "Cosignature lines.", "text/plain"),
    (400, "Malformed, or the old size above the new one.", "text/plain"),
    (403, "Not signed by the log's key.", "text/plain"),
    (404, "Unknown origin.", "text/plain"),
    (409, "Another old size; the body is the right one.", "text/x.tlog.size"),
    (422, "Inconsistent with what was cosigned.", "text/plain"),
)


def create_app(settings: Settings, *, clock: Callable[[], int] | None = None) -> FastAPI:
    """Return the cosigner's HTTP application.

    Args:
        settings: see `ragaudit.verifier.cosigner.settings`.
        clock: Unix milliseconds; by default the system's, while it runs evenly.

    Raises:
        MalformedError, UnsupportedError: keys or database cannot be used.
        RefusedError: another process holds the fence.
        RestoredBackup: the database is behind its fence.
        UnavailableError: database or fence cannot be used now.
    """
    observer = Observer(settings.operation, service="ragaudit-cosigner", name=settings.name)
    keys = load_keys(settings)
    make_data_folder(settings)
    await_server(settings.database_url, settings.database_wait_seconds)
    store = Store(settings.database_url, clock or EvenClock(UNTIL_IT_STAYS), settings.fence_place)
    cosigner = Cosigner(keys, store)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        with observer:
            yield
            await to_thread.run_sync(store.close)

    app = application("ragaudit cosigner", lifespan=lifespan)
    app.state.cosigner = cosigner
    app.add_middleware(BodyLimit, limit=MAX_REQUEST_BYTES, respond=_too_long)
    app.add_middleware(Observed, observer=observer)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        """Say that the process is alive."""
        return {"status": "alive"}

    @app.get("/readyz", responses=documented(503))
    def readyz() -> dict[str, str]:
        """Say that the store is writable, and has all that was cosigned."""
        store.check()
        return {"status": "ready"}

    @app.post(
        "/add-checkpoint",
        openapi_extra={"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        responses=documented(503)
        | {
            status: {"description": text, "content": {kind: {"schema": {"type": "string"}}}}
            for status, text, kind in _STATUSES
        },
    )
    async def add_checkpoint(request: Request) -> Response:
        """Cosign a checkpoint (C2SP tlog-witness)."""
        body = await request.body()
        return _response(await to_thread.run_sync(cosigner.add_checkpoint, body))

    @app.get("/{origin_hash}/checkpoint", responses=documented(503))
    def checkpoint(
        origin_hash: Annotated[str, Path(description="SHA-256 of the origin, hexadecimal.")],
    ) -> Response:
        """Return the last checkpoint of a log that was cosigned."""
        log = store.find(bytes.fromhex(origin_hash)) if _HASH.fullmatch(origin_hash) else None
        if log is None or not log.note:
            return _response(
                Answer.refusal(UNKNOWN_ORIGIN, "nothing was cosigned of such an origin")
            )
        return _response(Answer(COSIGNED, log.note))

    return app


def _response(answer: Answer) -> Response:
    # As a header: of a media type the framework would make one with a character set.
    return Response(answer.body, answer.status, {"Content-Type": answer.content_type})


def _too_long(_error: RagauditError, _path: str) -> Response:
    return _response(Answer.refusal(BAD_REQUEST, f"more than {MAX_REQUEST_BYTES} bytes"))
