"""Fixtures of the prover's tests."""

from scenario import embedder, make_world, open_world, world

__all__ = ["embedder", "make_world", "open_world", "world"]
