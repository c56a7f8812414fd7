"""Checks registrations, counters and schedule: who asks, how often, and what is active when."""

from dataclasses import replace
from functools import partial
from typing import Any

from ragaudit.encoding.digests import structure
from ragaudit.lab.attacks.cheat import ONE_CLOCK, ConstructedCheat, ServiceCheat, part
from ragaudit.lab.attacks.cheats.promises import PromisesAhead
from ragaudit.lab.scenario.opening import Account, Event
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tree import EMPTY_ROOT
from ragaudit.ledger.messages.entries import Epoch, Record, Registration, Version
from ragaudit.prover.answering.query import Admitted, Query
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.store.accounts import Account as ProverAccount
from ragaudit.prover.window.log_transaction import LogTransaction
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.registrations import Registered, Registrar
from sqlalchemy import Connection

# --- registrations and counters ------------------------------------------------------------------


scheduled = partial(ConstructedCheat, checks=("schedule",))


@ServiceCheat(
    "two-accounts-on-one-slot", "REGISTRATION", ("registrations",), reason="slot 0, expected 1"
)
class SharesASlot(Registrar):
    """Registers two pseudonyms on one slot, whose noise keys they then share.

    Check 7 (`registrations`) wants slots 0, 1, 2, ... in log order.
    """

    def assign_slot(self, connection: Connection, live: OpenWindow) -> int:
        slot = super().assign_slot(connection, live)
        return 0 if slot == 1 else slot


@ServiceCheat(
    "one-account-in-two-tenants", "REGISTRATION", ("registrations",), reason="is registered twice"
)
class InTwoTenants(Registrar):
    """Registers one pseudonym in two tenants.

    Check 7 (`registrations`) wants one tenant for each pseudonym.
    """

    def _insert(
        self,
        transaction: LogTransaction,
        live: OpenWindow,
        account: ProverAccount,
        anchor: bytes | None,
        dispute_key: bytes | None,
    ) -> Registered:
        row = super()._insert(transaction, live, account, anchor, dispute_key)
        if row.slot == 1:
            other = next(tenant for tenant in live.indexes if tenant != row.tenant)
            again = Registration(
                live.name,
                row.pseudonym,
                other,
                row.slot + 1,
                anchor,
                dispute_key,
                self._clock(),
            )
            transaction.append(again.KIND, SALT, again.encode())
        return row


@ServiceCheat("counter-gap", "COUNTER", ("counters",), reason="counter 2, expected 1")
class SkipsACounter(Query):
    """Skips a counter whose noise it did not like.

    The noise is that of a plain account's query.

    Check 8 (`counters`) wants counters 0, 1, 2, ... of each pseudonym.
    """

    def admit(self, *, anchored: bool) -> Admitted:
        admitted = super().admit(anchored=anchored)
        registered = admitted.registered
        if anchored or registered.counter != 1:
            return admitted
        live = self.window
        with live.commit_lock, self.context.store.write() as connection:
            transaction = LogTransaction.alone(connection, live.log.entries, live.name)
            transaction.count(registered, registered.last_time)
            live.standings.moved(transaction.flush(), transaction.changed)
        return super().admit(anchored=anchored)


@ConstructedCheat(
    "counter-repeat",
    "COUNTER",
    ("counters",),
    why="the prover's database holds one record for each counter",
    reason="counter 0, expected 1",
)
class RepeatsACounter(Window):
    """Answers two queries of an account under one counter.

    bob's second query is counted as his first: one noise for two answers.

    Check 8 (`counters`) wants each counter once.
    """

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, counter=0) if account.name == "bob" else record


@ConstructedCheat(
    "over-the-budget",
    "COUNTER",
    ("counters",),
    why="C_seed has no key for such a query",
    reason="query 5 of an account that has 4",
)
class OverBudget(Window):
    """Answers more queries of an account than the policy grants.

    bob, who has four queries, is answered five times.

    Check 8 (`counters`) wants counters below r.
    """

    def script(self) -> list[Event]:
        more = [("query", "bob", f"once more, {i}", 1, 82 + i) for i in range(3)]
        return [*super().script(), *more, ("checkpoint", 90)]


# --- activations and entries ---------------------------------------------------------------------

# Fixed: what is logged against the rules has nothing to hide.
SALT = b"\x5a" * 32


def append(connection: Connection, live: OpenWindow, body: Any) -> int:
    """Log an entry that the honest prover would not, under a fixed salt; return its index.

    Args:
        connection: a transaction of the prover's store, under the window's commit lock.
        live: the open window.
        body: an entry with ``KIND`` and ``encode()``.
    """
    transaction = LogTransaction.alone(connection, live.log.entries, live.name)
    position = transaction.append(body.KIND, SALT, body.encode())
    transaction.flush()
    return position


