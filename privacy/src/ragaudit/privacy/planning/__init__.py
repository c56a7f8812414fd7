"""Planning a window before it is committed: sigma, budget, and what the noise does to retrieval.

    targets = Targets("1", "0.000001", queries=50, coalition=10, delta_policy="0.00001")
    plan = budget(targets)                       sigma, epsilon by coalition, the paper's noise
    simulation = simulate(scored, ...)           recall and rank loss against sigma
    cost_of_recall(simulation, targets, 0.9)     the sigma and the epsilon of a wanted recall
    largest_recall(1, "1e-6", 250, K / N)        what no mechanism with fresh noise can exceed
    judge(plan, simulation)                      one sentence: how useful, how much is promised

Scores and noise are integers on the score lattice, sigma is in cosine units. Pure functions: the
sampler and the selection are arguments, so that what is simulated is what is deployed.
"""

from ragaudit.privacy.planning.budget import (
    Budget,
    BudgetRow,
    PaperNoise,
    SigmaPoint,
    budget,
    epsilon_by_accounts,
    sigma_by_queries,
    sigma_for,
)
from ragaudit.privacy.planning.price import (
    NO_FINITE_EPSILON,
    Missing,
    Price,
    Targets,
    price_of_account,
    price_of_coalition,
)
from ragaudit.privacy.planning.recall_cost import (
    Cost,
    RecallCost,
    ceiling_of,
    cost_of_recall,
    largest_recall,
)
from ragaudit.privacy.planning.retrieval import (
    CONFIDENCE,
    Interval,
    NoiseSource,
    Ranking,
    Retrieval,
    Simulation,
    mean_interval,
    rank_loss,
    recall,
    simulate,
)
from ragaudit.privacy.planning.verdict import GOOD_GAIN, USELESS_GAIN, Service, Verdict, judge

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
