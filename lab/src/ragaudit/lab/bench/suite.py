"""The steps of `ragaudit bench all`: measure, profile, and make the document and its plots.

The document is made from stored results alone, beside figures that others have published
(docs/benchmarks/published.toml): quoted, never measured.
"""

import os
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from ragaudit.cli import figures as drawing
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench import answering, groth16, matrix, profiles, workload
from ragaudit.lab.bench.harness import available_cores, digits, duration
from ragaudit.lab.bench.matrix import (
    Case,
    Fit,
    Outcome,
    Results,
    Series,
    Target,
    commit,
    fit,
    load_cases,
    local_exponent,
    measurement,
    memory_against_rows,
    outcomes,
    reading,
    run_cases,
    table,
)
from ragaudit.lab.bench.profiles import Bounds, Profile, unmet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTHING = "not measured"


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


def growth_table(series: Sequence[Series], x: str, unit: Mapping[str, str]) -> str:
    """Return each series with the exponent of its growth, as a table.

    Args:
        series: with rising x.
        x: name of the abscissa.
        unit: by the series' name; seconds where a name is missing.
    """
    columns, rows = _cells(series, unit)
    headings = ("", *(f"{x} = {a:,.0f}" for a in columns), "exponent", "95 %", "last step")
    shown = zip(rows, map(_exponents, series), strict=True)
    return table(headings, [[*row, *exponents] for row, exponents in shown])


def _cells(
    series: Sequence[Series], unit: Mapping[str, str]
) -> tuple[list[float], list[list[str]]]:
    """The abscissas of all series, and the name and the values of each."""
    columns = sorted({a for each in series for a, _ in each.points})
    rows = []
    for each in series:
        values, of = dict(each.points), unit.get(each.name, "seconds")
        rows.append([each.name, *(_amount(values[a], of) if a in values else "" for a in columns)])
    return columns, rows


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


def cores_table(series: Sequence[Series]) -> str:
    """Return each series with its speed-up from the fewest to the most cores, as a table."""
    columns, rows = _cells(series, {})
    shown = (f"{a:.0f} core{'s' if a > 1 else ''}" for a in columns)
    faster = [digits(each.points[0][1] / each.points[-1][1]) for each in series]
    cells = zip(rows, faster, map(_exponents, series), strict=True)
    found = [[*row, times, exponents[0]] for row, times, exponents in cells]
    return table(("", *shown, "speed-up", "exponent"), found)


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


_MARKERS = "osD^vPX*"


def draw_growth(
    name: str,
    panels: Mapping[str, Sequence[Series]],
    x: str,
    y: str,
    targets: Mapping[str, Target] | None = None,
) -> dict[str, bytes]:
    """Draw series on two logarithmic axes, one panel beside the other; targets as dashes.

    Args:
        name: of the files, without a suffix.
        panels: series by the panel's title.
        x, y: labels of the axes.
        targets: by the name of the series whose largest values they state.
    """
    with drawing.canvas() as figure:
        figure.set_size_inches(4.6 * len(panels), 4.6)
        for axes, (title, several) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
        ):
            axes.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
            for number, each in enumerate(several):
                _draw(axes, number, each, (targets or {}).get(each.name))
            if several:
                axes.legend(loc="upper left")
        return drawing.render(figure, name)


def _draw(axes: "Axes", number: int, series: Series, target: Target | None) -> None:
    color, marker = drawing.COLORS[number % len(drawing.COLORS)], _MARKERS[number % len(_MARKERS)]
    x, y = [a for a, _ in series.points], [b for _, b in series.points]
    axes.plot(x, y, color=color, marker=marker, label=series.name)
    if target is not None:
        allowed = zip(*sorted(target.most.items()), strict=True)
        axes.plot(*allowed, color=color, linestyle="--", linewidth=0.8, alpha=0.7)


def speed_up(name: str, several: Sequence[Series], x: str, y: str) -> dict[str, bytes]:
    """Draw how many times faster than with the fewest cores, against the number of cores.

    Args:
        name: of the files, without a suffix.
        several: seconds against cores, with at least two points each.
        x, y: labels of the axes.
    """
    with drawing.canvas() as figure:
        figure.set_size_inches(9.2, 4.2)
        axes = figure.subplots()
        axes.set(xlabel=x, ylabel=y)
        most = 1.0
        for number, each in enumerate(several):
            (least, longest), *_ = each.points
            found = tuple((a / least, longest / b) for a, b in each.points)
            most = max(most, *(a for a, _ in found))
            _draw(axes, number, Series(each.name, found), None)
        axes.plot([1, most], [1, most], color="black", linestyle=":", label="ideal")
        axes.set_xticks([float(each) for each in range(1, int(most) + 1)])
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return drawing.render(figure, name)


