"""Check 32: the sampled rows of each tenant's index (docs/spec/09-audit.md §9.11)."""

from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest

import numpy as np
from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.documents import check_secret, id_key
from ragaudit.ledger.messages.merkle_commitments import (
    IndexCommitment,
    content_digest,
    row_digest,
)
from ragaudit.ledger.messages.row_openings import check_length, is_null
from ragaudit.ledger.messages.sampled_rows import RowsHead, SampledRow, read_rows
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.models import CommittedEmbedder
from ragaudit.verifier.procedure.answer_checks import embedder_at_hand
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings

_BYTES = 32  # of a commitment, a digest or a key


@dataclass(slots=True)
class Seen:
    """How many sampled rows there are of each kind, of one tenant or of all.

    Attributes:
        null: of a document that is gone.
        changed: whose text nobody can show any more.
        uncompared: whose text was compared with no vector.
        compared: whose vector is that of their text.
    """

    null: int = 0
    changed: int = 0
    uncompared: int = 0
    compared: int = 0

    def add(self, other: "Seen") -> None:
        """Count the rows of another tenant, too."""
        self.null += other.null
        self.changed += other.changed
        self.uncompared += other.uncompared
        self.compared += other.compared


def check_rows(context: Context, found: Findings) -> None:
    """32: each sampled row opens its leaf, and holds the vector and the text that it is for."""
    embedder, seen = embedder_at_hand(context, found), Seen()
    sampled = context.challenge.sampled_rows
    total, done = sum(map(len, sampled.values())), 0
    for tenant, positions in sampled.items():
        context.progress(found.owner, done, total)
        done += len(positions)
        # Nothing of a tenant is believed but all of it: its rows stand in one response.
        with found.attempt(f"rows of {tenant}"):
            rows = _TenantRows(context, embedder, tenant, positions)
            rows.check(found)
            seen.add(rows.seen)
            found.note(rows.line)
    context.progress(found.owner, done, total)
    found.summary = f"{total} sampled rows opened as committed, each with the vector of its text"
    _downgrade(found, seen)


def _downgrade(found: Findings, seen: Seen) -> None:
    open_reasons = []
    if seen.changed:
        # Nothing is false, and nothing shows that what was committed to was a document.
        open_reasons.append(
            f"{seen.changed} sampled rows are of documents that the store changed since, as the "
            "provider says, and nobody can show their texts"
        )
    if seen.uncompared:
        open_reasons.append(
            f"no embedder at hand compared the vectors of {seen.uncompared} sampled rows with "
            "their texts"
        )
    if open_reasons:
        found.downgrade(Status.NOT_ESTABLISHED, "; ".join(open_reasons))


@dataclass
class _TenantRows:
    """The sampled rows of one tenant; RejectedError, MalformedError, MissingInput."""

    context: Context
    embedder: CommittedEmbedder | None
    tenant: str
    positions: tuple[int, ...]
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self) -> None:
        self._version = self.context.last_places[self.tenant]
        self._index: IndexCommitment = self.context.index(self.tenant, self._version)

    @property
    def line(self) -> str:
        """What was found of this tenant, for people."""
        seen, rows = self.seen, self._index.rows
        return (
            f"{self.tenant}: {len(self.positions)} of {rows} rows sampled, {seen.compared} with "
            f"the vector of their text, {seen.uncompared} not compared, {seen.null} null rows, "
            f"{seen.changed} changed since"
        )

    def check(self, found: Findings) -> None:
        """Check every row, each fault by itself."""
        context, dimension = self.context, self.context.policy.dimension
        if self.positions[-1] >= self._index.rows:
            raise MissingInput("sampling", f"there is no row {self.positions[-1]}")
        with closing(context.open_item(items.rows_name(self.tenant), found.owner)) as file:
            head, rows = read_rows(file, len(self.positions), dimension)
            self._check_head(head)
            # Both are as long, or `read_rows` says so.
            for due, row in zip_longest(self.positions, rows):
                with found.attempt(f"row {due} of {self.tenant}"):
                    self._check_row(due, row, head.secret)

    def _check_head(self, head: RowsHead) -> None:
        if (head.tenant, head.version) != (self.tenant, self._version):
            raise RejectedError(
                f"opened as those of {head.tenant}, version {head.version}",
                expected=f"the last version, {self._version}",
            )
        committed = self.context.opened[self.tenant].id_commitment
        check_secret(self.context.policy.window, self.tenant, head.secret, committed)

    def _check_row(self, due: int, row: SampledRow, secret: bytes) -> None:
        if row.position != due:
            raise RejectedError(f"row {row.position} is opened")
        self._check_leaf(row, secret)
        columns = self._index.columns[due] if self._index.columns else NO_COLUMNS
        if is_null(row.vector, row.content_digest, columns):
            # A new index holds documents only (5.4).
            if self._version == 1:
                raise RejectedError("a null row in the first version")
            self.seen.null += 1
            return
        # Searches leave a marked row out, so a document behind the mark is hidden.
        if columns == NULL_ROW:
            raise RejectedError("marked as deleted, and it holds a document")
        check_length(row.vector, self.context.policy, "")
        if row.content is None or row.attributes is None:
            self.seen.changed += 1
        elif content_digest(row.content, row.attributes) != row.content_digest:
            raise RejectedError("content and attributes are not the committed ones")
        else:
            self._check_vector(row, row.content)

    def _check_leaf(self, row: SampledRow, secret: bytes) -> None:
        """Commitment, row digest and id key of the leaf are those of what is opened."""
        policy, numbers = self.context.policy, (*row.vector, *row.squares)
        norm = sum(number * number for number in numbers)
        if norm != policy.squared_norm:
            raise RejectedError(f"squared norm {norm}", expected=f"{policy.squared_norm}")
        commitment = self.context.engine.commit_row(numbers, row.blinding)
        if commitment != self._part(self._index.commitments, row):
            raise RejectedError("its vector does not open its commitment")
        digest = row_digest(row.salt, row.id, row.content_digest)
        if digest != self._part(self._index.row_digests, row):
            raise RejectedError("its id and content do not open its row digest")
        key = id_key(policy.window, self.tenant, secret, row.id)
        if key != self._part(self._index.id_keys, row):
            raise RejectedError("its id key is that of another id")

    def _check_vector(self, row: SampledRow, content: str) -> None:
        """The vector is that of the content, where there is a text and who embeds it."""
        if self.embedder is None or not content.strip():
            self.seen.uncompared += 1
            return
        policy = self.context.policy
        largest = policy.retrieval.largest_norm
        try:
            own = self.embedder.embed_row(
                content,
                metric=policy.retrieval.metric,
                largest_norm=None if largest is None else Decimal(largest),
                norm_bound=policy.norm_bound,
            )
        except UnavailableError:
            # A service of the verifier's that does not answer accuses nobody.
            self.seen.uncompared += 1
            return
        distance = int(np.sum((own.astype(np.int64) - np.array(row.vector, dtype=np.int64)) ** 2))
        if distance > policy.embedder_tolerance:
            raise RejectedError(
                f"its vector is {distance} away from that of its text",
                expected=f"at most {policy.embedder_tolerance}",
            )
        self.seen.compared += 1

    @staticmethod
    def _part(data: bytes, row: SampledRow) -> bytes:
        return data[_BYTES * row.position : _BYTES * (row.position + 1)]
