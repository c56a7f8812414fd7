"""A verifier that hears an arbiter, and a window whose accounts complain about every answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.signing import PrivateKey, sign
from ragaudit.lab.scenario.opening import Asked
from ragaudit.lab.scenario.policy import COUNTERSIGNED, DEADLINE_SECONDS, INSTANTS
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.disputes import Dispute, Finding, file_digest
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.verdict import Verdict
from service_audit import decide
from service_window import ServiceWindow
from verifier_service_harness import VerifierScenario

ARBITER = PrivateKey.from_seed(b"\xa7" * 32)
SECRET = "text that only the account may see"


class Arbitrated(VerifierScenario):
    """A scenario whose verifier hears an arbiter."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, None, Clock(1000 * (COUNTERSIGNED - 60)))
        self.settings = self.settings.model_copy(update={"arbiter_key": ARBITER.public.raw.hex()})


class Complaining(ServiceWindow):
    """Mode B; every account can complain about every answer, true or false."""

    def __init__(self, scenario: VerifierScenario, **settings: Any) -> None:
        arbiter = {"keys/arbiter": ARBITER.public.raw.hex()}
        super().__init__(scenario, mode="B", overrides=arbiter, **settings)
        self.files: dict[int, dict[str, Any]] = {}

    def file(self, asked: Asked, spoil: bool = False) -> dict[str, Any]:
        """The receipt file of an answer, the same each time; a false one is signed, too."""
        if asked.index not in self.files:
            value = self.receipt_file(asked).to_json()
            self.files[asked.index] = self.spoiled(value) if spoil else value
        return self.files[asked.index]

    def receipts(self) -> list[dict[str, Any]]:
        """Of one answer: whatever is drawn, other records stay outside the sample."""
        first = self.asked[0]
        half = PublicReceipt.from_json(self.file(first)["public"])
        return [half.with_proofs(self.proof_for(first.index)).to_json()]

    def spoiled(self, value: dict[str, Any]) -> dict[str, Any]:
        for part in (value["answer"]["documents"][0], value["private"]["rows"][0]):
            part["content"] = f"{SECRET} {value['public']['index']}."
        halves = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
        digest = structure("answer", bytes.fromhex(value["private"]["salt_r"]), *halves)
        public = PublicReceipt.from_json(value["public"])
        signed = PublicReceipt(origin=public.origin, index=public.index, salt=public.salt,
            body=public.body, issued=public.issued, answer_digest=digest,
        ).signed(self.provider_key)  # fmt: skip
        return {**value, "public": signed.to_json()}

    def dispute_of(self, asked: Asked, file: dict[str, Any], **changes: Any) -> Dispute:
        account = changes.pop("account", asked.account)
        key = changes.pop("key", account.dispute_key)
        made = Dispute.issue(key, pseudonym=account.pseudonym, receipt_file=file)
        if changes:
            made = replace(made, **changes)
            fields = (made.origin, made.pseudonym, made.index, made.answer_digest)
            made = replace(made, signature=sign(key, "dispute", *fields, made.file_digest))
        return made

    def add(self, *disputes: Dispute, **more: Any) -> Any:
        document = {"disputes": [each.to_json() for each in disputes], **more}
        return self.raw("POST", "disputes", document)

    def raw(self, method: str, path: str, document: dict[str, Any]) -> Any:
        content = canonical_json.dumps(document)
        url = f"/v1/windows/{self.window}/{path}"
        return self.scenario.client.request(method, url, content=content)

    def show(self, asked: Asked) -> Any:
        return self.raw("PUT", f"disputes/{asked.index}/file", self.files[asked.index])

    def finding(self, asked: Asked, step: int, **changes: Any) -> Any:
        public = self.files[asked.index]["public"]
        return self.raw(
            "POST", "findings", {**self.found(asked, step, **changes), "public": public}
        )

    def found(self, asked: Asked, step: int, **changes: Any) -> dict[str, Any]:
        file = self.files[asked.index]
        public = PublicReceipt.from_json(file["public"])
        fields = {"origin": public.origin, "index": public.index, "step": step}
        fields |= {"answer_digest": public.answer_digest, "file_digest": file_digest(file)}
        key = changes.pop("key", ARBITER)
        finding = Finding(**{**fields, "time": self.scenario.clock.now, **changes}).signed(key)
        return {"finding": finding.to_json()}

    def split(self) -> tuple[Asked, Asked]:
        """A disputed record that was sampled, and one that was not."""
        challenge = self.send("GET", "/challenge").json()
        drawn = {i for stratum in challenge["strata"] for i in stratum["sample"]}
        inside = [each for each in self.asked if each.index in drawn]
        outside = [each for each in self.asked if each.index not in drawn]
        return inside[0], outside[0]


def played(scenario: VerifierScenario) -> Complaining:
    window = Complaining(scenario)
    window.play()
    return window


def disputed(scenario: VerifierScenario, *, spoil: bool = False) -> Complaining:
    """A window in which every answer is disputed, up to the draw."""
    window = played(scenario)
    for asked in window.asked:
        answer = window.add(window.dispute_of(asked, window.file(asked, spoil)))
        assert answer.json() == {"accepted": 1, "known": 0}, answer.text
    window.submit()
    window.hand_over()
    window.reach_sampling()
    return window


def decided_late(scenario: VerifierScenario, window: ServiceWindow) -> Verdict:
    """The verdict when everything was answered and the deadline of disputes is over."""
    window.respond()
    scenario.clock.now = 1000 * (INSTANTS[-1] + DEADLINE_SECONDS) + 1
    return decide(scenario, window)
