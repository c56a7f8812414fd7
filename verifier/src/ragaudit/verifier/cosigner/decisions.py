"""What the cosigner answers: C2SP tlog-witness, the status table of docs/spec 6.6."""

from dataclasses import dataclass
from http import HTTPStatus

from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.checkpoints import SignedCheckpoint, parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.cosigner_protocol import (
    BAD_REQUEST,
    COSIGNED,
    SIZE_CONTENT_TYPE,
    UNKNOWN_ORIGIN,
    AddCheckpointRequest,
    encode_cosignatures,
    judge,
)
from ragaudit.ledger.log.notes import Note, NoteSignature, SigningKey, parse_note
from ragaudit.verifier.cosigner.store import Decision, KnownLog, Store

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


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
            origin = parse_checkpoint(request.checkpoint).checkpoint.origin
        except MalformedNote as error:
            return refusal(BAD_REQUEST, error.what)
        with self.store.deciding(origin) as decision:
            log = decision.log
            if log is None:
                return refusal(UNKNOWN_ORIGIN, "unknown origin")
            stored = {origin: log.head} if log.head is not None else {}
            verdict = judge(request, {origin: log.key}, stored)
            if verdict.checkpoint is None:
                conflict = verdict.stored_size is not None
                return Answer(verdict.status, verdict.body, SIZE_CONTENT_TYPE if conflict else TEXT)
            lines = self._cosign(decision, log, verdict.checkpoint)
        # Only here, after the commit and the fence, does a cosignature leave.
        return Answer(COSIGNED, encode_cosignatures(lines))

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


def refusal(status: HTTPStatus, reason: str) -> Answer:
    """Return an answer that gives a reason in words."""
    return Answer(status, f"{reason}\n".encode())
