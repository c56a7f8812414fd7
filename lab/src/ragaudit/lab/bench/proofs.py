"""The two arguments and their verification, each beside a baseline of the same process."""

import hashlib
import itertools
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Final

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.lab.bench.harness import (
    STEP,
    Measurement,
    measure,
    peak_memory_mib,
    summarise,
    together,
)
from ragaudit.lab.bench.workload import Question, Sizes, Task, Workload, numpy_search
from ragaudit.ledger.messages.commitments import content_digest, index_root
from ragaudit.prover.index.committed import row_digests
from ragaudit.verifier.engines import ProvenSelection, engine

HASH = "hash each row"
COMMIT_AND_PROVE = "commit the rows and prove the index"
VERIFY_INDEX = "verify the index proof"
DRAW = "draw one record's noise"
COMMIT = "commit the rows, once for an index"
PROVE = "prove one record"
VERIFY = "verify one batch of records"
COLD = "verify it in a new process: noise drawn, positions not seen before"
QUANTISE = "quantise and complete the rows"
DIGEST = "digests and Merkle tree of the rows"
WHOLE_INDEX = "make an index: quantise, commit, prove, digests"
COMPILED = "verify one record, core"
REFERENCE = "verify one record, reference"

_COLD_RUNS = 5
_NO_NOISE: Final = np.empty(0, dtype=np.int64)
_DISTINCT_VALUES = 2**18
"""Distinct proofs of a batch speak of about so many rows together; then they come again."""


def index(task: Task) -> list[Measurement]:
    """Measure making an index from its embeddings, beside hashing its rows one by one.

    Args:
        task: its workload gets the commitments, so that later scenarios need not make them.
    """
    work, sizes = task.work, task.work.sizes
    halves: list[tuple[float, float]] = []
    proofs: list[bytes] = []

    def hash_rows() -> None:
        for row in work.rows:
            hashlib.sha256(row.tobytes()).digest()

    def commit_and_prove() -> None:
        begun = time.perf_counter()
        commitments = core.commit_rows(work.rows, work.blindings)
        committed = time.perf_counter()
        statement = work.index_statement(commitments)
        proofs.append(core.prove_index(statement, work.rows, work.blindings))
        halves.append((committed - begun, time.perf_counter() - committed))
        work.keep_commitments(commitments)

    embeddings: list[npt.NDArray[np.float32]] = []

    def quantise() -> None:
        for block in embeddings:
            core.complete_rows(quantise_rows(block))

    def digest() -> None:
        digests = row_digests(ids, salts, b"".join(map(content_digest, texts)))
        index_root(work.commitments, digests)

    task.stage("making the rows")
    _ = work.rows, work.blindings
    embeddings += work.embeddings()
    texts = [f"Document number {n}." for n in range(sizes.rows)]
    ids, salts = tuple(map(str, range(sizes.rows))), bytes(32 * sizes.rows)
    quantising = task.measure(QUANTISE, quantise)
    embeddings.clear()  # their memory is not the argument's
    baseline = task.measure(HASH, hash_rows)
    whole = task.measure(COMMIT_AND_PROVE, commit_and_prove)
    verification = task.measure(
        VERIFY_INDEX,
        lambda: engine("core").verify_index(work.index_statement(work.commitments), proofs[-1]),
    )
    digesting = task.measure(DIGEST, digest)
    in_all = together(WHOLE_INDEX, [quantising, whole, digesting])
    counted = halves[-whole.runs :]  # the first run may have warmed up
    parts = [
        summarise(STEP + name, [half[at] for half in counted]).beside(baseline)
        for at, name in enumerate(("commit", "prove"))
    ]
    size = len(proofs[-1])
    return [
        baseline,
        in_all.beside(baseline),
        quantising.beside(baseline),
        whole.beside(baseline, size),
        *parts,
        digesting.beside(baseline),
        verification.beside(baseline, size),
    ]