NONE = "Not part of this document."

_MODEL = ("circuit", "rows", "constraints", "prove_seconds", "setup_seconds")
_OTHERS = ("system", "proves", "setting", "figure", "note", "source", "version_date", "opened")


def load_published(path: Path) -> Mapping[str, Any]:
    """Return the file's tables; nothing if there is no file.

    Args:
        path: docs/benchmarks/published.toml.

    Raises:
        MalformedError: not TOML, or an entry without one of the members that are shown.
    """
    if not path.exists():
        return {}
    with reading("published figures", path):
        found = tomllib.loads(path.read_text())
    for name, members in (("table1", _MODEL), ("published", _OTHERS)):
        for number, each in enumerate(found.get(name, []), start=1):
            missing = [member for member in members if member not in each]
            if missing:
                where = f"{path}, {name} {number}"
                raise MalformedError(f"no {', '.join(missing)}", where=where)
    return found


def render_published(figures: Mapping[str, Any], groth16: Sequence[Mapping[str, Any]]) -> str:
    """Return the paper's table beside what its circuits have when built, then others' figures.

    Args:
        figures: of `load`.
        groth16: reports of the comparison, for the circuits as built.
    """
    parts = [
        _model(figures, groth16) if "table1" in figures else "",
        _others(figures["published"]) if "published" in figures else "",
    ]
    return "\n\n".join(part for part in parts if part) or NONE


def _model(figures: Mapping[str, Any], groth16: Sequence[Mapping[str, Any]]) -> str:
    said = figures.get("source_of_table1", {})
    lines = [
        f"{name}: {said[name]}" for name in ("source", "place", "kind", "note") if name in said
    ]
    headings = (
        "circuit", "N", "constraints, published", "built, index free", "index committed",
        "prove, published", "set-up, published",
    )  # fmt: skip
    rows = [
        [
            each["circuit"],
            f"{each['rows']:,}",
            f"{each['constraints']:,.0f}",
            _built(each, groth16, "free"),
            _built(each, groth16, "committed"),
            f"{each['prove_seconds']:g} s",
            f"{each['setup_seconds']:g} s",
        ]
        for each in figures["table1"]
    ]
    about = "\n".join(f"- {_line(line)}" for line in lines)
    return "\n\n".join(part for part in (about, table(headings, rows)) if part)


def _built(each: Mapping[str, Any], groth16: Sequence[Mapping[str, Any]], index: str) -> str:
    """Constraints of the circuit as it was built at d = 384 and K = 5."""
    wanted = (each["circuit"], each["rows"], index, 384, 5)
    for report in groth16:
        of = (report["circuit"], report["rows"], report["index"])
        if (*of, report["dimension"], report["top_k"]) == wanted:
            return f"{report['constraints']:,}"
    return ""


def _others(figures: Sequence[Mapping[str, Any]]) -> str:
    headings = ("system", "what is proved", "setting", "figure", "remark", "source, opened")
    rows = [
        [
            *(_line(str(each[name])) for name in ("system", "proves", "setting", "figure", "note")),
            _line(f"<{each['source']}> of {each['version_date']}; opened {each['opened']}"),
        ]
        for each in figures
    ]
    return table(headings, rows, numbers=False)


def _line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


_UNDECIDED_ROWS = 100_000
_CORES = 2


@dataclass(frozen=True)
class Inputs:
    """What the document is made of.

    Attributes:
        template: Markdown with ``$name`` where a table goes.
        groth16: reports of the Groth16 comparison.
        published: published figures of others.
        once: sections of what was measured once, of benchmarks/once.toml.
    """

    template: str
    targets: Sequence[Target]
    results: Results
    profiles: Sequence[Profile]
    bounds: Bounds
    groth16: Sequence[Mapping[str, Any]]
    published: Mapping[str, Any]
    once: Sequence[Mapping[str, Any]] = ()


