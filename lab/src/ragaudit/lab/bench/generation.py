"""The arguments about charges, each beside the same decision without a proof.

The budget argument: beside counting the charges, which a party does that is shown them. The
charge argument: beside NumPy's exact scores of the same rows and queries, and the comparison. So is
what a question costs until it is generated: its scores and the commitment to the rows that pay, and
the whole way through the prover's code to an entry that is durable.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.bench.answering import Channel, InProcess
from ragaudit.lab.bench.harness import STEP, Measurement, Notify, measure, silent, summarise
from ragaudit.lab.bench.services import new_databases
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.lab.generation.serving import manifest
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.backend_settings import ChannelSettings
from ragaudit.serving.exchange import Exchange, Phase, begun
from ragaudit.verifier.engines import engine

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


COUNT, SCORE = "count the charges (NumPy)", "score and compare (NumPy)"
PROVE_BUDGET, VERIFY_BUDGET = "prove the budgets", "verify the budgets"
PROVE_GROUP, VERIFY_GROUP = "prove a group of charges", "verify a group of charges"
CHARGE = "decide and commit to a charge"
CHARGED_AT_LEAST = 30
_BUDGETS, _GROUPS = frozenset({PROVE_BUDGET, VERIFY_BUDGET}), frozenset({PROVE_GROUP, VERIFY_GROUP})

_CONTEXT = bytes(32)


@dataclass(frozen=True)
class GenerationSizes:
    """N rows, d; R charge entries of at most so many rows each; M; T entries of a group."""

    rows: int
    dimension: int
    records: int
    charged: int
    uses: int
    group: int


class Charges:
    """What is charged in a window, and what its prover keeps.

    Args:
        sizes: how much.
    """

    def __init__(self, sizes: GenerationSizes) -> None:
        self.sizes = sizes
        self.work = Workload(Sizes(sizes.rows, sizes.dimension, 1, "40"))

    @cached_property
    def budget(self) -> tuple[BudgetStatement, list[list[int]], npt.NDArray[np.uint8]]:
        """A statement about R entries of random rows, what they charge, the blindings."""
        sizes, random = self.sizes, np.random.default_rng(3)
        most = min(sizes.charged, sizes.rows)
        # Rounds of all rows in random order: after M of them every budget is used up.
        order = np.concatenate([random.permutation(sizes.rows) for _ in range(sizes.uses)])
        charged = []
        for t in range(sizes.records):
            share = order[t * most : (t + 1) * most]
            charged.append(sorted(set(share.tolist())))
        blindings = core.random_scalars(sizes.records)
        points = b"".join(_points(charged, blindings))
        return BudgetStatement(_CONTEXT, sizes.rows, sizes.uses, points), charged, blindings

    @cached_property
    def queries(self) -> list[npt.NDArray[np.int16]]:
        """T of them, near documents."""
        return [self.work.query(number) for number in range(self.sizes.group)]

    @cached_property
    def thresholds(self) -> list[int]:
        """Above which about as many rows are relevant as an entry charges."""
        most = min(self.sizes.charged, self.sizes.rows - 1)
        found = []
        for query in self.queries:
            least = np.partition(self.work.scorer.scores(query), -1 - most)[-1 - most]
            found.append(int(np.clip(least, 0, SQUARED_NORM)))
        return found

    def score(self) -> list[npt.NDArray[np.bool_]]:
        """Return which rows each query of the group charges, budgets apart."""
        vectors = self.work.vectors.astype(np.float32)
        pairs = zip(self.queries, self.thresholds, strict=True)
        return [vectors @ query.astype(np.float32) > tau for query, tau in pairs]

    def charge(self) -> bytes:
        """Return B of the first question, all of whose relevant rows are live."""
        due = self.work.scorer.scores(self.queries[0]) > self.thresholds[0]
        return core.commit_marked(due, bytes(32))

    @cached_property
    def group(self) -> tuple[ChargeStatement, list[list[int]], npt.NDArray[np.uint8]]:
        """A statement about T entries that charge what is due, the first of a window."""
        left = np.full(self.sizes.rows, self.sizes.uses)
        charged = []
        for query, tau in zip(self.queries, self.thresholds, strict=True):
            due = (self.work.scorer.scores(query) > tau) & (left > 0)
            left[due] -= 1
            charged.append(np.flatnonzero(due).tolist())
        blindings = core.random_scalars(len(charged))
        points = _points(charged, blindings)
        before = core.running_sums(b"".join(points), range(len(points)))
        entries = tuple(
            ChargeEntry(_CONTEXT, query, tau, None, S, B)
            for query, tau, S, B in zip(self.queries, self.thresholds, before, points, strict=True)
        )
        statement = ChargeStatement(self.sizes.uses, self.work.commitments, entries)
        return statement, charged, blindings

    def prove_group(self) -> bytes:
        """Return the charge argument of the group."""
        statement, charged, blindings = self.group
        return core.prove_charges(
            statement, self.work.rows, self.work.blindings, charged, blindings,
            range(len(charged)),
        )  # fmt: skip


def _points(charged: list[list[int]], blindings: npt.NDArray[np.uint8]) -> list[bytes]:
    pairs = zip(charged, blindings, strict=True)
    return [core.commit_selection(rows, rho.tobytes()) for rows, rho in pairs]


def generation(
    sizes: GenerationSizes,
    runs: int,
    allowance: float,
    notify: Notify = silent,
    postgresql: str | None = None,
) -> list[Measurement]:
    """Measure both arguments, made and checked by the compiled core, and charging.

    Args:
        sizes: of the window and the group.
        runs: under the clock, at most; of what takes milliseconds, `CHARGED_AT_LEAST` at least.
        allowance: seconds after which no further run is begun.
        notify: told what is being done.
        postgresql: URL of a server that lets us make databases, where charging is measured too.
    """
    charges, checker = Charges(sizes), engine("core")
    proofs: dict[str, bytes] = {}

    def timed(name: str, action: Callable[[], object], records: int) -> Measurement:
        notify(name, 0, 0)
        return measure(name, action, runs, records=records, allowance=allowance)

    def prove_budget() -> None:
        proofs[PROVE_BUDGET] = core.prove_budget(*charges.budget)

    def prove_group() -> None:
        proofs[PROVE_GROUP] = charges.prove_group()

    notify("charging", 0, 0)
    statement, charged, _ = charges.budget
    flat = np.array([row for rows in charged for row in rows])
    count = timed(COUNT, lambda: np.bincount(flat, minlength=sizes.rows).max(), sizes.records)
    proving = timed(PROVE_BUDGET, prove_budget, sizes.records)
    size = len(proofs[PROVE_BUDGET])
    checking = timed(
        VERIFY_BUDGET,
        lambda: checker.verify_budget(statement, proofs[PROVE_BUDGET]),
        sizes.records,
    )
    notify("charging", 0, 0)
    group = charges.group[0]
    scoring = timed(SCORE, charges.score, sizes.group)
    committing = timed(CHARGE, charges.charge, 1)
    group_proving = timed(PROVE_GROUP, prove_group, sizes.group)
    logged = []
    for server in dict.fromkeys((None, postgresql)):
        notify(LOG, 0, 0)
        logged += charging(
            charges.work, scoring, charged=sizes.charged, uses=sizes.uses,
            runs=max(runs, CHARGED_AT_LEAST), allowance=allowance, server=server,
        )  # fmt: skip
    group_size = len(proofs[PROVE_GROUP])
    group_checking = timed(
        VERIFY_GROUP,
        lambda: checker.verify_charges([(group, proofs[PROVE_GROUP])]),
        sizes.group,
    )
    return [
        count,
        proving.beside(count, size, {"charges": float(len(flat))}),
        checking.beside(count, size),
        scoring,
        committing.beside(scoring),
        *logged,
        group_proving.beside(scoring, group_size),
        group_checking.beside(scoring, group_size),
    ]


def growth(
    sizes: GenerationSizes,
    base: list[Measurement],
    runs: int,
    allowance: float,
    notify: Notify = silent,
) -> list[Measurement]:
    """Measure again with N, R, T and M doubled, one at a time, each beside the base.

    Args:
        sizes: of the base.
        base: as `generation` returned it.
        runs, allowance, notify: as of `generation`.
    """
    known = {each.name: each for each in base}
    doubled = (
        ("N", replace(sizes, rows=2 * sizes.rows), _BUDGETS | _GROUPS | {CHARGE, LOG}),
        ("R", replace(sizes, records=2 * sizes.records), _BUDGETS),
        ("T", replace(sizes, group=2 * sizes.group), _GROUPS),
        ("M", replace(sizes, uses=2 * sizes.uses), _BUDGETS | _GROUPS),
    )
    found = []
    for letter, larger, names in doubled:
        for each in generation(larger, runs, allowance, notify):
            if each.name in names:
                # Of whole runs: a ratio of 2 is growth in proportion.
                whole = replace(each, name=f"{each.name}, {letter} doubled", records=1)
                found.append(whole.beside(replace(known[each.name], records=1)))
    return found
