"""What the next version of an index holds: positions are stable (spec 5.13)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from ragaudit.ledger.messages.columns import NO_COLUMNS
from ragaudit.ledger.messages.merkle_commitments import content_digest
from ragaudit.ledger.messages.row_openings import SQUARES
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.index.builder import Source
from ragaudit.prover.index.committed import BYTES, CommittedIndex, Places, Rows, part

_COMPARED_AT_ONCE = 1 << 14  # rows: a comparison of all of them would copy the whole index


def following(
    now: Source,
    before: CommittedIndex,
    complete: Callable[[Rows], Rows],
    null_columns: str = NO_COLUMNS,
) -> tuple[Source | None, Places]:
    """Return the rows of the version after ``before``, and where that has each of them.

    A document keeps its place, a new one gets the next, one that is gone leaves a null row with its
    id behind, and one that comes back gets its old place again.

    Args:
        now: the documents as they stand, in any order.
        before: the last version of the same tenant and window.
        complete: adds the four squares to integers [N, d].
        null_columns: of the window's `IndexForm`.

    Returns:
        The rows, None if nothing changed; and int64[N], the place in ``before`` of a row that it
        has unchanged, or -1.

    Raises:
        MalformedDocument: the store's vectors have another length now.
    """
    if now.rows.shape[1] != before.rows.shape[1]:
        raise MalformedDocument(
            f"vectors of {now.rows.shape[1] - SQUARES} entries",
            where=f"tenant {before.tenant}",
            expected=f"{before.dimension}, as in all of the window",
        )
    places = {name: position for position, name in enumerate(before.ids)}
    added = [at for at, name in enumerate(now.ids) if name not in places]
    count = before.count + len(added)
    ids = [*before.ids, *(now.ids[at] for at in added)]
    null = complete(np.zeros((1, before.dimension), dtype=before.rows.dtype))[0]
    rows = np.tile(null, (count, 1))
    empty = content_digest("")
    digests = [empty] * count
    columns = [null_columns] * count
    new_place = {at: before.count + number for number, at in enumerate(added)}
    for at, name in enumerate(now.ids):
        position = places.get(name, new_place.get(at, -1))
        rows[position] = now.rows[at]
        digests[position] = part(now.content_digests, at)
        columns[position] = now.columns[at] if now.columns else NO_COLUMNS
    same = np.empty(before.count, dtype=np.bool_)
    for start in range(0, before.count, _COMPARED_AT_ONCE):
        block = slice(start, min(start + _COMPARED_AT_ONCE, before.count))
        same[block] = (rows[block] == before.rows[block]).all(axis=1)
    place = np.full(count, -1, dtype=np.int64)
    place[: before.count] = np.where(same, np.arange(before.count), -1)
    source = replace(
        now,
        ids=tuple(ids),
        content_digests=b"".join(digests),
        columns=tuple(columns) if set(columns) - {NO_COLUMNS} else (),
        rows=rows,
    )
    assert len(source.content_digests) == BYTES * count
    unchanged = (
        count == before.count
        and bool(same.all())
        and source.content_digests == before.content_digests
        and source.columns == before.columns
    )
    return (None if unchanged else source), place
