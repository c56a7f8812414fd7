"""The plan as one JSON object (format "ragaudit/v1/plan").

Epsilons, sigmas and advantages are decimal strings, rounded up, against the provider; every
epsilon has its delta and relation beside it. What does not exist is null, with a ``reason`` beside
it that is null otherwise; a recall that no sigma reaches has null costs. Statistics of the
simulation are numbers with 6 decimals; an interval is ``{"mean", "low", "high"}``.
"""

from dataclasses import asdict
from typing import Any

from ragaudit.cli.plan.files import Plots
from ragaudit.cli.plan.run import Plan, RetrievalPlan
from ragaudit.privacy.planning import (
    CONFIDENCE,
    EMPTY_ADVANTAGE,
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
)

__all__ = ["FORMAT", "document"]

FORMAT = "ragaudit/v1/plan"


def document(plan: Plan, plots: Plots | None) -> dict[str, Any]:
    """Return the members, ready for JSON; ``plots`` is None if none were asked for."""
    made = plan.budget
    return {
        "format": FORMAT,
        "targets": asdict(made.targets),
        "protected_unit": made.targets.protected_unit,
        "sigma": made.sigma,
        "calibrated": made.calibrated,
        "account": {**_price(made.account), "kept": made.kept},
        "coalitions": [_row(each, made.paper) for each in made.coalitions],
        "tenant": _row(made.tenant, made.paper),
        "over_windows": [_row(each, made.paper) for each in made.over_windows],
        "paper": _paper(made.paper),
        "affords": {
            "queries": _known(made.queries_afforded),
            "accounts": _known(made.accounts_afforded),
            "reason": _reason(made.queries_afforded),
        },
        "coalition_noise": _coalition_noise(made),
        "retrieval": None if plan.retrieval is None else _retrieval(plan.retrieval, made.sigma),
        "verdict": {
            "finding": plan.verdict.finding.value,
            "sentence": plan.verdict.sentence,
            "empty_advantage": float(EMPTY_ADVANTAGE),
            "useless_gain": USELESS_GAIN,
        },
        "plots": None if plots is None else _plots(plots),
    }


def _plots(plots: Plots) -> dict[str, Any]:
    return {"files": [str(each) for each in plots.files], "left_out": plots.left_out}


def _coalition_noise(made: Budget) -> dict[str, Any]:
    targets = made.targets
    return {
        "accounts": targets.coalition,
        "queries": targets.coalition * targets.queries,
        "epsilon": targets.epsilon,
        "delta": targets.delta_policy,
        "relation": targets.relation,
        "sigma": _known(made.coalition_sigma),
        "reason": _reason(made.coalition_sigma),
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


def _retrieval(found: RetrievalPlan, planned: str) -> dict[str, Any]:
    simulation = found.simulation
    return {
        "indexes": [asdict(each) for each in found.indexes],
        "left_out": [{"name": name, "rows": rows} for name, rows in found.left_out.items()],
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
                "recall_by_index": {
                    name: _interval(recalls[at]) for name, recalls in found.by_index.items()
                },
                "rank_loss": None if each.rank_loss is None else _interval(each.rank_loss),
                "returned": round(each.returned, 6),
                "account": _price(found.prices[each.sigma][0]),
                "coalition": _price(found.prices[each.sigma][1]),
            }
            for at, each in enumerate(simulation.points)
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


def _row(row: BudgetRow, paper: PaperNoise | Missing) -> dict[str, Any]:
    return {
        "accounts": row.accounts,
        "windows": row.windows,
        **_price(row.price),
        "closed_form": {
            "epsilon": _known(row.closed_form),
            "delta": row.price.delta,
            "relation": row.price.adjacency.value,
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
        "relation": price.adjacency.value,
        "advantage": price.advantage,
        "reason": NO_FINITE_EPSILON.reason if price.epsilon is None else None,
    }


def _known(value: str | int | Missing) -> str | int | None:
    return None if isinstance(value, Missing) else value


def _reason(value: object) -> str | None:
    return value.reason if isinstance(value, Missing) else None


def _interval(interval: Interval) -> dict[str, float]:
    return {name: round(value, 6) for name, value in asdict(interval).items()}
