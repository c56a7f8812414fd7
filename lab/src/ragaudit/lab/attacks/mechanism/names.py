"""What can be attacked by name, apart from what it takes to do so: help needs the names alone."""

from enum import StrEnum


class SubjectName(StrEnum):
    """The product's two mechanisms, then four broken ones that keep the claim of the sound one."""

    RETRIEVAL = "retrieval"
    VOTING = "voting"
    NOISE_ON_WINNERS = "noise-on-winners"
    HALF_THE_SIGMA = "half-the-sigma"
    SEED_REUSE = "seed-reuse"
    OBSERVED_TOKENS = "observed-tokens"
