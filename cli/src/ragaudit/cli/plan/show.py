"""What `ragaudit plan` prints: tables and a sentence, or one JSON object ("ragaudit/v1/plan").

Of the object: epsilons, sigmas and advantages are decimal strings, rounded up, against the
provider; every epsilon has its delta and relation beside it. A missing number is null, with a
``reason`` beside it that is null otherwise; a recall that no sigma reaches has null costs.
Statistics of the simulation are numbers with 6 decimals; an interval is ``{"mean", "low",
"high"}``.
"""

from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from ragaudit.cli.plan.plots import Plots
from ragaudit.cli.plan.run import Plan, RetrievalPlan
from ragaudit.encoding.console import Console
from ragaudit.privacy.guarantees import EMPTY_ADVANTAGE, WEAK_ADVANTAGE, Strength
from ragaudit.privacy.planning.budget import (
    NO_FINITE_EPSILON,
    Budget,
    BudgetRow,
    Missing,
    PaperNoise,
    Price,
)
from ragaudit.privacy.planning.retrieval import (
    CONFIDENCE,
    GOOD_GAIN,
    USELESS_GAIN,
    Cost,
    Interval,
    RecallCost,
    Service,
    ceiling_of,
)
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

_BROKEN = "bold red"

_PLANNED = ("k_max", "*")
"""How the first cells of the rows begin that the plan is about."""


def show(console: Console, plan: Plan, plots: Plots | None) -> None:
    """Print the plan, and which plots were written.

    Args:
        console: where it goes; its width decides where cells break.
        plan: the plan.
        plots: None if none were asked for.
    """
    budget = plan.budget
    _show_promise(console, budget)
    _show_budget(console, budget)
    _show_legend(console, budget)
    if plan.retrieval is not None:
        _show_retrieval(console, plan.retrieval, budget.sigma)
    if plots is not None:
        _show_plots(console, plots)
    console.print(Panel(escape(plan.verdict.sentence), style=_style(plan), expand=False))


def _style(plan: Plan) -> str:
    """Return green only for a plan that is both useful and meaningful."""
    service, promise = plan.verdict.service, plan.verdict.promise
    useless, empty = service is Service.USELESS, promise is Strength.EMPTY
    if plan.budget.kept is False or (useless and empty):
        return _BROKEN
    if service is Service.GOOD and promise is Strength.MEANINGFUL:
        return "green"
    return "dim" if service is Service.NOT_SIMULATED and not empty else "yellow"


def _show_promise(console: Console, budget: Budget) -> None:
    targets = budget.targets
    unit = (
        "one row"
        if targets.rows_per_document == 1
        else f"a document of up to {targets.rows_per_document} rows"
    )
    _say(console, f"sigma = {budget.sigma} (cosine units), {_terms(budget)}")
    _say(console, f"protected: {unit}, relation {targets.relation}")
    if budget.kept is False:
        real = _epsilon(budget.account)
        _say(console, f"this sigma does not keep that promise: epsilon is {real}")
    if isinstance(budget.queries_afforded, Missing):
        reason = budget.queries_afforded.reason
        _say(console, f"no query is afforded and no noise calibrated: {reason}")
        return
    _say(console, _paper_words(budget.paper))
    _say(
        console,
        f"within that epsilon sigma affords {budget.queries_afforded} queries of one account; "
        f"accounts that pool {targets.queries} each at delta {targets.delta_policy}: "
        f"{budget.accounts_afforded}",
    )
    _say(console, _coalition_words(budget))


def _terms(budget: Budget) -> str:
    targets = budget.targets
    terms = f"at delta {targets.delta} for one account; its queries: {targets.queries}"
    if budget.kept is None:
        return f"as given: epsilon {_epsilon(budget.account)} {terms}"
    how = "the least for" if budget.calibrated else "as given; promised:"
    return f"{how} epsilon {targets.epsilon} {terms}"


def _paper_words(paper: PaperNoise | Missing) -> str:
    if isinstance(paper, Missing):
        return f"the paper's calibration (3.4): none, {paper.reason}"
    real = (
        f"epsilon {_epsilon(paper.account)}"
        if isinstance(paper.account, Price)
        else f"nothing here, {paper.account.reason}"
    )
    return (
        f"the paper's calibration (3.4) asks for sigma = {paper.sigma}, {paper.ratio} times as "
        f"much; that noise really gives {real}"
    )


