"""When the randomness of a window comes (docs/spec/05-records.md §5.2): instants and rounds.

The rounds of the beacon follow from the instants, so nobody chooses one: a policy that names others
is none.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.notes import MAX_NOTE_BYTES
from ragaudit.ledger.messages.beacon import CHAIN_MEMBERS, BeaconChain
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.identifiers import check_window

MAX_SECONDS: Final = 2**40
MAX_INSTANTS: Final = 10_000
MAX_CHECKPOINTS: Final = 400_000  # that a verifier cosigns of one window
MAX_DELAY: Final = 3600  # seconds
HAND_IN_SECONDS: Final = 60
NO_BEACON: Final[dict[str, object]] = {"kind": "none"}


@dataclass(frozen=True, slots=True)
class BeaconTerms:
    """The beacon of a policy, its member ``beacon``.

    Attributes:
        chain: whose rounds are mixed in.
        delay_seconds: delta: a round is due at least as long after its instant. What was cosigned
            before an instant is older than the round by any clock that is wrong by less.
    """

    chain: BeaconChain
    delay_seconds: int

    def round_at(self, instant: int) -> int:
        """Return R of an instant: the first round that is due delta after it, or later.

        Args:
            instant: Unix seconds.
        """
        return self.chain.first_from(instant + self.delay_seconds)

    def to_json(self) -> dict[str, Any]:
        """Return the member."""
        return {"kind": "drand", **self.chain.to_json(), "delay_seconds": self.delay_seconds}

    @classmethod
    def read(cls, f: Fields, start: int) -> Self | None:
        """Return the terms among a policy's members; None for the beacon "none".

        Args:
            f: the policy.
            start: of the window, Unix seconds.

        Raises:
            MalformedPolicy: not such terms.
            UnsupportedError: another kind of beacon.
        """
        value = f.raw("beacon")
        if value == NO_BEACON:
            return None
        if not isinstance(value, dict) or value.get("kind") != "drand":
            expected = f'{NO_BEACON} or kind "drand"'
            raise UnsupportedError("not supported", where="beacon", expected=expected)
        b = Fields(value, f"kind {CHAIN_MEMBERS} delay_seconds", MalformedPolicy, "beacon")
        chain = BeaconChain.read(b)
        # A chain that has not begun: nobody knows whether it will.
        if chain.genesis > start:
            raise b.error("genesis", "after the window's start", "a chain that runs")
        return cls(chain, b.integer("delay_seconds", 0, MAX_DELAY))


def read_instants(f: Fields, start: int, end: int, beacon: BeaconTerms | None) -> tuple[int, ...]:
    """Return the activation instants of a policy, the sampling instant last; Unix seconds.

    Args:
        f: the policy.
        start, end: of the window, Unix seconds.
        beacon: of the policy, which with the instants fixes the rounds.

    Raises:
        MalformedPolicy: not such instants, or not their rounds.
    """
    instants = f.integers("activation_instants", (2, MAX_INSTANTS), 1, MAX_SECONDS)
    if any(a >= b for a, b in pairwise(instants)):
        raise f.error("activation_instants", "not rising")
    # The last instant comes after the end: its value, the sample's seed, is known to nobody before.
    if not (instants[0] <= start and instants[-2] < end <= instants[-1]):
        raise f.error("activation_instants", "do not fit", "t_1 <= start, t_(A-1) < end <= t_A")
    if beacon is None:
        if f.raw("activation_rounds") != [None] * len(instants):
            raise f.error("activation_rounds", "not null each", f"{len(instants)} times null")
        return instants
    rounds = [beacon.round_at(instant) for instant in instants]
    # Stated for who reads it; a later round could be chosen by what it does to noise and sample.
    if f.raw("activation_rounds") != rounds:
        raise f.error(
            "activation_rounds",
            "not those that instants and delay fix",
            f"{rounds[0]}, .., {rounds[-1]}",
        )
    return instants


def time_to_hand_in(merge_delay: int, skew: int) -> int:
    """Return what an account needs from the end to the sampling instant, for its last receipts.

    That is until it knows that an answer is in no log, and a minute to say so.

    Args:
        merge_delay, skew: of the policy, seconds.
    """
    return merge_delay + skew + HAND_IN_SECONDS


def read_merge_delay(f: Fields, seconds: int) -> int:
    """Return the merge delay of a policy.

    Args:
        f: the policy.
        seconds: from the window's start to its sampling instant.

    Raises:
        MalformedPolicy: not such a delay, or too short for the window.
    """
    # At least twice the spacing of checkpoints, so that each covers what came since the last.
    return f.integer("merge_delay_seconds", max(1, -(-4 * seconds // MAX_CHECKPOINTS)), 86_400)


def read_previous_checkpoint(f: Fields, provider: str, window: str) -> str | None:
    """Return the text of the checkpoint that a policy's window follows; None if it follows none.

    Args:
        f: the policy.
        provider, window: of the policy.

    Raises:
        MalformedPolicy, MalformedNote: not a checkpoint of another window of this provider.
    """
    if f.raw("previous_checkpoint") is None:
        return None
    note = f.text("previous_checkpoint", 1, MAX_NOTE_BYTES)
    origin = parse_checkpoint(note.encode()).checkpoint.origin
    before = origin.removeprefix(f"{provider}/ragaudit/")
    if before in (origin, window):  # another provider's, or this window itself
        raise f.error("previous_checkpoint", "not of another window of this provider")
    check_window(before)
    return note
