"""The tables of the document, in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragaudit.lab.bench.quantities import digits, duration
from ragaudit.lab.bench.suite.fitting import Fit, fit, local_exponent
from ragaudit.lab.bench.suite.results import Results
from ragaudit.lab.bench.suite.series import Series
from ragaudit.lab.bench.suite.targets import Outcome, measurement

__all__ = [
    "conditions",
    "cores",
    "growth",
    "measurements",
    "overhead",
    "reached",
    "table",
]

NOTHING = "not measured"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """Return a Markdown table.

    Args:
        headings: of the columns.
        rows: cells, as many as headings in each.
        numbers: whether columns but the first stand to the right.
    """
    aligned = ["---", *("---:" if numbers else "---" for _ in headings[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, aligned, *rows))


def conditions(results: Results) -> str:
    """Return machine, software, commits and dates of the results, as a list."""
    several = results.results
    machines = _distinct(_machine(each["machine"]) for each in several)
    software = _distinct(
        ", ".join(f"{name} {version}" for name, version in each["software"].items())
        for each in several
    )
    commits = _distinct(f"`{each['commit']}`" for each in several)
    days = sorted(each["date"][:10] for each in several)
    dates = _distinct((days[0], days[-1])) if days else []
    told = {"machine": machines, "software": software, "commit": commits, "date": dates}
    return "\n".join(f"- {name}: {'; '.join(values) or NOTHING}" for name, values in told.items())


def _machine(of: Mapping[str, Any]) -> str:
    return (
        f"{of['processor']} (family/model/stepping {of['family']}; {', '.join(of['flags'])}), "
        f"{of['cores']} cores, {digits(of['memory_gib'])} GiB, {of['system']}"
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def reached(outcomes: Sequence[Outcome]) -> str:
    """Return each target beside what was measured, as a table."""
    headings = (
        "", "N", "target", "measured", "measured / target", "", "peak memory", "runs",
        "against the baseline",
    )  # fmt: skip
    return table(headings, [_reached(each) for each in outcomes])


def _reached(outcome: Outcome) -> list[str]:
    unit, found = outcome.target.unit, outcome.measurement
    memory = outcome.target.memory_gib.get(outcome.rows)
    limit = _limit(outcome.most, unit) + (f", {memory:g} GiB" if memory else "")
    start = [outcome.target.what, f"{outcome.rows:,}", limit]
    if found is None or outcome.value is None:
        return [*start, NOTHING, "", "", "", "", ""]
    ratio, baseline = found["ratio"], found["baseline"]
    return [
        *start,
        _amount(outcome.value, unit),
        digits(outcome.value / outcome.most),
        "met" if outcome.met else "**not met**",
        _peak(found),
        _runs(found),
        "" if unit == "bytes" else f"{digits(ratio)} × {baseline}",
    ]


def _amount(value: float, unit: str) -> str:
    return f"{value:,.0f} bytes" if unit == "bytes" else duration(value)


def _limit(value: float, unit: str) -> str:
    """A target as it was stated, without digits that it does not have."""
    if unit == "bytes":
        return _amount(value, unit)
    return f"{value:g} s" if value >= 1 else f"{1000 * value:g} ms"


def _peak(found: Mapping[str, Any]) -> str:
    if found["peak_mib"] is None:
        return ""
    return f"{found['peak_mib']:,.0f} MiB" + (" *" if found["peak_of_process"] else "")


def _runs(found: Mapping[str, Any]) -> str:
    return f"{found['runs']}" + ("" if found["warmed_up"] else ", cold")


def growth(series: Sequence[Series], x: str, unit: Mapping[str, str]) -> str:
    """Return each series with the exponent of its growth, as a table.

    Args:
        series: with rising x.
        x: name of the abscissa.
        unit: by the series' name; seconds where a name is missing.
    """
    columns = sorted({a for each in series for a, _ in each.points})
    headings = ("", *(f"{x} = {a:,.0f}" for a in columns), "exponent", "95 %", "last step")
    rows = []
    for each in series:
        values = dict(each.points)
        shown = [
            _amount(values[a], unit.get(each.name, "seconds")) if a in values else ""
            for a in columns
        ]
        rows.append([each.name, *shown, *_exponents(each)])
    return table(headings, rows)


def _exponents(series: Series) -> tuple[str, str, str]:
    found, last = fit(series.points), local_exponent(series.points)
    if found is None or last is None:
        return "", "", ""
    return f"{found.exponent:.2f}", _interval(found), f"{last:.2f}"


def _interval(found: Fit) -> str:
    if found.half_width is None:
        return "two points"
    low, high = found.exponent - found.half_width, found.exponent + found.half_width
    return f"{low:.2f} to {high:.2f}"


def cores(series: Sequence[Series]) -> str:
    """Return each series with its speed-up from the fewest to the most cores, as a table."""
    columns = sorted({a for each in series for a, _ in each.points})
    headings = (
        "",
        *(f"{a:.0f} core{'s' if a > 1 else ''}" for a in columns),
        "speed-up",
        "exponent",
    )
    rows = []
    for each in series:
        values = dict(each.points)
        shown = [duration(values[a]) if a in values else "" for a in columns]
        speed_up = digits(each.points[0][1] / each.points[-1][1])
        rows.append([each.name, *shown, speed_up, _exponents(each)[0]])
    return table(headings, rows)


def overhead(results: Sequence[Mapping[str, Any]], answer: str, baselines: Sequence[str]) -> str:
    """Return answering beside exact search, by N, as a table.

    Args:
        results: of the scenario "answer".
        answer: name of the whole answer's measurement.
        baselines: names of the searches'.
    """
    headings = ("N", *baselines, answer, *(f"ratio to {each.split()[0]}" for each in baselines))
    rows = []
    for each in sorted(results, key=lambda result: float(result["sizes"]["rows"])):
        names = {found["name"] for found in each["measurements"]}
        searches = [
            measurement(each, name)["median"] if name in names else None for name in baselines
        ]
        whole = measurement(each, answer)["median"]
        rows.append(
            [
                f"{each['sizes']['rows']:,}",
                *("" if found is None else duration(found) for found in searches),
                duration(whole),
                *("" if found is None else digits(whole / found) for found in searches),
            ]
        )
    return table(headings, rows)


def measurements(result: Mapping[str, Any]) -> str:
    """Return everything of one result, as a table."""
    headings = ("", "median", "a record", "lowest", "highest", "runs", "ratio", "peak", "bytes")
    return table(headings, [_measurement(each) for each in result["measurements"]])


def _measurement(found: Mapping[str, Any]) -> list[str]:
    single = found["records"] == 1
    return [
        found["name"],
        duration(found["median"]),
        "" if single else duration(found["median"] / found["records"]),
        duration(found["lowest"]),
        duration(found["highest"]),
        _runs(found),
        "" if found["ratio"] is None else digits(found["ratio"]),
        _peak(found),
        "" if found["size_bytes"] is None else f"{found['size_bytes']:,}",
    ]