def _coalition_words(budget: Budget) -> str:
    targets, sigma = budget.targets, budget.coalition_sigma
    who = "one account" if targets.coalition == 1 else f"{targets.coalition} accounts together"
    noise = f"none, {sigma.reason}" if isinstance(sigma, Missing) else f"sigma = {sigma}"
    return f"for {who} within that epsilon at delta {targets.delta_policy}: {noise}"


def _say(console: Console, line: str) -> None:
    console.print(escape(line), highlight=False, soft_wrap=True)


def _show_budget(console: Console, budget: Budget) -> None:
    several = budget.targets.windows > 1
    formula = isinstance(budget.paper, PaperNoise)
    headings = [
        "accounts", *["windows"] * several, "queries", "epsilon", "advantage",
        *["paper's\n(5.2)"] * formula,
    ]  # fmt: skip

    def cells(row: BudgetRow, name: str = "") -> list[str]:
        bound = row.closed_form
        return [
            f"{name}{row.accounts}", *[str(row.windows)] * several, str(row.price.queries),
            _epsilon(row.price), _up(row.price.advantage),
            *["-" if isinstance(bound, Missing) else _up(bound)] * formula,
        ]  # fmt: skip

    _print_table(
        console,
        f"epsilon at delta {budget.targets.delta_policy}, by who pools",
        headings,
        [*map(cells, budget.coalitions[:-1]), cells(budget.coalition, "k_max = ")],
        [cells(budget.tenant, "slots = "), *map(cells, budget.over_windows)],
    )


def _show_legend(console: Console, plan: Budget) -> None:
    unit = plan.targets.protected_unit
    _say(
        console,
        f"advantage: true minus false positive rate, at most, of any test for one {unit}; none "
        "(x): no finite epsilon, x is what a perfect sampler would give",
    )
    if isinstance(plan.paper, PaperNoise):
        rows = (*plan.coalitions, plan.tenant, *plan.over_windows)
        bounds = [row.closed_form for row in rows]
        # Each reason once, in the order of the rows.
        missing = dict.fromkeys(bound.reason for bound in bounds if isinstance(bound, Missing))
        _say(
            console,
            f"paper's (5.2): its bound for its own noise, sigma = {plan.paper.sigma}, not for this "
            f"sigma{'; -: ' if missing else ''}{' or '.join(missing)}",
        )


def _show_retrieval(console: Console, retrieval: RetrievalPlan, planned: str) -> None:
    simulation = retrieval.simulation
    names = ", ".join(f"{index.name} (N = {index.rows})" for index in retrieval.indexes)
    sources = dict.fromkeys(index.question_source for index in retrieval.indexes)
    _say(
        console,
        f"\nretrieval on {names}: {simulation.questions} questions ({', '.join(sources)}), "
        f"{simulation.trials} draws of noise each; intervals cover 95 %, the unit is the question. "
        "For your eyes only: recall is a statistic of private data.",
    )
    for name, rows in retrieval.left_out.items():
        _say(console, f"left out: {name}, whose {rows} rows are not more than K")
    _show_points(console, retrieval, planned)
    _say(console, "rank loss in places; in brackets: the 95 % interval; *: planned")
    _say(
        console,
        "ceiling: the largest recall that any mechanism with fresh noise could have under the "
        "epsilons of its row, whatever the score: a row that answers all questions is returned "
        "with probability R, another with K/N, and counts of Binomial(m, R) and Binomial(m, K/N) "
        "must be (epsilon, delta)-indistinguishable",
    )
    if len(retrieval.indexes) > 1:
        at = [point.sigma for point in simulation.points].index(planned)
        parts = (f"{name} {_interval(of[at], 3)}" for name, of in retrieval.by_index.items())
        _say(console, f"recall at the planned sigma by index: {', '.join(parts)}")
    _say(
        console,
        f"without noise, the quantised vectors have recall {_interval(retrieval.quantised, 3)} "
        "against the real ones",
    )
    _show_costs(console, retrieval)


def _show_points(console: Console, retrieval: RetrievalPlan, planned: str) -> None:
    simulation = retrieval.simulation
    rows = []
    for point in simulation.points:
        account, coalition = retrieval.prices[point.sigma]
        loss = "-" if point.rank_loss is None else _interval(point.rank_loss, 1)
        mark = "*" if point.sigma == planned else ""
        rows.append([
            mark + point.sigma, _interval(point.recall, 3), loss, _epsilon(account),
            _epsilon(coalition), _ceiling(retrieval, account, coalition),
        ])  # fmt: skip
    _print_table(
        console,
        "what the noise does to retrieval, and what it buys",
        [
            "sigma", f"recall@{simulation.top_k}", "rank loss", "epsilon,\naccount",
            "epsilon,\nk_max", "ceiling",
        ],
        rows,
        [[
            "blind", f"{simulation.random_recall:.3f}", f"{simulation.random_rank_loss:.1f}",
            "0", "0", "",
        ]],
    )  # fmt: skip


