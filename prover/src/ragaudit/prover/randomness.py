"""The one source of the prover's randomness.

Every draw names what it is for. The operating system's source ignores the name; the seeded one,
for experiments only, derives each draw from the seed and the name, so that a window can be run
again whatever the order of the draws. A seeded window proves nothing: its policy says so.
"""

import secrets
from hashlib import shake_256
from typing import Protocol

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.encoding.tagged import Field, enc

SCALAR_BYTES = 32
# Order of the ristretto255 group (RFC 9496 §4).
_GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
# Reducing 64 uniform bytes leaves a bias below 2^-250.
_WIDE_BYTES = 64


class Randomness(Protocol):
    """Uniform bytes and scalars; ``purpose`` names a draw and is never used twice."""

    def draw(self, count: int, *purpose: Field) -> bytes:
        """Return ``count`` uniform bytes."""

    def scalars(self, count: int, *purpose: Field) -> npt.NDArray[np.uint8]:
        """Return uint8[count, 32], canonical uniform scalars of ristretto255."""


class OsRandomness:
    """The operating system's source: what every real window uses."""

    def draw(self, count: int, *purpose: Field) -> bytes:
        return secrets.token_bytes(count)

    def scalars(self, count: int, *purpose: Field) -> npt.NDArray[np.uint8]:
        return core.random_scalars(count)


class SeededRandomness:
    """Reproducible draws for experiments; worthless as evidence."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def draw(self, count: int, *purpose: Field) -> bytes:
        return shake_256(
            enc("ragaudit/v1/experiment", self._seed, enc("purpose", *purpose))
        ).digest(count)

    def scalars(self, count: int, *purpose: Field) -> npt.NDArray[np.uint8]:
        wide = self.draw(_WIDE_BYTES * count, "scalars", *purpose)
        data = b"".join(
            (int.from_bytes(wide[at : at + _WIDE_BYTES], "little") % _GROUP_ORDER).to_bytes(
                SCALAR_BYTES, "little"
            )
            for at in range(0, len(wide), _WIDE_BYTES)
        )
        return np.frombuffer(data, dtype=np.uint8).reshape(count, SCALAR_BYTES).copy()


def randomness_for(experiment_seed: str | None) -> Randomness:
    """Return the source of a window: the operating system's unless its policy names a seed."""
    return OsRandomness() if experiment_seed is None else SeededRandomness(experiment_seed)
