"""A prover, a verifier and a few accounts in one process, on one clock that nothing waits for."""
