"""A cosigner of its own: a witness, which cosigns append-only checkpoints (docs/spec 6.6)."""
