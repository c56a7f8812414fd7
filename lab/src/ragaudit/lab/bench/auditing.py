"""An audit of R sampled records of one tenant: the prover's work, then the verifier's.

The prover opens each noise key, draws the noise again and proves. The verifier runs its numbered
checks of the sample over the evidence: keys, embeddings, and the selection with the noise drawn
again. Each side runs once: a long run needs no warming up.
"""

from collections.abc import Sequence

from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.measure import Measurement, measure_once
from ragaudit.lab.bench.task import Task
from ragaudit.lab.bench.window import AuditedWindow
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Check, CheckResult

__all__ = ["audit"]

PROVE = "prover: open, draw noise and prove R records"
VERIFY = "verifier: check the openings, draw noise and verify R records"
DRAW = "draw the noise of R records"
KEYS = "commit to the noise keys, r of each account"

_INDEX = "index-proof"
_SAMPLE = ("seed", "embedding", "selection")


def audit(task: Task) -> list[Measurement]:
    """Measure both sides of an audit, beside drawing the noise of the records once.

    Args:
        task: the workload's R records are one tenant's, and all are in the sample.

    Raises:
        InternalError: a check of the sample fails: what is timed must be an honest audit.
    """
    work, records = task.work, task.work.sizes.records
    window = AuditedWindow(work, records, lambda n: task.stage("answering", n, records))
    task.stage("committing and proving the index")
    window.play()
    keys = measure_once(KEYS, window.live.seed.commit, records=records)
    drawing = measure_once(DRAW, lambda: _draw(task), records=records)
    proving = measure_once(PROVE, lambda: _prove(task, window), records=records)
    evidence = window.evidence()
    context = Context(
        evidence,
        engine=engine("core"),
        pins=window.pins,
        progress=lambda step, done, total: task.stage(f"verifier: {step}", done, total),
    )
    _apply(context, [_INDEX])
    checking = measure_once(VERIFY, lambda: _apply(context, _SAMPLE), records=records)
    size = sum(len(window.response(asked)) for asked in window.asked)
    return [
        drawing,
        keys.beside(drawing),
        proving.beside(drawing, size),
        checking.beside(drawing, size),
    ]


def _prove(task: Task, window: AuditedWindow) -> None:
    for done, asked in enumerate(window.asked):
        task.stage("prover", done, len(window.asked))
        window.response(asked)


def _draw(task: Task) -> None:
    for number in range(task.work.sizes.records):
        task.stage("drawing noise", number, task.work.sizes.records)
        task.work.draw_noise(number)


def _apply(context: Context, names: Sequence[str]) -> None:
    """Run some checks; an honest audit that fails is a fault of this software."""
    for check in CHECKS:
        if check.id in names:
            _passed(check, check.apply(context))


def _passed(check: Check, result: CheckResult) -> None:
    if result.status is Status.FAIL or result.status is Status.NOT_RUN:
        raise InternalError(f"check {check.id}: {result.reason}", expected="PASS")