def prove(task: Task) -> list[Measurement]:
    """Measure proving one record after the other, beside NumPy's exact search for such a query.

    What a prover has of the index before the first record is asked for, its commitments, is not
    counted with a record.

    Args:
        task: every run proves another of its records.
    """
    work = task.work
    questions = _questions(task, task.runs + 1)
    turns = itertools.cycle(questions)
    lengths: list[int] = []
    _ = work.rows, work.blindings
    begun = [] if work.committed else [task.measure(COMMIT, lambda: _commit(work))]
    _ = work.commitments  # from the folder, if an earlier process left them there

    def prove_next() -> None:
        lengths.append(len(work.prove(next(turns))))

    proving = task.measure(PROVE, prove_next)
    baseline = numpy_search(work, task.runs)
    return [
        baseline,
        *(each.beside(baseline) for each in begun),
        proving.beside(baseline, _median(lengths), _undecided(questions)),
    ]


def _commit(work: Workload) -> None:
    work.keep_commitments(core.commit_rows(work.rows, work.blindings))


def verify(task: Task) -> list[Measurement]:
    """Measure verifying R records of one tenant at once, beside drawing the noise of one again.

    Args:
        task: of its R records only some are distinct, see `_DISTINCT_VALUES`.
    """
    work, records = task.work, task.work.sizes.records
    drawing = measure(DRAW, work.draw_noise, task.runs)
    first = _questions(task, 1)
    distinct = max(1, min(records, _DISTINCT_VALUES // first[0].undecided))
    questions = first + _questions(task, distinct - 1, begin=1)
    proven = []
    for done, question in enumerate(questions):
        task.stage("proving", done, distinct)
        proven.append(work.proven(question))
    batch = list(itertools.islice(itertools.cycle(proven), records))
    checking = task.measure(VERIFY, lambda: engine("core").verify_selections(batch), records)
    size = _median([len(proof) for _, proof in proven])
    details = {**_undecided(questions), "distinct": float(distinct)}
    task.stage(COLD)
    numbers = [number % distinct for number in range(records)]
    bare = [(replace(statement, noise=_NO_NOISE), proof) for statement, proof in proven]
    job = _Batch(work.sizes, bare, numbers)
    cold = replace(_in_new_processes(job, min(task.runs, _COLD_RUNS)), records=records)
    return [
        drawing,
        checking.beside(drawing, size, details),
        cold.beside(drawing, size, details),
    ]


@dataclass(frozen=True)
class _Batch:
    """A batch to verify from its proofs: record ``n`` is ``proven[numbers[n]]``, of key n."""

    sizes: Sizes
    proven: list[ProvenSelection]
    numbers: list[int]


def _verify_cold(job: _Batch) -> tuple[float, float]:
    """Seconds and peak memory of a process that has seen nothing yet; libraries are loaded."""
    work, engine_used = Workload(job.sizes), engine("core")
    begun = time.perf_counter()
    batch = []
    for number in job.numbers:
        statement, proof = job.proven[number]
        batch.append((replace(statement, noise=work.draw_noise(number)), proof))
    engine_used.verify_selections(batch)
    return time.perf_counter() - begun, peak_memory_mib()


def _in_new_processes(job: _Batch, runs: int) -> Measurement:
    """Each run in a process of its own: a process keeps the points of positions that it met."""
    found = []
    for _ in range(runs):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found.append(pool.submit(_verify_cold, job).result())
    measured = summarise(COLD, [seconds for seconds, _ in found])
    peak = round(max(peak for _, peak in found), 1)
    return replace(measured, warmed_up=False, peak_mib=peak, peak_of_process=True)


def reference(task: Task) -> list[Measurement]:
    """Measure the reference verifier on one record, beside the compiled one on the same proof."""
    work = task.work
    (question,) = _questions(task, 1)
    batch = [work.proven(question)]
    compiled = task.measure(COMPILED, lambda: engine("core").verify_selections(batch))
    slow = task.measure(REFERENCE, lambda: engine("reference").verify_selections(batch))
    return [compiled, slow.beside(compiled, len(batch[0][1]), _undecided([question]))]


def _questions(task: Task, count: int, begin: int = 0) -> list[Question]:
    found = []
    for number in range(begin, begin + count):
        task.stage("drawing queries", number, begin + count)
        found.append(task.work.question(number))
    return found


def _median(values: list[int]) -> int:
    """The middle one, the lower of two: a length that occurred."""
    return sorted(values)[(len(values) - 1) // 2]


def _undecided(questions: list[Question]) -> dict[str, float]:
    return {
        "above": float(_median([each.above for each in questions])),
        "undecided": float(_median([each.undecided for each in questions])),
    }
