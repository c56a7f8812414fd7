"""An honest window without noise from end to end: `Window` with filters, vectors and versions.

A provider that cheats is a subclass that overrides the step where it cheats, as of `Window`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import quantise
from ragaudit.circuits.selection import scores, select
from ragaudit.encoding.digests import salted
from ragaudit.lab.scenario.accounts import Account, Asked, TenantIndex
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.submitting import served_row
from ragaudit.lab.scenario.versions import COPIED_TEXT, VersionedWindow, zero_noise
from ragaudit.ledger.messages.columns import NULL_ROW, Value, canonical_text, read_columns
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.filters import Filter
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


class IntegrityWindow(VersionedWindow):
    """The window; `query` asks texts, `search` asks with a filter, `near` with a vector."""

    def script(self) -> list[Event]:
        return [
            ("register", "alice", "acme", False, -25),
            ("register", "bob", "acme", False, -24),
            ("register", "carol", "beta", False, -23),
            ("checkpoint", -20),
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
