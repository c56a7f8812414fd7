"""What is opened of the sampled rows of an index: docs/spec/09-audit.md §9.11.

A document that the store no longer has as it was committed to is opened without its text: the row
then counts as changed since.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ragaudit.ledger.messages.sampled_rows import RowsHead, SampledRow, encode_rows
from ragaudit.prover.backends.interface import Backend, Document
from ragaudit.prover.index.committed import CommittedIndex, part
from ragaudit.prover.lifecycle.stored_evidence import keep_evidence, missing_evidence
from ragaudit.prover.store.database import Store
from ragaudit.prover.verifier.client import rows_call
from ragaudit.prover.window.open_window import OpenWindow

__all__ = ["RowEvidence"]

_FETCHED: Final = 100  # documents at a time, as an answer has them


class RowEvidence:
    """Opens and stores the sampled rows of a window, once: what the store holds then decides."""

    def __init__(self, store: Store, backend: Backend) -> None:
        self._store = store
        self._backend = backend

    def prepare(self, live: OpenWindow, sampled: Mapping[str, Sequence[int]]) -> None:
        """Open what is not stored yet.

        Args:
            sampled: positions, rising, by tenant.

        Raises:
            BackendUnavailable: the documents cannot be had now; call again.
        """
        for tenant, positions in sampled.items():
            call = rows_call(tenant)
            with self._store.read() as connection:
                if not missing_evidence(connection, live.name, call):
                    continue
            message = self.response(live, tenant, positions)
            with self._store.write() as connection:
                keep_evidence(connection, live.name, call, message)

    def response(self, live: OpenWindow, tenant: str, positions: Sequence[int]) -> bytes:
        """Return the encoded response for a tenant's rows.

        Args:
            positions: of the last version, rising.
        """
        # The last version that was logged, whether it came into force or not.
        index = live.versions.latest(tenant)
        rows = []
        for start in range(0, len(positions), _FETCHED):
            places = positions[start : start + _FETCHED]
            documents = self._backend.fetch(tenant, [index.ids[at] for at in places])
            rows += [
                self.opened(live, index, at, document)
                for at, document in zip(places, documents, strict=True)
            ]
        return encode_rows(RowsHead(tenant, index.version, index.document_secret), rows)

    def opened(
        self, live: OpenWindow, index: CommittedIndex, at: int, document: Document | None
    ) -> SampledRow:
        """Return what opens a row.

        Args:
            at: its position.
            document: as the store has it now; None where it has none.
        """
        committed = part(index.content_digests, at)
        same = document is not None and live.form.digest(document) == committed
        numbers = index.rows[at].tolist()
        return SampledRow(
            position=at,
            id=index.ids[at],
            content=document.content if document is not None and same else None,
            attributes=document.attributes if document is not None and same else None,
            content_digest=committed,
            salt=part(index.salts, at),
            vector=tuple(numbers[: index.dimension]),
            squares=tuple(numbers[index.dimension :]),
            blinding=index.blindings[at].tobytes(),
        )
