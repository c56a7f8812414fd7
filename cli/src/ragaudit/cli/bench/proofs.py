"""The two arguments and their verification, each beside a baseline of the same process."""

import hashlib
import itertools

from ragaudit import core
from ragaudit.cli.bench.measure import Measurement, both, measure
from ragaudit.cli.bench.scenario import Task
from ragaudit.cli.bench.searching import numpy_search
from ragaudit.cli.bench.workload import Question
from ragaudit.verifier.engines import engine

__all__ = ["index", "prove", "reference", "verify"]

HASH = "hash each row"
COMMIT = "commit the rows"
PROVE_INDEX = "prove the index"
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
    made: list[bytes] = [b"", b""]

    def hash_rows() -> None:
        for row in work.rows:
            hashlib.sha256(row.tobytes()).digest()

    def commit() -> None:
        made[0] = core.commit_rows(work.rows, work.blindings)

    def prove_rows() -> None:
        made[1] = core.prove_index(work.context, work.rows, work.blindings, work.commitments)

    task.stage("making the rows")
    _ = work.rows, work.blindings
    baseline = task.measure(HASH, hash_rows)
    commitment = task.measure(COMMIT, commit)
    work.keep_commitments(made[0])
    proof = task.measure(PROVE_INDEX, prove_rows)
    verification = task.measure(
        VERIFY_INDEX,
        lambda: engine("core").verify_index(
            work.context, sizes.rows, sizes.dimension, work.commitments, made[1]
        ),
    )
    size = len(made[1])
    return [
        baseline,
        commitment.beside(baseline, len(made[0])),
        proof.beside(baseline, size),
        both(COMMIT_AND_PROVE, commitment, proof).beside(baseline, size),
        verification.beside(baseline, size),
    ]


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
