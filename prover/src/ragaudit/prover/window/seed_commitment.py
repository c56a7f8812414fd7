"""The window's noise keys and C_seed: docs/spec/05-records.md §5.5."""

from ragaudit.ledger.messages.merkle_commitments import (
    KeyOpening,
    SeedCommitment,
    counter_key,
    slot_key,
)

EPOCH = 1


class SeedTree:
    """All noise keys of a window's one epoch, under the secret s_W."""

    def __init__(self, window: str, secret: bytes, slots: int, queries: int) -> None:
        self._window = window
        self._secret = secret
        self._slots = slots
        self._queries = queries
        self._commitment: SeedCommitment | None = None

    def commit(self) -> SeedCommitment:
        """Return the commitment to every key; computed once, slots x queries hashes."""
        if self._commitment is None:
            self._commitment = SeedCommitment.build(
                self._secret, self._window, EPOCH, self._slots, self._queries
            )
        return self._commitment

    def restore(self, slot_roots: bytes) -> None:
        """Take the slots' roots that `commit` found before a restart."""
        self._commitment = SeedCommitment(
            self._secret, self._window, EPOCH, slot_roots, self._queries
        )

    def key(self, slot: int, counter: int) -> bytes:
        """Return k_(1, slot, counter): the key of one record's noise."""
        return counter_key(slot_key(self._secret, self._window, EPOCH, slot), counter)

    def open(self, slot: int, counter: int) -> KeyOpening:
        """Return a key with its paths, for the verifier and a sampled record only.

        r hashes for the first key of a slot; a slot's tree is kept until another one's is made.
        """
        return self.commit().open(slot, counter)
