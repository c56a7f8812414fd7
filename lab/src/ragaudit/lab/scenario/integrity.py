"""An honest window without noise from end to end: `Window` with filters, vectors and versions.

A provider that cheats is a subclass that overrides the step where it cheats, as of `Window`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.metrics import INNER_PRODUCT
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.statements import IndexStatement, NormOpening, shifted
from ragaudit.encoding.digests import salted
from ragaudit.lab.scenario.opening import Account, Asked, Event, TenantIndex, registered
from ragaudit.lab.scenario.policy import COLUMNS, full_policy_document
from ragaudit.lab.scenario.window import Window, served_row
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.columns import (
    NO_COLUMNS,
    NULL_ROW,
    Value,
    canonical_text,
    columns_text,
    read_columns,
)
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    KeyOpening,
    SeedCommitment,
    content_digest,
    counter_key,
    index_root,
    slot_key,
)
from ragaudit.ledger.messages.commitments import (
    row_digest as digest_of_row,
)
from ragaudit.ledger.messages.entries import Epoch, Record, Version
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.policy_terms import NOISE_MEMBERS
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    TiesOpening,
    UnservedRow,
    WithdrawnRow,
)
from ragaudit.ledger.messages.requests import (
    Openings,
    Request,
    float32_bytes,
    float32_values,
)
from ragaudit.ledger.messages.ties import TiesStatement

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


LEFT_SHELF = canonical_text({"op": "eq", "key": "shelf", "value": "left"})
RECENT = canonical_text(
    {
        "op": "and",
        "of": [
            {"op": "ge", "key": "year", "value": 2006},
            {"op": "not", "of": [{"op": "eq", "key": "shelf", "value": "left"}]},
        ],
    }
)


@dataclass
class IntegrityWindow(Window):
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

    def script(self) -> list[Event]:
        return [
            *registered(),
            ("query", "alice", "first question of alice", 3, 1),
            ("query", "bob", COPIED_TEXT, 2, 6),
            ("checkpoint", 7),
            ("search", "carol", "first question of carol", 3, 12, LEFT_SHELF),
            ("register", "dora", "beta", False, 15),
            ("near", "alice", "document 5 of acme", 2, 18),
            ("checkpoint", 20),
            ("delete", "acme", 6),
            ("query", "bob", "document 6 of acme", 3, 30),
            ("version", "acme", 35),
            ("search", "alice", "third question of alice", 3, 40, RECENT),
            ("checkpoint", 42),
            ("query", "dora", "first question of dora", 3, 70),
            ("query", "bob", "document 6 of acme", 3, 75),
            ("near", "carol", "document 7 of beta", 2, 80),
            ("checkpoint", 81),
        ]

    # --- queries ---------------------------------------------------------------------------------

    def query(self, name: str, text: str, top_k: int, time: int) -> Asked:
        return self.ask(name, text, top_k, time)

    def search(self, name: str, text: str, top_k: int, time: int, wanted: str) -> Asked:
        """Answer and log a query with a filter.

        Args:
            name, text, top_k, time: as of `query`.
            wanted: the filter's canonical text.
        """
        return self.ask(name, text, top_k, time, wanted)

    def near(self, name: str, text: str, top_k: int, time: int) -> Asked:
        """Answer and log a query with the vector of a text, made by the application."""
        return self.ask(name, self.vector_near(text), top_k, time)

    def vector_near(self, text: str) -> bytes:
        """Return a vector that points where a text's embedding does, one entry put aside."""
        vector = self.model.embed([text])[0] / 7.0
        vector[0] = 0.5
        return float32_bytes(vector.tolist())

    def ask(self, name: str, asked: str | bytes, top_k: int, time: int, wanted: str = "") -> Asked:
        """Answer and log any query, and count it.

        Args:
            name: of a registered account.
            asked: a text, or a vector as bytes.
            top_k: K.
            time: of the record, seconds after `start`.
            wanted: the filter's canonical text; empty for none.
        """
        account = self.accounts[name]
        request = Request.of(self.policy, asked, top_k, filter=wanted)
        openings = self.open_request(account, request)
        record = self.stated(account, request, openings, 1000 * (self.start + time))
        found = self.serve(account, request, openings, self.alter_record(account, record))
        account.queries += 1
        self.log_record(found)
        return found

    def embed_request(self, request: Request) -> npt.NDArray[np.int16]:
        """Return int16[d], e of a request: a hook for cheats."""
        if request.vector:
            vector = np.array(float32_values(request.vector), dtype=np.float32)
            return quantise(vector, self.policy.norm_bound).astype(np.int16)
        vector = self.model.embed([request.query])[0]
        return quantise(vector, self.policy.norm_bound).astype(np.int16)

    def stated(self, account: Account, request: Request, openings: Openings, time: int) -> Record:
        """Return the record of a request, under the version in force at its time.

        Args:
            account: registered.
            request, openings: whose digests it holds.
            time: Unix milliseconds.
        """
        version = self.in_force(account.tenant, time)
        record = self.promised(account, openings, request.top_k, time)
        return replace(
            record,
            version=version,
            rows=self.committed(account.tenant, version).commitment.rows,
            activation=max(
                record.activation, self.activation_of_version(account.tenant, version) or 1
            ),
            query_digest=salted(openings.salt_q, openings.question.data),
        )

    def serve(
        self, account: Account, request: Request, openings: Openings, record: Record
    ) -> Asked:
        index = self.searched(account, record)
        embedding = np.array(openings.embedding, dtype=np.int16)
        exact = scores(index.vectors, embedding)
        selected = self.choose(exact, self.allowed(record, openings.filter), record.top_k)
        first = sorted(selected, key=lambda i: (-int(exact[i]), i))[: record.top_k]
        # What went before the version was committed is no row of it any more.
        gone = self.missing(index, first)
        withdrawn = tuple(sorted(i for i in first if i in gone))
        blinding = self.scalar()
        record = replace(
            record,
            selection_commitment=core.commit_selection(selected, blinding),
            withheld=self.counted(len(withdrawn)),
        )
        return Asked(
            account=account,
            request=request,
            record=record,
            body=self.encode_record(record),
            salt=b"",
            openings=openings,
            embedding=embedding,
            key=b"",
            noise=zero_noise(len(exact)),
            served_tenant=index.tenant,
            selected=selected,
            selection_blinding=blinding,
            answered_by=index,
            served=tuple(i for i in first if i not in gone),
            withdrawn=withdrawn,
        )

    def counted(self, withheld: int) -> int | None:
        """Return how many withheld rows a record counts, without noise: a hook for cheats."""
        return None if self.policy.noised else withheld

    def missing(self, index: TenantIndex, first: Sequence[int]) -> set[int]:
        """Return the rows to leave out, of the ``first`` K of T or others: a hook for cheats."""
        return self.gone.get(index.tenant, set()) if self.newest(index) else set()

    def newest(self, index: TenantIndex) -> bool:
        """Return whether documents may have gone since an index was committed to."""
        return not any(of == index.tenant and v == index.version for of, v in self.later)

    def searched(self, account: Account, record: Record) -> TenantIndex:
        """Return the index that answers a record: a hook for cheats."""
        return self.committed(account.tenant, record.version)

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        """Return the positions that pass a filter in the record's version; None for all rows.

        Null rows pass none, and are left out without a filter too.

        Args:
            record: whose tenant and version say which rows.
            wanted: the filter's canonical text.
        """
        rows = self.column_rows(record)
        if not wanted and None not in rows:
            return None
        return Filter.parse(wanted, self.policy.retrieval.public_columns).allowed(rows)

    def column_rows(self, record: Record) -> list[dict[str, Value] | None]:
        """Return the public columns of all rows of the record's version; None for null rows."""
        declared = self.policy.retrieval.public_columns
        columns = self.committed(record.tenant, record.version).columns
        return [None if text == NULL_ROW else read_columns(text, declared) for text in columns]

    def choose(
        self, exact: npt.NDArray[np.int64], allowed: Sequence[int] | None, top_k: int
    ) -> tuple[int, ...]:
        """Return T, rising, ties kept (docs/spec/04-arguments.md §4.6.9): a hook for cheats.

        Args:
            exact: int64[N], scores.
            allowed: positions; None for all.
            top_k: K.
        """
        return select(exact, top_k, allowed, keep_ties=True)

    # --- receipts --------------------------------------------------------------------------------

    def private_part(self, asked: Asked) -> PrivateReceipt:
        index = self.index_of(asked)
        tree, ties = self.tree_of(index), self.ties(asked)
        return PrivateReceipt(
            asked.openings,
            asked.selected,
            asked.selection_blinding,
            self.draw(),
            tuple(served_row(index, tree, i) for i in asked.served),
            tuple(
                WithdrawnRow(i, index.ids[i], self.score(asked, i) if ties else None)
                for i in asked.withdrawn
            ),
            ties,
        )

    def ties(self, asked: Asked) -> TiesOpening | None:
        """Return what shows that no better row of T was kept back; None where T has K at most."""
        if len(asked.selected) <= asked.record.top_k:
            return None
        index = self.index_of(asked)
        held, tree = index.commitment, self.tree_of(index)
        left = [i for i in asked.selected if i not in asked.served]
        commitments = {i: held.commitments[32 * i : 32 * i + 32] for i in left}
        statement = TiesStatement.of(
            asked.record,
            body=asked.body,
            index_root=held.root,
            query=asked.embedding.tolist(),
            selected=asked.selected,
            served={i: self.score(asked, i) for i in asked.served},
            withdrawn={i: self.score(asked, i) for i in asked.withdrawn},
            commitments=commitments,
            squared_norm=self.policy.squared_norm,
        )
        rows = tuple(
            UnservedRow(
                i,
                commitment,
                index.columns[i],
                held.row_digests[32 * i : 32 * i + 32],
                tree.path(i),
                held.id_keys[32 * i : 32 * i + 32] or None,
            )
            for i, commitment in commitments.items()
        )
        return TiesOpening(rows, self.prove_ties(asked, statement))

    def prove_ties(self, asked: Asked, statement: TiesStatement) -> bytes:
        """Return the argument of a ties opening (spec 4.6.10): a hook for cheats."""
        index = self.index_of(asked)
        return core.prove_ties(statement, index.rows, index.blindings)


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
            *registered(),
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
