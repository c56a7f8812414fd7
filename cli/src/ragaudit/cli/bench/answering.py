"""Answering one query in this process: everything but the log, on the prover's own code.

From the query's embedding to the answer with both halves of its receipt (docs/spec/08-services.md
§8.7). Not included: the embedder, and the transaction, fence and checkpoint of the log; what those
cost is measured over HTTP.
"""

import time
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.parameters import B
from ragaudit.cli.bench.measure import Measurement, summarise
from ragaudit.cli.bench.scenario import Task
from ragaudit.cli.bench.searching import faiss_search, numpy_search
from ragaudit.cli.bench.window import AuditedWindow, MemoryDocuments
from ragaudit.encoding.digests import SALT_BYTES
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.openings import Openings
from ragaudit.ledger.records import Record
from ragaudit.ledger.requests import Request
from ragaudit.prover import receipts
from ragaudit.prover.mechanism import Embedding, Mechanism
from ragaudit.prover.openings import QueryDigests, RecordOpenings
from ragaudit.prover.receipts import LoggedRecord

__all__ = ["answer"]

ANSWER = "answer one query, everything but the log"
PART = "of it: "
PARTS = ("quantise and sketch", "noise", "scores", "select and commit", "record", "receipt")

_ACCOUNT = b"\1" * 32
_ACTIVATION = 1
_QUERIES = 10


def answer(task: Task) -> list[Measurement]:
    """Answering in this process with its parts, beside exact search with NumPy and FAISS."""
    task.stage("NumPy")
    baseline = numpy_search(task.work, task.runs)
    task.stage("FAISS")
    library = faiss_search(task.work, task.runs)
    task.stage("committing the rows")
    answerer = _Answerer(task)
    whole = task.measure(ANSWER, answerer.answer).beside(baseline)
    # The first run warmed up; parts of the runs that count.
    counted = answerer.parts[-whole.runs :]
    parts = [
        summarise(PART + name, [seconds[at] for seconds in counted]).beside(baseline)
        for at, name in enumerate(PARTS)
    ]
    return [
        baseline,
        *([] if library is None else [library.beside(baseline)]),
        whole,
        *parts,
    ]


class _Answerer:
    """Answers one query after the other, each under a noise key of its own."""

    def __init__(self, task: Task) -> None:
        self._top_k = task.work.sizes.top_k
        self._vectors = [
            (task.work.query(number) / B).astype(np.float32) for number in range(_QUERIES)
        ]
        nothing = cast(Any, None)
        window = AuditedWindow(task.work, 1, lambda done: None, proven=False)
        window.checkpoint(-20)  # something for the first activation to cover
        self._live, self._index = window.live, window.committed
        # Made when a window opens, before its first answer.
        _ = self._index.vectors, self._index.tree
        self._mechanism = Mechanism(backend=cast(Any, MemoryDocuments()), embedder=nothing)
        self._key = PrivateKey.generate()
        self.parts: list[list[float]] = []  # seconds of each part of each answer

    def answer(self) -> dict[str, Any]:
        """One answer as `Answering` makes it, without the log."""
        number = len(self.parts)
        vector = self._vectors[number % len(self._vectors)]
        marks = [time.perf_counter()]
        embedding, openings = self._open_query(vector)
        record = self._describe(number, openings)
        marks.append(time.perf_counter())
        noise = self._mechanism.draw_noise(self._live, self._index, record, None)
        marks.append(time.perf_counter())
        exact = self._mechanism.scores(self._index, embedding)
        marks.append(time.perf_counter())
        selected = self._mechanism.select(exact, noise, record.top_k)
        blinding = self._live.randomness.scalars(1, "selection")[0].tobytes()
        commitment = self._mechanism.selection_commitment(selected, blinding)
        marks.append(time.perf_counter())
        rows = self._mechanism.served_documents(self._index, selected)
        body = self._mechanism.record_body(replace(record, selection_commitment=commitment))
        request = Request(openings.query, record.top_k, None)
        salts = [self._live.randomness.draw(SALT_BYTES, name) for name in ("salt_r", "record")]
        opened = RecordOpenings(request, openings, selected, blinding, salts[0])
        opened.encode()
        logged = LoggedRecord(number, salts[1], body, opened, record.time)
        marks.append(time.perf_counter())
        answer = self._mechanism.answer_documents(rows)
        private = receipts.private_half(logged, self._index, rows)
        public = receipts.public_half(
            logged, origin=self._live.origin, answer=answer, private=private, key=self._key
        )
        reply = {
            "answer": answer.to_json(),
            "receipt": {"public": public.to_json(), "private": private.to_json()},
        }
        marks.append(time.perf_counter())
        self.parts.append(np.diff(marks).tolist())
        return reply

    def _open_query(self, vector: npt.NDArray[np.float32]) -> tuple[Embedding, Openings]:
        embedding = self._mechanism.quantise(vector)
        terms, draw = self._live.policy.estimator, self._live.randomness.draw
        openings = Openings(
            query="a question of ordinary length",
            embedding=tuple(embedding.tolist()),
            filter="",
            sketch=self._mechanism.sketch(embedding, terms.seed, terms.sketch_bits),
            salt_q=draw(SALT_BYTES, "salt_q"),
            salt_e=draw(SALT_BYTES, "salt_e"),
            salt_f=draw(SALT_BYTES, "salt_f"),
            salt_s=draw(SALT_BYTES, "salt_s"),
        )
        return embedding, openings

    def _describe(self, number: int, openings: Openings) -> Record:
        digests, policy = QueryDigests.of(openings), self._live.policy
        return Record(
            policy_digest=self._live.policy_digest,
            window=policy.window,
            tenant=self._index.tenant,
            version=1,
            rows=self._index.count,
            top_k=self._top_k,
            filter_digest=digests.filter,
            pseudonym=_ACCOUNT,
            epoch=1,
            slot=0,
            counter=number % policy.queries_per_account,
            activation=_ACTIVATION,
            time=1000 * policy.start,
            nonce=None,
            query_digest=digests.query,
            embedding_digest=digests.embedding,
            sketch_digest=digests.sketch,
            selection_commitment=None,
        )
