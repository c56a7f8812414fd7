"""The prover's jobs: commitments by blocks, and the arguments of every kind.

A task names large inputs by digest. It holds what its own result needs and no more: of a sampled
record the noise itself, which the audit opens, and never a key or a seed, from which another
record's noise would follow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeStatement
from ragaudit.circuits.statements import (
    IndexStatement,
    SelectionStatement,
    budget_bytes,
    charge_bytes,
    read_budget,
    read_charge,
    read_selection,
    read_several,
    selection_bytes,
    several,
)
from ragaudit.encoding.tagged import decode, enc, read_int
from ragaudit.prover.store import tables
from ragaudit.serving.jobs.job import Array, Arrays, Job, Kinds, Progress
from ragaudit.serving.jobs.opening import JobService
from ragaudit.serving.jobs.runner import Notify, Runner

__all__ = [
    "JOBS",
    "KINDS",
    "ChargedGroup",
    "ChargedRows",
    "ProvenIndex",
    "WindowWork",
    "WitnessedSelection",
    "chunk_groups",
    "chunk_records",
    "prove_selections",
]

ROWS: Final = "row commitments"
INDEX: Final = "index argument"
SELECTIONS: Final = "selection arguments"
BUDGET: Final = "budget argument"
CHARGES: Final = "charge arguments"

# Chunks of some seconds on one core: shorter ones cost the engine more, longer ones wait for the
# last worker at the end.
_BLOCK_ENTRIES: Final = 8 * 2**20  # of rows
_RECORDS: Final = 64
_CHARGED_ROWS: Final = 2**17  # over which a chunk's charge entries are proven, counted for each
_NOISE_VALUES: Final = 4 * 2**20  # of a chunk's records together


@dataclass(frozen=True, slots=True)
class WitnessedSelection:
    """A selection statement with what its proof needs beside the rows.

    Attributes:
        selected: positions of the selected rows.
        blinding: of B_sel, a canonical scalar.
    """

    statement: SelectionStatement
    selected: Sequence[int] = field(repr=False)
    blinding: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return it as bytes, without the index's commitments."""
        selected = np.array(self.selected, dtype="<u4").tobytes()
        return enc(SELECTIONS, selection_bytes(self.statement), selected, self.blinding)

    @classmethod
    def parse(cls, data: bytes, commitments: bytes) -> "WitnessedSelection":
        """Return what `encode` made bytes of; MalformedError for others."""
        statement, selected, blinding = decode(SELECTIONS, data, 3)
        positions = np.frombuffer(selected, dtype="<u4").tolist()
        return cls(read_selection(statement, commitments), positions, blinding)


@dataclass(frozen=True, slots=True)
class ProvenIndex:
    """The rows that selections are proven over.

    Attributes:
        rows: int8 or int16[N, d+4].
        blindings: uint8[N, 32].
        commitments: 32 N bytes.
    """

    rows: Array = field(repr=False)
    blindings: npt.NDArray[np.uint8] = field(repr=False)
    commitments: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChargedGroup:
    """Charge entries that one argument is about.

    Attributes:
        numbers: n_t of the entries, rising.
    """

    statement: ChargeStatement
    numbers: Sequence[int]

    def encode(self) -> bytes:
        """Return it as bytes, without the index's commitments."""
        numbers = np.array(self.numbers, dtype="<u4").tobytes()
        return enc(CHARGES, charge_bytes(self.statement), numbers)

    @classmethod
    def parse(cls, data: bytes, commitments: bytes) -> "ChargedGroup":
        """Return what `encode` made bytes of; MalformedError for others."""
        statement, numbers = decode(CHARGES, data, 2)
        return cls(read_charge(statement, commitments), np.frombuffer(numbers, "<u4").tolist())


