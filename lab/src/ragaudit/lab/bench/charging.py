"""Charging and logging a question by the prover's own code, until its entry is durable."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.bench.in_process import Channel, InProcess
from ragaudit.lab.bench.measure import STEP, Measurement, measure, summarise
from ragaudit.lab.bench.running import new_databases
from ragaudit.lab.bench.workload import Workload
from ragaudit.lab.generation.manifest import manifest
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.generation_settings import ChannelSettings
from ragaudit.serving.exchange import Exchange, Phase, begun

__all__ = ["LOG", "charging", "prover"]

LOG = "charge and log a question"
_STEPS: dict[Phase, str] = {
    "embed": "embedding, by a hash",
    "score": "scores and commitment",
    "commit": "entry, durable",
}
_REST = "the rest"


def charging(
    work: Workload,
    baseline: Measurement,
    *,
    charged: int,
    uses: int,
    runs: int,
    allowance: float,
    server: str | None = None,
) -> list[Measurement]:
    """Measure charging a question through the prover's code, and the steps of it.

    Counted is all that happens from a request that was read to a charge that is durable, in the
    database and in the fence: admission, embedding (by a hash: a real embedder is measured apart),
    what was charged before, scores, commitment, the entry. Nothing is generated.

    Args:
        work: the index asked.
        baseline: which it stands beside.
        charged: about so many rows are above the threshold.
        uses: M.
        runs, allowance: as of `measure`.
        server: URL of a PostgreSQL server that lets us make databases; SQLite if there is none.
    """
    taken: list[dict[str, float]] = []
    with prover(work, charged, uses, runs, server) as desk:

        def charge() -> None:
            with begun(Exchange()) as exchange:
                started = time.perf_counter()
                desk.charge()
                whole = time.perf_counter() - started
            found = {step: exchange.seconds[name] for name, step in _STEPS.items()}
            taken.append({**found, _REST: whole - sum(found.values())})

        name = LOG if server is None else f"{LOG}, PostgreSQL"
        whole = measure(name, charge, runs, allowance=allowance).beside(baseline)
    counted = taken[-whole.runs :]  # the first run warmed up
    steps = (*_STEPS.values(), _REST)
    return [
        whole,
        *(summarise(STEP + step, [each[step] for each in counted]).beside(baseline)
          for step in steps),
    ]  # fmt: skip


@contextmanager
def prover(
    work: Workload, charged: int, uses: int, runs: int, server: str | None = None
) -> Iterator[InProcess]:
    """Yield a window with a generation channel, each charge of which becomes durable.

    Args:
        work, charged, uses, runs, server: as of `charging`.
    """
    settings = ChannelSettings(
        epsilon="5", epsilon_token="5/2", voters=4, tokens=3, uses=uses,  # noqa: S106
        threshold=_threshold(work, charged), answer_delay_seconds=2, reuse=False,
    )  # fmt: skip
    channel = Channel(settings, manifest(Transformer.load()))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragaudit-bench-"))
        url = None
        if server is not None:
            url = stack.enter_context(new_databases(server, ["prover"]))["prover"]
        # One more than counts: the first warms up.
        desk = InProcess(work, Path(folder), runs + 1, channel=channel, durable=True, url=url)
        stack.callback(desk.close)
        yield desk


def _threshold(work: Workload, charged: int) -> int:
    """Return a score above which about so many rows are, for a question as it is embedded here."""
    mechanism = Mechanism(HashEmbedder(work.sizes.dimension))
    query = mechanism.quantise(mechanism.embed("A question."), 127)
    most = min(charged, work.sizes.rows - 1)
    scores = work.scorer.scores(query)
    return int(np.clip(np.partition(scores, -1 - most)[-1 - most], 0, SQUARED_NORM))
