"""Entries of tests/vectors/dp_oracle.json: recomputed here or elsewhere.

Claims are those of docs/notes/disclosure-risk.md.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from risk_oracle import RECOMPUTE, Entry, on_line

ORACLE = json.loads((Path(__file__).parents[2] / "vectors" / "dp_oracle.json").read_bytes())
ENTRIES: dict[str, Entry] = {entry["id"]: entry for entry in ORACLE["entries"]}
ELSEWHERE = {
    "audit.confidence": "unit/lab/test_risk_audit_estimation.py",
    "audit.estimator": "unit/lab/test_risk_audit_estimation.py",
    "audit.ldpauditor": "unit/lab/test_risk_audit_estimation.py",
    "dprag": "unit/privacy/test_mechanism_oracle.py",
    "gdp": "unit/privacy/test_privacy_guarantees.py",
    "ksa.accounting": "unit/privacy/test_mechanism_oracle.py",
    "ksa.calibration": "unit/privacy/test_mechanism_oracle.py",
    "ksa.em": "unit/privacy/test_mechanism_oracle.py",
    "ksa.hist": "unit/privacy/test_mechanism_oracle.py",
    "ksa.ptr": "unit/privacy/test_mechanism_oracle.py",
    "mia.auc_limit": "unit/lab/test_risk_auditing.py",
    "murag": "unit/privacy/test_mechanism_oracle.py",
    "rad.attack": "unit/lab/test_risk_audit_attacks.py",
    "rad.dpsgd": "unit/lab/test_reproduce_rad.py",
    "rad.dpsgd.attack": "unit/lab/test_risk_gradient_attacks.py",
}
"""Topics that are recomputed in full by the test of what computes them."""


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_close(found[key], expected[key], tolerance)
    elif isinstance(expected, list) and expected and isinstance(expected[0], float):
        assert found == pytest.approx(expected, abs=tolerance)
    elif expected == "inf":
        assert found == math.inf
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=max(tolerance, 1e-15))
    else:
        assert found == expected


HERE = [name for name, entry in ENTRIES.items() if entry["topic"] not in ELSEWHERE]


@for_each("name", HERE)
def test_entry(name: str) -> None:
    """Recomputed; a new topic fails here."""
    entry = ENTRIES[name]
    recompute = RECOMPUTE.get(name) or RECOMPUTE[entry["topic"]]
    assert_close(recompute(entry["inputs"]), entry["expected"], entry["atol"])


def test_what_is_recomputed_elsewhere_is() -> None:
    """Each file reads the entry by its name, or all of its topic or family."""
    for name, entry in ENTRIES.items():
        if entry["topic"] in ELSEWHERE:
            text = (Path(__file__).parents[2] / ELSEWHERE[entry["topic"]]).read_text()
            family = ".".join(name.split(".")[:2])
            assert any(f'"{word}"' in text for word in (name, entry["topic"], family)), name


def test_values_on_kinks_by_a_sum_that_knows_no_kinks() -> None:
    """Laplace noise at epsilon 4 on five records, by a midpoint sum of two million cells.

    An earlier edition of the file had these three wrong in the seventh digit, having integrated
    across the kinks; ours agree with the sum to 1e-9, and with the file as it is now.
    """
    positions, scale = np.linspace(0, 1, 5), 0.25
    edges = np.linspace(-30 * scale, 1 + 30 * scale, 2_000_001)
    skewed, uniform = np.array([0.4, 0.3, 0.15, 0.1, 0.05]), np.full(5, 0.2)
    near = (np.abs(positions[:, None] - positions) <= 0.25).astype(float)
    skew = full = close = 0.0
    for part in np.array_split((edges[1:] + edges[:-1]) / 2, 20):
        densities = np.exp(-np.abs(part - positions[:, None]) / scale) / (2 * scale)
        gains = uniform[:, None] * (densities - uniform @ densities)
        skew += (skewed[:, None] * (densities - skewed @ densities)).max(axis=0).sum()
        full += np.maximum(gains, 0).sum()
        close += (near @ gains).max(axis=0).sum()
    width = edges[1] - edges[0]
    for name, value in (("laplace.none.skew5", skew), ("laplace.full.u5", full)):
        assert on_line(ENTRIES[name]["inputs"]) == pytest.approx(value * width, abs=1e-9)
        assert ENTRIES[name]["expected"] == pytest.approx(value * width, abs=1e-9)
    # "laplace.none.u5.eta.25", which is not in the file.
    inputs = {**ENTRIES["laplace.full.u5"]["inputs"], "aux": "none", "eta": 0.25}
    assert on_line(inputs) == pytest.approx(close * width, abs=1e-9)
