"""Backends over the vector stores that applications already have."""
