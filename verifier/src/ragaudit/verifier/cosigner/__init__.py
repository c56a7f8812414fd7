"""A cosigner of its own: a third party that signs that logs only grew (docs/spec 6.6)."""
