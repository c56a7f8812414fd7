"""`ragaudit up`: a prover in front of a vector store of yours, and a verifier for a while."""
