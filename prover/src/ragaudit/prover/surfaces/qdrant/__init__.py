"""Qdrant's REST interface, as far as its clients query (docs/surfaces.md)."""
