"""Fixtures of the tests with processes that are killed, cut off or set back."""

from databases import on_each_engine

__all__ = ["on_each_engine"]
