"""Which rows of T an answer holds, and the statement that shows it (docs/spec 4.6.10).

An exact search keeps ties, so T may have more rows than the K that are answered. The statement is
put together here and nowhere else; the compiled core and the reference verifier take it as it is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import read_digest
from ragaudit.ledger.errors import ReceiptRejected

__all__ = ["Ranked", "RankedRecord", "TiesStatement", "check_named", "first_of"]

Ranked = tuple[int, int]
"""A position and its score <e, X_i>."""

_POINT_BYTES = 32


class RankedRecord(Protocol):
    """What a ties statement takes from a record."""

    @property
    def rows(self) -> int:
        """Return N."""

    @property
    def top_k(self) -> int:
        """Return K."""


@dataclass(frozen=True, slots=True)
class TiesStatement:
    """The served and withdrawn rows are the first K of T; the others of T follow them.

    Attributes:
        context: 32 bytes.
        rows: N.
        query: e, d integers.
        top_k: K.
        served: the rows of the answer with their scores, positions rising.
        withdrawn: the first rows that were left out, with their scores, positions rising.
        others: the positions of T behind the first K, rising.
        commitments: C_i of the withdrawn rows and the others, in one list of rising positions, 32
            bytes each.
        squared_norm: B².
    """

    context: bytes
    rows: int
    query: tuple[int, ...] = field(repr=False)
    top_k: int
    served: tuple[Ranked, ...] = field(repr=False)
    withdrawn: tuple[Ranked, ...] = field(repr=False)
    others: tuple[int, ...] = field(repr=False)
    commitments: bytes = field(repr=False)
    squared_norm: int

    @classmethod
    def of(
        cls,
        record: RankedRecord,
        *,
        body: bytes,
        index_root: bytes,
        query: Sequence[int],
        selected: Sequence[int],
        served: Mapping[int, int],
        withdrawn: Mapping[int, int],
        commitments: Mapping[int, bytes],
        squared_norm: int,
    ) -> "TiesStatement":
        """Return the statement about a record of which T has more than K rows.

        Args:
            record: whose answer it is.
            body: of its log entry.
            index_root: root of C_idx[t, v], 32 bytes.
            query: e, d integers.
            selected: T, opened by B_sel.
            served: positions of the answer, each with its score.
            withdrawn: positions of first rows that were left out, each with its score.
            commitments: C_i of every row of T that is not served, 32 bytes each; others are not
                read.
            squared_norm: B² of the policy.

        Raises:
            MalformedError: a served or withdrawn row outside T, or in both; a commitment missing or
                of another length; a root that is not 32 bytes.
        """
        chosen = set(selected)
        if not (chosen.issuperset(served) and chosen.issuperset(withdrawn)):
            raise MalformedError("a row that is not selected", expected="served rows of T")
        if not withdrawn.keys().isdisjoint(served):
            raise MalformedError("a row that is served and withdrawn")
        unserved = sorted(chosen.difference(served))
        points = [commitments.get(position, b"") for position in unserved]
        if any(len(point) != _POINT_BYTES for point in points):
            raise MalformedError("a row of T without its commitment", expected="32 bytes each")
        # With the body, the opening is of this answer alone; with C_idx, of these rows.
        context = structure("context/ties", read_digest(index_root), body)
        return cls(
            context=context,
            rows=record.rows,
            query=tuple(int(entry) for entry in query),
            top_k=record.top_k,
            served=tuple(sorted(served.items())),
            withdrawn=tuple(sorted(withdrawn.items())),
            others=tuple(position for position in unserved if position not in withdrawn),
            commitments=b"".join(points),
            squared_norm=squared_norm,
        )

    @property
    def unserved(self) -> tuple[int, ...]:
        """The positions of the commitments, rising: withdrawn rows and the others."""
        return tuple(sorted([*(position for position, _ in self.withdrawn), *self.others]))


def first_of(scores: Mapping[int, int], top_k: int) -> tuple[int, ...]:
    """Return the first min(K, |T|) rows of T: by falling score, then by rising position.

    Args:
        scores: position -> score, of T.
        top_k: K.
    """
    return tuple(sorted(scores, key=lambda position: (-scores[position], position))[:top_k])


def check_named(
    selected: Collection[int],
    served: Collection[int],
    withdrawn: Collection[int],
    top_k: int,
) -> None:
    """Check that served and withdrawn rows are as many as the first rows of T, and rows of T.

    Where T has at most K rows that is all there is to check; otherwise which of them are the first
    is shown by a `TiesStatement` and its opening.

    Args:
        selected: T, opened by B_sel.
        served, withdrawn: positions.
        top_k: K.

    Raises:
        ReceiptRejected: a row that is both, not in T or named twice, or another number of them.
    """
    named = [*served, *withdrawn]
    if len(set(named)) != len(named):
        raise ReceiptRejected("a row is named twice", expected="served or withdrawn, once")
    if not set(selected).issuperset(named):
        raise ReceiptRejected("a row that is not selected", expected="served rows of T")
    if len(named) != min(top_k, len(selected)):
        what = f"{len(named)} rows served or withdrawn"
        raise ReceiptRejected(what, expected=f"{min(top_k, len(selected))}, the first of T")
