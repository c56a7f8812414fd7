"""Stores in memory behind our surfaces, with canaries in them, that forget whose rows are whose."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import scope_runs
from ragaudit.lab.attacks.scope import probes
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.queries import Answer, Hit, Query
from surface_app import MemoryPort


class Answering(MemoryPort):
    """Answers from the rows of all tenants."""

    def ask(
        self, account: Account, queries: Sequence[Query], idempotency_key: str | None
    ) -> list[Answer]:
        every = [row for rows in self.rows.values() for row in rows]
        whole = {**self.rows, account.tenant: every}
        mine, self.rows = self.rows, whole
        try:
            return super().ask(account, queries, idempotency_key)
        finally:
            self.rows = mine


class Fetching(MemoryPort):
    """Shows every row to whoever has its id."""

    def fetch(self, account: Account, ids: Sequence[str]) -> list[Hit]:
        every = {row.id: row for rows in self.rows.values() for row in rows}
        return [replace(every[name], score=None) for name in ids if name in every]


def filled(port: MemoryPort, file: Path) -> MemoryPort:
    port.dimension = scope_runs.DIMENSION
    port.rows = {"acme": [], "globex": []}
    for canary in probes.read_canaries(file, "canaries"):
        if canary.planted:
            assert canary.vector is not None
            metadata = canary.metadata("tenant", canary.tenant)
            port.rows[canary.tenant].append(
                Hit(canary.id, canary.text, dict(metadata), canary.vector)
            )
    return port
