"""Fixtures of the prover's tests."""

from databases import on_each_engine
from finished_windows import finished
from generation_channel import channel, make_channel, model, model_url, real_channel
from generation_clients import opened
from keyword_channel import keyword_channel
from scenario import embedder, make_scenario, open_scenario, scenario
from several_provers import join

__all__ = [
    "channel",
    "embedder",
    "finished",
    "join",
    "keyword_channel",
    "make_channel",
    "make_scenario",
    "model",
    "model_url",
    "on_each_engine",
    "open_scenario",
    "opened",
    "real_channel",
    "scenario",
]
