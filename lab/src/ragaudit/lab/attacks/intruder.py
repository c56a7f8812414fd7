"""Providers that turn on the verifier's service, or through it on another provider."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import httpx
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import seeded
from ragaudit.lab.scenario.provision import PROVIDER
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages.identifiers import log_origin
from ragaudit.ledger.messages.signed import SignedRequest
from ragaudit.prover.keys import load_key
from ragaudit.verifier.service import providers

RIVAL: Final = "rival.example"
TAKEN: Final = "taken"


@dataclass(frozen=True)
class Attempt:
    """What came of an intrusion.

    Attributes:
        through: whether it got what it wanted.
        said: what the verifier said to the request that it came down to.
    """

    through: bool
    said: str


class Intruder(Scenario):
    """A pinned provider beside an honest window; subclasses say what it does."""

    def attempt(self) -> Attempt:
        """Bring the honest window up, intrude, and return what comes of it."""
        with ExitStack() as stack:
            self.open(stack)
            return self.intrude()

    def intrude(self) -> Attempt:
        """Do what this intruder does and return what came of it."""
        raise NotImplementedError

    def as_provider(self) -> "Caller":
        """Return the calls of the honest window's own provider, which the verifier has pinned."""
        key = load_key(self.folder / "prover" / "keys" / "provider.key")
        return Caller(PROVIDER, key, self.verifier.transport, self.clock)

    def as_rival(self) -> "Caller":
        """Return the calls of another provider, which the verifier pins now."""
        key = seeded(RIVAL)
        providers.add(self.verifier.service.database, RIVAL, key.public)
        return Caller(RIVAL, key, self.verifier.transport, self.clock)

    def policy(self, window: str, provider: str = PROVIDER) -> dict[str, Any]:
        """Return as much of a policy as the verifier files: names and keys, and no terms at all.

        Args:
            window: its name.
            provider: whose policy: `PROVIDER` or `RIVAL`. Each window has a log key of its own, or
                the verifier would decline the second (docs/spec/08-services.md §8.3).
        """
        keys = {**self.prover.policy.to_json()["keys"]}
        if provider == RIVAL:
            keys["provider"] = seeded(RIVAL).public.raw.hex()
        log = SigningKey(log_origin(provider, window), ED25519, seeded(f"{provider} {window}"))
        return {
            "format": "ragaudit/v1/policy",
            "provider": provider,
            "window": window,
            "start": self.clock.now // 1000 + 3600,
            "tenants": [{"id": "acme", "owner_key": None}],
            "keys": {**keys, "log": str(log.verifier_key)},
        }


class Caller:
    """A provider's calls to the verifier, each of any content (docs/spec/08-services.md §8.1).

    Every call returns what the verifier says: `TAKEN`, or the status with what was wrong.
    """

    def __init__(
        self, name: str, key: PrivateKey, transport: httpx.BaseTransport, clock: Clock
    ) -> None:
        """Sign calls as a provider.

        Args:
            name: the provider's.
            key: the provider's, which the verifier has pinned.
            transport: leads to the verifier.
            clock: of the scenario, for the signed time.
        """
        self._name = name
        self._key = key
        self._clock = clock
        self._http = httpx.Client(transport=transport, base_url="http://verifier.test")

    def register(self, policy: dict[str, Any]) -> str:
        """File a window.

        Args:
            policy: the document as JSON; the embedder's manifest is left empty.
        """
        return self.send("POST", "/v1/windows", dumps({"policy": policy, "embedder": {}}))

    def put_index(self, window: str, commitment: bytes) -> str:
        """Upload an index commitment of the tenant acme.

        Args:
            window: its name.
            commitment: any bytes.
        """
        return self.send("PUT", f"/v1/windows/{window}/tenants/acme/versions/1", commitment)

    def put_records(self, window: str, handover: bytes) -> str:
        """Hand a log over.

        Args:
            window: its name.
            handover: any bytes.
        """
        return self.send("PUT", f"/v1/windows/{window}/records", handover)

    def open_falsely(self, window: str) -> str:
        """Ask for the countersignature of an opening that is none, so that the window is refused.

        Args:
            window: its name.
        """
        opening = {"opening": "00", "salt": "00" * 32, "empty_checkpoint": "none"}
        return self.send("POST", f"/v1/windows/{window}/countersign", dumps(opening))

    def send(self, method: str, path: str, body: bytes) -> str:
        """Make a signed call.

        Args:
            method: of HTTP.
            path: with the query, as it goes into the signature (docs/spec/08-services.md §8.1).
            body: any bytes.
        """
        signed = SignedRequest.issue(
            self._key,
            provider=self._name,
            method=method,
            target=path,
            body=body,
            time=self._clock(),
        )
        answer = self._http.request(method, path, content=body, headers=signed.encode())
        return TAKEN if answer.is_success else f"{answer.status_code} {answer.json()['detail']}"
