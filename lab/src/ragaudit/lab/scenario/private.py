"""A window with noise and all that a policy may allow: filters, vectors, later versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import noise_key
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.lab.scenario.accounts import Account, Asked
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.policy import full_policy_document
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.challenge import Response
from ragaudit.ledger.messages.commitments import SeedCommitment
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.private_receipts import PrivateReceipt
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request


class PrivateWindow(IntegrityWindow):
    """The window; its script is that of the window without noise, all accounts plain."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return full_policy_document(keys, changes, noised=True)

    def commit_keys(self) -> None:
        Window.commit_keys(self)

    @property
    def seed_root(self) -> bytes:
        commitment: SeedCommitment = self.seed_commitment
        return commitment.root

    def integers(self, texts: Any) -> npt.NDArray[Any]:
        return super().integers(texts).astype(np.int8)

    def estimate(self) -> int:
        return Window.estimate(self)

    def noise(self, record: Record, key: bytes) -> npt.NDArray[np.int64]:
        stream = noise_key(
            key,
            window=record.window,
            tenant=record.tenant,
            version=record.version,
            pseudonym=record.pseudonym,
            epoch=record.epoch,
            slot=record.slot,
            counter=record.counter,
            activation_randomness=self.randomness(record.activation),
            nonce=record.nonce or b"",
        )
        table, parameters = self.noise_table, self.noise_table.parameters
        return core.sample_noise(
            table.thresholds, parameters.factor, parameters.levels, stream, record.rows
        )

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

    def seed_root_of(self, record: Record) -> bytes:
        """Return the root of C_seed of a record's epoch: here there is one."""
        return self.seed_root

    def statement(self, asked: Asked) -> SelectionStatement:
        index = self.index_of(asked).commitment
        return SelectionStatement.of(
            asked.record,
            body=asked.record.encode(),
            index_root=index.root,
            commitments=index.commitments,
            seed_root=self.seed_root_of(asked.record),
            activation_randomness=self.randomness(asked.record.activation),
            query=asked.embedding,
            noise=asked.noise,
            allowed=self.allowed(asked.record, asked.openings.filter),
        )

    def response(self, asked: Asked) -> bytes:
        dimension = self.policy.dimension
        found = Response.parse(super().response(asked), dimension, noised=False)
        return replace(found, key=self.open_key(asked)).encode()

    def answered(self, asked: Asked, private: PrivateReceipt) -> Answer:
        return Answer(
            tuple(
                Document(row.position, row.id, row.content, row.columns, row.attributes)
                for row in private.rows
            )
        )
