"""The plan as one JSON object (format "ragaudit/v1/plan").

Epsilons, sigmas and advantages are decimal strings, rounded up, against the provider; every
epsilon has its delta and relation beside it. A missing number is null, with a ``reason`` beside
it that is null otherwise; a recall that no sigma reaches has null costs. Statistics of the
simulation are numbers with 6 decimals; an interval is ``{"mean", "low", "high"}``.
"""

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from ragaudit.cli.plan.plots import Plots
from ragaudit.cli.plan.run import Plan, RetrievalPlan
from ragaudit.cli.plan.show import upward
from ragaudit.privacy.planning import (
    CONFIDENCE,
    GOOD_GAIN,
    NO_FINITE_EPSILON,
    USELESS_GAIN,
    Budget,
    BudgetRow,
    Cost,
    Interval,
    Missing,
    PaperNoise,
    Price,
    RecallCost,
    ceiling_of,
)
from ragaudit.privacy.words import EMPTY_ADVANTAGE, WEAK_ADVANTAGE

__all__ = ["FORMAT", "document"]

FORMAT = "ragaudit/v1/plan"


def document(plan: Plan, plots: Plots | None) -> dict[str, Any]:
    """Return the plan as a JSON value.

    Args:
        plan: the plan.
        plots: None if none were asked for.
    """
    budget = plan.budget
    return {
        "format": FORMAT,
        "targets": asdict(budget.targets),
        "protected_unit": budget.targets.protected_unit,
        "sigma": budget.sigma,
        "calibrated": budget.calibrated,
        "account": {**_price(budget.account), "kept": budget.kept},
        "coalitions": [_row(row, budget.paper) for row in budget.coalitions],
        "tenant": _row(budget.tenant, budget.paper),
        "over_windows": [_row(row, budget.paper) for row in budget.over_windows],
        "paper": _paper(budget.paper),
        "affords": {
            "queries": _known(budget.queries_afforded),
            "accounts": _known(budget.accounts_afforded),
            "reason": _reason(budget.queries_afforded),
        },
        "coalition_noise": _coalition_noise(budget),
        "retrieval": None if plan.retrieval is None else _retrieval(plan.retrieval, budget.sigma),
        "verdict": {
            "service": plan.verdict.service.value,
            "promise": plan.verdict.promise.value,
            "sentence": plan.verdict.sentence,
            "weak_advantage": float(WEAK_ADVANTAGE),
            "empty_advantage": float(EMPTY_ADVANTAGE),
            "useless_gain": USELESS_GAIN,
            "good_gain": GOOD_GAIN,
        },
        "plots": None if plots is None else _plots(plots),
    }


def _plots(plots: Plots) -> dict[str, Any]:
    return {"files": [str(path) for path in plots.files], "left_out": plots.left_out}


def _coalition_noise(budget: Budget) -> dict[str, Any]:
    targets = budget.targets
    return {
        "accounts": targets.coalition,
        "queries": targets.coalition * targets.queries,
        "epsilon": targets.epsilon,
        "delta": targets.delta_policy,
        "relation": targets.relation,
        "sigma": _known(budget.coalition_sigma),
        "reason": _reason(budget.coalition_sigma),
    }


def _paper(paper: PaperNoise | Missing) -> dict[str, Any]:
    if isinstance(paper, Missing):
        return {"sigma": None, "ratio": None, "account": None, "reason": paper.reason}
    return {
        "sigma": paper.sigma,
        "ratio": paper.ratio,
        "account": _price(paper.account) if isinstance(paper.account, Price) else None,
        "reason": _reason(paper.account),
    }


def _retrieval(retrieval: RetrievalPlan, planned: str) -> dict[str, Any]:
    simulation = retrieval.simulation
    return {
        "indexes": [asdict(index) for index in retrieval.indexes],
        "left_out": [{"name": name, "rows": rows} for name, rows in retrieval.left_out.items()],
        "top_k": simulation.top_k,
        "questions": simulation.questions,
        "trials": simulation.trials,
        "seed": retrieval.trial.seed,
        "confidence": CONFIDENCE,
        "random": {
            "recall": round(simulation.random_recall, 6),
            "rank_loss": round(simulation.random_rank_loss, 6),
        },
        "quantised_recall": _interval(retrieval.quantised),
        "points": [
            {
                "sigma": point.sigma,
                "planned": point.sigma == planned,
                "recall": _interval(point.recall),
                "recall_by_index": {
                    name: _interval(recalls[at]) for name, recalls in retrieval.by_index.items()
                },
                "rank_loss": None if point.rank_loss is None else _interval(point.rank_loss),
                "returned": round(point.returned, 6),
                "account": _priced(retrieval.prices[point.sigma][0], retrieval.blind),
                "coalition": _priced(retrieval.prices[point.sigma][1], retrieval.blind),
            }
            for at, point in enumerate(simulation.points)
        ],
        "recall_costs": [_recall_cost(cost, retrieval.blind) for cost in retrieval.costs],
    }


def _recall_cost(cost: RecallCost, blind: Fraction) -> dict[str, Any]:
    return {
        "recall": cost.recall,
        "best": _cost(cost.best, blind),
        "sure": _cost(cost.sure, blind),
        "hopeful": _cost(cost.hopeful, blind),
        "beyond": cost.beyond,
    }


def _cost(cost: Cost | None, blind: Fraction) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "sigma": cost.sigma,
        "account": _priced(cost.account, blind),
        "coalition": _priced(cost.coalition, blind),
    }


def _priced(price: Price, blind: Fraction) -> dict[str, Any]:
    """Return a price with the ceiling of recall under it for any mechanism with fresh noise."""
    ceiling = ceiling_of(price, blind)
    return {
        **_price(price),
        # Rounded up: a ceiling that is too low would deny what is possible.
        "recall_ceiling": None if isinstance(ceiling, Missing) else upward(ceiling),
    }


def _row(row: BudgetRow, paper: PaperNoise | Missing) -> dict[str, Any]:
    return {
        "accounts": row.accounts,
        "windows": row.windows,
        **_price(row.price),
        "closed_form": {
            "epsilon": _known(row.closed_form),
            "delta": row.price.delta,
            "relation": row.price.relation.value,
            # Of the paper's noise, for which alone the formula holds.
            "sigma": None if isinstance(paper, Missing) else paper.sigma,
            "reason": _reason(row.closed_form),
        },
    }


def _price(price: Price) -> dict[str, Any]:
    return {
        "queries": price.queries,
        "epsilon": price.epsilon,
        "ideal_epsilon": price.ideal_epsilon,
        "delta": price.delta,
        "relation": price.relation.value,
        "advantage": price.advantage,
        "reason": NO_FINITE_EPSILON.reason if price.epsilon is None else None,
    }


def _known(value: str | int | Missing) -> str | int | None:
    return None if isinstance(value, Missing) else value


def _reason(value: object) -> str | None:
    return value.reason if isinstance(value, Missing) else None


def _interval(interval: Interval) -> dict[str, float]:
    return {name: round(value, 6) for name, value in asdict(interval).items()}
