"""Cheats that a prover service runs: each overrides one method of one component."""
