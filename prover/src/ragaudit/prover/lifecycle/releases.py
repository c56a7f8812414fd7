"""What the verifier releases at an instant: activations, and the challenge with the last value.

Under a policy with a beacon it releases nothing without the instant's round. Where it does not have
the round, and a source of ours does, it is given it: who shows a round does not matter (spec 8.4).
"""

from collections.abc import Callable

from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.countersignature import Activation
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.serving.rounds import RoundFinder


class Releases:
    """Asks for what is due. Safe to use from several threads."""

    def __init__(
        self, verifier: VerifierClient, rounds: RoundFinder, clock: Callable[[], int]
    ) -> None:
        """Collect the parts; the clock gives Unix milliseconds."""
        self._verifier = verifier
        self._rounds = rounds
        self._clock = clock

    def activation(self, live: OpenWindow, number: int) -> Activation | None:
        """Return an activation, authenticated; None while it is not released.

        Args:
            number: a, 1..A-1.

        Raises:
            VerifierUnreachable, VerifierRefused: ask again.
            RejectedError: not the activation that it must be (`Activation.authenticate`).
            UnsupportedError: no library is installed that verifies its round.
        """
        if not self._due(live, number):
            return None
        activation = self._verifier.activation(live.name, number)
        if activation is None:
            self._show_round(live, number)
            return None
        # On the countersigned chain: the verifier cannot choose its share of the noise afterwards.
        activation.authenticate(live.policy, anchor=live.anchor, number=number)
        return activation

    def challenge(self, live: OpenWindow) -> Challenge | None:
        """Return the challenge, parsed only; None while there is none.

        Raises:
            VerifierUnreachable, VerifierRefused: ask again.
            MalformedError: not a challenge.
        """
        last = live.policy.activations
        if not self._due(live, last):
            return None
        challenge = self._verifier.challenge(live.name)
        if challenge is None:
            # The sample waits for every activation, also for those that no query needed.
            for a in range(live.released() + 1, last + 1):
                self._show_round(live, a)
        return challenge

    def _due(self, live: OpenWindow, a: int) -> bool:
        return self._clock() >= 1000 * live.policy.release_instant(a)

    def _show_round(self, live: OpenWindow, a: int) -> None:
        beacon, number = live.policy.beacon, live.policy.round_of(a)
        if beacon is None or number is None:
            return
        found = self._rounds.find(beacon.chain, number)
        if found is not None:
            self._verifier.put_round(live.name, found)
