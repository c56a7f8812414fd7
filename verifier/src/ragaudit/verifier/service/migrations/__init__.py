"""Migrations of the verifier's database, in one line."""
