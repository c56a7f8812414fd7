"""Checks nonces and promises: a provider that takes a nonce, sees the noise, breaks its word."""

import time
from dataclasses import dataclass
from typing import Any, Final

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import Conflict, InternalError
from ragaudit.lab.attacks.cheat import ONE_CLOCK, ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.lab.scenario.provision import WINDOW
from ragaudit.lab.scenario.scenario import Account as Asking
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.answering import Promises
from ragaudit.prover.answering.query import Promised, Selected, Stages
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.verifier.terms import Terms
from sqlalchemy import delete


class ForeignNonce(Promised):
    """Another nonce than the client's chain has, so that the noise is the provider's choice.

    Check 11 (`nonces`) wants nonces of the account's chain; check 12 (`promises`) sees the claim of
    the right one, which no record keeps.
    """

    def select(self, nonce: bytes) -> Selected:
        return super().select(structure("another nonce", nonce))


class BreaksPromises(Promises):
    """Takes the second nonce, looks at the noise, and does not answer.

    Check 12 (`promises`) wants every claim kept by a record.
    """

    counter = 1

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        if counter == self.counter:
            raise Conflict("the index is being rebuilt", where="counter")
        return super().reveal(live, account, counter, nonce)


class ForgetsClaims(Closing):
    """Does not log the claims that the verifier hands over, as an honest prover does at the close.

    Without it every broken promise would be mended there, and check 12 would pass.
    """

    def log_claims(self, live: OpenWindow, claims: Any) -> None:
        pass


class PromisesTwice(Promises):
    """Forgets what it promised and promises anew.

    Check 12 (`promises`) wants no two promises that differ for one counter.
    """

    def promise(self, live: OpenWindow, account: Account, request: Request) -> Promise:
        table = tables.promise
        with live.commit_lock, self._store.write() as connection:
            pending = (table.c.account == account.id) & (table.c.counter == request.counter)
            connection.execute(delete(table).where(table.c.window == live.name, pending))
        # The honest prover's fence would remember the promise.
        live.fence.opened().records.pop(live.pseudonym_of(account.name), None)
        return super().promise(live, account, request)


class AsksTwice(Scenario):
    """alice asks for a promise, loses it in a crash, and asks something else.

    She kept both promises and claims both, so check 12 (`promises`) has the two to compare.
    """

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


_PATIENCE_SECONDS = 6.0

# Longer than the account waits, so that it gives up first and claims.
_HELD_SECONDS = 7.0


class BreaksTheSecond(Promises):
    """Takes the second nonce, logs nothing, and answers something else; subclasses say what.

    Check 12 (`promises`) gets the claim, whatever the account was answered.
    """

    _earlier: ReceiptFile | None = None

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        if counter == 1 and self._earlier is not None:
            return self.instead(self._earlier)
        self._earlier = super().reveal(live, account, counter, nonce)
        return self._earlier

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        """Return what is answered.

        Args:
            earlier: the receipt of the account's first query.
        """
        raise NotImplementedError


class Garbage(ReceiptFile):
    """No receipt at all."""

    def encode(self) -> bytes:
        return b'{"status":"your answer is being prepared"}'


class AnswersGarbage(BreaksTheSecond):
    """Status 200 and a text of its own."""

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        return Garbage(earlier.request, earlier.answer, earlier.public, earlier.private)


class AnswersAgain(BreaksTheSecond):
    """The answer to the query before, every signature in order."""

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        return earlier


class Impatient(Scenario):
    """Accounts that wait for a shorter time than the reply is held."""

    patience_seconds = _PATIENCE_SECONDS


class HoldsTheReply(BreaksTheSecond):
    """Keeps the connection open until the account gives up."""

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        time.sleep(_HELD_SECONDS)
        raise Conflict("the index is being rebuilt", where="counter")


