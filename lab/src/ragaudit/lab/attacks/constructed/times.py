"""Cheats in times: records and promises that are not of the moment that they name."""

from typing import Any, Final

from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.constructed.window import Window
from ragaudit.privacy import coalition

Event = tuple[Any, ...]

_SKEW = "in a service on the stage clocks may differ by an hour"


class MadeUpAfterTheEnd(Window):
    """When the window is over, the log gets a record of bob that fits between its checkpoints."""

    def close(self) -> None:
        self.query("bob", "a question that nobody asked", 2, 84)
        super().close()


class PromisesAhead(Window):
    """alice's promise is dated 15 s after she claimed it; it is kept at the close."""

    made, taken = 65, 50

    def close(self) -> None:
        asked = self.query("alice", "a promise of another time", 2, self.made)
        assert asked.account.chain is not None
        nonce = asked.account.chain.nonce(asked.record.counter)
        self.claim(self.promise_of(asked), nonce, self.taken)
        super().close()


class PromisesInThePast(PromisesAhead):
    """alice's fourth promise is dated before her third answer, so that it expires early."""

    made, taken = 35, 55


class PromisesAtTheEnd(Window):
    """alice gets a promise and an answer when the window has five seconds left."""

    def script(self) -> list[Event]:
        late = ("query", "alice", "the last question before the end", 1, 115)
        return [*super().script(), late, ("checkpoint", 116)]


class PullsApart(Window):
    """carol and dora ask the same within a second; dora's record is dated 20 s later."""

    def script(self) -> list[Event]:
        at = 90
        return [
            *super().script(),
            ("query", "carol", "what both ask", 2, at),
            ("checkpoint", at + 1),
            ("query", "dora", "what both ask", 2, at + 20),
            ("checkpoint", at + 21),
        ]

    def estimate(self) -> int:
        """As if times were exact."""
        records = [
            coalition.Record(each.record.pseudonym, each.record.time, each.openings.sketch)
            for each in self.asked
        ]
        terms = self.policy.estimator
        return coalition.estimate(
            records, tau=1000 * terms.tau_seconds, threshold=terms.hamming_threshold
        ).k_hat


CHEATS: Final = (
    ConstructedCheat(
        name="promise-dated-ahead", family="NONCE",
        description="Dates a promise later than the moment at which it was claimed.",
        why=_SKEW,
        window=PromisesAhead,
        checks=("promises",), reason="already",
    ),
    ConstructedCheat(
        name="back-dated-promise", family="NONCE",
        description="Dates a promise back, so that there is less time to claim it.",
        why="the client library reveals nothing for a promise that is not fresh",
        window=PromisesInThePast,
        checks=("schedule",), reason="earlier than the account's record before it",
    ),
    ConstructedCheat(
        name="last-promise-before-the-end", family="NONCE",
        description="Promises when there is no time left to claim before the window's end.",
        why="the client library reveals nothing that it could not claim",
        window=PromisesAtTheEnd,
        checks=("schedule",), reason="when no account could claim any more",
    ),
    ConstructedCheat(
        name="record-made-up-after-the-end", family="LOG",
        description="Logs a record after the end, dated to a time without checkpoints.",
        why=_SKEW,
        window=MadeUpAfterTheEnd,
        checks=("schedule",), reason="but no checkpoint covered it until",
    ),
    ConstructedCheat(
        name="coalition-pulled-apart-in-time", family="COALITION",
        description="Dates the records of accounts that act together so that they are not linked.",
        why=_SKEW,
        window=PullsApart,
        checks=("coalition",), reason="the provider claims 1 accounts, the sketches give 2",
    ),
)  # fmt: skip
