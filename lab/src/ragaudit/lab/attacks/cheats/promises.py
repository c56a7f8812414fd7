"""Check promises: nonces that were taken and not used, and intakes that are crowded."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from functools import partial
from hashlib import sha512
from typing import Any, Final

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import Conflict, InternalError
from ragaudit.encoding.signing import SIGN_PREFIX, PrivateKey
from ragaudit.encoding.tagged import Field, enc
from ragaudit.lab.attacks.cheat import ONE_CLOCK, ConstructedCheat, ServiceCheat, part
from ragaudit.lab.attacks.cheats.log import DropsALeaf
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.lab.scenario.scenario import Account as Asking
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.services import WINDOW
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.promises import Promise, Refusal, least_share
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.answering import Promises
from ragaudit.prover.answering.query import Promised, Selected
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.verifier.terms import Terms
from sqlalchemy import delete

# Edwards25519 (RFC 8032 §5.1): field, order, curve constant and base point.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
_Y = 4 * pow(5, -1, P) % P
_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
BASE = (_X, _Y)

Point = tuple[int, int]


def another_signature(key: PrivateKey, what: str, *fields: Field) -> bytes:
    """Return a valid signature over ``sign/<what>`` of the fields, another one at each call.

    Args:
        key: the signer's.
        what: domain of the signature (docs/spec/01-encoding.md §1.3).
        fields: what is signed.

    Returns:
        64 bytes, R || S.
    """
    data = enc(SIGN_PREFIX + what, *fields)
    secret = sha512(key.seed()).digest()
    # Clamped as the honest signer's is (RFC 8032 §5.1.5), or it is another key.
    scalar = int.from_bytes(secret[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    nonce = secrets.randbelow(ORDER)
    commitment = encoded(multiplied(nonce, BASE))
    digest = sha512(commitment + key.public.raw + data).digest()
    response = (nonce + int.from_bytes(digest, "little") * scalar) % ORDER
    return commitment + response.to_bytes(32, "little")


def added(a: Point, b: Point) -> Point:
    """Return the sum of two points in affine coordinates (RFC 8032 §3)."""
    (x, y), (u, v) = a, b
    product = D * x * y * u * v % P
    return (
        (x * v + y * u) * pow(1 + product, -1, P) % P,
        (y * v + x * u) * pow(1 - product, -1, P) % P,
    )


def multiplied(scalar: int, point: Point) -> Point:
    """Return scalar·point by doubling and adding; scalar >= 0. Not in constant time."""
    found = (0, 1)
    while scalar:
        if scalar & 1:
            found = added(found, point)
        point, scalar = added(point, point), scalar >> 1
    return found


def encoded(point: Point) -> bytes:
    """Return a point as 32 bytes: y, with the lowest bit of x on top (RFC 8032 §5.1.2)."""
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


# --- promises ------------------------------------------------------------------------------------


@ServiceCheat(
    "nonce-not-in-the-chain",
    "NONCE",
    ("nonces", "promises"),
    reason="not the chain's nonce",
    complaint="step 10 (nonce)",
)
class ForeignNonce(Promised):
    """Logs another nonce than the client revealed, and draws noise from that.

    So the noise is the provider's choice.

    Check 11 (`nonces`) wants nonces of the account's chain; check 12 (`promises`) sees the claim of
    the right one, which no record keeps.
    """

    def select(self, nonce: bytes) -> Selected:
        return super().select(structure("another nonce", nonce))


class ForgetsClaims(Closing):
    """Does not log the claims that the verifier hands over, as an honest prover does at the close.

    Without it every broken promise would be mended there, and check 12 would pass.
    """

    def log_claims(self, live: OpenWindow, claims: Any) -> None:
        pass


broken = partial(
    ServiceCheat,
    family="NONCE",
    checks=("promises",),
    parts=part(ForgetsClaims),
    reason="no record keeps it",
)


@broken("promise-not-kept", complaint="a revealed promise was not answered")
class BreaksPromises(Promises):
    """Takes a nonce and neither answers nor logs the promised record.

    It is the second nonce, and the provider looks at the noise first.

    Check 12 (`promises`) wants every claim kept by a record.
    """

    counter = 1

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        if counter == self.counter:
            raise Conflict("the index is being rebuilt", where="counter")
        return super().reveal(live, account, counter, nonce)


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


@ServiceCheat(
    "two-promises-for-one-nonce",
    "NONCE",
    ("promises",),
    scenario=AsksTwice,
    reason="another promise was signed for the same query",
)
class PromisesTwice(Promises):
    """Promises two different records for one counter of a chain.

    Forgets what it promised and promises anew.

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


