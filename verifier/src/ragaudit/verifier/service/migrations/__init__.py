"""Migrations of the verifier's database, in one line from the first release on."""
