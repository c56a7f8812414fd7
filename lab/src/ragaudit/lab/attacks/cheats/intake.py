"""Checks promises and receipts: the provider fills the verifier's intake, so accounts have none."""

from typing import Any, Final

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import InternalError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.cheats.log import DropsALeaf
from ragaudit.lab.attacks.cheats.promises import BreaksPromises, ForgetsClaims
from ragaudit.lab.attacks.forging.resigning import another_signature
from ragaudit.lab.scenario.provision import WINDOW
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.ledger.messages.promises import Refusal
from ragaudit.prover.answering.query import Stages
from ragaudit.verifier.service import submissions

# Of the 1,000 refusals that a request may hold (spec 8.3).
_AT_ONCE = 200

# Far more than the two claims that are kept for one query (spec 8.8).
_RESIGNED = 20

# The status of a cap that is reached (spec 8).
_FULL = 429


class FloodsTheIntake(Scenario):
    """The provider fills what room there is before it breaks alice's second promise.

    It signs refusals to pseudonyms that it invents, until no more are taken, and alice's first
    promise again and again. The room is small here, and the flood with it. Check 12 (`promises`)
    still gets alice's claim: her share is her own, and a signature makes no new claim (§8.8).

    Attributes:
        room: bytes that the verifier's intake keeps of each kind.
    """

    room = 2**18

    def before_second(self, at: int) -> None:
        # The default of 240 MiB (spec 8.8) is too much to fill in a test.
        self.verifier.service.intake._cap = self.room
        super().before_second(at)

    def ask(self, name: str, text: str, top_k: int) -> None:
        if (name, text) == ("alice", "the second question of alice"):
            self._refuse_strangers()
            self._claim_again()
        super().ask(name, text, top_k)

    def _refuse_strangers(self) -> None:
        for batch in range(1000):
            refusals = [self._refusal(batch, n) for n in range(_AT_ONCE)]
            if self._submit("refusals", {"refusals": refusals}) == _FULL:
                return
        raise InternalError("the intake is never full")

    def _refusal(self, batch: int, number: int) -> dict[str, Any]:
        return (
            Refusal(
                origin=self.prover.policy.origin,
                pseudonym=structure("nobody", batch, number),
                counter=0,
                reason="unavailable",
                time=self.clock.now,
            )
            .signed(self._key)
            .to_json()
        )

    def _claim_again(self) -> None:
        transport = self.accounts["alice"].transport
        promise, nonce = transport.answered["promise"], transport.asked["reveal"]["nonce"]
        body = bytes.fromhex(promise["body"])
        for _ in range(_RESIGNED):
            signature = another_signature(self._key, "promise", promise["origin"], body)
            self._submit(
                "claims", {"promise": {**promise, "signature": signature.hex()}, "nonce": nonce}
            )

    def _submit(self, kind: str, document: Any) -> int:
        with self.http("verifier") as http:
            return http.post(f"/v1/windows/{WINDOW}/{kind}", json=document).status_code

    @property
    def _key(self) -> PrivateKey:
        return self.prover.service.answering.context.key


class BreaksTheThird(BreaksPromises):
    """Answers twice, then takes a nonce, looks at the noise, and does not answer.

    Check 12 (`promises`) catches it if the claim was taken.
    """

    counter = 2


class CrowdsOutClaims(FloodsTheIntake):
    """The provider claims what it answered alice, until her share of the intake is full.

    It has her promises and nonces. Her questions are long here, and the share is the least. Check
    12 (`promises`) still gets her last claim, which removes those of earlier queries (§8.8).
    """

    room = 7 * submissions.LEAST_SHARE_BYTES  # of six accounts, and of strangers

    def ask(self, name: str, text: str, top_k: int) -> None:
        if name != "alice":
            Scenario.ask(self, name, text, top_k)
            return
        # Two claims of such a text fit into the least share, three do not: JSON writes the
        # character in six bytes.
        Scenario.ask(self, name, text + "\x01" * 4600, top_k)
        transport = self.accounts["alice"].transport
        if "reveal" in transport.answered:
            nonce = transport.asked["reveal"]["nonce"]
            self._submit("claims", {"promise": transport.answered["promise"], "nonce": nonce})


class DropsTheThird(DropsALeaf):
    """Signs a receipt for a plain account's third query and never logs it.

    Check 13 (`receipts`) catches it if the receipt was taken.
    """

    counter = 2


class CrowdsOutReceipts(FloodsTheIntake):
    """The provider submits bob's first receipts, until his share of the intake is full.

    It made them, and they are true. The share holds two receipts here, and bob has three. Check 13
    (`receipts`) still gets his third: what an account holds removes what it does not (§8.8).
    """

    room = 7 * 4096  # of six accounts, and of strangers

    def ask(self, name: str, text: str, top_k: int) -> None:
        Scenario.ask(self, name, text, top_k)
        if name == "bob" and len(self.accounts["bob"].receipts) < DropsTheThird.counter + 1:
            answered = self.accounts["bob"].transport.answered["query"]
            self._submit("receipts", {"receipts": [answered["public"]]})

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.ask("bob", "the third question of bob", 3)


CHEATS: Final = (
    ServiceCheat(
        name="intake-flooded", family="NONCE",
        description="Fills the verifier's intake, takes a nonce and does not answer.",
        parts={"promises": BreaksPromises, "closing": ForgetsClaims}, scenario=FloodsTheIntake,
        checks=("promises",), reason="no record keeps it",
        complaint="a revealed promise was not answered",
    ),
    ServiceCheat(
        name="claims-crowded-out", family="NONCE",
        description="Claims what it answered, until an account has no room for its last claim.",
        parts={"promises": BreaksTheThird, "closing": ForgetsClaims}, scenario=CrowdsOutClaims,
        checks=("promises",), reason="no record keeps it",
        complaint="a revealed promise was not answered",
    ),
    ServiceCheat(
        name="receipts-crowded-out", family="LOG",
        description="Submits true receipts, until an account has no room for one of a lost record.",
        parts={"stages": Stages(selected=DropsTheThird)}, scenario=CrowdsOutReceipts,
        checks=("receipts",), reason="not in the log at that place", complaint="no such entry",
    ),
)  # fmt: skip
