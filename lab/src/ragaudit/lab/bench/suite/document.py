"""The document and its plots, from the stored results alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from matplotlib.figure import Figure
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench import answering, searching
from ragaudit.lab.bench.suite import groth16, plots, published, series, tables
from ragaudit.lab.bench.suite.profiles import Bounds, Profile, unmet
from ragaudit.lab.bench.suite.results import Results
from ragaudit.lab.bench.suite.targets import Target, outcomes

__all__ = ["Inputs", "render"]

_UNDECIDED_ROWS = 100_000
_CORES = 2


@dataclass(frozen=True)
class Inputs:
    """What the document is made of.

    Attributes:
        template: Markdown with ``$name`` where a table goes.
        groth16: reports of the Groth16 comparison.
        published: published figures of others.
    """

    template: str
    targets: Sequence[Target]
    results: Results
    profiles: Sequence[Profile]
    bounds: Bounds
    groth16: Sequence[Mapping[str, Any]]
    published: Mapping[str, Any]


def render(inputs: Inputs, document: Path, figures: Path) -> None:
    """Write the document and its figures; ``figures`` lies beside or below the document.

    Args:
        inputs: everything that is shown; nothing is measured here.
        document: the Markdown file to write.
        figures: a folder, made if it is missing.

    Raises:
        MalformedError: the template names something that there is not.
    """
    results = inputs.results
    measured = list(outcomes(inputs.targets, results))
    by_rows = [each for each in series.against_rows(inputs.targets, results) if each.points]
    rows = min(_UNDECIDED_ROWS, _largest(results, "prove"))
    by_undecided = series.against_undecided(results, rows, _CORES)
    by_cores = series.against_cores(results)
    values = {
        "conditions": tables.conditions(results),
        "targets": tables.reached(measured),
        "unmet": unmet(measured, inputs.profiles, inputs.bounds),
        "growth_rows": tables.growth(by_rows, "N", {t.what: t.unit for t in inputs.targets}),
        "growth_undecided": "\n\n".join(tables.growth([each], "u", {}) for each in by_undecided),
        "undecided_rows": f"{rows:,}",
        "growth_cores": tables.cores(by_cores),
        "overhead": _overhead(results),
        "audit": _whole(results, "audit"),
        "over_http": _whole(results, "answer-http"),
        "reference": _whole(results, "reference"),
        "groth16": groth16.render(inputs.groth16, results),
        "published": published.render(inputs.published, inputs.groth16),
    }
    try:
        text = Template(inputs.template).substitute(values)
    except (KeyError, ValueError) as error:
        raise MalformedError(
            f"template: {error}", where="benchmarks/document.md", expected=", ".join(values)
        ) from error
    figures.mkdir(parents=True, exist_ok=True)
    for name, figure in _figures(inputs.targets, results, by_rows, by_undecided, by_cores).items():
        plots.save(figure, figures / name)
    document.write_text(text)


def _largest(results: Results, scenario: str) -> int:
    """The largest N of a scenario; 0 if it was not measured."""
    of = (each for each in results.results if each["scenario"] == scenario)
    return max((int(each["sizes"]["rows"]) for each in of), default=0)


def _overhead(results: Results) -> str:
    of = [
        each for each in results.results if (each["scenario"], each["cores"]) == ("answer", _CORES)
    ]
    if not of:
        return tables.NOTHING
    largest = max(of, key=lambda each: int(each["sizes"]["rows"]))
    summary = tables.overhead(of, answering.ANSWER, _searches(of))
    return f"{summary}\n\nIts parts at N = {largest['sizes']['rows']:,}:\n\n" + tables.measurements(
        largest
    )


def _whole(results: Results, scenario: str) -> str:
    """Every result of a scenario, each with its sizes."""
    of = [each for each in results.results if each["scenario"] == scenario]
    return "\n\n".join(f"{_sizes(each)}:\n\n{tables.measurements(each)}" for each in of) or (
        tables.NOTHING
    )


def _sizes(result: Mapping[str, Any]) -> str:
    sizes = result["sizes"]
    return (
        f"N = {sizes['rows']:,}, d = {sizes['dimension']}, K = {sizes['top_k']}, "
        f"sigma = {sizes['sigma']}, R = {sizes['records']:,}, {result['cores']} cores"
    )


def _figures(
    targets: Sequence[Target],
    results: Results,
    by_rows: Sequence[series.Series],
    by_undecided: Sequence[series.Series],
    by_cores: Sequence[series.Series],
) -> Mapping[str, Figure]:
    timed = {each.what: each for each in targets if each.unit != "bytes"}
    prover = [e for e in by_rows if e.name in timed and "prove" in timed[e.name].measurement]
    verifier = [e for e in by_rows if e.name in timed and e not in prover]
    memory = series.memory_against_rows(targets, results)
    prover_and_verifier = {"index, prove": prover, "verify, answer": verifier}
    return {
        "rows.svg": plots.growth(prover_and_verifier, "N", "seconds", timed),
        "undecided.svg": plots.growth({"one record": by_undecided}, "|U|", "seconds"),
        "memory.svg": plots.growth({"peak memory": memory}, "N", "MiB"),
        "cores.svg": plots.speed_up(by_cores, "cores", "times as fast as with one core"),
    }


def _searches(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The searches that answering was measured beside."""
    names = {found["name"] for each in results for found in each["measurements"]}
    every = (searching.NUMPY, searching.FAISS, searching.FAISS_INT8)
    return [name for name in every if name in names or name != searching.FAISS_INT8]
