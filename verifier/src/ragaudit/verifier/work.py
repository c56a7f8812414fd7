"""The verifier's jobs: an audit's arguments and its coalition estimate, by its own workers.

What a worker says of an argument is believed because this verifier runs the worker: nothing in a
result can be checked but by doing the job again. Tasks hold statements and arguments, which are
confidential evidence of the window, and no key of the verifier's.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.budgets import BudgetStatement
from ragaudit.circuits.statements import (
    IndexStatement,
    budget_bytes,
    charge_bytes,
    read_budget,
    read_charge,
    read_selection,
    read_several,
    selection_bytes,
    several,
)
from ragaudit.encoding.errors import InternalError, RagauditError, UnavailableError
from ragaudit.encoding.tagged import decode, enc, read_int
from ragaudit.privacy.coalition import join_links, parts_of
from ragaudit.serving.jobs.job import Arrays, Job, JobsStopped, Kinds, Progress
from ragaudit.serving.jobs.opening import JobService
from ragaudit.serving.jobs.runner import Notify, Runner
from ragaudit.verifier.engines import (
    ArgumentRejected,
    ChargesRejected,
    Engine,
    ProvenCharges,
    ProvenSelection,
    SelectionsRejected,
    engine,
)
from ragaudit.verifier.service import tables

__all__ = ["JOBS", "KINDS", "JobEngine"]

_log = logging.getLogger(__name__)

INDEX: Final = "check index argument"
SELECTIONS: Final = "check selection arguments"
COALITION: Final = "link accounts"
BUDGET: Final = "check budget argument"
CHARGES: Final = "check charge arguments"

# Chunks of some seconds on one core, and tasks of some megabytes.
_RECORDS: Final = 512
_NOISE_VALUES: Final = 4 * 2**20
_CHARGED_ROWS: Final = 2**19  # over which charge entries are checked, counted for each
_AT_ONCE: Final = 16  # chunks that are prepared together
_PAIRS: Final = {"core": 2**33, "reference": 2**29}  # of records that are compared
_AGAIN_SECONDS: Final = 2.0


class Interrupted(InternalError):
    """A job ended without a result: a fault of this software, and never one of the provider's."""