def render_document(inputs: Inputs, document: Path, figures: Path) -> None:
    """Write the document and its figures.

    Args:
        inputs: everything that is shown; nothing is measured here.
        document: the Markdown file to write.
        figures: a folder, made if it is missing.

    Raises:
        MalformedError: the template names something that there is not.
    """
    results = inputs.results
    measured = list(outcomes(inputs.targets, results))
    by_rows = [each for each in matrix.against_rows(inputs.targets, results) if each.points]
    rows = min(_UNDECIDED_ROWS, _largest(results, "prove"))
    by_undecided = matrix.against_undecided(results, rows, _CORES)
    by_cores = matrix.against_cores(results)
    values = {
        "conditions": conditions(results),
        "targets": reached(measured),
        "unmet": unmet(measured, inputs.profiles, inputs.bounds),
        "growth_rows": growth_table(by_rows, "N", {t.what: t.unit for t in inputs.targets}),
        "growth_undecided": "\n\n".join(growth_table([each], "u", {}) for each in by_undecided),
        "undecided_rows": f"{rows:,}",
        "growth_cores": cores_table(by_cores),
        "overhead": _overhead(results),
        "audit": _whole(results, "audit"),
        "over_http": _whole(results, "answer-http"),
        "reference": _whole(results, "reference"),
        "groth16": groth16.render(inputs.groth16, results),
        "published": render_published(inputs.published, inputs.groth16),
        "once": "\n\n".join(map(_once, inputs.once)),
        "figures": Path(os.path.relpath(figures, document.parent)).as_posix(),
    }
    try:
        text = Template(inputs.template).substitute(values)
    except (KeyError, ValueError) as error:
        raise MalformedError(
            f"template: {error}", where="benchmarks/document.md", expected=", ".join(values)
        ) from error
    figures.mkdir(parents=True, exist_ok=True)
    for name, data in _figures(inputs.targets, results, by_rows, by_undecided, by_cores).items():
        if name.endswith(".svg"):
            (figures / name).write_bytes(data)
    document.write_text(text)


def _load_once(path: Path) -> Sequence[Mapping[str, Any]]:
    if not path.exists():
        return ()
    with reading("single measurements", path):
        return list(tomllib.loads(path.read_text(encoding="utf-8"))["section"])


def _once(section: Mapping[str, Any]) -> str:
    commands = "\n".join(f"    {command}" for command in section["commands"])
    tables = [table(each["headings"], each["rows"], numbers=False) for each in section["table"]]
    parts = (f"## {section['title']}", section["about"], commands, *tables)
    return "\n\n".join(part for part in parts if part)


def _largest(results: Results, scenario: str) -> int:
    """The largest N of a scenario; 0 if it was not measured."""
    of = (each for each in results.results if each["scenario"] == scenario)
    return max((int(each["sizes"]["rows"]) for each in of), default=0)


def _overhead(results: Results) -> str:
    of = [
        each for each in results.results if (each["scenario"], each["cores"]) == ("answer", _CORES)
    ]
    if not of:
        return NOTHING
    largest = max(of, key=lambda each: int(each["sizes"]["rows"]))
    summary = overhead(of, answering.ANSWER, _searches(of))
    return f"{summary}\n\nIts parts at N = {largest['sizes']['rows']:,}:\n\n" + measurements(
        largest
    )


def _whole(results: Results, scenario: str) -> str:
    """Every result of a scenario, each with its sizes."""
    of = [each for each in results.results if each["scenario"] == scenario]
    return "\n\n".join(f"{_sizes(each)}:\n\n{measurements(each)}" for each in of) or (NOTHING)


def _sizes(result: Mapping[str, Any]) -> str:
    sizes = result["sizes"]
    return (
        f"N = {sizes['rows']:,}, d = {sizes['dimension']}, K = {sizes['top_k']}, "
        f"sigma = {sizes['sigma']}, R = {sizes['records']:,}, {result['cores']} cores"
    )


def _figures(
    targets: Sequence[Target],
    results: Results,
    by_rows: Sequence[Series],
    by_undecided: Sequence[Series],
    by_cores: Sequence[Series],
) -> dict[str, bytes]:
    timed = {each.what: each for each in targets if each.unit != "bytes"}
    prover = [e for e in by_rows if e.name in timed and "prove" in timed[e.name].measurement]
    verifier = [e for e in by_rows if e.name in timed and e not in prover]
    memory = memory_against_rows(targets, results)
    prover_and_verifier = {"index, prove": prover, "verify, answer": verifier}
    return {
        **draw_growth("rows", prover_and_verifier, "N", "seconds", timed),
        **draw_growth("undecided", {"one record": by_undecided}, "|U|", "seconds"),
        **draw_growth("memory", {"peak memory": memory}, "N", "MiB"),
        **speed_up("cores", by_cores, "cores", "times as fast as with one core"),
    }


