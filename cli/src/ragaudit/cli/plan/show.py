"""What `ragaudit plan` prints: tables and a sentence."""

from decimal import ROUND_CEILING, Context

from ragaudit.cli.plan.run import Plan, RetrievalPlan
from ragaudit.privacy.planning import Budget, BudgetRow, Cost, Finding, Interval, Price
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

__all__ = ["show"]

_STYLES = {
    Finding.NEITHER: "green", Finding.NOT_SIMULATED: "dim", Finding.USELESS: "yellow",
    Finding.EMPTY: "yellow", Finding.BOTH: "bold red",
}  # fmt: skip


_LEGEND = (
    "advantage: true minus false positive rate, at most, of any test for one document; none (x): "
    "no finite epsilon, x is what a perfect sampler would give"
)


def show(console: Console, plan: Plan) -> None:
    """Print the plan."""
    _show_promise(console, plan.budget)
    console.print(_budget_table(plan.budget))
    _say(console, _LEGEND)
    if plan.retrieval is not None:
        _show_retrieval(console, plan.retrieval, plan.budget.sigma)
    style = _STYLES[plan.verdict.finding]
    console.print(Panel(escape(plan.verdict.sentence), style=style, expand=False))


def _show_promise(console: Console, made: Budget) -> None:
    targets = made.targets
    how = "the least for" if made.calibrated else "as given, for"
    unit = (
        "one row"
        if targets.rows_per_document == 1
        else f"a document of up to {targets.rows_per_document} rows"
    )
    lines = [
        f"sigma = {made.sigma} (cosine units), {how} epsilon {targets.epsilon or 'unbounded'} at "
        f"delta {targets.delta} for one account; its queries: {targets.queries}",
        f"protected: {unit}, relation {targets.relation}",
    ]
    if not made.kept:
        lines.append(f"this sigma does not keep that promise: epsilon is {_epsilon(made.account)}")
    if made.paper is not None:
        real = made.paper.epsilon or "without bound"
        lines.append(
            f"the paper's calibration (3.4) asks for sigma = {made.paper.sigma}, "
            f"{made.paper.ratio} times as much; that noise really gives epsilon {real}"
        )
    if made.queries_afforded is not None:
        lines.append(
            f"within that epsilon sigma affords {made.queries_afforded} queries of one account; "
            f"accounts that pool {targets.queries} each at delta {targets.delta_policy}: "
            f"{made.accounts_afforded}"
        )
    for line in lines:
        _say(console, line)


def _say(console: Console, line: str) -> None:
    console.print(escape(line), highlight=False, soft_wrap=True)


def _budget_table(made: Budget) -> Table:
    table = Table(
        title=f"epsilon at delta {made.targets.delta_policy}, by who pools",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for heading in ("accounts", "windows", "queries", "epsilon", "advantage", "paper's (5.2)"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("")
    for row in made.coalitions:
        mark = "k_max" if row is made.coalition else ""
        _add(table, row, mark)
    table.add_section()
    _add(table, made.tenant, "all slots")
    for row in made.over_windows:
        _add(table, row, "")
    return table


def _add(table: Table, row: BudgetRow, mark: str) -> None:
    table.add_row(
        str(row.accounts),
        str(row.windows),
        str(row.price.queries),
        _epsilon(row.price),
        _up(row.price.advantage),
        "-" if row.closed_form is None else _up(row.closed_form),
        mark,
        style="bold" if mark == "k_max" else "",
    )


def _show_retrieval(console: Console, found: RetrievalPlan, planned: str) -> None:
    simulation = found.simulation
    names = ", ".join(f"{each.name} (N = {each.rows})" for each in found.indexes)
    _say(
        console,
        f"\nretrieval on {names}: {simulation.questions} questions, {simulation.trials} draws of "
        f"noise each; intervals cover 95 %, the unit is the question. For your eyes only: recall "
        "is a statistic of private data.",
    )
    table = Table(
        title="what the noise does to retrieval, and what it buys",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for heading in (
        "sigma", f"recall@{simulation.top_k}", "rank loss", "epsilon, account",
        "epsilon, k_max",
    ):  # fmt: skip
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("")
    for point in simulation.points:
        account, coalition = found.prices[point.sigma]
        mark = "planned" if point.sigma == planned else ""
        loss = "-" if point.rank_loss is None else _interval(point.rank_loss, 1)
        table.add_row(
            point.sigma, _interval(point.recall, 3), loss, _epsilon(account), _epsilon(coalition),
            mark, style="bold" if mark else "",
        )  # fmt: skip
    table.add_section()
    table.add_row(
        "blind", f"{simulation.random_recall:.3f}", f"{simulation.random_rank_loss:.1f}",
        "0", "0", "",
    )  # fmt: skip
    console.print(table)
    _say(console, "rank loss in places; ±: half of the 95 % interval")
    _say(
        console,
        f"without noise, the quantised vectors have recall {_interval(found.quantised, 3)} against "
        "the real ones",
    )
    console.print(_costs_table(found))


def _costs_table(found: RetrievalPlan) -> Table:
    table = Table(title="what a recall costs", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("recall", "sigma", "epsilon, account", "epsilon, k_max"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("its 95 % interval", justify="right")
    for cost in found.costs:
        wanted = f"{cost.recall:g}"
        if cost.best is None:
            table.add_row(wanted, "not reached", "-", "-", "-")
            continue
        table.add_row(
            wanted,
            (">= " if cost.beyond else "") + cost.best.sigma,
            _epsilon(cost.best.account),
            _epsilon(cost.best.coalition),
            f"{_bound(cost.hopeful)} to {_bound(cost.sure)}",
        )
    return table


def _bound(cost: Cost | None) -> str:
    return "not reached" if cost is None else _epsilon(cost.coalition)


def _epsilon(price: Price) -> str:
    """The guarantee; where there is none, what an ideal sampler would give, in brackets."""
    if price.epsilon is None:
        return f"none ({_up(price.ideal_epsilon, 2)})"
    return _up(price.epsilon)


def _up(text: str, digits: int = 4) -> str:
    """A decimal with so many significant digits, rounded up, against the provider."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(text).normalize()
    return f"{rounded:f}" if rounded < 10**4 else f"{rounded:e}".replace("e+", "e")


def _interval(interval: Interval, places: int) -> str:
    """The mean, and the farther end of its interval as a margin."""
    margin = max(interval.high - interval.mean, interval.mean - interval.low)
    return f"{interval.mean:.{places}f} ±{margin:.{places}f}"