def _show_costs(console: Console, retrieval: RetrievalPlan) -> None:
    rows = []
    for cost in retrieval.costs:
        recall = f"{cost.recall:g}"
        if cost.best is None:
            rows.append([recall, "not reached", "-", "-", "-", "-"])
            continue
        rows.append([
            recall,
            (">= " if cost.beyond else "") + cost.best.sigma,
            _epsilon(cost.best.account),
            _epsilon(cost.best.coalition),
            f"{_bound(cost.hopeful)} to {_bound(cost.sure)}",
            _ceiling(retrieval, cost.best.account, cost.best.coalition),
        ])  # fmt: skip
    headings = [
        "recall",
        "sigma",
        "epsilon,\naccount",
        "epsilon,\nk_max",
        "its 95 %\ninterval",
        "ceiling",
    ]
    _print_table(console, "what a recall costs", headings, rows)


def _ceiling(retrieval: RetrievalPlan, *prices: Price) -> str:
    """Return the lowest of the ceilings that hold; a recall without a limit may be perfect."""
    ceilings = [ceiling_of(price, retrieval.blind) for price in prices]
    limits = [ceiling for ceiling in ceilings if not isinstance(ceiling, Missing)]
    return f"{upward(min(limits, default=1.0), 3):.3f}"


def upward(value: float, places: int = 6) -> float:
    """Return a number rounded up to so many decimals.

    Args:
        value: finite.
        places: decimals of the result.
    """
    return float(
        Context(prec=50).create_decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_CEILING)
    )


def _bound(cost: Cost | None) -> str:
    return "not reached" if cost is None else _epsilon(cost.coalition)


def _show_plots(console: Console, plots: Plots) -> None:
    _say(console, f"plots written: {', '.join(str(path) for path in plots.files)}")
    for name, reason in plots.left_out.items():
        _say(console, f"plot left out: {name}, {reason}")


def _print_table(
    console: Console, title: str, headings: Sequence[str], *sections: Sequence[Sequence[str]]
) -> None:
    """Print right-aligned columns; in a narrow terminal cells break at spaces, never in numbers."""
    rows = [row for section in sections for row in section]
    columns = [[heading, *(row[at] for row in rows)] for at, heading in enumerate(headings)]
    lines = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    widths = lines if _width(lines) <= console.width else words
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False,
        collapse_padding=True, width=_width(widths),
    )  # fmt: skip
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right", width=width)
    for section in sections:
        for row in section:
            table.add_row(*row, style="bold" if row[0].startswith(_PLANNED) else "")
        table.add_section()
    console.print(table, crop=False)


def _width(columns: Sequence[int]) -> int:
    """Return the width of a table: the columns and two spaces between each two."""
    return sum(columns) + 2 * (len(columns) - 1)


def _epsilon(price: Price) -> str:
    """Return the guarantee; without one, what an ideal sampler would give, in brackets."""
    if price.epsilon is None:
        return f"none ({_up(price.ideal_epsilon, 2)})"
    return _up(price.epsilon)


def _up(text: str, digits: int = 4) -> str:
    """Return a decimal with so many significant digits, rounded up, against the provider."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(text).normalize()
    return f"{rounded:f}" if rounded < 10**4 else f"{rounded:e}".replace("e+", "e")


def _interval(interval: Interval, places: int) -> str:
    """Return the mean, and the ends of its interval in brackets."""
    mean, low, high = (
        f"{number:.{places}f}" for number in (interval.mean, interval.low, interval.high)
    )
    return f"{mean} ({low}-{high})"


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
        "quantised_recall": _interval_members(retrieval.quantised),
        "points": [
            {
                "sigma": point.sigma,
                "planned": point.sigma == planned,
                "recall": _interval_members(point.recall),
                "recall_by_index": {
                    name: _interval_members(recalls[at])
                    for name, recalls in retrieval.by_index.items()
                },
                "rank_loss": None
                if point.rank_loss is None
                else _interval_members(point.rank_loss),
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


def _interval_members(interval: Interval) -> dict[str, float]:
    return {name: round(value, 6) for name, value in asdict(interval).items()}
