"""Calls to the verifier, and what must hold of it."""
