"""Calls to the verifier service: docs/spec/08-services.md §8.1 and §8.3.

Every method raises VerifierUnreachable when the call may simply be repeated, and VerifierRefused
when the verifier declined it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.errors import MalformedNote
from ragaudit.ledger.log.cosigner_protocol import (
    AddCheckpointRequest,
    parse_conflict,
    parse_cosignatures,
)
from ragaudit.ledger.log.notes import NoteSignature
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.bodies import (
    CloseBody,
    CosignedBody,
    EntriesBody,
    HeldParts,
    OpeningBody,
    RecordsBody,
    RoundBody,
    StampsBody,
    WindowBody,
)
from ragaudit.ledger.messages.challenge import Activation, Challenge, Countersignature
from ragaudit.ledger.messages.entries import QueryEntry
from ragaudit.ledger.messages.evidence import TimeStamp
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.promises import Claimed, ClaimsPage
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.prover.errors import NotPinned, VerifierMessageRejected, VerifierRefused
from ragaudit.prover.verifier.connection import Connection, json_object


@dataclass(frozen=True)
class SizeConflict:
    """The cosigner has seen a tree of another size than the request said."""

    size: int


def budget_call(tenant: str) -> str:
    """Return the path, within a window, of the call with a tenant's budget argument."""
    return f"challenge/budgets/{quote(tenant, safe='')}"


def replay_call(index: int) -> str:
    """Return the path, within a window, of the call with the replay of a charge entry."""
    return f"challenge/replays/{index}"


def rows_call(tenant: str) -> str:
    """Return the path, within a window, of the call that opens a tenant's sampled rows."""
    return f"challenge/rows/{quote(tenant, safe='')}"