class PromisesAhead(Window):
    """alice's promise is dated 15 s after she claimed it; it is kept at the close.

    Check 12 (`promises`) wants it made at most the skew after the verifier took it.

    Attributes:
        made, taken: when the promise is dated and when it is claimed, seconds after `start`.
    """

    made, taken = 65, 50

    def close(self) -> None:
        asked = self.query("alice", "a promise of another time", 2, self.made)
        assert asked.account.chain is not None
        nonce = asked.account.chain.nonce(asked.record.counter)
        self.claim(self.promise_of(asked), nonce, self.taken)
        super().close()


DEMANDS_A_MARGIN: Final = Terms.of({**SMALL_TERMS.to_json(), "least_claim_margin_seconds": 10})
DEMANDS_CHAINS: Final = Terms.of({**SMALL_TERMS.to_json(), "least_claimed_anchored_share": "0.5"})


@dataclass
class AnchoredByTheProvider(Window):
    """The chains are the provider's own; the accounts never heard of them.

    Check 11 (`nonces`) counts the accounts that showed their chain, where the terms demand a share.
    """

    terms: Terms = DEMANDS_CHAINS

    def statements(self) -> list[dict[str, Any]]:
        return []


@dataclass
class LeavesNoTimeToClaim(Window):
    """A promise of the last second: its provider sees the nonce, and keeps to itself what it likes.

    No claim of it comes before the window's end. Check 1 (`policy`) compares the margin with the
    verifier's terms (9.4).
    """

    terms: Terms = DEMANDS_A_MARGIN

    def __post_init__(self) -> None:
        self.overrides = {**self.overrides, "claim_margin_seconds": 1}
        super().__post_init__()

    def script(self) -> list[Event]:
        return [*super().script(), ("promise", "alice", "fourth question of alice", 2, 119)]


def _cheat(
    name: str,
    description: str,
    promises: type[Promises],
    complaint: str,
    scenario: type[Scenario] = Scenario,
) -> ServiceCheat:
    parts: dict[str, Any] = {"promises": promises, "closing": ForgetsClaims}
    return ServiceCheat(
        name=name, family="NONCE", description=description, parts=parts, scenario=scenario,
        checks=("promises",), reason="no record keeps it", complaint=complaint,
    )  # fmt: skip


CHEATS: Final = (
    ConstructedCheat(
        name="no-time-to-claim", family="NONCE",
        description="Promises up to the last second, so that nobody can claim what it breaks.",
        why="the verifier countersigns no such margin",
        window=LeavesNoTimeToClaim,
        checks=("policy",), reason="least_claim_margin_seconds",
    ),
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
        parts={"promises": PromisesTwice}, scenario=AsksTwice,
        checks=("promises",), reason="another promise was signed for the same query",
    ),
    _cheat(
        "garbage-after-a-reveal",
        "Takes a nonce and answers with status 200 and no receipt.",
        AnswersGarbage,
        "missing member; the verifier has the claim",
    ),
    _cheat(
        "an-old-answer-after-a-reveal",
        "Takes a nonce and gives the answer to an earlier query again.",
        AnswersAgain,
        "an answer to another request; the verifier has the claim",
    ),
    _cheat(
        "a-reply-that-never-ends",
        "Takes a nonce and holds the reply back for longer than the account waits.",
        HoldsTheReply,
        "no whole reply within",
        Impatient,
    ),
    ConstructedCheat(
        name="promise-dated-ahead", family="NONCE",
        description="Dates a promise later than the moment at which it was claimed.",
        why=ONE_CLOCK,
        window=PromisesAhead,
        checks=("promises",), reason="already",
    ),
    ConstructedCheat(
        name="anchored-by-the-provider", family="REGISTRATION",
        description="Registers plain accounts with nonce chains that it made itself.",
        why="the scenario's terms demand no share; without a demand these accounts count as plain",
        window=AnchoredByTheProvider,
        checks=("nonces",), reason="of accounts whose chain was shown",
    ),
)  # fmt: skip
