"""Cheating providers and privacy attacks that test the audit."""
