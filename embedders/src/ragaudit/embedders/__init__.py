"""Embedders and their committed manifests, shared by prover, verifier and client."""
