"""Migrations of the prover's database, in one line."""
