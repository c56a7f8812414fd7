"""NONCE: a provider that takes a nonce, sees the noise, and gives anything but the answer."""

import time
from typing import Any, Final

from ragaudit.encoding.errors import Conflict
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.service.promises import ForgetsClaims
from ragaudit.lab.attacks.stage.play import Play
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.answering.answering import Promises
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.window.open_window import OpenWindow

_PATIENCE_SECONDS = 6.0
_HELD_SECONDS = 7.0


class BreaksTheSecond(Promises):
    """Takes the second nonce, logs nothing, and answers something else."""

    _earlier: ReceiptFile | None = None

    def reveal(self, live: OpenWindow, account: Account, counter: int, nonce: bytes) -> ReceiptFile:
        if counter == 1 and self._earlier is not None:
            return self.instead(self._earlier)
        self._earlier = super().reveal(live, account, counter, nonce)
        return self._earlier

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        """What is answered; ``earlier`` is the receipt of the account's first query."""
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


class Impatient(Play):
    """Accounts that wait for a shorter time than the reply is held."""

    patience_seconds = _PATIENCE_SECONDS


class HoldsTheReply(BreaksTheSecond):
    """Keeps the connection open until the account gives up."""

    def instead(self, earlier: ReceiptFile) -> ReceiptFile:
        time.sleep(_HELD_SECONDS)
        raise Conflict("the index is being rebuilt", where="counter")


def _cheat(
    name: str,
    description: str,
    promises: type[Promises],
    complaint: str,
    play: type[Play] = Play,
) -> ServiceCheat:
    parts: dict[str, Any] = {"promises": promises, "closing": ForgetsClaims}
    return ServiceCheat(
        name=name, family="NONCE", description=description, parts=parts, play=play,
        checks=("promises",), reason="no record keeps it", complaint=complaint,
    )  # fmt: skip


CHEATS: Final = (
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
)
