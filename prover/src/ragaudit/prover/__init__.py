"""The ragaudit prover: a sidecar that answers by noise-then-select and proves it."""
