"""One cell of Figure 2(b) through a running prover: hits that accounts see over HTTP.

The two worlds are two tenants of one service, whose indexes differ in one document. Every trial is
an account of its own, so that its noise is; the service embeds, draws, selects, logs and signs as
it does for everybody.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
from ragaudit.circuits.selection import scores
from ragaudit.cli.corpus import Passage
from ragaudit.embedders import registry
from ragaudit.embedders.base import embed_quantised
from ragaudit.lab.bench.services import BothServices, WindowSizes, both_services
from ragaudit.lab.demo.plan import measure_pace
from ragaudit.lab.reproduce.attacks_results import (
    ALLOWED_ERRORS,
    Finding,
    Result,
    Run,
    comparisons,
    point,
)
from ragaudit.lab.reproduce.attacks_texts import PARAGRAPHS
from ragaudit.lab.reproduce.attacks_top_k import area_of_counts, hit_probability
from ragaudit.lab.reproduce.comparison import Table

CURVE = "same tenant, over HTTP"
SIGMA = "3"
QUERIES = 20
TOP_K = 5
TRIALS, QUICK_TRIALS = 100, 6
_CLIENTS = 4
_OTHER = (
    "This cell is another in every run: activations draw on randomness that nobody knows "
    "beforehand, and the service's noise on that."
)


def figure_2b_http(run: Run) -> Result:
    """Return shares of hits and the area of an account's, by the law of the committed rows.

    The service's noise hangs on randomness of others: this cell alone is another in every run.

    Args:
        run: with `quick`, few accounts.

    Raises:
        ServiceFailed: a service did not start, or the window did not open.
        EmbedderUnavailable: the service's default embedder is not installed.
    """
    trials = QUICK_TRIALS if run.quick else TRIALS
    target, decoy, *background = PARAGRAPHS
    worlds = {"with": [*background, target], "without": [*background, decoy]}
    passages = {
        tenant: [Passage(f"{tenant}-{n}", text) for n, text in enumerate(texts)]
        for tenant, texts in worlds.items()
    }
    counted = {}
    sizes = WindowSizes(
        sum(map(len, passages.values())), TOP_K, trials, QUERIES,
        seconds=round(measure_pace() * (30 + trials * QUERIES // 10)),
    )  # fmt: skip
    noise = {"sigma": SIGMA, "epsilon_acc": None, "rows_per_document": 1}
    with both_services(sizes, corpus=passages, overrides=noise) as both:
        for done, tenant in enumerate(worlds):
            run.progress("Figure 2(b) over HTTP", done, 2)
            counted[tenant] = _asked(both, tenant, target, f"{tenant}-{len(background)}")
    run.progress("Figure 2(b) over HTTP", 2, 2)
    embedder = registry.load()
    question = embed_quantised(embedder, [target])[0].astype(np.int16)
    chances = [
        hit_probability(
            scores(embed_quantised(embedder, texts), question), len(background), TOP_K, float(SIGMA)
        )
        for texts in worlds.values()
    ]
    found = point(
        f"{CURVE}, sigma {SIGMA}", "", 1, counted["with"], counted["without"],
        theory=area_of_counts(QUERIES, *chances),
    )  # fmt: skip
    asked = trials * QUERIES
    shares = [
        Finding(
            f"share of hits over HTTP, {name} the document", sum(counted[name]) / asked, chance,
            math.sqrt(chance * (1 - chance) / asked),
        )
        for name, chance in zip(worlds, chances, strict=True)
    ]  # fmt: skip
    table = Table(
        "attacks-2b-http", "Hits in the top 5 of 51 rows, through a running service",
        "Figure 2(b)", comparisons([found], shares),
        (f"{trials} accounts in each world, {asked} questions: a share that is off its law by "
         f"{ALLOWED_ERRORS * max(each.error for each in shares):.2f} would be seen, an area by "
         f"{ALLOWED_ERRORS * found.error:.2f}.", _OTHER),
    )  # fmt: skip
    return Result("2b-http", table, (found,), tuple(shares))


def _asked(both: BothServices, tenant: str, question: str, row: str) -> list[int]:
    """How often each account of a tenant was served a row."""

    def ask(key: str) -> int:
        with closing(both.asker(key, [question])) as asker:
            replies = (asker.reply() for _ in range(QUERIES))
            return sum(
                row in {each["id"] for each in reply["private"]["rows"]} for reply in replies
            )

    with ThreadPoolExecutor(_CLIENTS) as pool:
        return list(pool.map(ask, both.keys[tenant]))
