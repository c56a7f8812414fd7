"""The plan as one JSON object (format "ragaudit/v1/plan").

Epsilons, sigmas and advantages are decimal strings, rounded up, against the provider; every
epsilon has its delta and relation beside it. What does not exist is null, with a ``reason`` beside
it that is null otherwise; a recall that no sigma reaches has null costs. Statistics of the
simulation are numbers with 6 decimals; an interval is ``{"mean", "low", "high"}``.
"""

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from ragaudit.cli.plan.files import Plots
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
                "account": _priced(found.prices[each.sigma][0], found.blind),
                "coalition": _priced(found.prices[each.sigma][1], found.blind),
            }
            for at, each in enumerate(simulation.points)
        ],
        "recall_costs": [_recall_cost(each, found.blind) for each in found.costs],
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
    """A price with the ceiling of recall under it, which no mechanism with fresh noise exceeds."""
    ceiling = ceiling_of(price, blind)
    return {
        **_price(price),
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
