"""A window without noise, up to its indexes: public columns, rows that change, later versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.metrics import INNER_PRODUCT
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.statements import IndexStatement, NormOpening, shifted
from ragaudit.lab.scenario.accounts import TenantIndex
from ragaudit.lab.scenario.policy import COLUMNS, full_policy_document
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.columns import (
    NO_COLUMNS,
    NULL_ROW,
    Value,
    canonical_text,
    columns_text,
)
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    content_digest,
    index_root,
)
from ragaudit.ledger.messages.commitments import (
    row_digest as digest_of_row,
)
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.policy_terms import NOISE_MEMBERS

COPIED = (3, 8, 14)
"""Positions of acme that hold one text: whoever asks for it finds three rows of one score."""

COPIED_TEXT = "the notice that was copied"


@dataclass(frozen=True)
class Row:
    """A document in its place; a deleted one leaves a null row there.

    Attributes:
        columns: values of its public columns, by name.
        marked: whether its leaf says that it is a null row.
    """

    id: str
    text: str
    columns: Mapping[str, Value]
    deleted: bool = False
    marked: bool = False

    @property
    def attributes(self) -> str:
        """Return the canonical text of all metadata: here the public columns, nothing else."""
        return "" if self.deleted else canonical_text(dict(self.columns))

    @property
    def columns_text(self) -> str:
        """Return the canonical text of the columns, or the mark of a null row, as its leaf has."""
        if self.marked:
            return NULL_ROW
        return columns_text({} if self.deleted else self.columns, COLUMNS)


@dataclass
class VersionedWindow(Window):
    """The window without noise with its indexes, of which some get later versions.

    Attributes:
        later: tenant and version, from 2 on, and the index.
        gone: positions of each tenant's newest version whose documents were deleted since.
    """

    dimension: int = 32
    later: dict[tuple[str, int], TenantIndex] = field(default_factory=dict)
    gone: dict[str, set[int]] = field(default_factory=dict)

    # --- policy and seed -------------------------------------------------------------------------

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in changes.items() if name not in NOISE_MEMBERS}
        return full_policy_document(keys, kept, noised=False)

    # --- documents -------------------------------------------------------------------------------

    def texts(self, tenant: str) -> list[str]:
        copied = COPIED if tenant == "acme" else ()
        return [
            COPIED_TEXT if i in copied else text for i, text in enumerate(super().texts(tenant))
        ]

    def rows_of(self, tenant: str, version: int) -> list[Row]:
        """Return the rows of a tenant's index: a hook for cheats.

        Args:
            tenant: whose.
            version: 1, or a later one: then the documents that were deleted are null rows, and one
                is new.
        """
        rows = [
            Row(self.document_id(tenant, i), text, _columns(i))
            for i, text in enumerate(self.texts(tenant))
        ]
        for number in range(2, version + 1):
            gone = self.gone.get(tenant, ())
            # Under noise nobody may know which rows are null rows.
            marked = self.policy.marks_null_rows
            rows = [
                replace(row, deleted=True, marked=marked) if i in gone else row
                for i, row in enumerate(rows)
            ]
            added = f"document {len(rows)} of {tenant}, added in version {number}"
            rows.append(Row(self.document_id(tenant, len(rows)), added, _columns(len(rows))))
        return rows

    def integers(self, texts: Sequence[str]) -> npt.NDArray[np.int16]:
        """Return int16[n, d]: the embeddings of texts, quantised at the policy's B."""
        return quantise_rows(self.model.embed(texts), self.policy.norm_bound).astype(np.int16)

    def completed_rows(self, rows: Sequence[Row]) -> npt.NDArray[np.int16]:
        """Return int16[N, d+4]: what is committed to, null rows among it: a hook for cheats."""
        vectors = self.integers([row.text for row in rows])
        vectors[[i for i, row in enumerate(rows) if row.deleted]] = 0
        return core.complete_rows(vectors, self.policy.squared_norm).astype(np.int16)

    # --- indexes ---------------------------------------------------------------------------------

    def build_index(self, tenant: str) -> TenantIndex:
        return self.build_version(tenant, 1)

    def show_norm(
        self,
        opening: NormOpening,
        statement: IndexStatement,
        rows: npt.NDArray[Any],
        blindings: npt.NDArray[np.uint8],
    ) -> NormOpening:
        """Return what is said of the longest row with its argument: a hook for cheats.

        Args:
            opening: without it.
            statement: of the whole index.
            rows: int16[N, d+4].
            blindings: uint8[N, 32].
        """
        vectors = opening.shifts(statement.dimension, statement.squared_norm)
        moved = shifted(rows[opening.position].tolist(), vectors)
        same = np.repeat(blindings[opening.position][np.newaxis], len(moved), axis=0)
        about = opening.statement(statement, core.commit_rows(moved, same))
        return replace(opening, proof=core.prove_index(about, moved, same))

    def build_version(self, tenant: str, version: int) -> TenantIndex:
        """Commit to a version of a tenant's index and prove it, with fresh salts and blindings."""
        documents = self.rows_of(tenant, version)
        rows = self.completed_rows(documents)
        blindings = self.blindings(len(rows))
        commitments = core.commit_rows(rows, blindings)
        salts = [self.draw() for _ in documents]
        digests = b"".join(
            row_digest(salt, row) for salt, row in zip(salts, documents, strict=True)
        )
        columns = [row.columns_text for row in documents]
        keys = self.id_keys(tenant, [row.id for row in documents])
        root = index_root(commitments, digests, columns, keys)
        statement = self.index_statement(tenant, commitments, root, version)
        proof = self.prove_index(statement, rows, blindings)
        if self.policy.retrieval.metric == INNER_PRODUCT:
            proof = self.show_norm(NormOpening.of(rows), statement, rows, blindings).beside(proof)
        commitment = IndexCommitment(
            self.window, tenant, version, self.dimension, commitments, digests, proof,
            tuple(columns) if set(columns) - {NO_COLUMNS} else (), keys,
        )  # fmt: skip
        return TenantIndex(
            tenant=tenant,
            texts=["" if row.deleted else row.text for row in documents],
            ids=[row.id for row in documents],
            salts=salts,
            rows=rows,
            blindings=blindings,
            commitment=commitment,
            columns=columns,
            attributes=[row.attributes for row in documents],
            version=version,
        )

    def id_keys(self, tenant: str, ids: Sequence[str]) -> bytes:
        """Return the id keys of a tenant's rows, 32 bytes each: here there are none."""
        return b""

    # --- versions --------------------------------------------------------------------------------

    def delete(self, tenant: str, position: int) -> None:
        """Delete a document in the store: from now on its row is withdrawn."""
        self.gone.setdefault(tenant, set()).add(position)

    def version(self, tenant: str, time: int) -> None:
        """Commit to the next version of a tenant's index and log it.

        Args:
            tenant: whose.
            time: of the entry, seconds after `start`.
        """
        number = 2 + sum(of == tenant for of, _ in self.later)
        index = self.later[tenant, number] = self.build_version(tenant, number)
        entry = Version(
            window=self.window,
            tenant=tenant,
            version=number,
            rows=index.commitment.rows,
            index_root=index.commitment.root,
            proof_digest=index.commitment.proof_digest,
            time=1000 * (self.start + time),
        )
        self.announce(entry)

    def announce(self, entry: Version) -> None:
        """Log a version: a hook for cheats."""
        self.append("version", entry.encode())

    def activation_of_version(self, tenant: str, version: int) -> int | None:
        """Return the activation that brings a version into force; None if none does yet."""
        sizes = self.covered_sizes()
        place = 0
        if version > 1:
            index = self.later[tenant, version].commitment
            place = next(
                i
                for i, (kind, _, body) in enumerate(self.entries)
                if kind == "version" and index.root in body
            )
        return next((a for a, size in enumerate(sizes, start=1) if size > place), None)

    def in_force(self, tenant: str, time: int) -> int:
        """Return the version of a tenant's index that answers at a time (docs/spec/09-audit.md).

        Args:
            tenant: whose.
            time: Unix milliseconds.
        """
        found = 1
        for of, version in sorted(self.later):
            a = self.activation_of_version(of, version) if of == tenant else None
            if a is not None and 1000 * self.instants[a - 1] <= time:
                found = version
        return found

    def committed(self, tenant: str, version: int) -> TenantIndex:
        """Return a version of a tenant's index."""
        return self.indices[tenant] if version == 1 else self.later[tenant, version]

    def handed_over(self) -> dict[str, bytes]:
        return super().handed_over() | {
            names.index_name(tenant, version): index.commitment.encode()
            for (tenant, version), index in self.later.items()
        }


def row_digest(salt: bytes, row: Row) -> bytes:
    """Return the digest of a row's id, text and attributes; of a null row, of its id alone."""
    text = "" if row.deleted else row.text
    content = content_digest(text, row.attributes)
    return digest_of_row(salt, row.id, content)


def zero_noise(rows: int) -> npt.NDArray[np.int64]:
    """Return int64[N]: the noise of a window that adds none."""
    return np.zeros(rows, dtype=np.int64)


def _columns(position: int) -> dict[str, Value]:
    return {"shelf": "left" if position % 2 else "right", "year": 2000 + position}
