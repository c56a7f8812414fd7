"""Cheats in the log, in its checkpoints and in the order of things."""

from dataclasses import replace
from typing import Any, Final

from ragaudit.encoding.digests import leaf_data
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.constructed.window import Window
from ragaudit.lab.attacks.constructed.world import CLOSED, END, INSTANTS, START, Account
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.records import Close, Record

Event = tuple[Any, ...]


class BeforeTheOpening(Window):
    """Nothing is cosigned before the first instant; records use its randomness all the same."""

    def script(self) -> list[Event]:
        return [event for event in super().script() if event != ("checkpoint", -20)]

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, activation=1)


class RepeatsACounter(Window):
    """bob's second query is counted as his first: one noise for two answers."""

    def alter_record(self, account: Account, record: Record) -> Record:
        return replace(record, counter=0) if account.name == "bob" else record


class OverBudget(Window):
    """bob, who has four queries, is answered five times."""

    def script(self) -> list[Event]:
        more = [("query", "bob", f"once more, {i}", 1, 82 + i) for i in range(3)]
        return [*super().script(), *more, ("checkpoint", 90)]


class RestoresABackup(Window):
    """A record is answered, lost with a restored database, and its counter used again."""

    def script(self) -> list[Event]:
        script = super().script()
        at = script.index(("checkpoint", 7))
        again = ("query", "bob", "bob asks again after the restore", 2, 6)
        return [*script[:at], ("restore", "bob"), again, *script[at:]]

    def restore(self, name: str) -> None:
        """Go back to the state before the last record."""
        lost = self.asked.pop()
        self.kept = self.receipt_file(lost).public.to_json()
        self.entries.pop()
        del self.sketches[lost.index]
        self.tree = MemoryTree([leaf_data(salt, kind, body) for kind, salt, body in self.entries])
        self.accounts[name].queries -= 1

    def receipts(self) -> list[dict[str, Any]]:
        return [*super().receipts(), self.kept]


class TwoCheckpoints(Window):
    """One account is shown a checkpoint of a size of which the cosigner saw another."""

    def receipts(self) -> list[dict[str, Any]]:
        found = super().receipts()
        asked = self.asked[0]
        size = next(size for size, _, _ in self.checkpoints if size > asked.index)
        leaves = [leaf_data(salt, kind, body) for kind, salt, body in self.entries[: size - 1]]
        fork = MemoryTree([*leaves, b"f" * 32])
        signed = sign_checkpoint(Checkpoint(self.origin, fork.head()), self.log_key)
        line = cosign(signed.note.text, self.cosigner_key, CLOSED)
        note = signed.note.with_signatures([line]).encode()
        proof = TlogProof(asked.index, fork.inclusion_proof(asked.index), note)
        found[0]["proof"] = proof.encode().decode()
        return found


class RewritesTheLog(Window):
    """A record that was cosigned gets another salt before the close."""

    def close(self) -> None:
        index = self.asked[1].index
        kind, _, body = self.entries[index]
        self.entries[index] = (kind, b"s" * 32, body)
        self.tree = MemoryTree([leaf_data(salt, kind, body) for kind, salt, body in self.entries])
        super().close()

    def receipts(self) -> list[dict[str, Any]]:
        return []


class CountersignedLate(Window):
    """The countersignature's clock says that the window had begun."""

    def countersignature(self) -> bytes:
        return self.countersigned_at(1000 * START)


class RunsAnotherPolicy(Window):
    """The verifier countersigned one policy, the provider runs another."""

    def countersignature(self) -> bytes:
        kept = self.policy
        self.policy = replace(kept, canonical=kept.canonical + b" ")
        try:
            return super().countersignature()
        finally:
            self.policy = kept


class ClosesLate(Window):
    """The final root is cosigned when the sampling nonce is known."""

    def close(self) -> None:
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", body.encode())
        self.checkpoint(INSTANTS[-1] - START)


class ContinuesElsewhere(Window):
    """The policy names a checkpoint of the window before which is not its last one."""

    def previous_checkpoint(self, leaves: int = 2) -> str | None:
        return super().previous_checkpoint(leaves)


class KeepsItsLogKey(Window):
    """The log signs with the key of the window before."""

    def previous_log(self) -> SigningKey:
        return SigningKey(super().previous_log().name, ED25519, self.log_key.private)


class OtherSamplingNonce(Window):
    """The sample is drawn with a nonce that the verifier did not commit to."""

    def challenge(self, strata: list[dict[str, Any]], listed: dict[str, Any]) -> dict[str, Any]:
        message = super().challenge(strata, listed)
        return self.sign_challenge({**message, "preimage": "5e" * 32})


CHEATS: Final = (
    ConstructedCheat(
        name="activation-older-than-the-opening", family="REGISTRATION",
        description="Uses an activation value that was known when index and keys were fixed.",
        why="an honest verifier's checkpoint store would have to lack the opening",
        window=BeforeTheOpening,
        checks=("schedule",), reason="activation 1 (expected 2)",
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
    ConstructedCheat(
        name="counters-reused-after-a-restore", family="NONCE",
        description="Restores a backup and answers under a counter that was used before.",
        why="the fence stops a prover whose database was rolled back",
        window=RestoresABackup,
        checks=("receipts",), reason="not in the log at that place",
    ),
    ConstructedCheat(
        name="two-checkpoints-of-one-size", family="LOG",
        description="Shows an account another tree than the cosigner saw.",
        why="the cosigner signs one tree of each size",
        window=TwoCheckpoints,
        checks=("split-view",), reason="another log of 6 entries",
    ),
    ConstructedCheat(
        name="leaf-rewritten-after-the-cosignature", family="LOG",
        description="Changes an entry of the log that the cosigner has seen.",
        why="the cosigner signs extensions of what it signed before, and nothing else",
        window=RewritesTheLog,
        checks=("split-view",), reason="another log of",
    ),
    ConstructedCheat(
        name="countersigned-late", family="POLICY",
        description="Presents a countersignature from after the window's start.",
        why="the verifier does not give one",
        window=CountersignedLate,
        checks=("policy",), reason="too late",
    ),
    ConstructedCheat(
        name="policy-altered-after-the-countersignature", family="POLICY",
        description="Runs another policy than the one that was countersigned.",
        why="the verifier holds the policy that it countersigned",
        window=RunsAnotherPolicy,
        checks=("policy",), reason="names another window or policy",
    ),
    ConstructedCheat(
        name="continues-another-log", family="POLICY",
        description="Names a checkpoint of the window before that is not its final one.",
        why="the prover takes its last window's final checkpoint",
        window=ContinuesElsewhere,
        checks=("policy",), reason="not the final checkpoint of that window",
    ),
    ConstructedCheat(
        name="log-key-of-another-window", family="POLICY",
        description="Signs the checkpoints of two windows with one key.",
        why="the verifier registers no window with a log key that it has seen",
        window=KeepsItsLogKey,
        checks=("policy",), reason="the log key of the window before",
    ),
    ConstructedCheat(
        name="root-cosigned-after-the-sampling-instant", family="SAMPLING",
        description="Has the final root cosigned when the sample can be known.",
        why="the cosigner stops at the sampling instant",
        window=ClosesLate,
        checks=("sampling",), reason="cosigned at",
    ),
    ConstructedCheat(
        name="sampling-nonce-not-the-committed-one", family="SAMPLING",
        description="Draws the sample with another nonce than the countersigned chain's.",
        why="it takes a verifier that picks the sample",
        window=OtherSamplingNonce,
        checks=("sampling",), reason="not the chain's preimage",
    ),
)  # fmt: skip
