"""REGISTRATION, COUNTER and LOG: cheats in what is logged, and where."""

from dataclasses import replace
from typing import Any, Final

from ragaudit.encoding.digests import structure
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.stage.play import Play
from ragaudit.ledger.messages.records import Epoch, Record, Registration, Version
from ragaudit.prover.answering.query import Admitted, Query, Selected, Stages
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.states import State
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import LoggedRecord, append_entry
from ragaudit.prover.window.registrations import Registered, Registrar, count_record
from sqlalchemy import Connection

SALT = b"\x5a" * 32


def append(connection: Connection, live: OpenWindow, body: Any) -> int:
    """Log an entry that the honest prover would not."""
    return append_entry(connection, live.log.entries, live.name, body.KIND, SALT, body.encode())


class SharesASlot(Registrar):
    """The second account gets the slot, and so the noise keys, of the first."""

    def assign_slot(self, connection: Connection, live: OpenWindow) -> int:
        slot = super().assign_slot(connection, live)
        return 0 if slot == 1 else slot


class InTwoTenants(Registrar):
    """An account is registered in another tenant as well."""

    def _insert(
        self,
        connection: Connection,
        live: OpenWindow,
        account: Account,
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


class OldActivation(Query):
    """Noise of the opening's activation, whatever the registration's: it was known before."""

    def activation(self, registered: Registered) -> int | None:
        return self.window.activation_of(0)


class RegistersLate(Play):
    """dora, who registers while the window is open, is the account that shows it."""


class _LogsMore(Closing):
    """Logs an entry that the policy does not schedule, before the close."""

    def log_claims(self, live: OpenWindow, claims: Any) -> None:
        super().log_claims(live, claims)
        with live.commit_lock, self._store.write() as connection:
            append(connection, live, self.entry(live))

    def entry(self, live: OpenWindow) -> Any:
        raise NotImplementedError


class NewEpoch(_LogsMore):
    """New noise keys in the middle of the window."""

    def entry(self, live: OpenWindow) -> Any:
        root = structure("another seed", live.seed.commit().root)
        return Epoch(live.name, 2, root, "a restore that never happened", self._clock())


class NewVersion(_LogsMore):
    """A new version of an index in the middle of the window."""

    def entry(self, live: OpenWindow) -> Any:
        tenant, index = next(iter(live.indexes.items()))
        root = structure("another index", index.root)
        return Version(live.name, tenant, 2, index.count, root, root, self._clock())


class SkipsACounter(Query):
    """Draws the noise of a plain account's query, dislikes it, and goes on to the next counter."""

    def admit(self, *, anchored: bool) -> Admitted:
        admitted = super().admit(anchored=anchored)
        registered = admitted.registered
        if anchored or registered.counter != 1:
            return admitted
        with self.window.commit_lock, self.context.store.write() as connection:
            count_record(connection, self.window.name, self.account.name, registered.last_time)
        return super().admit(anchored=anchored)


class DropsALeaf(Selected):
    """Signs a receipt for a plain account's second query and never logs it."""

    counter = 1

    def commit_record(self, state: State) -> LoggedRecord:
        if self.registered.anchor is not None or self.record.counter != self.counter:
            return super().commit_record(state)
        body = self.stamp(self.registered, self.record).encode()
        position, issued = self.window.log.entries.head().size, self.context.clock()
        return LoggedRecord(position, self.salt, body, self.opened, issued)


class RewritesALeaf(Selected):
    """Signs a receipt for one record of a plain account and logs another in its place."""

    def commit_record(self, state: State) -> LoggedRecord:
        logged = super().commit_record(state)
        if self.registered.anchor is not None:
            return logged
        entry = Record.parse(logged.body)
        return replace(logged, body=replace(entry, time=entry.time - 1).encode())


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
        name="activation-older-than-the-registration", family="REGISTRATION",
        description="Uses an activation value that was known when the account was registered.",
        parts={"stages": Stages(query=OldActivation)}, play=RegistersLate,
        checks=("schedule",), reason="activation 1 (expected 2)", complaint="activation",
    ),
    ServiceCheat(
        name="unscheduled-epoch", family="REGISTRATION",
        description="Starts a seed epoch that the policy does not schedule.",
        parts={"closing": NewEpoch},
        checks=("schedule",), reason="a epoch entry after the opening",
    ),
    ServiceCheat(
        name="unscheduled-index-version", family="REGISTRATION",
        description="Announces an index version that the policy does not schedule.",
        parts={"closing": NewVersion},
        checks=("schedule",), reason="a version entry after the opening",
    ),
    ServiceCheat(
        name="counter-gap", family="COUNTER",
        description="Skips a counter whose noise it did not like.",
        parts={"stages": Stages(query=SkipsACounter)},
        checks=("counters",), reason="counter 2, expected 1",
    ),
    ServiceCheat(
        name="leaf-dropped-after-its-receipt", family="LOG",
        description="Signs receipts for queries that it does not log.",
        parts={"stages": Stages(selected=DropsALeaf)},
        checks=("receipts",), reason="not in the log at that place",
        complaint="step 2 (inclusion)",
    ),
    ServiceCheat(
        name="leaf-rewritten-after-its-receipt", family="LOG",
        description="Logs other records than the ones that it signed receipts for.",
        parts={"stages": Stages(selected=RewritesALeaf)},
        checks=("receipts",), reason="not in the log at that place", complaint="step 2 (inclusion)",
    ),
)  # fmt: skip