@dataclass(frozen=True, slots=True)
class ChargedRows:
    """What all charge entries of a tenant and window charge, in log order.

    Attributes:
        positions: uint32, of the rows of all entries, one entry after the other, and a 0.
        ends: int64[R], where each entry's positions end.
        blindings: uint8[R, 32], rho_t.
    """

    positions: npt.NDArray[np.uint32] = field(repr=False)
    ends: npt.NDArray[np.int64] = field(repr=False)
    blindings: npt.NDArray[np.uint8] = field(repr=False)

    @classmethod
    def of(
        cls, rows: bytearray, ends: npt.NDArray[np.int64], blindings: bytearray
    ) -> "ChargedRows":
        """Return the rows of entries; nothing is copied.

        Args:
            rows: positions of 4 bytes, little endian, one entry after the other; a 0 is appended.
            ends: as the attribute.
            blindings: 32 bytes for each entry.
        """
        # One more than there are: a file without any could not be mapped into memory.
        rows += bytes(4)
        return cls(np.frombuffer(rows, "<u4"), ends, _by_row(blindings))

    @property
    def rows(self) -> list[list[int]]:
        """The positions of each entry."""
        # One object for each position, however often it is charged: a new one has four times the
        # size of the place in the list.
        shared = list(range(int(self.positions.max()) + 1)).__getitem__
        starts = [0, *self.ends.tolist()]
        return [
            list(map(shared, self.positions[start:end].tolist())) for start, end in pairwise(starts)
        ]


def prove_selections(
    index: ProvenIndex, wanted: Sequence[WitnessedSelection], progress: Progress | None = None
) -> list[bytes]:
    """Return the selection arguments of records of one index, in their order.

    Args:
        index: over whose rows they selected.
        wanted: a statement with its witness for each.
        progress: called with the share done; False cancels.
    """
    proofs = []
    for done, each in enumerate(wanted):
        proofs.append(
            core.prove_selection(
                each.statement,
                index.rows,
                index.blindings,
                each.selected,
                each.blinding,
                progress=_part(progress, done, len(wanted)),
            )
        )
    return proofs


