"""Disclosure risk: reconstruction advantage (RAD), its bounds and their inversion.

Specification and derivations: docs/notes/disclosure-risk.md.
"""
