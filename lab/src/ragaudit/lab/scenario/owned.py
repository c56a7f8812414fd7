"""Windows without noise, and with it, whose log ends with an account index or document lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Final

from ragaudit.lab.scenario.integrity import IntegrityWindow, PrivateWindow
from ragaudit.lab.scenario.opening import Asked, TenantIndex
from ragaudit.lab.scenario.window import shown_strata
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.commitments import RowsHead, SampledRow, content_digest, encode_rows
from ragaudit.ledger.messages.documents import DocumentLives, id_commitment, id_key
from ragaudit.ledger.messages.entries import Documents, Opening
from ragaudit.ledger.messages.receipts import PrivateReceipt
from ragaudit.privacy.sample import draw_rows

# --- document lists (docs/spec/05-records.md §5.16) ----------------------------------------------


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


# --- the account index (docs/spec/05-records.md §5.14) -------------------------------------------


class IndexedWindow(IntegrityWindow):
    """`IntegrityWindow`, with a policy that asks for the index."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "account_index": True}


# --- sampled rows --------------------------------------------------------------------------------

SOME_ROWS: Final[dict[str, Any]] = {"beta": "0.3", "eta": "0.1", "minimum": 5}
ALL_ROWS: Final[dict[str, Any]] = {**SOME_ROWS, "minimum": 100}
"""Which rows are drawn depends on randomness of the proofs, which no scenario chooses."""


class RowsWindow(OwnedWindow):
    """The window without noise, of whose indexes some rows are sampled.

    Attributes:
        rows_terms: ``rows`` of ``owners``.
    """

    rows_terms: ClassVar[Mapping[str, Any]] = SOME_ROWS

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return super().document(keys, {"owners": {"rows": dict(self.rows_terms)}, **changes})

    def draw_sample(self, receipts: Any) -> list[dict[str, Any]]:
        assert self.policy.owners is not None
        assert self.policy.owners.rows is not None
        counts = {tenant: self.sampled_index(tenant).commitment.rows for tenant in self.tenants}
        drawn = draw_rows(counts, rule=self.policy.owners.rows, seed=self.sampling_seed)
        self.sampled_rows = dict(zip(counts, (each.sample for each in drawn), strict=True))
        return super().draw_sample(receipts) + shown_strata(drawn)

    def sampled_index(self, tenant: str) -> TenantIndex:
        """Return the version of a tenant's index that rows are sampled from."""
        return self.committed(tenant, self.last_version(tenant))

    def open_row(self, index: TenantIndex, position: int) -> SampledRow:
        """Return what opens a row: a hook for cheats."""
        numbers = [int(number) for number in index.rows[position]]
        content, attributes = index.texts[position], index.attributes[position]
        # Since the index was committed to: of a null row everything is still there.
        gone = position in self.gone.get(index.tenant, ()) and content != ""
        return SampledRow(
            position=position,
            id=index.ids[position],
            content=None if gone else content,
            attributes=None if gone else attributes,
            content_digest=content_digest(content, attributes),
            salt=index.salts[position],
            vector=tuple(numbers[:-4]),
            squares=tuple(numbers[-4:]),
            blinding=index.blindings[position].tobytes(),
        )

    def open_rows(self, tenant: str, positions: Sequence[int]) -> bytes:
        """Return the response for the sampled rows of a tenant: a hook for cheats."""
        index = self.sampled_index(tenant)
        head = RowsHead(tenant, index.version, self.document_secrets[tenant])
        return encode_rows(head, [self.open_row(index, at) for at in positions])

    def items(self) -> dict[str, bytes]:
        found = super().items()
        return found | {
            names.rows_name(tenant): self.open_rows(tenant, positions)
            for tenant, positions in self.sampled_rows.items()
        }


class PrivateRowsWindow(RowsWindow, PrivateWindow):
    """The same with noise: null rows are not marked."""


class AllRowsWindow(RowsWindow):
    """The window without noise, whose indexes are sampled whole."""

    rows_terms = ALL_ROWS


class AllPrivateRowsWindow(PrivateRowsWindow):
    """The window with noise, whose indexes are sampled whole."""

    rows_terms = ALL_ROWS
