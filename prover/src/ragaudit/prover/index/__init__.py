"""A tenant's documents as a committed index."""