class JobEngine:
    """An engine whose arguments are checked by workers, as jobs of one audit.

    Args:
        inner: what the workers check with, and this process everything else.
        runner: that has jobs done.
        window: under which jobs are kept until the audit is over.
    """

    batch_records = _RECORDS * _AT_ONCE

    def __init__(self, inner: Engine, runner: Runner, window: str) -> None:
        self.name = inner.name
        self.sample_noise = inner.sample_noise
        self.commit_row = inner.commit_row
        self.commit_selection = inner.commit_selection
        self.sketch = inner.sketch
        self.quantise = inner.quantise
        self.verify_ties = inner.verify_ties
        self.running_sums = inner.running_sums
        self.is_round = inner.is_round
        self._link = inner.link_accounts
        self._runner = runner
        self._window = window

    def verify_index(self, statement: IndexStatement, proof: bytes) -> None:
        """Check an index argument (spec 4.7); ArgumentRejected, Interrupted."""
        task = enc(
            INDEX,
            self.name,
            self._named(statement.commitments),
            statement.context,
            statement.dimension,
            statement.squared_norm,
            proof,
        )
        (found,) = self._results([Job(INDEX, self._window, "index", task)])
        if found:
            raise ArgumentRejected(found.decode())

    def verify_selections(self, proven: Sequence[ProvenSelection]) -> None:
        """Check selection arguments (spec 4.6); SelectionsRejected, Interrupted."""
        chunks = _chunks([(one.commitments, one.rows) for one, _ in proven], _NOISE_VALUES)
        jobs = [self._job(proven[start:end], start) for start, end in chunks]
        failed = [
            start + position
            for (start, _), found in zip(chunks, self._results(jobs), strict=True)
            for position in np.frombuffer(found, dtype="<u4").tolist()
        ]
        if failed:
            raise SelectionsRejected(failed)

    def verify_budget(self, statement: BudgetStatement, proof: bytes) -> None:
        """Check a budget argument (spec 4.10); ArgumentRejected, Interrupted."""
        task = enc(BUDGET, self.name, budget_bytes(statement), proof)
        (found,) = self._results([Job(BUDGET, self._window, "budget", task)])
        if found:
            raise ArgumentRejected(found.decode())

    def verify_charges(self, proven: Sequence[ProvenCharges]) -> None:
        """Check charge arguments (spec 4.11); ChargesRejected, Interrupted."""
        stated = [
            (one.commitments, len(one.entries) * len(one.commitments) // 32) for one, _ in proven
        ]
        chunks = _chunks(stated, _CHARGED_ROWS)
        jobs = [self._charges(proven[start:end], start) for start, end in chunks]
        reasons: dict[int, str] = {}
        for (start, _), found in zip(chunks, self._results(jobs), strict=True):
            said = read_several(found)
            reasons |= {start + at: each.decode() for at, each in enumerate(said) if each}
        if reasons:
            raise ChargesRejected(reasons)

    def link_accounts(
        self,
        accounts: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        anchored: npt.NDArray[np.uint8],
        sketches: npt.NDArray[np.uint8],
        *,
        tau: int,
        life: int,
        threshold: int,
        progress: Callable[[float], bool | None] | None = None,
        part: tuple[int, int] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Join the accounts of a coalition (spec 7.2), by parts of all pairs; Interrupted."""
        parts = parts_of(times, tau + life, _PAIRS[self.name])
        records = (accounts, times, anchored, sketches)
        if part is not None or len(parts) <= 1:
            return self._link(
                *records, tau=tau, life=life, threshold=threshold, progress=progress, part=part
            )
        names = [self._runner.arrays.put(self._window, array) for array in records]
        jobs = [
            Job(
                COALITION,
                self._window,
                f"records {start} to {end - 1}",
                enc(COALITION, self.name, *names, tau, life, threshold, start, end),
            )
            for start, end in parts
        ]
        found = (_read_links(each) for each in self._results(jobs, progress))
        return join_links(int(accounts.max()) + 1, found)

    def _job(self, proven: Sequence[ProvenSelection], start: int) -> Job:
        (commitments,) = {statement.commitments for statement, _ in proven}
        parts = [part for one, proof in proven for part in (selection_bytes(one), proof)]
        task = enc(SELECTIONS, self.name, self._named(commitments), several(parts))
        return Job(SELECTIONS, self._window, f"{len(proven)} of a batch, from {start}", task)

    def _charges(self, proven: Sequence[ProvenCharges], start: int) -> Job:
        parts = [part for one, proof in proven for part in (charge_bytes(one), proof)]
        rows = self._named(proven[0][0].commitments)
        task = enc(CHARGES, self.name, rows, several(parts))
        return Job(CHARGES, self._window, f"{len(proven)} groups of charges, from {start}", task)

    def _named(self, commitments: bytes) -> str:
        rows = np.frombuffer(commitments, dtype=np.uint8).reshape(-1, 32)
        return self._runner.arrays.put(self._window, rows)

    def _results(self, jobs: Sequence[Job], notify: Notify | None = None) -> list[bytes]:
        while True:
            try:
                return self._runner.results(jobs, notify)
            except JobsStopped as error:
                raise Interrupted(str(error)) from error
            except UnavailableError as error:
                # An audit takes hours: it waits for its database rather than be done again.
                _log.warning("the audit waits: %s", error)
                time.sleep(_AGAIN_SECONDS)
            except RagauditError as error:
                # To a check every other error of ours would be a fault of the evidence.
                raise Interrupted(str(error)) from error


def _chunks(stated: Sequence[tuple[bytes, int]], most: int) -> list[tuple[int, int]]:
    """Return where chunks begin and end: of one index each, so that it is named once.

    Args:
        stated: of each statement the commitments of its index, and its share of ``most``.
        most: of a chunk, unless one statement alone has more.
    """
    found: list[tuple[int, int]] = []
    start = size = 0
    for at, (commitments, share) in enumerate(stated):
        full = at - start == _RECORDS or size + share > most
        if at > start and (full or commitments != stated[start][0]):
            found.append((start, at))
            start, size = at, 0
        size += share
    return [*found, (start, len(stated))] if stated else []


def _index(task: bytes, window: str, arrays: Arrays, _progress: Progress) -> bytes:
    name, rows, context, dimension, squared_norm, proof = decode(INDEX, task, 6)
    commitments = arrays.get(window, rows.decode())
    statement = IndexStatement(
        context,
        len(commitments),
        read_int(dimension),
        commitments.tobytes(),
        read_int(squared_norm),
    )
    return _said(lambda: engine(name.decode()).verify_index(statement, proof))


def _said(check: Callable[[], None]) -> bytes:
    try:
        check()
    except ArgumentRejected as error:
        return (str(error) or "rejected").encode()
    return b""


def _selections(task: bytes, window: str, arrays: Arrays, _progress: Progress) -> bytes:
    name, rows, parts = decode(SELECTIONS, task, 3)
    commitments = arrays.get(window, rows.decode()).tobytes()
    read = iter(read_several(parts))
    proven = [(read_selection(one, commitments), next(read)) for one in read]
    try:
        engine(name.decode()).verify_selections(proven)
    except SelectionsRejected as error:
        return np.array(error.failed, dtype="<u4").tobytes()
    return b""


def _budget(task: bytes, _window: str, _arrays: Arrays, _progress: Progress) -> bytes:
    name, statement, proof = decode(BUDGET, task, 3)
    return _said(lambda: engine(name.decode()).verify_budget(read_budget(statement), proof))


def _charges(task: bytes, window: str, arrays: Arrays, _progress: Progress) -> bytes:
    name, rows, parts = decode(CHARGES, task, 3)
    commitments = arrays.get(window, rows.decode()).tobytes()
    read = iter(read_several(parts))
    proven = [(read_charge(one, commitments), next(read)) for one in read]
    reasons: Mapping[int, str] = {}
    try:
        engine(name.decode()).verify_charges(proven)
    except ChargesRejected as error:
        reasons = error.reasons
    return several([reasons.get(at, "").encode() for at in range(len(proven))])


def _coalition(task: bytes, window: str, arrays: Arrays, progress: Progress) -> bytes:
    name, *rest = decode(COALITION, task, 10)
    accounts, times, anchored, sketches = (arrays.get(window, each.decode()) for each in rest[:4])
    tau, life, threshold, start, end = (read_int(each) for each in rest[4:])
    labels = engine(name.decode()).link_accounts(
        accounts,
        times,
        anchored,
        sketches,
        tau=tau,
        life=life,
        threshold=threshold,
        progress=progress,
        part=(start, end),
    )
    joined = np.flatnonzero(labels != np.arange(len(labels)))
    return np.stack([joined, labels[joined]]).astype("<u4").tobytes()


def _read_links(result: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    links = np.frombuffer(result, dtype="<u4").reshape(2, -1).astype(np.int64)
    return links[0], links[1]


KINDS: Final[Kinds] = {
    INDEX: _index,
    SELECTIONS: _selections,
    COALITION: _coalition,
    BUDGET: _budget,
    CHARGES: _charges,
}
"""What a worker of the verifier can do."""

JOBS: Final = JobService(tables.jobs, KINDS, "ragaudit_verifier")
"""The verifier's jobs, for the service and its workers."""
