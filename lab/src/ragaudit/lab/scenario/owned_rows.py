"""Windows whose auditor samples rows of each index (spec 9.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from ragaudit.lab.scenario.accounts import TenantIndex
from ragaudit.lab.scenario.owned import OwnedWindow
from ragaudit.lab.scenario.private import PrivateWindow
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import Stratum
from ragaudit.ledger.messages.commitments import RowsHead, SampledRow, content_digest, encode_rows
from ragaudit.privacy import sample as sampling
from ragaudit.privacy.sample import draw_rows

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
        seed = sampling.sampling_seed(
            self.tree.root(), self.chain_seed, self.beacon(len(self.instants))
        )
        counts = {tenant: self.sampled_index(tenant).commitment.rows for tenant in self.tenants}
        drawn = draw_rows(counts, rule=self.policy.owners.rows, seed=seed)
        self.sampled_rows = dict(zip(counts, (each.sample for each in drawn), strict=True))
        named = (
            Stratum.of(each.stratum.id, each.stratum.population, each.sample) for each in drawn
        )
        return super().draw_sample(receipts) + [each.to_json() for each in named]

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
