"""Messages that release randomness, with the beacon's round where the policy names a beacon.

docs/spec/08-services.md §8.4: activation and challenge, in version 2 under such a policy.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.messages.beacon import BeaconRound, Engine
from ragaudit.ledger.messages.fields import Fields, JsonMessage
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import VerifierMessage

_PREFIX_V2 = "ragaudit/v2/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseMessage(JsonMessage, VerifierMessage):
    """A message of version 1 without, of version 2 with a round of the beacon.

    Attributes:
        round: as the verifier shows it; `beacon_randomness` says whether it is the one.
    """

    KIND: ClassVar[str] = ""

    round: BeaconRound | None = field(default=None, kw_only=True)

    @property
    def format(self) -> str:
        """Return the value of the member ``format``."""
        return self.FORMAT if self.round is None else _PREFIX_V2 + self.KIND

    @classmethod
    def members_of(cls, value: Any) -> str:
        """Return the names of the members: with the round in version 2."""
        second = isinstance(value, dict) and value.get("format") == _PREFIX_V2 + cls.KIND
        return f"{cls.MEMBERS} round" if second else cls.MEMBERS

    @classmethod
    def _check_format(cls, f: Fields) -> None:
        f.constant("format", _PREFIX_V2 + cls.KIND if "round" in f.value else cls.FORMAT)

    @staticmethod
    def _read_round(f: Fields) -> BeaconRound | None:
        if "round" not in f.value:
            return None
        return BeaconRound.from_json(f.raw("round"), f.path("round"))

    def _round_members(self) -> dict[str, Any]:
        return {} if self.round is None else {"round": self.round.to_json()}

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
