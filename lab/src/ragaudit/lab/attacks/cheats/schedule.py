"""Check schedule: entries out of the place that times and activations give them."""

from dataclasses import replace
from typing import Any, Final

from ragaudit.encoding.digests import structure
from ragaudit.lab.attacks.cheat import ONE_CLOCK, ConstructedCheat, ServiceCheat
from ragaudit.lab.attacks.cheats.promises import PromisesAhead
from ragaudit.lab.scenario.accounts import Account
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tree import EMPTY_ROOT
from ragaudit.ledger.messages.epoch_entry import Epoch
from ragaudit.ledger.messages.records import Record, Version
from ragaudit.prover.answering.query import Query, Stages
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import append_entry
from ragaudit.prover.window.registrations import Registered
from sqlalchemy import Connection

# Fixed: what is logged against the rules has nothing to hide.
SALT = b"\x5a" * 32


def append(connection: Connection, live: OpenWindow, body: Any) -> int:
    """Log an entry that the honest prover would not, under a fixed salt; return its index.

    Args:
        connection: a transaction of the prover's store, under the window's commit lock.
        live: the open window.
        body: an entry with ``KIND`` and ``encode()``.
    """
    return append_entry(connection, live.log.entries, live.name, body.KIND, SALT, body.encode())


class OldActivation(Query):
    """Noise of the opening's activation, whatever the registration's: it was known before.

    Check 9 (`schedule`) wants the later activation of opening and registration.
    """

    def activation(self, registered: Registered) -> int | None:
        return self.window.activation_of(0)


class RegistersLate(Scenario):
    """Ordinary traffic, in which dora, who registers while the window is open, shows it."""


class _LogsMore(Closing):
    """Logs, before the close, an entry that the policy does not schedule; subclasses say which."""

    def log_claims(self, live: OpenWindow, claims: Any) -> None:
        super().log_claims(live, claims)
        with live.commit_lock, self._store.write() as connection:
            append(connection, live, self.entry(live))

    def entry(self, live: OpenWindow) -> Any:
        raise NotImplementedError


class NewEpoch(_LogsMore):
    """New noise keys in the middle of the window.

    Check 9 (`schedule`) allows no epoch entry after the opening.
    """

    def entry(self, live: OpenWindow) -> Any:
        before = live.seed.commit().root
        root = structure("another seed", before)
        return Epoch(live.name, 2, "restore", before, root, 0, EMPTY_ROOT, self._clock())


class NewVersion(_LogsMore):
    """A new version of an index in the middle of the window.

    Check 9 (`schedule`) allows no version entry after the opening.
    """

    def entry(self, live: OpenWindow) -> Any:
        tenant, index = next(iter(live.indexes.items()))
        root = structure("another index", index.root)
        return Version(live.name, tenant, 2, index.count, root, root, self._clock())


class BeforeTheOpening(Window):
    """Nothing is cosigned before the first instant; records use its randomness all the same.

    Check 9 (`schedule`) activates an entry by the first instant before which the cosigner saw it.
    """

    def script(self) -> list[Event]:
        return [event for event in super().script() if event != ("checkpoint", -20)]

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, activation=1)


class MadeUpAfterTheEnd(Window):
    """When the window is over, the log gets a record of bob that fits between its checkpoints.

    Check 9 (`schedule`) wants a record covered by a checkpoint soon after its time: (3) of 9.3.
    """

    def close(self) -> None:
        self.query("bob", "a question that nobody asked", 2, 84)
        super().close()


class PromisesInThePast(PromisesAhead):
    """alice's fourth promise is dated before her third answer, so that it expires early.

    Check 9 (`schedule`) wants times that do not decrease per account.
    """

    made, taken = 35, 55


class PromisesAtTheEnd(Window):
    """alice gets a promise and an answer when the window has five seconds left.

    Check 9 (`schedule`) wants promises before the claim margin (9.3).
    """

    def script(self) -> list[Event]:
        late = ("query", "alice", "the last question before the end", 1, 115)
        return [*super().script(), late, ("checkpoint", 116)]


CHEATS: Final = (
    ServiceCheat(
        name="activation-older-than-the-registration", family="REGISTRATION",
        description="Uses an activation value that was known when the account was registered.",
        parts={"stages": Stages(query=OldActivation)}, scenario=RegistersLate,
        checks=("schedule",), reason="activation 1 (expected 2)", complaint="activation",
    ),
    ConstructedCheat(
        name="activation-older-than-the-opening", family="REGISTRATION",
        description="Uses an activation value that was known when index and keys were fixed.",
        why="an honest verifier's checkpoint store would have to lack the opening",
        window=BeforeTheOpening,
        checks=("schedule",), reason="activation 1 (expected 2)",
    ),
    ServiceCheat(
        name="unscheduled-epoch", family="REGISTRATION",
        description="Starts a seed epoch that the policy does not schedule.",
        parts={"closing": NewEpoch},
        checks=("schedule",), reason="an epoch entry after the opening",
    ),
    ServiceCheat(
        name="unscheduled-index-version", family="REGISTRATION",
        description="Announces an index version that the policy does not schedule.",
        parts={"closing": NewVersion},
        checks=("schedule",), reason="a version entry after the opening",
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
        why=ONE_CLOCK,
        window=MadeUpAfterTheEnd,
        checks=("schedule",), reason="but no checkpoint covered it until",
    ),
)  # fmt: skip
