"""Third parties' cosigners behind one transport: honest ones, and what goes wrong with them."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey, VerifierKey
from ragaudit.prover.settings import CosignerSettings
from ragaudit.verifier.cosigner.app import Cosigner
from ragaudit.verifier.cosigner.store import Store
from scenario import ProverScenario

Handler = Callable[[httpx.Request], httpx.Response]
NAMES = ("one", "two", "three")


def key(name: str) -> SigningKey:
    seed = sha256(name.encode()).digest()
    return SigningKey(f"{name}.example", COSIGNATURE_V1, PrivateKey.from_seed(seed))


class Party:
    """One cosigner with a store of its own.

    Attributes:
        instead: answers in its place, if set.
        asked: method and path of every request.
        bodies: of the requests to cosign.
    """

    def __init__(self, folder: Path, name: str, clock: Callable[[], int]) -> None:
        self.key = key(name)
        self.store = Store(f"sqlite:///{folder}/{name}.db", clock)
        self.cosigner = Cosigner((self.key,), self.store)
        self.instead: Handler | None = None
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, request.url.path))
        if self.instead is not None:
            return self.instead(request)
        return self.honest(request)

    def honest(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            assert request.url.path == "/prefix/add-checkpoint"
            self.bodies.append(request.content)
            answer = self.cosigner.add_checkpoint(request.content)
            headers = {"Content-Type": answer.content_type}
            return httpx.Response(answer.status, content=answer.body, headers=headers)
        log = self.store.find(bytes.fromhex(request.url.path.split("/")[-2]))
        return httpx.Response(404) if log is None else httpx.Response(200, content=log.note)


class Parties:
    """Three of them, on hosts of their names."""

    def __init__(self, folder: Path, clock: Callable[[], int]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.of = {name: Party(folder, name, clock) for name in NAMES}
        self.transport = httpx.MockTransport(lambda r: self.of[str(r.url.host)].handle(r))

    def take_up(self, log: VerifierKey) -> None:
        for party in self.of.values():
            party.store.add(log)

    def close(self) -> None:
        for party in self.of.values():
            party.store.close()


class CosignedProver:
    """A prover whose windows may name three cosigners, of whom two must sign."""

    def __init__(self, scenario: ProverScenario, folder: Path, **more: Any) -> None:
        self.scenario = scenario
        self.parties = Parties(folder / "parties", scenario.clock)
        self.trust = folder / "cosigners.policy"
        self.trust.write_text(policy_text())
        section = CosignerSettings(policy_file=self.trust, **more)
        scenario.settings = scenario.settings.model_copy(update={"cosigners": section})
        scenario.restart(replace(scenario.components, cosigner_transport=self.parties.transport))

    def round(self) -> None:
        """Two rounds: the second gives the verifier what the first one asked for."""
        service = self.scenario.service
        asked = service.cosigning._cosigners
        assert asked is not None
        service.driver.checkpoint("w1")
        for _ in range(2):
            service.cosigning.step("w1")
            asked.wait()


def policy_text(rule: str = "2") -> str:
    """A trust policy of the three."""
    lines = [f"witness {name} {key(name).verifier_key} https://{name}/prefix" for name in NAMES]
    return "\n".join([*lines, f"group them {rule} {' '.join(NAMES)}", "quorum them", ""])