@broken("garbage-after-a-reveal", complaint="missing member; the verifier has the claim")
class AnswersGarbage(BreaksTheSecond):
    """Takes a nonce and answers with status 200 and no receipt.

    The body is a text of its own.
    """

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        return Garbage(earlier.request, earlier.answer, earlier.public, earlier.private)


@broken(
    "an-old-answer-after-a-reveal",
    complaint="an answer to another request; the verifier has the claim",
)
class AnswersAgain(BreaksTheSecond):
    """Takes a nonce and gives the answer to an earlier query again.

    It is the answer to the query before, every signature in order.
    """

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        return earlier


class Impatient(Scenario):
    """Accounts that wait for a shorter time than the reply is held."""

    patience_seconds = _PATIENCE_SECONDS


@broken("a-reply-that-never-ends", scenario=Impatient, complaint="no whole reply within")
class HoldsTheReply(BreaksTheSecond):
    """Takes a nonce and holds the reply back for longer than the account waits.

    Keeps the connection open until the account gives up.
    """

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        time.sleep(_HELD_SECONDS)
        raise Conflict("the index is being rebuilt", where="counter")


@ConstructedCheat("promise-dated-ahead", "NONCE", ("promises",), why=ONE_CLOCK, reason="already")
class PromisesAhead(Window):
    """Dates a promise later than the moment at which it was claimed.

    It is alice's promise, 15 s ahead, and it is kept at the close.

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


@ConstructedCheat(
    "anchored-by-the-provider",
    "REGISTRATION",
    ("nonces",),
    why="the scenario's terms demand no share; without a demand these accounts count as plain",
    reason="of accounts whose chain was shown",
)
@dataclass
class AnchoredByTheProvider(Window):
    """Registers plain accounts with nonce chains that it made itself.

    The accounts never heard of them.

    Check 11 (`nonces`) counts the accounts that showed their chain, where the terms demand a share.
    """

    terms: Terms = DEMANDS_CHAINS

    def statements(self) -> list[dict[str, Any]]:
        return []


@ConstructedCheat(
    "no-time-to-claim",
    "NONCE",
    ("policy",),
    why="the verifier countersigns no such margin",
    reason="least_claim_margin_seconds",
)
@dataclass
class LeavesNoTimeToClaim(Window):
    """Promises up to the last second, so that nobody can claim what it breaks.

    Of a promise of the last second the provider sees the nonce, and keeps back what it likes.

    No claim of it comes before the window's end. Check 1 (`policy`) compares the margin with the
    verifier's terms (9.4).
    """

    terms: Terms = DEMANDS_A_MARGIN

    def __post_init__(self) -> None:
        self.overrides = {**self.overrides, "claim_margin_seconds": 1}
        super().__post_init__()

    def script(self) -> list[Event]:
        return [*super().script(), ("promise", "alice", "fourth question of alice", 2, 119)]


# --- crowded intakes -----------------------------------------------------------------------------

# Of the 1,000 refusals that a request may hold (spec 8.3).
_AT_ONCE = 200

# Far more than the two claims that are kept for one query (spec 8.8).
_RESIGNED = 20

# The status of a cap that is reached (spec 8).
_FULL = 429


@broken(
    "intake-flooded",
    parts=part(BreaksPromises) | part(ForgetsClaims),
    complaint="a revealed promise was not answered",
)
class FloodsTheIntake(Scenario):
    """Fills the verifier's intake, takes a nonce and does not answer.

    The provider breaks alice's second promise after that.

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
        return self.prover.service.retrieval.context.key


class BreaksTheThird(BreaksPromises):
    """Answers twice, then takes a nonce, looks at the noise, and does not answer.

    Check 12 (`promises`) catches it if the claim was taken.
    """

    counter = 2


@broken(
    "claims-crowded-out",
    parts=part(BreaksTheThird) | part(ForgetsClaims),
    complaint="a revealed promise was not answered",
)
class CrowdsOutClaims(FloodsTheIntake):
    """Claims what it answered, until an account has no room for its last claim.

    The provider fills alice's share of the intake.

    It has her promises and nonces. Her questions are long here, and the share is the least. Check
    12 (`promises`) still gets her last claim, which removes those of earlier queries (§8.8).
    """

    room = 7 * least_share(6)  # of six accounts, and of strangers

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


@ServiceCheat(
    "receipts-crowded-out",
    "LOG",
    ("receipts",),
    parts=part(DropsTheThird),
    reason="not in the log at that place",
    complaint="no such entry",
)
class CrowdsOutReceipts(FloodsTheIntake):
    """Submits true receipts, until an account has no room for one of a lost record.

    The provider submits bob's first receipts, and fills his share of the intake.

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
