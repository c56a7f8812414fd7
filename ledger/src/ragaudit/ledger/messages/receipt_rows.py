"""Steps 7 and 8 of the check of a receipt: which rows, and that they are the committed ones (5.9).

A window without noise serves scores, best first, and keeps ties: T may have more rows than K. Then
what was not served is opened together (4.6.10), so that nothing better can be kept back.
"""

from collections.abc import Callable, Sequence
from functools import partial

from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW, read_columns
from ragaudit.ledger.messages.commitments import (
    completed_row,
    content_digest,
    row_digest,
    verify_index_row,
)
from ragaudit.ledger.messages.documents import check_secret, id_key
from ragaudit.ledger.messages.entries import Record, TenantOpening
from ragaudit.ledger.messages.filters import Filter, request_filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.private_receipts import PrivateReceipt, ServedRow, UnservedRow
from ragaudit.ledger.messages.receipt_body import reject
from ragaudit.ledger.messages.receipt_views import GroupOperations
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Document
from ragaudit.ledger.messages.ties import TiesStatement, check_named


def check_rows(file: ReceiptFile, record: Record, policy: Policy) -> None:
    """Check which rows were answered of those selected (step 7); what they hold is step 8's.

    Args:
        file: of one answer.
        record: of its body.
        policy: of the window.

    Raises:
        ReceiptRejected: rows other than the first K of T without the withdrawn ones, or documents
            other than the rows.
    """
    private = file.private
    answered = [row.position for row in private.rows]
    withdrawn = [row.position for row in private.withdrawn]
    # Without scores there is one order, which says nothing.
    if policy.noised and answered != sorted(answered):
        reject("the rows are not the selected ones", expected="rising positions")
    check_named(private.selected, answered, withdrawn, record.top_k)
    # What the log counts is what the account was told, or it has both under one signature.
    due = None if policy.noised else len(withdrawn)
    if record.withheld != due:
        reject(f"the record counts {record.withheld} rows", "withheld", f"{due}")
    _check_unserved(private, record)
    _check_documents(file, policy)


def _check_unserved(private: PrivateReceipt, record: Record) -> None:
    opened = () if private.ties is None else tuple(row.position for row in private.ties.rows)
    served = {row.position for row in private.rows}
    due = len(private.selected) > record.top_k
    unserved = tuple(position for position in private.selected if position not in served)
    if opened != (unserved if due else ()):
        expected = "the rows of T that were not served" if due else "no rows"
        reject("other rows opened", where="ties", expected=expected)
    if any((row.score is not None) != due for row in private.withdrawn):
        expected = "a score each" if due else "no scores"
        reject("scores of withdrawn rows", where="withdrawn", expected=expected)


def _check_documents(file: ReceiptFile, policy: Policy) -> None:
    rows, documents = file.private.rows, file.answer.documents
    opened = [(row.position, row.id, row.content, row.columns, row.attributes) for row in rows]
    served = [(d.position, d.id, d.content, d.columns, d.attributes) for d in documents]
    if served != opened:
        reject("the documents are not the receipt's rows")
    for document in documents:
        # A score of a noised window would show the row's true place.
        if (document.score is None) != policy.noised:
            expected = "none" if policy.noised else "one for each document"
            reject("scores", where="answer", expected=expected)


def check_commitments(
    file: ReceiptFile,
    record: Record,
    index: TenantOpening,
    policy: Policy,
    operations: GroupOperations,
    id_commitment: bytes | None,
) -> None:
    """Check that rows are those of the index, their scores, and that none better is kept back.

    Args:
        file: of one answer, whose rows passed `check_rows`.
        record: of its body.
        index: that it was answered from.
        policy: of the window.
        operations: of the group.
        id_commitment: of the tenant, in the opening; None without ``owners``.

    Raises:
        ReceiptRejected, CommitmentRejected: a row of no index, of another one, under the id key of
            another document, or one that does not pass the filter; another score or document
            secret; or rows left out that precede one that was served.
        MalformedRecord, MalformedProof: columns that the policy does not declare, or no path.
    """
    asked = request_filter(file.request.filter, policy)
    embedding = file.private.openings.embedding
    key_of = _id_keys(file.private, record, policy, id_commitment)
    for row, document in zip(file.private.rows, file.answer.documents, strict=True):
        _check_row(row, index, policy, operations, key_of(row.id) or row.id_key)
        _check_filter(row, asked, policy)
        _check_score(document, row, embedding)
    if file.private.ties is not None:
        withdrawn = {row.position: row.id for row in file.private.withdrawn}
        for unserved in file.private.ties.rows:
            _check_leaf(unserved, unserved.row_digest, index, unserved.id_key)
            name = withdrawn.get(unserved.position)
            if name is not None and key_of(name) != unserved.id_key:
                reject("the id key of another document", where=f"row {unserved.position}")
            _check_filter(unserved, asked, policy)
        _check_ties(file, record, index, policy, operations)