def _searches(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The searches that answering was measured beside."""
    names = {found["name"] for each in results for found in each["measurements"]}
    every = (workload.NUMPY, workload.FAISS, workload.FAISS_INT8)
    return [name for name in every if name in names or name != workload.FAISS_INT8]


@dataclass(frozen=True)
class Places:
    """Where everything is read and written."""

    inputs: Path
    results: Path
    document: Path
    figures: Path

    @classmethod
    def of(cls, inputs: Path, output: Path | None) -> "Places":
        """Return where everything is read and written.

        Args:
            inputs: folder of matrix, targets, template and bounds.
            output: folder for all that is written; None for the repository that ``inputs`` lies in.
        """
        if output is None:
            docs = inputs.parent / "docs"
            document = docs / "generated" / "measurements.md"
            return cls(inputs, inputs / "results", document, docs / "benchmarks")
        return cls(inputs, output, output / "measurements.md", output / "benchmarks")

    @property
    def measured(self) -> Path:
        return self.results / "results.json"

    @property
    def groth16(self) -> Path:
        return self.results / "groth16.json"

    @property
    def profiles(self) -> Path:
        return self.results / "profiles.json"


def measure(
    places: Places,
    max_rows: int | None,
    keep: Path | None,
    *,
    profile: bool,
    tell: Callable[[str], None],
) -> None:
    """Measure the matrix, and profile the targets that are not met.

    Args:
        places: where everything is.
        max_rows: leave out cases with more rows; None for no limit.
        keep: folder of rows and commitments; a temporary one if it is not given.
        profile: whether to profile the targets that are not met.
        tell: called with a line about each case.

    Raises:
        MalformedError: matrix or targets.
        InternalError: a measurement failed; what was measured before it is stored.
    """
    cases = load_cases(places.inputs / "matrix.toml", available_cores(), max_rows)
    goals = matrix.load_targets(places.inputs / "targets.toml")
    head = commit(Path.cwd())
    with tempfile.TemporaryDirectory(prefix="ragaudit-bench-") as temporary:
        folder = Path(temporary) if keep is None else keep
        found = run_cases(cases, places.measured, head, tell, folder)
        if profile:
            missed = [each for each in outcomes(goals, found) if each.met is False]
            _profile(missed, cases, places.profiles, folder, head, tell)


def compare(places: Places, max_rows: int | None, tell: Callable[[str], None]) -> None:
    """Measure the Groth16 comparison that the matrix declares.

    Args:
        places, max_rows, tell: as of :func:`measure`.

    Raises:
        MalformedError: the matrix.
        UnsupportedError: there is no cargo, or no crate.
        InternalError: a run failed; the reports before it are stored.
    """
    declared = groth16.circuits(places.inputs / "matrix.toml")
    fitting = [each for each in declared if max_rows is None or each.rows <= max_rows]
    groth16.run(fitting, places.groth16, places.inputs.parent, commit(Path.cwd()), tell)


def _profile(
    missed: Sequence[Outcome],
    cases: Sequence[Case],
    path: Path,
    folder: Path,
    commit: str,
    tell: Callable[[str], None],
) -> None:
    """Sample what is not yet sampled at this commit; each is stored at once."""
    if not profiles.possible():
        tell("perf is not installed: no profiles of the targets that are not met")
        return
    for each in missed:
        stored = {(known.what, known.rows): known for known in profiles.load(path)}
        key = (each.target.what, each.rows)
        case = next((one for one in cases if each.result and one.matches(each.result)), None)
        if case is None or (key in stored and stored[key].commit == commit):
            continue
        tell(f"profile: {each.target.what}, N = {each.rows:,}")
        stored[key] = profiles.take(each, case, folder, commit)
        profiles.save(path, list(stored.values()))


def render(places: Places) -> None:
    """Make document and plots from what is stored.

    Args:
        places: where everything is.

    Raises:
        MalformedError: an input.
    """
    inputs = places.inputs
    with reading("template", inputs):
        template = (inputs / "document.md").read_text()
    made = Inputs(
        template,
        matrix.load_targets(inputs / "targets.toml"),
        Results.load(places.measured),
        profiles.load(places.profiles),
        profiles.bounds(inputs / "bounds.toml"),
        groth16.load(places.groth16),
        load_published(inputs.parent / "docs" / "benchmarks" / "published.toml"),
        _load_once(inputs / "once.toml"),
    )
    places.document.parent.mkdir(parents=True, exist_ok=True)
    render_document(made, places.document, places.figures)
