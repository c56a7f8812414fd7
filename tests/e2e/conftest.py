"""Fixtures of the tests with all services."""

from scenario import prepared

__all__ = ["prepared"]
