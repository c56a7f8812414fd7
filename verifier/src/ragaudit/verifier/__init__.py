"""The ragaudit verifier: registers, samples, checks and signs verdicts."""
