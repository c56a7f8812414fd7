"""Results of a benchmark as a file holds them."""

import json
from pathlib import Path
from typing import Any

from ragaudit.lab.bench import matrix
from ragaudit.lab.bench.harness import Measurement, report
from ragaudit.lab.bench.matrix import Results
from ragaudit.lab.bench.workload import Sizes

INPUTS = Path(__file__).parents[2] / "benchmarks"
HEAD = "0123456789abcdef0123456789abcdef01234567"


def result(
    scenario: str, name: str, rows: int, seconds: float, *, sigma: str = "2", cores: int = 2,
    records: int = 1, peak: float = 100.0, dimension: int = 384, **details: float,
) -> dict[str, Any]:  # fmt: skip
    """A result as it is stored: a baseline of a second, and one measurement."""
    baseline = Measurement("baseline", 1.0, 1.0, 1.0, 1, peak_mib=1.0)
    found = Measurement(name, seconds, seconds, seconds, 5, records=records, peak_mib=peak)
    sizes = Sizes(rows, dimension, 5, sigma, records)
    told = report(scenario, sizes, cores, [baseline, found.beside(baseline, 64, details)])
    return {"commit": HEAD, "date": "2026-01-02T03:04:05+00:00", **json.loads(json.dumps(told))}


def proving(rows: int, seconds: float, **options: Any) -> dict[str, Any]:
    return result("prove", "prove one record", rows, seconds, **options)


# --- targets -----------------------------------------------------------------------------------


def outcome(seconds: float, peak: float = 100.0) -> matrix.Outcome:
    target = matrix.Target(
        "index", "prove", "prove one record", "seconds", {1000: 0.2}, memory_gib={1000: 1}
    )
    (found,) = matrix.outcomes([target], Results((proving(1000, seconds, peak=peak),)))
    return found
