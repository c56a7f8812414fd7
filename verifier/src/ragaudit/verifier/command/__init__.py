"""The command group `ragaudit verifier`."""
