"""A window with noise and all that a policy may allow: filters, vectors, later versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.selection import scores, select
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.opening import Account, Asked, Event
from ragaudit.lab.scenario.policy import full_policy_document
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.commitments import KeyOpening, SeedCommitment, counter_key, slot_key
from ragaudit.ledger.messages.entries import Epoch, Record
from ragaudit.ledger.messages.requests import Openings, Request


class PrivateWindow(IntegrityWindow):
    """The window; its script is that of the window without noise, all accounts plain."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return full_policy_document(keys, changes, noised=True)

    def integers(self, texts: Any) -> npt.NDArray[Any]:
        return super().integers(texts).astype(np.int8)

    def noised_rows(self, record: Record) -> int:
        return record.rows

    def serve(
        self, account: Account, request: Request, openings: Openings, record: Record
    ) -> Asked:
        asked = super().serve(account, request, openings, record)
        key = self.noise_secret(record)
        noise = self.noise(record, key)
        exact = scores(self.searched(account, record).vectors, asked.embedding)
        allowed = self.allowed(record, openings.filter)
        selected = self.noised_choice(exact, noise, allowed, record.top_k)
        commitment = core.commit_selection(selected, asked.selection_blinding)
        gone = self.gone.get(account.tenant, set()) if record.version == 1 else set()
        proven = replace(asked.record, selection_commitment=commitment)
        return replace(
            asked,
            record=proven,
            body=self.encode_record(proven),
            key=key,
            noise=noise,
            selected=selected,
            served=tuple(i for i in selected if i not in gone),
            withdrawn=tuple(i for i in selected if i in gone),
        )

    def noised_choice(
        self, exact: npt.NDArray[np.int64], noise: npt.NDArray[np.int64], allowed: Any, top_k: int
    ) -> tuple[int, ...]:
        """T of noise-then-select: a hook for cheats."""
        return select(exact + noise, top_k, allowed)


# --- a second seed epoch after a restore (docs/spec/05-records.md §5.15) -------------------------


class RestoredWindow(PrivateWindow):
    """The window: `epoch` restores the provider; nothing is answered until the next instant.

    Attributes:
        secrets, seeds: s_W and C_seed of the epochs 1, 2, ...
        epochs: index of each epoch's entry; 0 is the opening's.
    """

    secrets: list[bytes]
    seeds: list[SeedCommitment]
    epochs: list[int]

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "epochs": True}

    def script(self) -> list[Event]:
        return [
            ("register", "alice", "acme", False, -25),
            ("register", "bob", "acme", False, -24),
            ("register", "carol", "beta", False, -23),
            ("checkpoint", -20),
            ("query", "alice", "first question of alice", 3, 1),
            ("query", "bob", "first question of bob", 2, 6),
            ("checkpoint", 7),
            ("query", "carol", "first question of carol", 3, 12),
            ("query", "alice", "second question of alice", 1, 18),
            ("checkpoint", 20),
            ("epoch", 35),
            ("version", "acme", 38),
            ("checkpoint", 42),
            ("query", "bob", "second question of bob", 3, 70),
            ("query", "alice", "third question of alice", 2, 75),
            ("query", "carol", "second question of carol", 2, 80),
            ("checkpoint", 81),
        ]

    def commit_keys(self) -> None:
        super().commit_keys()
        self.secrets, self.epochs = [self.seed_secret], [0]
        self.seeds = [self.seed_commitment]

    # --- epochs ----------------------------------------------------------------------------------

    def new_secret(self) -> bytes:
        """Return s_W of the next epoch, 32 bytes: a hook for cheats."""
        return self.draw()

    def epoch(self, time: int) -> None:
        """Commit to the noise keys of the next epoch and log it.

        Args:
            time: of the entry, seconds after `start`.
        """
        number, secret = len(self.seeds) + 1, self.new_secret()
        seed = SeedCommitment.build(
            secret, self.window, number, self.slots, self.queries_per_account
        )
        size = self.checkpoints[-1][0] if self.checkpoints else 0
        entry = Epoch(
            window=self.window,
            epoch=number,
            reason="restore",
            previous_root=self.seeds[-1].root,
            seed_root=seed.root,
            size=size,
            root=self.tree.root(size),
            time=1000 * (self.start + time),
        )
        self.secrets.append(secret)
        self.seeds.append(seed)
        self.epochs.append(self.append(Epoch.KIND, self.alter_epoch(entry).encode()))

    def alter_epoch(self, entry: Epoch) -> Epoch:
        """Return the entry to log: a hook for cheats."""
        return entry

    def epoch_in_force(self, time: int) -> int:
        """Return the number of the epoch that answers at a time: a hook for cheats.

        Args:
            time: Unix milliseconds.
        """
        for number in range(len(self.epochs), 1, -1):
            a = self.activation_of_epoch(number)
            if a is not None and 1000 * self.instants[a - 1] <= time:
                return number
        return 1

    def activation_of_epoch(self, number: int) -> int | None:
        """Return the activation of an epoch's entry, None while it has none."""
        return activation_of(self.epochs[number - 1], self.covered_sizes())

    # --- queries under an epoch ------------------------------------------------------------------

    def stated(self, account: Account, request: Request, openings: Openings, time: int) -> Record:
        record = super().stated(account, request, openings, time)
        number = self.epoch_in_force(time)
        activation = max(record.activation, self.activation_of_epoch(number) or 1)
        return replace(record, epoch=number, activation=activation)

    def noise_secret(self, record: Record) -> bytes:
        slot = slot_key(self.secrets[record.epoch - 1], self.window, record.epoch, record.slot)
        return counter_key(slot, record.counter)

    def seed_root_of(self, record: Record) -> bytes:
        return self.seeds[record.epoch - 1].root

    def open_key(self, asked: Asked) -> KeyOpening:
        record = asked.record
        if record.counter >= self.queries_per_account:
            return KeyOpening(asked.key, (), ())
        opening = self.seeds[record.epoch - 1].open(record.slot, record.counter)
        return replace(opening, key=asked.key)
