"""Migrations of the prover's database, in one line from the first release on."""
