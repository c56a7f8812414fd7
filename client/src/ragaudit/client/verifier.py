"""The verifier's calls that an account makes."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ragaudit.client.errors import InvalidReply
from ragaudit.client.transport import Service
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.ledger.log.checkpoints import verify_checkpoint
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.bodies import (
    MAX_BATCH,
    ClaimBody,
    ReceiptsBody,
    RefusalsBody,
    Submission,
)
from ragaudit.ledger.messages.disputes import DisputeStatus
from ragaudit.ledger.messages.identifiers import read_origin
from ragaudit.ledger.messages.promises import Claim
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.ledger.messages.shown_entries import RegistrationEntry

__all__ = ["SignedFor", "SignsFor", "VerifierService"]

Json = Mapping[str, Any]
T = TypeVar("T")
SignedFor = tuple[dict[str, Any], RegistrationEntry | None]
SignsFor = Callable[[Sequence[Json]], SignedFor]
"""What an account adds to a request with these documents: its statement that it submits them
itself, and its registration."""


class VerifierService:
    """The verifier's calls that need no authentication: their content carries signatures.

    Windows are told apart by the origin of their log, `<provider>/ragaudit/<window>`. Every call
    raises as `Service.request`, and InvalidReply for a reply of another form.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def aclose(self) -> None:
        """Close the connections."""
        await self._service.aclose()

    async def keys(self) -> ShownKeys:
        """Return the verifier's name, public keys and time (`GET /v1/keys`).

        Raises:
            InvalidReply: something else.
        """
        value = await self._service.get("/v1/keys")
        try:
            return ShownKeys.from_json(value)
        except MalformedError as error:
            where = self._service.base_url
            raise InvalidReply("not the keys of a verifier", where=where) from error

    async def cosigned_size(self, log_key: VerifierKey) -> int:
        """Return the size of the largest checkpoint of a log that the verifier has cosigned.

        Args:
            log_key: whose checkpoint it is.

        Raises:
            InvalidReply: not a checkpoint of that log.
        """
        name = hashlib.sha256(log_key.name.encode()).hexdigest()
        note = await self._service.request("GET", f"/cosigner/{name}/checkpoint")
        try:
            # By the log's own signature: a verifier cannot make up evidence against a provider.
            return verify_checkpoint(note, log_key).head.size
        except RagauditError as error:
            raise InvalidReply("not a checkpoint", where=self._service.base_url) from error

    async def submit(
        self, origin: str, public_halves: Sequence[Json], signs: SignsFor | None = None
    ) -> Submission:
        """Give the verifier public halves of receipts, JSON; private halves must not be among them.

        Args:
            origin: of the window's log.
            public_halves: any number; they go in batches.
            signs: for halves of one account, so that no other submitter takes their room.

        Returns:
            How many were new to the verifier, and how many it knew.
        """
        return await self._submit(origin, ReceiptsBody, public_halves, signs)

    async def refuse(
        self, origin: str, refusals: Sequence[Json], signs: SignsFor | None = None
    ) -> Submission:
        """Give the verifier signed refusals of the provider; as `submit`.

        Args:
            origin, signs: as for `submit`.
            refusals: JSON, as the provider signed them (docs/spec/05-records.md §5.8).
        """
        return await self._submit(origin, RefusalsBody, refusals, signs)

    async def claim(
        self, origin: str, claim: Claim, registration: RegistrationEntry | None
    ) -> None:
        """Claim the answer to a promise whose nonce was revealed to no avail.

        Args:
            origin: of the window's log.
            claim: the promise as the provider signed it, and the revealed nonce.
            registration: the account's; the provider may have withheld it from the verifier.
        """
        body = ClaimBody(claim.promise.to_json(), claim.nonce, registration)
        await self._post(origin, "claims", body.to_json())

    async def tell(self, origin: str, what: str, body: Json) -> None:
        """Give the verifier a document that the account signed.

        Args:
            origin: of the window's log.
            what: the kind, as in the path: "statements", "disputes" or "findings".
            body: JSON.
        """
        await self._post(origin, what, body)

    async def standing(self, origin: str, index: int) -> DisputeStatus:
        """Return whether a disputed record was sampled, and which step fails if it was judged.

        Args:
            origin: of the window's log.
            index: of the record in it, from 0.
        """
        return _read(
            DisputeStatus.from_json, await self._service.get(_path(origin, f"disputes/{index}"))
        )

    async def show(self, origin: str, index: int, receipt_file: Json) -> DisputeStatus:
        """Show the verifier a whole receipt of a record that was not sampled.

        Args:
            origin, index: as for `standing`.
            receipt_file: both halves, JSON, the one that was disputed.

        Returns:
            As `standing`.
        """
        # Never for a sampled record: the verifier answers 409 before it reads the body (spec 8.3).
        path = _path(origin, f"disputes/{index}/file")
        data = await self._service.request("PUT", path, dict(receipt_file))
        return _read(DisputeStatus.from_json, self._service.value(path, data))

    async def _submit(
        self,
        origin: str,
        kind: type[ReceiptsBody] | type[RefusalsBody],
        documents: Sequence[Json],
        signs: SignsFor | None,
    ) -> Submission:
        replies = []
        # Each batch is signed for by itself: the digest covers the documents of one request.
        for start in range(0, len(documents), MAX_BATCH):
            batch = [dict(document) for document in documents[start : start + MAX_BATCH]]
            holder, registration = (None, None) if signs is None else signs(batch)
            body = kind(tuple(batch), holder=holder, registration=registration)
            what = "receipts" if kind is ReceiptsBody else "refusals"
            reply = await self._post(origin, what, body.to_json())
            replies.append(_read(Submission.from_json, reply))
        return Submission.total(replies)

    async def _post(self, origin: str, what: str, body: Json) -> Any:
        # A second arrival is "known" to the verifier, by what it says (spec 8.8).
        return await self._service.post(_path(origin, what), body, repeatable=True)


def _path(origin: str, rest: str) -> str:
    """Return the path of a window's call; other providers may have a window of the same name."""
    provider, window = read_origin(origin)
    return f"/v1/windows/{window}/{rest}?provider={provider}"


def _read(read: Callable[[Any], T], reply: Any) -> T:
    try:
        return read(reply)
    except MalformedError as error:
        raise InvalidReply(f"not such a reply: {error.what}", where="verifier") from error
