"""NONCE: cheats in promises and in the client's share of the randomness."""

from typing import Any, Final

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import Conflict, InternalError
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.stage.play import Account as Asking
from ragaudit.lab.attacks.stage.play import Play
from ragaudit.lab.attacks.stage.services import WINDOW
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.answering import Promises
from ragaudit.prover.answering.query import Promised, Selected, Stages
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.open_window import OpenWindow
from sqlalchemy import delete


class ForeignNonce(Promised):
    """Another nonce than the client's chain has, so that the noise is the provider's choice."""

    def select(self, nonce: bytes) -> Selected:
        return super().select(structure("another nonce", nonce))


class BreaksPromises(Promises):
    """Takes the second nonce, looks at the noise, and does not answer."""

    counter = 1

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        if counter == self.counter:
            raise Conflict("the index is being rebuilt", where="counter")
        return super().reveal(live, account, counter, nonce)


class ForgetsClaims(Closing):
    """Does not log the claims that the verifier hands over."""

    def log_claims(self, live: OpenWindow, claims: Any) -> None:
        pass


class PromisesTwice(Promises):
    """Forgets what it promised and promises anew."""

    def promise(self, live: OpenWindow, account: Account, request: Request) -> Promise:
        table = tables.promise
        with live.commit_lock, self._store.write() as connection:
            pending = (table.c.account == account.name) & (table.c.counter == request.counter)
            connection.execute(delete(table).where(table.c.window == live.name, pending))
        # The honest prover's fence would remember the promise.
        live.fence.opened().records.pop(live.pseudonym_of(account.name), None)
        return super().promise(live, account, request)


class AsksTwice(Play):
    """alice asks for a promise, loses it in a crash, and asks something else; she kept both."""

    def before_second(self, at: int) -> None:
        super().before_second(at)
        alice = self.accounts["alice"]
        self.first = self._promise(alice, "what alice asked before the crash", counter=2)

    def after_submission(self) -> None:
        alice = self.accounts["alice"]
        nonce = alice.transport.asked["reveal"]["nonce"]
        second = alice.transport.answered["promise"]
        for promise in (self.first, second):
            self._claim({"promise": promise, "nonce": nonce})

    def _promise(self, account: Asking, text: str, *, counter: int) -> Any:
        body = {"query": text, "top_k": 2, "filter": "", "counter": counter}
        return self._post(account, f"/v1/windows/{WINDOW}/promise", body)

    def _post(self, account: Asking, path: str, body: Any) -> Any:
        with self.http("prover", account.name) as http:
            answer = http.post(path, json=body)
        if answer.is_error:
            raise InternalError(f"the account was told: {answer.text[:300]}", where=path)
        return answer.json()

    def _claim(self, claim: Any) -> None:
        with self.http("verifier") as http:
            answer = http.post(f"/v1/windows/{WINDOW}/claims", json=claim)
        if answer.is_error:
            raise InternalError(f"the account was told: {answer.text[:300]}", where="claims")


CHEATS: Final = (
    ServiceCheat(
        name="nonce-not-in-the-chain", family="NONCE",
        description="Logs another nonce than the client revealed, and draws noise from that.",
        parts={"stages": Stages(promised=ForeignNonce)},
        checks=("nonces", "promises"), reason="not the chain's nonce", complaint="step 10 (nonce)",
    ),
    ServiceCheat(
        name="promise-not-kept", family="NONCE",
        description="Takes a nonce and neither answers nor logs the promised record.",
        parts={"promises": BreaksPromises, "closing": ForgetsClaims},
        checks=("promises",), reason="no record keeps it",
        complaint="a revealed promise was not answered",
    ),
    ServiceCheat(
        name="two-promises-for-one-nonce", family="NONCE",
        description="Promises two different records for one counter of a chain.",
        parts={"promises": PromisesTwice}, play=AsksTwice,
        checks=("promises",), reason="another promise was signed for the same query",
    ),
)  # fmt: skip