class VerifierClient(Connection):
    """The prover's side of the verifier's API. Safe to use from several threads."""

    def check_pinned(self) -> None:
        """Check that the verifier knows this provider's key.

        The call asks for a window that does not exist: 404 is the answer to a known key only.

        Raises:
            NotPinned: the signature was not accepted.
            VerifierUnreachable, VerifierRefused: the answer does not say.
        """
        try:
            self._send("GET", f"{_window('check-of-a-key')}/claims")
        except VerifierRefused as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise NotPinned(
                    f"the verifier does not accept our signature: {error.what}",
                    where=self._url,
                    expected=f"there: ragaudit verifier provider add {self._provider} "
                    f"--key {hex_encode(self._key.public.raw)}",
                ) from None
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}:
                raise

    def keys(self) -> ShownKeys:
        """Return the public keys that the verifier shows, and its clock; neither is checked."""
        value = json_object(self._send("GET", "/v1/keys", signed=False))
        try:
            return ShownKeys.from_json(value)
        except MalformedError as error:
            raise VerifierMessageRejected("not the verifier's keys", where="/v1/keys") from error

    def register(self, policy: bytes, embedder: bytes) -> None:
        """Hand over the policy and the embedder's manifest, both in canonical JSON.

        Args:
            policy: canonical bytes.
            embedder: canonical bytes.
        """
        self._send("POST", "/v1/windows", WindowBody(loads(policy), loads(embedder)).encode())

    def put_index(self, window: str, tenant: str, version: int, commitment: bytes) -> None:
        """Hand over an index commitment (docs/spec/05-records.md §5.4).

        Args:
            version: 1, the only one so far.
            commitment: encoded, with its proof.
        """
        path = f"{_window(window)}/tenants/{quote(tenant, safe='')}/versions/{version}"
        self._send("PUT", path, commitment, kind="application/octet-stream")

    def countersign(
        self, window: str, *, opening: bytes, salt: bytes, empty_checkpoint: bytes
    ) -> Countersignature:
        """Ask for the countersignature, which the caller authenticates.

        Args:
            opening: body of entry 0, ``salt`` its leaf's, 32 bytes.
            empty_checkpoint: of the empty log, a signed note.

        Raises:
            VerifierRefused: with a signed verdict if the window is refused.
        """
        body = OpeningBody(opening, salt, empty_checkpoint.decode("utf-8"))
        value = json_object(self._send("POST", f"{_window(window)}/countersign", body.encode()))
        return Countersignature.from_json(value)

    def put_entries(self, window: str, entries: Sequence[Entry]) -> None:
        """Hand over log entries other than records, at most 1,000."""
        self._send("POST", f"{_window(window)}/entries", EntriesBody(tuple(entries)).encode())

    def put_cosigned(self, window: str, notes: Sequence[bytes]) -> None:
        """Hand over checkpoints with the quorum of further cosigners, at most MAX_NOTES."""
        body = CosignedBody(tuple(note.decode() for note in notes))
        self._send("POST", f"{_window(window)}/cosigned", body.encode())

    def put_time_stamps(self, window: str, stamps: Sequence[TimeStamp]) -> None:
        """Hand over time stamps of checkpoints, at most MAX_STAMPS."""
        body = StampsBody(tuple(stamps))
        self._send("POST", f"{_window(window)}/time-stamps", body.encode())

    def add_checkpoint(
        self, request: AddCheckpointRequest, read: int
    ) -> tuple[NoteSignature, ...] | SizeConflict:
        """Ask for a cosignature of a tree head (C2SP tlog-witness).

        Args:
            read: Unix milliseconds at which the head was read; the request is signed with it.

        Returns:
            The cosignatures, not yet verified, or the size that the cosigner has seen.
        """
        # Signed with the time of reading: a cosigner declines a head that is older than the skew.
        path, body = "/cosigner/add-checkpoint", request.encode()
        try:
            answer = self._send("POST", path, body, kind="text/plain", time=read)
            return parse_cosignatures(answer.content)
        except VerifierRefused as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            try:
                return SizeConflict(parse_conflict(error.content))
            except MalformedNote:
                # A 409 without a size says nothing of the tree: it stays a refusal.
                raise error from None

    def cosigned(self, origin: str) -> bytes | None:
        """Return the largest cosigned checkpoint of a log, None if there is none; not verified.

        Args:
            origin: of the log.
        """
        path = f"/cosigner/{sha256(origin.encode()).hexdigest()}/checkpoint"
        try:
            return self._send("GET", path, signed=False).content
        except VerifierRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def activation(self, window: str, number: int) -> Activation | None:
        """Return activation ``number``, from 1, or None before its instant; not authenticated.

        Args:
            number: a, from 1, below A.
        """
        path = f"{_window(window)}/activations/{number}{self._own}"
        value = self._unless_early(path)
        return None if value is None else Activation.from_json(value)

    def put_round(self, window: str, shown: BeaconRound) -> None:
        """Hand over a round of the beacon, which this side had first."""
        self._send("POST", f"{_window(window)}/rounds", RoundBody(shown).encode())

    def claims(self, window: str, after: bytes = b"") -> ClaimsPage | None:
        """Return a page of claims of revealed promises, or None before the window's end.

        Args:
            after: ``next`` of the page before; empty for the first page.

        Raises:
            VerifierMessageRejected: not a page, or its ``next`` does not lead on.
        """
        query = f"?after={after.hex()}" if after else ""
        value = self._unless_early(f"{_window(window)}/claims{query}")
        if value is None:
            return None
        try:
            page = ClaimsPage.from_json(value)
        except MalformedError as error:
            raise VerifierMessageRejected("not a page of claims", where="claims") from error
        # A verifier that leads us in a circle would keep the window from being closed.
        if page.next is not None and page.next <= after:
            raise VerifierMessageRejected("not the next page of claims", where="claims")
        return page

    def claimed(self, window: str, record: QueryEntry) -> bool | None:
        """Return whether the promised record was claimed, None while it may still be.

        Args:
            record: as promised, or a charge; pseudonym, counter and time name the promise.

        Raises:
            VerifierMessageRejected: not an answer to that.
        """
        query = f"{hex_encode(record.pseudonym)}/{record.counter}?made={record.time}"
        value = self._unless_early(f"{_window(window)}/claims/{query}")
        if value is None:
            return None
        try:
            return Claimed.from_json(value).claimed
        except MalformedError as error:
            raise VerifierMessageRejected("not whether it was claimed", where="claims") from error

    def held_parts(self, window: str) -> HeldParts:
        """Return how much of the handover the verifier has.

        Raises:
            VerifierMessageRejected: not an answer to that.
        """
        value = json_object(self._send("GET", f"{_window(window)}/records/parts"))
        try:
            return HeldParts.from_json(value)
        except MalformedError as error:
            raise VerifierMessageRejected("not the parts it holds", where="records") from error

    def put_part(self, window: str, number: int, data: bytes) -> None:
        """Hand over a part of all bodies, in the frames of docs/spec/08-services.md §8.3.

        Args:
            number: of the part, from 0.
            data: its frames.
        """
        path = f"{_window(window)}/records/parts/{number}"
        self._send("PUT", path, data, kind="application/octet-stream")

    def put_parts(self, window: str, parts: int, digest: bytes) -> None:
        """Name the parts that are the handover.

        Args:
            parts: how many.
            digest: SHA-256 of all their bytes.
        """
        self._send("POST", f"{_window(window)}/records", RecordsBody(parts, digest).encode())

    def close_window(self, window: str, final_checkpoint: bytes) -> None:
        """Name the final cosigned checkpoint, a note.

        Args:
            final_checkpoint: a note in UTF-8, the largest that the verifier cosigned.
        """
        body = CloseBody(final_checkpoint.decode("utf-8"))
        self._send("POST", f"{_window(window)}/close", body.encode())

    def challenge(self, window: str) -> Challenge | None:
        """Return the challenge, or None before the sampling instant; not checked.

        Raises:
            MalformedError: not a challenge.
        """
        value = self._unless_early(f"{_window(window)}/challenge")
        return None if value is None else Challenge.from_json(value)

    def put_evidence(self, window: str, call: str, message: bytes) -> None:
        """Hand over what a challenge asks for beside responses; what is there already stays.

        Args:
            call: as `budget_call`, `replay_call` or `rows_call` returns it.
            message: encoded (docs/spec/11-generation.md §11.12, 09-audit.md §9.11).
        """
        path = f"{_window(window)}/{call}"
        try:
            self._send("PUT", path, message, kind="application/octet-stream")
        except VerifierRefused as error:
            # As of a response: it has one from an earlier run.
            if error.status != HTTPStatus.CONFLICT:
                raise

    def put_response(self, window: str, position: int, response: bytes) -> None:
        """Hand over the response for one record; one that the verifier has already stays.

        Args:
            position: of a sampled record in the log.
            response: encoded (docs/spec/08-services.md §8.5).
        """
        path = f"{_window(window)}/challenge/{position}"
        try:
            self._send("PUT", path, response, kind="application/octet-stream")
        except VerifierRefused as error:
            # It has one from an earlier run, and the first one counts.
            if error.status != HTTPStatus.CONFLICT:
                raise

    def verdict(self, window: str) -> bytes | None:
        """Return the signed verdict as it was sent, or None if there is none yet.

        Args:
            window: by name, also one that was refused.
        """
        try:
            path = f"{_window(window)}/verdict{self._own}"
            return self._send("GET", path, signed=False).content
        except VerifierRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def _unless_early(self, path: str) -> dict[str, Any] | None:
        try:
            return json_object(self._send("GET", path))
        except VerifierRefused as error:
            if error.status == HTTPStatus.TOO_EARLY:
                return None
            raise


def _window(name: str) -> str:
    return f"/v1/windows/{quote(name, safe='')}"
