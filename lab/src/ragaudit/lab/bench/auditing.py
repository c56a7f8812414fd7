"""An audit of R sampled records of one tenant: the prover's work, then the verifier's.

The prover opens each noise key, draws the noise again and proves: its own code on its own
structures, all in this process and memory. The verifier runs its numbered checks of the sample over
the evidence, which is that of the scenario's honest window: keys, embeddings, and the selection
with the noise drawn again. Each side runs once: a long run needs no warming up.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.selection import select
from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.harness import Measurement, measure_once
from ragaudit.lab.bench.workload import Task, Workload
from ragaudit.lab.scenario.opening import Asked, TenantIndex
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.challenge import Activation
from ragaudit.ledger.messages.commitments import IndexCommitment, content_digest, index_root
from ragaudit.ledger.messages.verdict import Status
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.index.committed import CommittedIndex, row_digests
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.randomness import OsRandomness, SeedTree
from ragaudit.prover.window.open_window import OpenWindow, WindowLog
from ragaudit.prover.window.records import LoggedRecord, RecordOpenings
from ragaudit.prover.work import ProvenIndex, prove_selections
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.framework import Check, CheckResult

TENANT = "bench"
_SALT_BYTES = 32


class AuditedWindow(Window):
    """A window in which ``records`` queries of one tenant are asked, and all are sampled."""

    tenants = (TENANT,)

    def __init__(self, work: Workload, records: int, notify: Callable[[int], None]) -> None:
        """An unplayed window; ``notify`` gets the number of queries answered so far."""
        sizes = work.sizes
        self.work, self.records, self._notify = work, records, notify
        self.queries_per_account = sizes.queries
        # Not below the coalition_max of the scenario's policy.
        self.slots = max(2, -(-records // sizes.queries))
        self.sigma = sizes.sigma
        self._responses: dict[int, bytes] = {}
        super().__init__(
            rows=sizes.rows, dimension=sizes.dimension, overrides={"top_k_max": sizes.top_k}
        )

    def script(self) -> list[tuple[Any, ...]]:
        accounts = [f"account-{n}" for n in range(-(-self.records // self.queries_per_account))]
        asked = [
            (
                "query",
                accounts[n // self.queries_per_account],
                f"question {n}",
                self.work.sizes.top_k,
                1,
            )
            for n in range(self.records)
        ]
        return [
            *(("register", name, TENANT, False, -25) for name in accounts),
            ("checkpoint", -20),
            *asked,
            ("checkpoint", 20),
        ]

    @cached_property
    def committed(self) -> CommittedIndex:
        """The tenant's index as the prover keeps it, its argument proven."""
        work, count = self.work, self.work.sizes.rows
        ids = tuple(f"row-{at}" for at in range(count))
        contents = b"".join(content_digest(f"text of {name}") for name in ids)
        salts = OsRandomness().draw(_SALT_BYTES * count)
        root = index_root(work.commitments, row_digests(ids, salts, contents))
        statement = self.index_statement(TENANT, work.commitments, root)
        return CommittedIndex(
            tenant=TENANT,
            ids=ids,
            content_digests=contents,
            rows=work.rows,
            blindings=work.blindings,
            salts=salts,
            commitments=work.commitments,
            root=root,
            proof=core.prove_index(statement, work.rows, work.blindings),
        )

    def build_index(self, tenant: str) -> TenantIndex:
        found = self.committed
        commitment = IndexCommitment(
            self.window,
            tenant,
            1,
            self.dimension,
            found.commitments,
            found.row_digests,
            found.proof,
        )
        return TenantIndex(tenant, [], [], [], found.rows, found.blindings, commitment)

    def play(self) -> None:
        """Play once: the responses that were made of it stay."""
        if not self.asked:
            super().play()

    def log_record(self, asked: Asked) -> None:
        super().log_record(asked)
        asked.noise = np.empty(0, dtype=np.int64)  # both sides draw it again
        self._notify(len(self.asked))

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        return self.work.query(len(self.asked))

    def select(
        self,
        tenant: str,
        embedding: npt.NDArray[np.int16],
        noise: npt.NDArray[np.int64],
        top_k: int,
    ) -> tuple[int, ...]:
        return select(self.work.scorer.scores(embedding) + noise, top_k)

    def receipts(self) -> list[dict[str, Any]]:
        """Return none: the sample is what is measured."""
        return []

    @cached_property
    def live(self) -> OpenWindow:
        """The window as the prover has it in memory; there is no database, log or fence."""
        nothing = cast(Any, None)
        seed = SeedTree(self.window, self.seed_secret, self.slots, self.queries_per_account)
        live = OpenWindow(
            policy=self.policy,
            pseudonym_key=bytes(32),
            indexes={TENANT: self.committed},
            seed=seed,
            log=WindowLog(nothing, nothing, nothing),
            fence=nothing,
            randomness=OsRandomness(),
            anchor=bytes(32),
        )
        for number, size in enumerate(self.covered_sizes(), start=1):
            preimage = self.preimage(number)
            live.activate(
                Activation(
                    window=self.window, a=number, preimage=preimage, covered_size=size, time=0
                )
            )
        return live

    @cached_property
    def _worker(self) -> ChallengeWorker:
        nothing = cast(Any, None)
        return ChallengeWorker(
            store=nothing,
            backend=nothing,
            mechanism=Mechanism(nothing),
            verifier=nothing,
            runner=nothing,
        )

    def prove(self, asked: Asked) -> bytes:
        """Prove by the prover's own worker, which draws the noise again.

        Args:
            asked: one of `asked`; no noise is kept with it.
        """
        opened = RecordOpenings(
            asked.request, asked.openings, asked.selected, asked.selection_blinding, bytes(32)
        )
        logged = LoggedRecord(asked.index, asked.salt, asked.body, opened, asked.record.time)
        index = self.live.index_of(asked.record.tenant, asked.record.version)
        (proof,) = prove_selections(
            ProvenIndex(index.rows, index.blindings, index.commitments),
            [self._worker.selection(self.live, asked.record, logged)],
        )
        return proof

    def response(self, asked: Asked) -> bytes:
        """Return the response to the challenge, made once: a second call does not prove again."""
        if asked.index not in self._responses:
            self._responses[asked.index] = super().response(asked)
        return self._responses[asked.index]


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
