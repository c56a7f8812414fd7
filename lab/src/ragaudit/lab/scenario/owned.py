"""Windows whose rows carry id keys, and whose log ends with document lists (spec 5.16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ragaudit.lab.scenario.accounts import Asked
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.private import PrivateWindow
from ragaudit.ledger.messages.documents import DocumentLives, id_commitment, id_key
from ragaudit.ledger.messages.entries import Documents, Opening
from ragaudit.ledger.messages.private_receipts import PrivateReceipt


class OwnedWindow(IntegrityWindow):
    """The window without noise under a policy with `owners`."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return super().document(keys, {"owners": {"rows": None}, **changes})

    @cached_property
    def document_secrets(self) -> dict[str, bytes]:
        """k_t of each tenant, 32 bytes."""
        return {tenant: self.draw() for tenant in self.tenants}

    def id_keys(self, tenant: str, ids: Sequence[str]) -> bytes:
        return b"".join(self.key_of(tenant, i, name) for i, name in enumerate(ids))

    def key_of(self, tenant: str, position: int, name: str) -> bytes:
        """Return the id key of a row: a hook for cheats."""
        return id_key(self.window, tenant, self.document_secrets[tenant], name)

    def build_opening(self) -> Opening:
        opening = super().build_opening()
        committed = (
            replace(
                each,
                id_commitment=id_commitment(
                    self.window, each.tenant, self.document_secrets[each.tenant]
                ),
            )
            for each in opening.tenants
        )
        return replace(opening, tenants=tuple(committed))

    def log_documents(self) -> None:
        for body in self.documents():
            self.append(body.KIND, body.encode())

    def documents(self) -> list[Documents]:
        """Return the entries that list the documents of each tenant: a hook for cheats."""
        return [self.lives(tenant).listed().entry for tenant in self.tenants]

    def lives(self, tenant: str) -> DocumentLives:
        """Return when each row of a tenant's index was live, over all its versions."""
        lives = DocumentLives(self.window, tenant)
        for version in range(1, self.last_version(tenant) + 1):
            lives.add(self.committed(tenant, version).commitment)
        return lives

    def last_version(self, tenant: str) -> int:
        """Return the last version that the log has of a tenant's index."""
        return max((version for of, version in self.later if of == tenant), default=1)

    def private_part(self, asked: Asked) -> PrivateReceipt:
        private = super().private_part(asked)
        if not self.policy.noised:
            return replace(private, document_secret=self.document_secrets[asked.record.tenant])
        held = self.index_of(asked).commitment.id_keys
        keys = [held[32 * row.position :][:32] for row in private.rows]
        rows = (replace(row, id_key=key) for row, key in zip(private.rows, keys, strict=True))
        return replace(private, rows=tuple(rows))


class OwnedPrivateWindow(OwnedWindow, PrivateWindow):
    """The same with noise: null rows are not marked, and accounts get no secret."""
