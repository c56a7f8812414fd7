"""Fixtures of the tests with all services."""

from remembered_proofs import remembered_proofs
from scenario import make_scenario, prepared, prepared_exact

__all__ = ["make_scenario", "prepared", "prepared_exact", "remembered_proofs"]
