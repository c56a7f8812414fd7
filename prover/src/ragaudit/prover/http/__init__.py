"""The prover's HTTP API: docs/spec/08-services.md §8.6."""
