"""The prover's database."""
