"""The envelope of risks, and an oracle beside it.

Claims are those of docs/notes/disclosure-risk.md.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from ragaudit.lab.risk import mechanisms
from ragaudit.lab.risk.general_bounds import exact_guess_knapsack
from ragaudit.lab.risk.one_dimensional import upper_envelope
from ragaudit.lab.risk.threat import FinitePrior, ThreatModel, largest
from risk_oracle import RECOMPUTE, Entry, on_line


def test_the_envelope_of_lines_breaks_exactly_where_they_cross() -> None:
    """|x| as two lines: one crossing, found at once, and nothing lost."""
    found = upper_envelope(
        lambda x: np.stack([x - 0.3, 0.3 - x])[None],
        np.linspace(-1, 1, 4),
        tolerance=1e-12,
        hidden=False,
    )
    assert np.abs(found.breaks - 0.3).min() < 1e-15
    assert found.loss < 1e-12
    assert np.isin(np.linspace(-1, 1, 4), found.breaks).all()


def test_the_envelope_finds_a_third_function_between_two() -> None:
    """Where the first two cross the third is larger: both of its own crossings are found."""
    found = upper_envelope(
        lambda x: np.stack([-x, x, np.full(len(x), 0.25)])[None],
        np.array([-1.0, 1.0]),
        tolerance=1e-14,
        hidden=False,
    )
    assert np.abs(found.breaks - 0.25).min() < 1e-9
    assert np.abs(found.breaks + 0.25).min() < 1e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_envelope_loses_no_more_than_it_says(seed: int) -> None:
    """Groups of cubics, against the largest of each on a fine grid."""
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=(2, 4, 4))
    powers = np.arange(4)

    def functions(x: np.ndarray) -> np.ndarray:
        return coefficients @ x ** powers[:, None]

    def areas(breaks: np.ndarray) -> np.ndarray:
        whole = breaks ** (powers[:, None] + 1) / (powers[:, None] + 1)
        return coefficients @ np.diff(whole, axis=1)

    points = np.linspace(0, 1, 65)
    found = upper_envelope(functions, points, tolerance=1e-10, hidden=True)
    value = areas(found.breaks).max(axis=1).sum()
    finer = upper_envelope(functions, np.linspace(0, 1, 4097), tolerance=1e-13, hidden=False)
    best = areas(finer.breaks).max(axis=1).sum()
    assert found.loss <= 1e-10
    assert -1e-12 <= best - value <= found.loss + 1e-9


def test_the_envelope_sees_what_is_largest_at_neither_end() -> None:
    """A parabola above the line 0 between 0.4 and 0.45 only, within one cell."""
    found = upper_envelope(
        lambda x: np.stack([np.zeros(len(x)), (x - 0.4) * (0.45 - x)])[None],
        np.array([0.0, 1.0]),
        tolerance=1e-14,
        hidden=True,
    )
    assert np.abs(found.breaks - 0.4).min() < 1e-6
    assert np.abs(found.breaks - 0.45).min() < 1e-6


def test_the_envelope_says_what_it_leaves() -> None:
    """|x - 1/10| with a tolerance so large that the crossing is not looked for."""
    found = upper_envelope(
        lambda x: np.stack([x - 0.1, 0.1 - x])[None],
        np.array([0.0, 1.0]),
        tolerance=1.0,
        hidden=False,
    )
    # The better line alone is 0.8/2 over [0, 1]; both are (0.9² + 0.1²)/2. A third line through
    # (0, 0.1) could have made it 0.1 more.
    assert found.breaks.tolist() == [0.0, 1.0]
    assert (0.9**2 + 0.1**2) / 2 - 0.8 / 2 < found.loss == pytest.approx(0.1)


def test_largest_by_sorting_and_by_selecting() -> None:
    values = np.random.default_rng(5).random(1000)
    descending = np.sort(values)[::-1]
    for count in (1, 2, 50, 125, 126, 500, 1000, 5000):
        assert np.array_equal(largest(values, count), descending[:count])


@for_each("epsilon", [0.5, 2.0, 12.0, 800.0])
@for_each("records", [9, 20_000])
def test_claims_3_4_and_3_5_what_is_left_out_does_not_count(records: int, epsilon: float) -> None:
    """The sums over all records, in logarithms of binomials, against the leading ones."""
    prior = FinitePrior(np.random.default_rng(records).dirichlet(np.full(records, 0.5)))
    threat = ThreatModel.reconstruction(prior)
    descending = np.sort(prior.probabilities)[::-1]
    after = np.append(np.cumsum(descending[:0:-1])[::-1], 0.0)
    rank = np.arange(1, records + 1)
    odds = math.exp(-epsilon)
    p, q = 1 / (1 + odds), odds / (1 + odds)
    terms = p ** (rank - 1.0) * descending * (1 - descending - q * after)
    expected = (p - q) / (2 * p) * math.fsum(terms)
    assert mechanisms.oue_advantage(threat, epsilon) == pytest.approx(expected, rel=1e-12)
    for omega in (1, 2, records // 3):
        share = (omega - 1) / np.maximum(records - rank, 1)
        leads = np.cumprod(np.append(1.0, 1 - share[:-1]).clip(0))
        terms = leads * descending * (1 - descending - share * after)
        contrast = omega * (1 - odds) / (omega + (records - omega) * odds)
        found = mechanisms.ss_advantage(threat, epsilon, omega)
        assert found == pytest.approx(contrast * math.fsum(terms), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([2, 3, 50, 3000]),
    st.sampled_from([1e-6, 0.5, 3.0, 10.0, 800.0]),
    st.sampled_from([0.0, 1e-9, 1e-3, 0.3]),
)
def test_claim_7_2_the_greedy_order_filled_one_by_one(
    seed: int, records: int, epsilon: float, delta: float
) -> None:
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(records, rng.choice([0.05, 1.0, 20.0])))
    odds = math.exp(-epsilon)
    share = (1 - odds + 2 * delta * odds) / (1 + odds)
    room = (records - 1) * (1 - odds + records * delta * odds) / (1 + (records - 1) * odds)
    value = 0.0
    for probability in np.sort(prior)[::-1]:
        taken = min(share * (1 - probability), room)
        value, room = value + probability * taken, room - taken
    assert exact_guess_knapsack(prior, epsilon, delta).value == pytest.approx(value, abs=1e-13)


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
