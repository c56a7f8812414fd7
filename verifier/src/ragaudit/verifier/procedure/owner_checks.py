"""What owners are shown of their rows and documents: checks 31 and 32, and the member ``withheld``.

Check 31: whose documents the indexes hold, and since when one is gone (docs/spec 5.16). Which
document a key is of, the verifier does not know; it sees that there is one key for each, that a
position keeps its own, and that the lists in the log say what the indexes do. Check 32: the sampled
rows of each tenant's index (docs/spec/09-audit.md §9.11).

Which rows answers withheld is added up by account (docs/spec 10.12): what a record counts is what
its account's receipt names, or the account has both under one signature (5.9, step 7). The verifier
sees neither receipt nor store.
"""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from ragaudit.encoding.errors import RejectedError, UnavailableError
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.commitments import (
    IndexCommitment,
    RowsHead,
    SampledRow,
    check_length,
    content_digest,
    is_null,
    read_rows,
    row_digest,
)
from ragaudit.ledger.messages.documents import DocumentList, DocumentLives, check_secret, id_key
from ragaudit.ledger.messages.entries import Documents
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.models import CommittedEmbedder
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.framework import Findings
from ragaudit.verifier.procedure.members import known
from ragaudit.verifier.procedure.sample_checks import embedder_at_hand

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


MOST_VERSIONS: Final = 16
"""That a verdict counts rows of, the last ones of each tenant; `documents` lists over all."""


def document_list(context: Context, tenant: str) -> DocumentList:
    """Return the document list that a tenant's indexes give.

    Args:
        tenant: of the policy.

    Raises:
        CommitmentRejected: two positions with one id key, or one with two.
        MissingInput: an index cannot be read; its check says why.
    """
    lives = DocumentLives(context.policy.window, tenant)
    for version in _versions(context, tenant):
        lives.add(context.index(tenant, version))
    return lives.listed()


def check_documents(context: Context, found: Findings) -> None:
    """31: id keys are one for each document, and the log lists them as the indexes have them."""
    policy = context.policy
    # Where the last entry is no close, nobody knows which ones must be the lists: check 5 says so.
    _ = context.close
    stated = [(f"entry {e.index}", Documents.parse(e.body)) for e in context.log.lists]
    if [body.tenant for _, body in stated] != list(policy.tenants):
        expected = ", ".join(policy.tenants)
        found.fault(f"the log does not end with one document list each, in order, of {expected}")
    for tenant in policy.tenants:
        with found.attempt(f"tenant {tenant}"):
            made = document_list(context, tenant).entry
            context.stated.listed[tenant] = made.documents
            for where, body in stated:
                if body.tenant == tenant:
                    _compare(body, made, where, found)
    count = sum(context.stated.listed.values())
    found.summary = f"{count} documents listed, each with the versions in which it was live"


def _compare(stated: Documents, made: Documents, where: str, found: Findings) -> None:
    if stated.window != made.window:
        found.fault("names another window", where)
    if stated.version != made.version:
        found.fault(f"names version {stated.version}, the last is {made.version}", where)
    # One left out could be denied; one too many would be made up.
    if stated.documents != made.documents:
        found.fault(f"lists {stated.documents} documents, the index has {made.documents}", where)
    elif stated.list_root != made.list_root:
        found.fault("other documents or lives, or another order, than the indexes give", where)


def listed_documents(context: Context) -> list[dict[str, Any]] | None:
    """Return the member ``documents`` of a verdict: how many rows and documents there are (10.14).

    Returns:
        None for a policy without ``owners``, for one that cannot be read, and before the window.
        Numbers are null where an index is not at hand, or its documents were not listed.
    """
    policy = known(lambda: context.policy)
    if policy is None or policy.owners is None or context.now is not None:
        return None
    return [_of_tenant(context, tenant) for tenant in policy.tenants]


def _of_tenant(context: Context, tenant: str) -> dict[str, Any]:
    versions = known(lambda: _versions(context, tenant)) or (1,)
    listed = context.stated.listed.get(tenant)
    counted = [_of_version(context, tenant, version) for version in versions[-MOST_VERSIONS:]]
    return {"tenant": tenant, "listed": listed, "versions": counted}


def _of_version(context: Context, tenant: str, version: int) -> dict[str, Any]:
    marks = context.policy.marks_null_rows
    return {
        "version": version,
        "rows": known(lambda: context.index(tenant, version).rows),
        "marked": known(lambda: context.column_arrays(tenant, version).null_rows)
        if marks
        else None,
    }


def _versions(context: Context, tenant: str) -> tuple[int, ...]:
    return tuple(version for of, version in context.index_places if of == tenant)


MOST_ACCOUNTS: Final = 16
"""That are listed, those with the most withheld rows: a page that nobody reads names nobody."""


def withheld(context: Context) -> dict[str, Any] | None:
    """Return the member ``withheld``; numbers are null where the records are not at hand.

    Returns:
        None with noise, where records do not count, and for a policy that cannot be read.
    """
    policy, records = known(lambda: context.policy), known(lambda: context.records)
    if policy is None or policy.noised:
        return None
    if records is None:
        return {"rows": None, "answers": None, "accounts_concerned": None, "most": []}
    rows, answers = Counter[bytes](), Counter[bytes]()
    for record in records.summaries():
        if record.withheld > 0:
            rows[record.pseudonym] += record.withheld
            answers[record.pseudonym] += 1
    most = sorted(rows, key=lambda account: (-rows[account], account))[:MOST_ACCOUNTS]
    return {
        "rows": rows.total(),
        "answers": answers.total(),
        "accounts_concerned": len(rows),
        "most": [
            {
                "pseudonym": account.hex(),
                "rows": rows[account],
                "answers": answers[account],
                "of": context.by_account.count(account),
            }
            for account in most
        ],
    }
