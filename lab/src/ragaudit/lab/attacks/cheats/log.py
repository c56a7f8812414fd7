"""Checks split-view and receipts: a log that is not what an account, or the cosigner, was shown."""

from dataclasses import replace
from functools import partial
from typing import Any

from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import CLOSED
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.entries import Record
from ragaudit.prover.answering.query import Selected
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import LoggedRecord

unlogged = partial(ServiceCheat, family="LOG", checks=("receipts",))


@unlogged(
    "leaf-dropped-after-its-receipt",
    reason="not in the log at that place",
    complaint="step 2 (inclusion)",
)
class DropsALeaf(Selected):
    """Signs receipts for queries that it does not log.

    It is a plain account's second query.

    Check 13 (`receipts`) wants the leaf of each public part at its index.

    Attributes:
        counter: of the query that is dropped.
    """

    counter = 1

    def commit_record(self, state: State) -> LoggedRecord:
        if self.registered.anchor is not None or self.record.counter != self.counter:
            return super().commit_record(state)
        body = self.stamp(self.registered, self.record).encode()
        # The place that the leaf would have; the next entry takes it, and check 13 finds that one.
        position, issued = self.window.log.entries.head().size, self.context.clock()
        return LoggedRecord(position, self.salt, body, self.opened, issued)


@unlogged(
    "leaf-rewritten-after-its-receipt",
    reason="not in the log at that place",
    complaint="step 2 (inclusion)",
)
class RewritesALeaf(Selected):
    """Logs other records than the ones that it signed receipts for.

    It does so with one record of a plain account.

    Check 13 (`receipts`) wants the leaf that was signed, byte for byte.
    """

    def commit_record(self, state: State) -> LoggedRecord:
        logged = super().commit_record(state)
        if self.registered.anchor is not None:
            return logged
        entry = Record.parse(logged.body)
        # By one millisecond: the record that is logged passes every check of its time.
        return replace(logged, body=replace(entry, time=entry.time - 1).encode())


@ConstructedCheat(
    "two-checkpoints-of-one-size",
    "LOG",
    ("split-view",),
    why="the cosigner signs one tree of each size",
    reason="another log of 6 entries",
)
class TwoCheckpoints(Window):
    """Shows an account another tree than the cosigner saw.

    The account's checkpoint has the size of one that the cosigner saw.

    Check 6 (`split-view`) holds every known checkpoint to the final log's prefix of its size.
    """

    def receipts(self) -> list[dict[str, Any]]:
        found = super().receipts()
        asked = self.asked[0]
        size = next(size for size, _, _ in self.checkpoints if size > asked.index)
        fork = self.forked(size)
        note = self.cosigned(fork, CLOSED).encode()
        proof = TlogProof(asked.index, fork.inclusion_proof(asked.index), note)
        found[0]["proof"] = proof.encode().decode()
        return found


@ConstructedCheat(
    "leaf-rewritten-after-the-cosignature",
    "LOG",
    ("split-view",),
    why="the cosigner signs extensions of what it signed before, and nothing else",
    reason="another log of",
)
class RewritesTheLog(Window):
    """Changes an entry of the log that the cosigner has seen.

    A record that was cosigned gets another salt before the close.

    Check 6 (`split-view`): the checkpoint that the cosigner stored is no prefix of the final log.
    """

    def close(self) -> None:
        index = self.asked[1].index
        kind, _, body = self.entries[index]
        # The salt alone: whatever reads bodies still passes, and check 6 is on its own.
        self.entries[index] = (kind, b"s" * 32, body)
        self.log_again()
        super().close()

    def receipts(self) -> list[dict[str, Any]]:
        # A receipt would name the old leaf and fail check 13 as well.
        return []


@ConstructedCheat(
    "counters-reused-after-a-restore",
    "NONCE",
    ("receipts",),
    why="the fence stops a prover whose database was rolled back",
    reason="not in the log at that place",
)
class RestoresABackup(Window):
    """Restores a backup and answers under a counter that was used before.

    The record that was first answered under it is lost.

    Check 13 (`receipts`): the receipt of the lost record names a leaf that is not there.
    """

    def script(self) -> list[Event]:
        script = super().script()
        at = script.index(("checkpoint", 7))
        again = ("query", "bob", "bob asks again after the restore", 2, 6)
        return [*script[:at], ("restore", "bob"), again, *script[at:]]

    def restore(self, name: str) -> None:
        """Go back to the state before the last record, whose receipt the account has kept.

        Args:
            name: of the account that asked.
        """
        lost = self.asked.pop()
        self.kept = self.receipt_file(lost).public.to_json()
        self.entries.pop()
        del self.sketches[lost.index]
        self.log_again()
        self.accounts[name].queries -= 1

    def receipts(self) -> list[dict[str, Any]]:
        return [*super().receipts(), self.kept]
