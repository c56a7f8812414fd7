"""What an account tells the verifier: public halves, claims, disputes, refusals."""

from collections.abc import Mapping, Sequence
from typing import Any

from ragaudit.client.errors import InvalidReply
from ragaudit.client.transport import Service

__all__ = ["Submission", "VerifierService"]

BATCH = 1000  # receipts of one request, docs/spec/08-services.md §8.3

Json = Mapping[str, Any]


class Submission(tuple[int, int]):
    """How many receipts were new to the verifier, and how many it knew."""

    __slots__ = ()

    @property
    def accepted(self) -> int:
        return self[0]

    @property
    def known(self) -> int:
        return self[1]


class VerifierService:
    """The verifier's calls that need no authentication: their content carries signatures."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def close(self) -> None:
        self._service.close()

    def keys(self) -> Json:
        """Return the verifier's name and public keys (`GET /v1/keys`)."""
        value = self._service.get("/v1/keys")
        if not isinstance(value, Mapping):
            raise InvalidReply("not a list of keys", where=self._service.base_url)
        return value

    def submit(self, window: str, public_halves: Sequence[Json]) -> Submission:
        """Hand over public halves of receipts; private halves never leave the account here."""
        accepted = known = 0
        for start in range(0, len(public_halves), BATCH):
            batch = list(public_halves[start : start + BATCH])
            reply = self._service.post(
                f"/v1/windows/{window}/receipts", {"receipts": batch}, repeatable=True
            )
            accepted += int(reply["accepted"])
            known += int(reply["known"])
        return Submission((accepted, known))

    def refuse(self, window: str, refusals: Sequence[Json]) -> None:
        """Hand over signed refusals of the provider."""
        body = {"refusals": list(refusals)}
        self._service.request("POST", f"/v1/windows/{window}/refusals", body)

    def claim(self, window: str, promise: Json, nonce: bytes) -> None:
        """Hand over a promise whose nonce was revealed and which the provider does not answer."""
        body = {"promise": promise, "nonce": nonce.hex()}
        self._service.request("POST", f"/v1/windows/{window}/claims", body)

    def dispute(self, window: str, receipt_file: Json) -> None:
        """Show a whole receipt, private half included, to the verifier.

        The verifier takes it only before the sample is drawn, and then never opens the noise
        key of that record.
        """
        self._service.request("POST", f"/v1/windows/{window}/disputes", dict(receipt_file))
