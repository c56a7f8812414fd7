"""The command group `ragaudit prover`."""
