"""Rounds of the further cosigners: one checkpoint for all of them, from time to time."""

from typing import Any

from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.store.states import FINAL
from ragaudit.prover.verifier.cosigners import AskedLog, Cosigners
from ragaudit.prover.window.windows import Windows


class CosigningRounds:
    """Has the checkpoints of windows cosigned by third parties, and says how far that got.

    Attributes:
        every_seconds: how often a round begins.
    """

    def __init__(
        self, windows: Windows, open_windows: OpenWindows, cosigners: Cosigners | None
    ) -> None:
        """Collect the parts.

        Args:
            windows: all of them.
            open_windows: with their logs.
            cosigners: None if the settings name none.
        """
        self._windows = windows
        self._open_windows = open_windows
        self._cosigners = cosigners
        self.every_seconds = 0.0 if cosigners is None else cosigners.every_seconds

    def step(self, name: str) -> bool:
        """Begin a round with the last checkpoint; return False once there is nothing to ask for.

        Args:
            name: of any window.
        """
        window = self._windows.get(name)
        if self._cosigners is None or window.state in FINAL or window.unusable is not None:
            return False
        if window.countersignature is None:
            return True
        log = self._open_windows.get(name).log
        # Only what the verifier has cosigned is shown to anybody (spec 6.2).
        checkpoint = log.checkpoints.latest(cosignatures=1)
        if checkpoint is not None:
            try:
                self._cosigners.ask(AskedLog(log.entries, log.checkpoints), checkpoint)
            except RestoredBackup as error:
                self._open_windows.give_up(name, error)
                return False
        return True

    def status(self, name: str) -> dict[str, Any] | None:
        """Return what is asked and what is reached; None if nothing is asked.

        Args:
            name: of any window.
        """
        if self._cosigners is None:
            return None
        policy = self._cosigners.policy
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

    def close(self) -> None:
        """Break off what is under way."""
        if self._cosigners is not None:
            self._cosigners.close()
