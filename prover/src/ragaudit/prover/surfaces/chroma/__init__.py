"""Chroma's REST interface, version 2 (docs/surfaces.md)."""
