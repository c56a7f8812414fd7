"""Messages that release randomness: activation and challenge (docs/spec/08-services.md §8.4)."""

from dataclasses import field

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.beacon import BeaconRound, Engine
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import VerifierMessage


class ReleaseMessage(VerifierMessage):
    """A message with a round of the beacon, where the policy names one.

    Attributes:
        round: of the beacon, as the verifier shows it; None under a policy without a beacon.
    """

    round: BeaconRound | None = field(default=None, kw_only=True)

    @property
    def beacon(self) -> bytes:
        """Randomness of the round, of an authenticated message; empty without one."""
        return b"" if self.round is None else self.round.randomness

    def beacon_randomness(self, policy: Policy, a: int, *, engine: Engine | None = None) -> bytes:
        """Return the randomness of R_a, empty under a policy without a beacon.

        Args:
            policy: of the window, which fixes chain and round.
            a: the instant, 1..A.
            engine: computes the pairing; the fastest that is installed if None.

        Raises:
            RejectedError: no round, another one, or not the chain's; or a round where the policy
                names no beacon.
            UnsupportedError: no library for pairings is installed.
        """
        expected = policy.round_of(a)
        if policy.beacon is None or expected is None:
            if self.round is not None:
                raise RejectedError("a round of a beacon", where=self.KIND, expected="none")
            return b""
        if self.round is None:
            raise RejectedError("no round of the beacon", where=self.KIND, expected=str(expected))
        return self.round.verify(policy.beacon.chain, expected, engine=engine)

    def _check_due(self, policy: Policy, a: int, time: int) -> None:
        """RejectedError if the message was made before its round was due.

        Args:
            time: of the message, Unix milliseconds.
        """
        due = 1000 * policy.release_instant(a)
        if policy.beacon is not None and time < due:
            raise RejectedError(
                "made before its round was due",
                where=self.KIND,
                expected=f"{rfc3339(due)} or later",
            )
