"""The terms of a regulator who audits windows as small as the catalogue's and the tests'."""

from pathlib import Path
from typing import Final

from ragaudit.verifier.terms import Terms

SMALL_TERMS: Final = Terms.of(
    {
        "most_beta": "0.5",
        "most_eta_tenants": "0.5",
        "least_sample_tenants": 1,
        "least_coalition_max": 2,
        "most_epsilon_acc": "100",
        "least_tau_seconds": 1,
        "least_sketch_bits": 64,
        "most_clock_skew_seconds": 3600,
        "most_merge_delay_seconds": 3600,
    }
)
"""A coalition of two, a handful of records: the shipped terms are for windows in earnest."""


def small_terms_file(folder: Path) -> Path:
    """`SMALL_TERMS` as a settings file names them."""
    path = folder / "terms.toml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(SMALL_TERMS.to_toml(), encoding="utf-8")
    return path
