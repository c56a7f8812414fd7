"""Cheats with disputes: the provider made every receipt file, and owns accounts of its own."""

from typing import Any, Final

import httpx
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import InternalError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.service.answers import RewritesContent, SelectsThenAddsNoise
from ragaudit.lab.attacks.stage.play import Play
from ragaudit.lab.attacks.stage.services import WINDOW
from ragaudit.ledger.messages.disputes import Dispute
from ragaudit.prover.answering.query import Stages
from ragaudit.verifier.service.disputes import PER_ACCOUNT

_BASE: Final = f"/v1/windows/{WINDOW}"


class Bare:
    """An account without a library: it registers a dispute key and keeps receipt files."""

    def __init__(self, play: Play, name: str) -> None:
        self.name = name
        self.key = PrivateKey.from_seed(structure("dispute key of", name.encode()))
        self.files: list[dict[str, Any]] = []
        self._play = play
        play.keys[name] = play.prover.operate("accounts", {"tenant": "acme", "name": name})["key"]
        body = {"anchor": None, "dispute_key": self.key.public.raw.hex()}
        with play.http("prover", name) as prover:
            shown = _demand(prover.post(f"{_BASE}/registration", json=body))
        self.pseudonym = bytes.fromhex(shown["pseudonym"])

    def ask(self, text: str) -> None:
        body = {"query": text, "top_k": 2, "filter": ""}
        with self._play.http("prover", self.name) as prover:
            self.files.append(_demand(prover.post(f"{_BASE}/query", json=body)))

    def dispute(self, file: dict[str, Any], *, of: bytes | None = None) -> httpx.Response:
        """Dispute a file as this account, or in the name of another pseudonym."""
        made = Dispute.issue(self.key, pseudonym=of or self.pseudonym, receipt_file=file)
        with self._play.http("verifier") as verifier:
            return verifier.post(f"{_BASE}/disputes", json={"disputes": [made.to_json()]})


class DisputesItsOwnAnswers(Play):
    """mallory is the provider's. It disputes her answers, and tries to in everybody's name."""

    def before_second(self, at: int) -> None:
        super().before_second(at)
        self.mallory = Bare(self, "mallory")
        self.prover.checkpoint()

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.clock.at(at + 21)
        for number in range(3):
            self.mallory.ask(f"question {number} of mallory")

    def after_submission(self) -> None:
        for file in self.mallory.files:
            _demand(self.mallory.dispute(file))
        for account in self.accounts.values():
            for receipt in account.receipts:
                owner = receipt.file.public.record.pseudonym
                refused = self.mallory.dispute(receipt.file.to_json(), of=owner)
                if refused.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
                    raise InternalError("a dispute that the account did not sign was taken")


class FloodsTheIntake(Play):
    """mallory, the provider's, fills the intake; vera's one true dispute comes last."""

    def before_second(self, at: int) -> None:
        super().before_second(at)
        self.mallory, self.vera = Bare(self, "mallory"), Bare(self, "vera")
        self.prover.checkpoint()

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.clock.at(at + 21)
        self.vera.ask("what vera asks")

    def after_submission(self) -> None:
        (true,) = self.vera.files
        taken = 0
        for number in range(3 * PER_ACCOUNT):
            # vera's answer, signed again and again: the provider has every receipt file.
            private = {**true["private"], "salt_r": structure("flood", number).hex()}
            digest = structure("flood answer", number).hex()
            public = {**true["public"], "answer_digest": digest}
            again = {**true, "private": private, "public": public}
            taken += self.mallory.dispute(again).is_success
        if taken > PER_ACCOUNT:
            raise InternalError(f"{taken} disputes of one account were taken")
        _demand(self.vera.dispute(true))

    def after_sampling(self) -> None:
        """vera's record was sampled, so she goes to the arbiter."""
        (true,) = self.vera.files
        self.arbitrate(self.vera.name, true)


def _demand(answer: httpx.Response) -> Any:
    if not answer.is_success:
        raise InternalError(f"{answer.request.url.path}: {answer.status_code} {answer.text}")
    return answer.json()


CHEATS: Final = (
    ServiceCheat(
        name="noiseless-and-disputed", family="SELECTION",
        description="Retrieves without noise and disputes its own answers, to be opened none.",
        parts={"mechanism": SelectsThenAddsNoise}, play=DisputesItsOwnAnswers,
        checks=("selection",), reason="selection argument does not hold",
    ),
    ServiceCheat(
        name="disputes-flooded", family="RECEIPT",
        description="Serves other content, and fills the intake of disputes before the victim's.",
        parts={"stages": Stages(selected=RewritesContent)}, play=FloodsTheIntake,
        checks=("disputes",), reason="upheld by the arbiter: step 8",
        complaint="step 8 (commitments)",
    ),
)  # fmt: skip
