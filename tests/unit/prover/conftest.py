"""Fixtures of the prover's tests."""

from databases import on_each_engine
from scenario import embedder, make_scenario, open_scenario, scenario

__all__ = ["embedder", "make_scenario", "on_each_engine", "open_scenario", "scenario"]
