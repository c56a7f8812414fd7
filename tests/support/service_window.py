"""A small honest window, played against a running verifier service over its interface."""

from __future__ import annotations

from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.policy import CLOSED, COUNTERSIGNED, HANDED_OVER, INSTANTS, START
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest, parse_cosignatures
from ragaudit.ledger.messages.policy import Policy
from ragaudit.verifier.service import providers, windows
from ragaudit.verifier.service.challenge import chain_seed
from verifier_service_harness import VerifierScenario


class ServiceWindow(Window):
    """A provider whose verifier is the service; it moves the service's clock as it goes."""

    def __init__(self, scenario: VerifierScenario, **settings: Any) -> None:
        self.scenario = scenario
        super().__init__(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        scenario = self.scenario
        self.cosigner_key = scenario.keys.cosigner
        self.verifier_key = scenario.keys.statement
        self.verdict_key = scenario.keys.verdict
        self.policy = Policy.from_json(self.policy_json())
        providers.add(scenario.service.database, self.provider, self.provider_key.public)
        scenario.provider, scenario.provider_key = self.provider, self.provider_key

    def previous_checkpoint(self, leaves: int = 0) -> str | None:
        """The service knows of no window before."""
        return None

    def send(self, method: str, path: str, body: bytes | dict[str, Any] = b"") -> Any:
        answer = self.signed(method, f"/v1/windows/{self.window}{path}", body)
        assert answer.is_success, answer.text
        return answer

    def signed(self, method: str, target: str, body: bytes | dict[str, Any] = b"") -> Any:
        """The answer to a request of this provider, whoever asked before."""
        self.scenario.provider, self.scenario.provider_key = self.provider, self.provider_key
        return self.scenario.send(method, target, body)

    def post(self, path: str, document: dict[str, Any]) -> Any:
        content = canonical_json.dumps(document)
        answer = self.scenario.client.post(self.target(path), content=content)
        assert answer.is_success, answer.text
        return answer

    def target(self, path: str) -> str:
        """Of a request that anybody may make."""
        return f"/v1/windows/{self.window}{path}?provider={self.provider}"

    # --- before the window -------------------------------------------------------------------

    def prepare(self) -> None:
        """Commit, and hand everything in but the opening."""
        super().open()
        self.scenario.clock.at(COUNTERSIGNED)
        embedder = self.model.manifest().to_json()
        document = {"policy": self.policy_json(), "embedder": embedder}
        answer = self.signed("POST", "/v1/windows", document)
        assert answer.status_code == 201, answer.text
        for tenant, index in self.indices.items():
            self.send("PUT", f"/tenants/{tenant}/versions/1", index.commitment.encode())

    def opening_request(self) -> dict[str, Any]:
        _, salt, body = self.entries[0]
        checkpoint = self.empty_checkpoint
        return {"opening": body.hex(), "salt": salt.hex(), "empty_checkpoint": checkpoint}

    def open(self) -> None:
        self.prepare()
        self.send("POST", "/countersign", self.opening_request())
        # The accounts' noise depends on the activations; the test takes a look at the seed.
        with self.scenario.service.database.read() as connection:
            row = windows.get(connection, windows.of(self.provider, self.window))
        self.chain_seed = chain_seed(self.scenario.keys, row)

    # --- during the window -------------------------------------------------------------------

    def checkpoint(self, time: int) -> None:
        self.scenario.clock.at(START + time)
        signed = sign_checkpoint(Checkpoint(self.origin, self.tree.head()), self.log_key)
        old = self.checkpoints[-1][0] if self.checkpoints else 0
        proof = self.tree.consistency_proof(old) if old else ()
        request = AddCheckpointRequest(old, proof, signed.encode())
        answer = self.scenario.add_checkpoint(request.encode())
        assert answer.status_code == 200, answer.text
        note = signed.note.with_signatures(parse_cosignatures(answer.content))
        self.checkpoints.append((self.tree.size, START + time, note.encode().decode()))

    def register(self, name: str, tenant: str, anchored: bool, time: int) -> None:
        super().register(name, tenant, anchored, time)
        index = len(self.entries) - 1
        kind, salt, body = self.entries[index]
        entry = {"index": index, "kind": kind, "salt": salt.hex(), "body": body.hex()}
        self.send("POST", "/entries", {"entries": [entry]})

    # --- after the window --------------------------------------------------------------------

    def submit(self) -> None:
        """The accounts' receipts, statements and disputes."""
        self.post("/receipts", {"receipts": self.receipts()})
        for statement in self.statements():
            self.post("/statements", {"statement": statement})
        for kept in self.disputes():
            self.post("/disputes", {"disputes": [kept["dispute"]]})

    def hand_over(self) -> None:
        self.scenario.clock.at(HANDED_OVER)
        self.send("PUT", "/records", self.handover())
        assert CLOSED < HANDED_OVER
        self.send("POST", "/close", {"final_checkpoint": self.checkpoints[-1][2]})

    def reach_sampling(self) -> None:
        self.scenario.clock.at(INSTANTS[-1])
        self.scenario.service.scheduler.tick()

    def respond(self) -> list[int]:
        """Answer the challenge; the sampled leaf indices."""
        challenge = self.send("GET", "/challenge").json()
        sampled = sorted({i for stratum in challenge["strata"] for i in stratum["sample"]})
        by_index = {asked.index: asked for asked in self.asked}
        for index in sampled:
            self.send("PUT", f"/challenge/{index}", self.response(by_index[index]))
        return sampled
