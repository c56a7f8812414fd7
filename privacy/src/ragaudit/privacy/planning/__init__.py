"""Planning a window before it is committed: sigma, budget, and what the noise does to retrieval.

    targets = Targets("1", "0.000001", queries=50, coalition=10, delta_policy="0.00001")
    plan = budget(targets)                       sigma, epsilon by coalition, the paper's noise
    found = simulate(scored, noise, select, ...) recall and rank loss against sigma
    cost_of_recall(found, targets, 0.9)          the sigma and the epsilon of a wanted recall
    largest_recall(1, "1e-6", 250, K / N)        what no mechanism with fresh noise can exceed
    judge(plan, found)                           one sentence: how useful, how much is promised

Scores and noise are integers on the score lattice, sigma is in cosine units. Pure functions: the
sampler and the selection are arguments, so that what is simulated is what is deployed.
"""

from ragaudit.privacy.planning.budget import Budget, BudgetRow, PaperNoise, budget, sigma_for
from ragaudit.privacy.planning.ceiling import ceiling_of, largest_recall
from ragaudit.privacy.planning.curves import (
    SigmaPoint,
    epsilon_by_accounts,
    sigma_by_queries,
)
from ragaudit.privacy.planning.interval import CONFIDENCE, Interval, mean_interval
from ragaudit.privacy.planning.missing import Missing
from ragaudit.privacy.planning.price import (
    NO_FINITE_EPSILON,
    Price,
    price_of_account,
    price_of_coalition,
)
from ragaudit.privacy.planning.quality import Ranking, rank_loss, recall
from ragaudit.privacy.planning.recall_cost import Cost, RecallCost, cost_of_recall
from ragaudit.privacy.planning.retrieval import NoiseSource, Retrieval, Simulation, simulate
from ragaudit.privacy.planning.targets import Targets
from ragaudit.privacy.planning.verdict import (
    GOOD_GAIN,
    USELESS_GAIN,
    Service,
    Verdict,
    judge,
)

__all__ = [
    "CONFIDENCE",
    "GOOD_GAIN",
    "NO_FINITE_EPSILON",
    "USELESS_GAIN",
    "Budget",
    "BudgetRow",
    "Cost",
    "Interval",
    "Missing",
    "NoiseSource",
    "PaperNoise",
    "Price",
    "Ranking",
    "RecallCost",
    "Retrieval",
    "Service",
    "SigmaPoint",
    "Simulation",
    "Targets",
    "Verdict",
    "budget",
    "ceiling_of",
    "cost_of_recall",
    "epsilon_by_accounts",
    "judge",
    "largest_recall",
    "mean_interval",
    "price_of_account",
    "price_of_coalition",
    "rank_loss",
    "recall",
    "sigma_by_queries",
    "sigma_for",
    "simulate",
]
