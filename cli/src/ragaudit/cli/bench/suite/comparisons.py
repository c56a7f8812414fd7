"""What is measured beside, or said by others: Groth16 for the same statement, published figures."""

from collections.abc import Mapping
from typing import Any

__all__ = ["groth16", "published"]

_NONE = "Not part of these results."


def groth16(found: Mapping[str, Any] | None) -> str:
    """Tables of the comparison with Groth16."""
    return _NONE if found is None else str(found)


def published(found: Mapping[str, Any] | None) -> str:
    """Table of published figures with their sources."""
    return _NONE if found is None else str(found)
