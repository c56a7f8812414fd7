"""The two arguments and their verification, each beside a baseline of the same process."""

import hashlib
import itertools
import time

from ragaudit import core
from ragaudit.cli.bench.measure import STEP, Measurement, measure, summarise
from ragaudit.cli.bench.scenario import Task
from ragaudit.cli.bench.searching import numpy_search
from ragaudit.cli.bench.workload import Question
from ragaudit.verifier.engines import engine

__all__ = ["index", "prove", "reference", "verify"]

HASH = "hash each row"
COMMIT_AND_PROVE = "commit the rows and prove the index"
VERIFY_INDEX = "verify the index proof"
DRAW = "draw one record's noise"
PROVE = "prove one record"
VERIFY = "verify one batch of records"
COMPILED = "verify one record, core"
REFERENCE = "verify one record, reference"

_DISTINCT_VALUES = 2**18
"""Distinct proofs of a batch speak of about so many rows together; then they come again."""


def index(task: Task) -> list[Measurement]:
    """Committing and proving an index, beside hashing the same rows one by one."""
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
        proofs.append(core.prove_index(work.context, work.rows, work.blindings, commitments))
        halves.append((committed - begun, time.perf_counter() - committed))
        work.keep_commitments(commitments)

    task.stage("making the rows")
    _ = work.rows, work.blindings
    baseline = task.measure(HASH, hash_rows)
    whole = task.measure(COMMIT_AND_PROVE, commit_and_prove)
    verification = task.measure(
        VERIFY_INDEX,
        lambda: engine("core").verify_index(
            work.context, sizes.rows, sizes.dimension, work.commitments, proofs[-1]
        ),
    )
    counted = halves[-whole.runs :]  # the first run may have warmed up
    parts = [
        summarise(STEP + name, [half[at] for half in counted]).beside(baseline)
        for at, name in enumerate(("commit", "prove"))
    ]
    size = len(proofs[-1])
    return [baseline, whole.beside(baseline, size), *parts, verification.beside(baseline, size)]


def prove(task: Task) -> list[Measurement]:
    """Proving one record after the other, beside NumPy's exact search for such a query."""
    work = task.work
    questions = _questions(task, task.runs + 1)
    turns = itertools.cycle(questions)
    lengths: list[int] = []

    def prove_next() -> None:
        lengths.append(len(work.prove(next(turns))))

    proving = task.measure(PROVE, prove_next)
    baseline = numpy_search(work, task.runs)
    return [baseline, proving.beside(baseline, _median(lengths), _undecided(questions))]


def verify(task: Task) -> list[Measurement]:
    """Verifying R records of one tenant at once, beside drawing the noise of one again."""
    work, records = task.work, task.work.sizes.records
    drawing = measure(DRAW, work.draw_noise, task.runs)
    first = _questions(task, 1)
    distinct = max(1, min(records, _DISTINCT_VALUES // first[0].undecided))
    questions = first + _questions(task, distinct - 1, begin=1)
    proven = []
    for done, question in enumerate(questions):
        task.stage("proving", done, distinct)
        proven.append(work.instance(question, work.prove(question)))
    batch = list(itertools.islice(itertools.cycle(proven), records))
    checking = task.measure(VERIFY, lambda: engine("core").verify_selections(batch), records)
    size = _median([len(each.proof) for each in proven])
    details = {**_undecided(questions), "distinct": float(distinct)}
    return [drawing, checking.beside(drawing, size, details)]


def reference(task: Task) -> list[Measurement]:
    """The reference verifier on one record, beside the compiled one on the same proof."""
    work = task.work
    (question,) = _questions(task, 1)
    batch = [work.instance(question, work.prove(question))]
    compiled = task.measure(COMPILED, lambda: engine("core").verify_selections(batch))
    slow = task.measure(REFERENCE, lambda: engine("reference").verify_selections(batch))
    return [compiled, slow.beside(compiled, len(batch[0].proof), _undecided([question]))]


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
