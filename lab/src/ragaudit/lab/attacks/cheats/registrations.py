"""Checks registrations and counters: one noise key for two records, or more than granted."""

from dataclasses import replace
from typing import Final

from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.attacks.cheats.schedule import append
from ragaudit.lab.scenario.accounts import Account
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.records import Record, Registration
from ragaudit.prover.answering.query import Admitted, Query, Stages
from ragaudit.prover.store.accounts import Account as ProverAccount
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.registrations import Registered, Registrar, count_record
from sqlalchemy import Connection


class SharesASlot(Registrar):
    """The second account gets the slot, and so the noise keys, of the first.

    Check 7 (`registrations`) wants slots 0, 1, 2, ... in log order.
    """

    def assign_slot(self, connection: Connection, live: OpenWindow) -> int:
        slot = super().assign_slot(connection, live)
        return 0 if slot == 1 else slot


class InTwoTenants(Registrar):
    """An account is registered in another tenant as well.

    Check 7 (`registrations`) wants one tenant for each pseudonym.
    """

    def _insert(
        self,
        connection: Connection,
        live: OpenWindow,
        account: ProverAccount,
        anchor: bytes | None,
        dispute_key: bytes | None,
    ) -> Registered:
        row = super()._insert(connection, live, account, anchor, dispute_key)
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
            append(connection, live, again)
        return row


class SkipsACounter(Query):
    """Draws the noise of a plain account's query, dislikes it, and goes on to the next counter.

    Check 8 (`counters`) wants counters 0, 1, 2, ... of each pseudonym.
    """

    def admit(self, *, anchored: bool) -> Admitted:
        admitted = super().admit(anchored=anchored)
        registered = admitted.registered
        if anchored or registered.counter != 1:
            return admitted
        with self.window.commit_lock, self.context.store.write() as connection:
            count_record(connection, self.window.name, self.account.id, registered.last_time)
        return super().admit(anchored=anchored)


class RepeatsACounter(Window):
    """bob's second query is counted as his first: one noise for two answers.

    Check 8 (`counters`) wants each counter once.
    """

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, counter=0) if account.name == "bob" else record


class OverBudget(Window):
    """bob, who has four queries, is answered five times.

    Check 8 (`counters`) wants counters below r.
    """

    def script(self) -> list[Event]:
        more = [("query", "bob", f"once more, {i}", 1, 82 + i) for i in range(3)]
        return [*super().script(), *more, ("checkpoint", 90)]


CHEATS: Final = (
    ServiceCheat(
        name="two-accounts-on-one-slot", family="REGISTRATION",
        description="Registers two pseudonyms on one slot, whose noise keys they then share.",
        parts={"registrar": SharesASlot},
        checks=("registrations",), reason="slot 0, expected 1",
    ),
    ServiceCheat(
        name="one-account-in-two-tenants", family="REGISTRATION",
        description="Registers one pseudonym in two tenants.",
        parts={"registrar": InTwoTenants},
        checks=("registrations",), reason="is registered twice",
    ),
    ServiceCheat(
        name="counter-gap", family="COUNTER",
        description="Skips a counter whose noise it did not like.",
        parts={"stages": Stages(query=SkipsACounter)},
        checks=("counters",), reason="counter 2, expected 1",
    ),
    ConstructedCheat(
        name="counter-repeat", family="COUNTER",
        description="Answers two queries of an account under one counter.",
        why="the prover's database holds one record for each counter",
        window=RepeatsACounter,
        checks=("counters",), reason="counter 0, expected 1",
    ),
    ConstructedCheat(
        name="over-the-budget", family="COUNTER",
        description="Answers more queries of an account than the policy grants.",
        why="C_seed has no key for such a query",
        window=OverBudget,
        checks=("counters",), reason="query 5 of an account that has 4",
    ),
)  # fmt: skip
