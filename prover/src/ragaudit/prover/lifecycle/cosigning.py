"""Rounds of the further cosigners: one checkpoint for all of them, from time to time.

Where the policy names them, what has their quorum goes to the verifier, which judges it.
"""

from collections.abc import Callable
from typing import Any

from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.messages.bodies import MAX_NOTES
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.lifecycle.stamping import Stamping
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.cosigners import AskedLog, Cosigners
from ragaudit.prover.window.windows import Window, Windows


class CosigningRounds:
    """Has the checkpoints of windows cosigned by third parties, and says how far that got.

    Attributes:
        every_seconds: how often a round begins.
    """

    def __init__(
        self,
        windows: Windows,
        open_windows: OpenWindows,
        verifier: VerifierClient,
        clock: Callable[[], int],
        cosigners: Cosigners | None,
        stamping: Stamping | None = None,
    ) -> None:
        """Collect the parts.

        Args:
            windows: all of them.
            open_windows: with their logs.
            verifier: is given what has the quorum.
            clock: Unix milliseconds.
            cosigners: None if the settings name none.
            stamping: None if the settings name no time-stamping authority.
        """
        self._windows = windows
        self._open_windows = open_windows
        self._verifier = verifier
        self._clock = clock
        self._cosigners = cosigners
        self._given: dict[str, int] = {}  # size of the last checkpoint that the verifier was given
        self._stamping = stamping
        asked = [each.every_seconds for each in (cosigners, stamping) if each is not None]
        self.every_seconds = min(asked, default=0.0)

    @property
    def trust(self) -> TrustPolicy | None:
        """The further cosigners that the settings name."""
        return None if self._cosigners is None else self._cosigners.policy

    def step(self, name: str) -> bool:
        """Begin a round with the last checkpoint; return False once there is nothing to ask for.

        Args:
            name: of any window.
        """
        window = self._windows.get(name)
        if window.state in FINAL or window.unusable is not None:
            self._forget(name, Policy.parse(window.policy).origin)
            return False
        if self._cosigners is None and self._stamping is None:
            return False
        if window.countersignature is None:
            return True
        log = self._open_windows.get(name).log
        # Only what the verifier has cosigned is shown to anybody (spec 6.2).
        checkpoint = log.checkpoints.latest(cosignatures=1)
        if self._cosigners is not None and checkpoint is not None:
            try:
                self._cosigners.ask(AskedLog(log.entries, log.checkpoints), checkpoint)
            except RestoredBackup as error:
                self._open_windows.give_up(name, error)
                return False
        # From the sampling instant on the verifier takes nothing more.
        taken = self._clock() < 1000 * Policy.parse(window.policy).sampling_instant
        if self._stamping is not None:
            self._stamping.step(window, log.checkpoints, give=taken)
        if taken:
            self._give(name, window, log.checkpoints)
        return True

    def _forget(self, name: str, origin: str) -> None:
        self._given.pop(name, None)
        if self._cosigners is not None:
            self._cosigners.forget(origin)
        if self._stamping is not None:
            self._stamping.forget(name)

    def _give(self, name: str, window: Window, checkpoints: CheckpointStore) -> None:
        """Give the verifier what has the quorum since the last time; all of it after a restart.

        Raises:
            VerifierUnreachable, VerifierRefused: not taken; the next round gives it again.
        """
        if Policy.parse(window.policy).cosigners is None:
            return
        while found := checkpoints.reached(self._given.get(name, -1), MAX_NOTES):
            self._verifier.put_cosigned(name, [signed.encode() for signed in found])
            self._given[name] = found[-1].head.size

    def status(self, name: str) -> dict[str, Any] | None:
        """Return what is asked and what is reached; None if nothing is asked.

        Args:
            name: of any window.
        """
        if self._cosigners is None:
            return None
        policy = self._policy(name, self._cosigners.policy)
        status: dict[str, Any] = {
            "policy": hex_encode(policy.digest),
            "quorum": policy.quorum,
            "latest": None,
            "reached": None,
            "failures": {},
        }
        if self._windows.get(name).countersignature is None:
            return status
        checkpoints = self._open_windows.signed_log(name).checkpoints
        status["failures"] = self._cosigners.failures(checkpoints.log_key.name)
        for member, quorum in (("latest", False), ("reached", True)):
            signed = checkpoints.latest(cosignatures=1, quorum=quorum)
            if signed is not None:
                status[member] = policy.judge(signed.encode(), checkpoints.log_key).to_json()
        return status

    def _policy(self, name: str, asked: TrustPolicy) -> TrustPolicy:
        """Return whose quorum counts in a window: its policy says so, or else the settings."""
        terms = Policy.parse(self._windows.get(name).policy).cosigners
        return asked if terms is None else terms.trust

    def time_stamps(self, name: str) -> dict[str, Any] | None:
        """Return what is stamped; None if the settings name no time-stamping authority.

        Args:
            name: of any window.
        """
        return None if self._stamping is None else self._stamping.status(name)

    def close(self) -> None:
        """Break off what is under way."""
        if self._stamping is not None:
            self._stamping.close()
        if self._cosigners is not None:
            self._cosigners.close()