class WindowWork:
    """The work of one window, as jobs.

    Args:
        runner: that has jobs done.
        window: by name.
    """

    def __init__(self, runner: Runner, window: str) -> None:
        self._runner = runner
        self._window = window

    def commit_rows(
        self, rows: Array, blindings: npt.NDArray[np.uint8], notify: Notify | None = None
    ) -> bytes:
        """Return C_0 || .. || C_(N-1), 32 bytes each.

        Args:
            rows: int8 or int16[N, d+4], completed.
            blindings: uint8[N, 32], canonical scalars.
            notify: called with the share done; False withdraws the window's jobs.
        """
        names = self._named(rows, blindings)
        step = max(1, _BLOCK_ENTRIES // rows.shape[1])
        blocks = [(start, min(start + step, len(rows))) for start in range(0, len(rows), step)]
        jobs = [
            Job(ROWS, self._window, f"rows {start} to {end - 1}", enc(ROWS, *names, start, end))
            for start, end in blocks
        ]
        return b"".join(self._runner.results(jobs, notify))

    def prove_index(
        self,
        statement: IndexStatement,
        rows: Array,
        blindings: npt.NDArray[np.uint8],
        notify: Notify | None = None,
    ) -> bytes:
        """Return pi_idx; arguments as of `ragaudit.core.prove_index`."""
        names = self._named(rows, blindings, _by_row(statement.commitments))
        task = enc(INDEX, *names, statement.context, statement.dimension, statement.squared_norm)
        (proof,) = self._runner.results([Job(INDEX, self._window, "index", task)], notify)
        return proof

    def selections(
        self, index: ProvenIndex, wanted: Sequence[WitnessedSelection], name: str
    ) -> Job:
        """Return the job that proves selections over one index.

        Args:
            index: over whose rows they selected.
            wanted: a statement with its witness for each record, at most `chunk_records`.
            name: of the records, for people.
        """
        digests = self._named(index.rows, index.blindings, _by_row(index.commitments))
        task = enc(SELECTIONS, *digests, several([each.encode() for each in wanted]))
        return Job(SELECTIONS, self._window, name, task)

    def budget(self, statement: BudgetStatement, charged: ChargedRows, name: str) -> Job:
        """Return the job that proves that no row is charged too often.

        Args:
            charged: by the entries that the statement is about.
            name: of the tenant, for people.
        """
        digests = self._named(charged.positions, charged.ends, charged.blindings)
        return Job(BUDGET, self._window, name, enc(BUDGET, *digests, budget_bytes(statement)))

    def charges(
        self,
        index: ProvenIndex,
        groups: Sequence[ChargedGroup],
        charged: ChargedRows,
        name: str,
    ) -> Job:
        """Return the job that proves groups of charge entries.

        Args:
            index: of whose rows they charge.
            groups: an argument is made for each; at most `chunk_groups`.
            charged: by all entries of the tenant.
            name: of the entries, for people.
        """
        digests = self._named(
            *(index.rows, index.blindings, _by_row(index.commitments)),
            *(charged.positions, charged.ends, charged.blindings),
        )
        task = enc(CHARGES, *digests, several([each.encode() for each in groups]))
        return Job(CHARGES, self._window, name, task)

    def proofs(
        self, jobs: Sequence[Job], notify: Notify | None = None
    ) -> Iterator[tuple[Job, tuple[bytes, ...]]]:
        """Yield each job of an argument with its proofs, as soon as they are there.

        Args:
            jobs: of this window.
            notify: called with the share done; its False withdraws the window's jobs.
        """
        for job, result in self._runner.run(jobs, notify):
            yield job, read_several(result)

    def done(self) -> None:
        """Forget results that are stored elsewhere now."""
        self._runner.done(self._window)

    def _named(self, *arrays: Array) -> list[str]:
        return [self._runner.arrays.put(self._window, array) for array in arrays]


def chunk_records(rows: int) -> int:
    """Return how many records of an index of so many rows are proven in one job."""
    return max(1, min(_RECORDS, _NOISE_VALUES // rows))


def chunk_groups(rows: int, group: int) -> int:
    """Return how many groups of charge entries of an index of so many rows one job proves."""
    return max(1, min(_RECORDS, _CHARGED_ROWS // rows) // group)


def _rows_block(task: bytes, window: str, arrays: Arrays, progress: Progress) -> bytes:
    rows, blindings, start, end = decode(ROWS, task, 4)
    part = slice(read_int(start), read_int(end))
    return core.commit_rows(
        arrays.get(window, rows.decode())[part],
        arrays.get(window, blindings.decode())[part],
        progress=progress,
    )


def _index_argument(task: bytes, window: str, arrays: Arrays, progress: Progress) -> bytes:
    *names, context, dimension, squared_norm = decode(INDEX, task, 6)
    rows, blindings, commitments = (arrays.get(window, name.decode()) for name in names)
    statement = IndexStatement(
        context, len(rows), read_int(dimension), commitments.tobytes(), read_int(squared_norm)
    )
    return core.prove_index(statement, rows, blindings, progress=progress)


def _selection_arguments(task: bytes, window: str, arrays: Arrays, progress: Progress) -> bytes:
    *names, wanted = decode(SELECTIONS, task, 4)
    rows, blindings, commitments = (arrays.get(window, name.decode()) for name in names)
    index = ProvenIndex(rows, blindings, commitments.tobytes())
    parsed = [WitnessedSelection.parse(each, index.commitments) for each in read_several(wanted)]
    return several(prove_selections(index, parsed, progress))


def _budget_argument(task: bytes, window: str, arrays: Arrays, progress: Progress) -> bytes:
    *names, statement = decode(BUDGET, task, 4)
    charged = ChargedRows(*(arrays.get(window, name.decode()) for name in names))
    proof = core.prove_budget(
        read_budget(statement), charged.rows, charged.blindings, progress=progress
    )
    return several([proof])


def _charge_arguments(task: bytes, window: str, arrays: Arrays, progress: Progress) -> bytes:
    *names, groups = decode(CHARGES, task, 7)
    rows, blindings, commitments, *charges = (arrays.get(window, name.decode()) for name in names)
    charged, points = ChargedRows(*charges), commitments.tobytes()
    charged_rows, parts = charged.rows, read_several(groups)
    proofs = []
    for done, each in enumerate(parts):
        group = ChargedGroup.parse(each, points)
        proofs.append(
            core.prove_charges(
                group.statement,
                rows,
                blindings,
                charged_rows,
                charged.blindings,
                group.numbers,
                progress=_part(progress, done, len(parts)),
            )
        )
    return several(proofs)


KINDS: Final[Kinds] = {
    ROWS: _rows_block,
    INDEX: _index_argument,
    SELECTIONS: _selection_arguments,
    BUDGET: _budget_argument,
    CHARGES: _charge_arguments,
}
"""What a worker of the prover can do."""


JOBS: Final = JobService(tables.jobs, KINDS, "ragaudit_prover")
"""The prover's jobs, for the service and its workers."""


def _by_row(data: bytes | bytearray) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, 32)


def _part(progress: Progress | None, done: int, total: int) -> Callable[[float], bool] | None:
    if progress is None:
        return None
    return lambda share: progress((done + share) / total)
