"""The plan as one JSON object (format "ragaudit/v1/plan").

Epsilons, sigmas and advantages are decimal strings, rounded up, against the provider; null where
there is no finite bound. Statistics of the simulation are numbers with 6 decimals; an interval is
``{"mean", "low", "high"}``.
"""

from dataclasses import asdict
from typing import Any

from ragaudit.cli.plan.run import Plan, RetrievalPlan
from ragaudit.privacy.planning import (
    CONFIDENCE,
    EMPTY_ADVANTAGE,
    USELESS_GAIN,
    BudgetRow,
    Cost,
    Interval,
    Price,
    RecallCost,
)

__all__ = ["FORMAT", "document"]

FORMAT = "ragaudit/v1/plan"


def document(plan: Plan) -> dict[str, Any]:
    """Return the members, ready for JSON."""
    made = plan.budget
    return {
        "format": FORMAT,
        "targets": asdict(made.targets),
        "sigma": made.sigma,
        "calibrated": made.calibrated,
        "account": {**_price(made.account), "kept": made.kept},
        "coalitions": [_row(each) for each in made.coalitions],
        "tenant": _row(made.tenant),
        "over_windows": [_row(each) for each in made.over_windows],
        "paper": None if made.paper is None else asdict(made.paper),
        "affords": {"queries": made.queries_afforded, "accounts": made.accounts_afforded},
        "retrieval": None if plan.retrieval is None else _retrieval(plan.retrieval, made.sigma),
        "verdict": {
            "finding": plan.verdict.finding.value,
            "sentence": plan.verdict.sentence,
            "empty_advantage": float(EMPTY_ADVANTAGE),
            "useless_gain": USELESS_GAIN,
        },
    }


def _retrieval(found: RetrievalPlan, planned: str) -> dict[str, Any]:
    simulation = found.simulation
    return {
        "indexes": [asdict(each) for each in found.indexes],
        "top_k": simulation.top_k,
        "questions": simulation.questions,
        "trials": simulation.trials,
        "seed": found.trial.seed,
        "confidence": CONFIDENCE,
        "random": {
            "recall": round(simulation.random_recall, 6),
            "rank_loss": round(simulation.random_rank_loss, 6),
        },
        "quantised_recall": _interval(found.quantised),
        "points": [
            {
                "sigma": each.sigma,
                "planned": each.sigma == planned,
                "recall": _interval(each.recall),
                "rank_loss": None if each.rank_loss is None else _interval(each.rank_loss),
                "returned": round(each.returned, 6),
                "account": _price(found.prices[each.sigma][0]),
                "coalition": _price(found.prices[each.sigma][1]),
            }
            for each in simulation.points
        ],
        "recall_costs": [_recall_cost(each) for each in found.costs],
    }


def _recall_cost(cost: RecallCost) -> dict[str, Any]:
    return {
        "recall": cost.recall,
        "best": _cost(cost.best),
        "sure": _cost(cost.sure),
        "hopeful": _cost(cost.hopeful),
        "beyond": cost.beyond,
    }


def _cost(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "sigma": cost.sigma,
        "account": _price(cost.account),
        "coalition": _price(cost.coalition),
    }


def _row(row: BudgetRow) -> dict[str, Any]:
    return {
        "accounts": row.accounts,
        "windows": row.windows,
        **_price(row.price),
        "closed_form": row.closed_form,
    }


def _price(price: Price) -> dict[str, Any]:
    return {
        "queries": price.queries,
        "epsilon": price.epsilon,
        "ideal_epsilon": price.ideal_epsilon,
        "advantage": price.advantage,
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {name: round(value, 6) for name, value in asdict(interval).items()}
