"""Fixtures of the tests with all services."""

from scenario import make_scenario, prepared, prepared_exact

__all__ = ["make_scenario", "prepared", "prepared_exact"]
