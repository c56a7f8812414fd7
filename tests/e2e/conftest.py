"""Fixtures of the tests with all services."""

from generation_channel import make_channel, model, model_url
from remembered_proofs import remembered_proofs
from scenario import embedder, make_scenario, prepared, prepared_exact

__all__ = [
    "embedder",
    "make_channel",
    "make_scenario",
    "model",
    "model_url",
    "prepared",
    "prepared_exact",
    "remembered_proofs",
]