class OldActivation(Query):
    """Noise of the opening's activation, whatever the registration's: it was known before.

    Check 9 (`schedule`) wants the later activation of opening and registration.
    """

    def activation(self, registered: Registered) -> int | None:
        return self.window.activation_of(0)


@ServiceCheat(
    "activation-older-than-the-registration",
    "REGISTRATION",
    ("schedule",),
    parts=part(OldActivation),
    reason="activation 1 (expected 2)",
    complaint="activation",
)
class RegistersLate(Scenario):
    """Uses an activation value that was known when the account was registered.

    Ordinary traffic, in which dora, who registers while the window is open, shows it.
    """


class _LogsMore(Closing):
    """Logs, before the close, an entry that the policy does not schedule; subclasses say which."""

    def log_claims(self, live: OpenWindow, claims: Any) -> None:
        super().log_claims(live, claims)
        with live.commit_lock, self._store.write() as connection:
            append(connection, live, self.entry(live))

    def entry(self, live: OpenWindow) -> Any:
        raise NotImplementedError


@ServiceCheat(
    "unscheduled-epoch", "REGISTRATION", ("schedule",), reason="an epoch entry after the opening"
)
class NewEpoch(_LogsMore):
    """Starts a seed epoch that the policy does not schedule.

    It has new noise keys, and starts in the middle of the window.

    Check 9 (`schedule`) allows no epoch entry after the opening.
    """

    def entry(self, live: OpenWindow) -> Any:
        before = live.seed.commit().root
        root = structure("another seed", before)
        return Epoch(live.name, 2, "restore", before, root, 0, EMPTY_ROOT, self._clock())


@ServiceCheat(
    "unscheduled-index-version",
    "REGISTRATION",
    ("schedule",),
    reason="a version entry after the opening",
)
class NewVersion(_LogsMore):
    """Announces an index version that the policy does not schedule.

    It does so in the middle of the window.

    Check 9 (`schedule`) allows no version entry after the opening.
    """

    def entry(self, live: OpenWindow) -> Any:
        tenant, index = next(iter(live.indexes.items()))
        root = structure("another index", index.root)
        return Version(live.name, tenant, 2, index.count, root, root, self._clock())


@scheduled(
    "activation-older-than-the-opening",
    "REGISTRATION",
    why="an honest verifier's checkpoint store would have to lack the opening",
    reason="activation 1 (expected 2)",
)
class BeforeTheOpening(Window):
    """Uses an activation value that was known when index and keys were fixed.

    Nothing is cosigned before the first instant; records use its randomness all the same.

    Check 9 (`schedule`) activates an entry by the first instant before which the cosigner saw it.
    """

    def script(self) -> list[Event]:
        return [event for event in super().script() if event != ("checkpoint", -20)]

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, activation=1)


@scheduled(
    "record-made-up-after-the-end",
    "LOG",
    why=ONE_CLOCK,
    reason="but no checkpoint covered it until",
)
class MadeUpAfterTheEnd(Window):
    """Logs a record after the end, dated to a time without checkpoints.

    The record is bob's, and fits between the log's checkpoints.

    Check 9 (`schedule`) wants a record covered by a checkpoint soon after its time: (3) of 9.3.
    """

    def close(self) -> None:
        self.query("bob", "a question that nobody asked", 2, 84)
        super().close()


@scheduled(
    "back-dated-promise",
    "NONCE",
    why="the client library reveals nothing for a promise that is not fresh",
    reason="earlier than the account's record before it",
)
class PromisesInThePast(PromisesAhead):
    """Dates a promise back, so that there is less time to claim it.

    It is alice's fourth promise, dated before her third answer.

    Check 9 (`schedule`) wants times that do not decrease per account.
    """

    made, taken = 35, 55


@scheduled(
    "last-promise-before-the-end",
    "NONCE",
    why="the client library reveals nothing that it could not claim",
    reason="when no account could claim any more",
)
class PromisesAtTheEnd(Window):
    """Promises when there is no time left to claim before the window's end.

    alice gets a promise and an answer five seconds before the end.

    Check 9 (`schedule`) wants promises before the claim margin (9.3).
    """

    def script(self) -> list[Event]:
        late = ("query", "alice", "the last question before the end", 1, 115)
        return [*super().script(), late, ("checkpoint", 116)]