def _id_keys(
    private: PrivateReceipt, record: Record, policy: Policy, commitment: bytes | None
) -> Callable[[str], bytes | None]:
    """Return what gives the id key of a document, or None where no secret is disclosed."""
    secret, owned = private.document_secret, policy.owners is not None
    if (secret is not None) != (owned and not policy.noised):
        expected = "none with noise, or without owners" if secret else "that of the tenant"
        reject("document secret", where="document_secret", expected=expected)
    # With noise a row brings the key in its leaf along: nobody else than its owner may test ids.
    shown = owned and policy.noised
    if wrong := [row for row in private.rows if (row.id_key is not None) != shown]:
        expected = "one" if shown else "none without noise and owners"
        reject("id key", where=f"row {wrong[0].position}", expected=expected)
    if secret is None:
        return lambda _: None
    check_secret(policy.window, record.tenant, secret, commitment)
    return partial(id_key, policy.window, record.tenant, secret)


def _check_row(
    row: ServedRow,
    index: TenantOpening,
    policy: Policy,
    operations: GroupOperations,
    key: bytes | None,
) -> None:
    where = f"row {row.position}"
    completed = completed_row(row, policy)
    if _is_null(row):
        reject("a deleted row", where, "withdrawn")
    if operations.commit_row(completed, row.blinding) != row.commitment:
        reject("the vector is not the committed one", where)
    digest = row_digest(row.salt, row.id, content_digest(row.content, row.attributes))
    # Under another document's key it would be listed, and said to be gone, as that one.
    _check_leaf(row, digest, index, key)


def _is_null(row: ServedRow) -> bool:
    """Whether a row stands where a document was deleted (5.4): nothing of it is left to serve.

    Without noise its leaf should say so, which `_check_filter` refuses; this is by what it holds.
    A vector of zeros alone is none: with inner products short vectors are rounded to it (2.5).
    """
    held = row.content or row.attributes or row.columns != NO_COLUMNS
    return not held and not any(row.vector)


def _check_leaf(
    row: ServedRow | UnservedRow, digest: bytes, index: TenantOpening, key: bytes | None
) -> None:
    # The root is the countersigned one: a row made up for this answer has no path to it.
    verify_index_row(
        root=index.index_root,
        rows=index.rows,
        position=row.position,
        commitment=row.commitment,
        row=digest,
        path=row.path,
        columns=row.columns,
        id_key=key,
    )


def _check_filter(row: ServedRow | UnservedRow, asked: Filter, policy: Policy) -> None:
    # Of no selection, whatever the filter: it would keep a document out of the first K.
    if row.columns == NULL_ROW:
        reject("a row marked as deleted", where=f"row {row.position}", expected="a live row")
    if not asked.passes(read_columns(row.columns, policy.retrieval.public_columns)):
        reject("does not pass the filter", where=f"row {row.position}")


def _check_score(document: Document, row: ServedRow, embedding: Sequence[int]) -> None:
    if document.score is None:
        return
    score = sum(a * b for a, b in zip(row.vector, embedding, strict=True))
    if score != document.score:
        reject("another score", where=f"row {row.position}", expected=f"{score}")


def _check_ties(
    file: ReceiptFile,
    record: Record,
    index: TenantOpening,
    policy: Policy,
    operations: GroupOperations,
) -> None:
    private, ties = file.private, file.private.ties
    if ties is None:
        return
    served = {document.position: document.score or 0 for document in file.answer.documents}
    withdrawn = {row.position: row.score or 0 for row in private.withdrawn}
    statement = TiesStatement.of(
        record,
        body=file.public.body,
        index_root=index.index_root,
        query=private.openings.embedding,
        selected=private.selected,
        served=served,
        withdrawn=withdrawn,
        commitments={row.position: row.commitment for row in ties.rows},
        squared_norm=policy.squared_norm,
    )
    # That the others have the least score, the opening shows; of equal ones the first positions
    # are answered.
    named = served | withdrawn
    last = max(position for position in named if named[position] == min(named.values()))
    if last > statement.others[0]:
        reject("a row was passed over", where=f"row {statement.others[0]}")
    operations.verify_ties(statement, ties.proof)
