"""What a window's instants release: values of the activation chain, and rounds of a beacon."""

from __future__ import annotations

from ragaudit.lab.scenario.policy import CHALLENGED
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages.beacon import BeaconRound


class Releases:
    """Values of the instants; every one of them is a hook for cheats.

    Attributes:
        window: its name.
        chain_seed: s_V, 32 bytes.
        instants: t_1 .. t_A, Unix seconds.
        checkpoints: size, time of the cosignature and note of each, in order.
    """

    window: str
    chain_seed: bytes
    instants: tuple[int, ...]
    checkpoints: list[tuple[int, int, str]]

    def preimage(self, a: int) -> bytes:
        """Return n_a of the activation chain (docs/spec/05-records.md §5.6), for a = 1..A."""
        return chains.activation_preimage(self.window, self.chain_seed, len(self.instants), a)

    def randomness(self, a: int) -> bytes:
        """Return rnd_a (docs/spec/05-records.md §5.6).

        Args:
            a: an activation; from A on the last one that is not the sampling nonce stands in for
                n_a, so that records with an activation that there is not can be made.
        """
        known = min(a, len(self.instants) - 1)
        return chains.activation_randomness(
            self.window, a, self.preimage(known), self.beacon(known)
        )

    def round(self, a: int) -> BeaconRound | None:
        """Return the beacon's round that is shown with a release: none here.

        Args:
            a: 1..A, the sampling instant included.
        """
        return None

    def beacon(self, a: int) -> bytes:
        """Return what the provider and the verifier take for a round's randomness.

        Args:
            a: as of `round`.
        """
        shown = self.round(a)
        return b"" if shown is None else shown.randomness

    def released(self, a: int) -> int:
        """Return when an activation is released, Unix milliseconds.

        Args:
            a: 1..A-1.
        """
        return 1000 * self.instants[a - 1] + 5

    def drawn(self) -> int:
        """Return when the sample is drawn, Unix milliseconds."""
        return 1000 * CHALLENGED

    def covered_sizes(self) -> list[int]:
        """Return covered_size(a) for a = 1..A-1 (docs/spec/05-records.md §5.6)."""
        return [
            max((size for size, time, _ in self.checkpoints if time < instant), default=0)
            for instant in self.instants[:-1]
        ]
