"""Fixtures of the prover's tests."""

from scenario import embedder, make_scenario, open_scenario, scenario

__all__ = ["embedder", "make_scenario", "open_scenario", "scenario"]
