"""The prover's randomness: the one source of it, and the noise keys of a window.

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
from ragaudit.ledger.messages.commitments import (
    KeyOpening,
    SeedCommitment,
    counter_key,
    slot_key,
)

EPOCH = 1  # of the opening; later ones follow a restore
SECRET_BYTES = 32  # of a window's noise seed and of its pseudonym key
SCALAR_BYTES = 32
# Order of the ristretto255 group (RFC 9496 §4).
_GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
# Reducing 64 uniform bytes leaves a bias below 2^-250.
_WIDE_BYTES = 64


class Randomness(Protocol):
    """Uniform bytes and scalars; ``purpose`` names a draw and is never used twice."""

    def draw(self, count: int, *purpose: Field) -> bytes:
        """Return ``count`` uniform bytes.

        Args:
            count: of bytes, >= 0.
            purpose: names the draw within its window.
        """

    def scalars(self, count: int, *purpose: Field) -> npt.NDArray[np.uint8]:
        """Return uint8[count, 32], canonical uniform scalars of ristretto255.

        Args:
            count: of scalars, >= 0.
            purpose: names the draw within its window.
        """


class OsRandomness:
    """The operating system's source: what every real window uses."""

    def draw(self, count: int, *purpose: Field) -> bytes:
        """Return ``count`` uniform bytes, whatever the purpose."""
        return secrets.token_bytes(count)

    def scalars(self, count: int, *purpose: Field) -> npt.NDArray[np.uint8]:
        """Return uint8[count, 32], canonical uniform scalars, whatever the purpose."""
        return core.random_scalars(count)


class SeededRandomness:
    """Reproducible draws for experiments: whoever knows the seed knows every secret."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def draw(self, count: int, *purpose: Field) -> bytes:
        """Return ``count`` bytes of SHAKE256 over seed and purpose.

        Args:
            purpose: the same one gives the same bytes.
        """
        # Tagged and with lengths: two purposes never give one input.
        return shake_256(
            enc("ragaudit/v1/experiment", self._seed, enc("purpose", *purpose))
        ).digest(count)

    def scalars(self, count: int, *purpose: Field) -> npt.NDArray[np.uint8]:
        """Return uint8[count, 32], canonical scalars of seed and purpose.

        Args:
            purpose: the same one gives the same scalars.
        """
        wide = self.draw(_WIDE_BYTES * count, "scalars", *purpose)
        data = b"".join(
            (int.from_bytes(wide[at : at + _WIDE_BYTES], "little") % _GROUP_ORDER).to_bytes(
                SCALAR_BYTES, "little"
            )
            for at in range(0, len(wide), _WIDE_BYTES)
        )
        return np.frombuffer(data, dtype=np.uint8).reshape(count, SCALAR_BYTES).copy()


def randomness_for(experiment_seed: str | None) -> Randomness:
    """Return the source of a window: the operating system's unless its policy names a seed.

    Args:
        experiment_seed: of the window's policy (spec 5.2); None in every real window.
    """
    return OsRandomness() if experiment_seed is None else SeededRandomness(experiment_seed)


class SeedTree:
    """All noise keys of one epoch of a window, under its secret s_W (docs/spec/05-records.md §5.5).

    They are fixed before the first query, so that noise cannot be chosen after it.
    """

    def __init__(
        self, window: str, secret: bytes, slots: int, queries: int, epoch: int = EPOCH
    ) -> None:
        """Take s_W, 32 bytes, and the policy's numbers of slots and of queries per account."""
        self._epoch = epoch
        self._window = window
        self._secret = secret
        self._slots = slots
        self._queries = queries
        self._commitment: SeedCommitment | None = None

    def commit(self) -> SeedCommitment:
        """Return the commitment to every key; computed once, slots x queries hashes."""
        if self._commitment is None:
            self._commitment = SeedCommitment.build(
                self._secret, self._window, self._epoch, self._slots, self._queries
            )
        return self._commitment

    def restore(self, slot_roots: bytes) -> None:
        """Take the slots' roots that `commit` found before a restart, 32 bytes a slot.

        Args:
            slot_roots: roots of the slots' trees, in order of slots, concatenated.
        """
        # Building it again would cost slots x queries hashes at every start.
        self._commitment = SeedCommitment(
            self._secret, self._window, self._epoch, slot_roots, self._queries
        )

    def key(self, slot: int, counter: int) -> bytes:
        """Return k_(g, slot, counter): the 32-byte key of one record's noise.

        Args:
            slot: from 0, below the policy's slots.
            counter: c, from 0, below the policy's queries per account.
        """
        return counter_key(slot_key(self._secret, self._window, self._epoch, slot), counter)

    def open(self, slot: int, counter: int) -> KeyOpening:
        """Return a key with its paths, for the verifier and a sampled record only.

        It costs r hashes for the first key of a slot; a slot's tree is kept until another one's
        is made, so open in order of slots.

        Args:
            slot, counter: as for `key`.

        Returns:
            The key, and its inclusion paths in the slot's tree and in C_seed (spec 5.5).
        """
        return self.commit().open(slot, counter)
