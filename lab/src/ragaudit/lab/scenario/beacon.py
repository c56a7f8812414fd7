"""A window whose policy names a beacon, and a chain of rounds whose key is known here.

Nobody but the League of Entropy signs rounds of quicknet; a scenario needs those of any time.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any, Final

from ragaudit.lab.scenario.policy import START
from ragaudit.lab.scenario.private import PrivateWindow
from ragaudit.ledger.messages.beacon import BeaconChain, BeaconRound
from ragaudit.ledger.messages.policy_terms import BeaconTerms
from ragaudit.verifier.reference import pairing

# Computed by py_ecc from the secrets, which are hashes of the names.
_PUBLIC_KEYS: Final = {
    "a beacon of tests": (
        "b978125eed669d2abd3d816e0431e748cea6aef17c850f41f966d405e91c14c4"
        "fac2e59e216076b8364bb84c203500100fe2c1b82363c141d61712840e29f3e3"
        "57ff0600d3465e52877dda012ae549a526b3e62467cd00144205e7a97e5ccab9"
    ),
    "another beacon": (
        "8e66fa19e4824a013a8b8e17e2fa6061eee4348dfc479f876159b6bd9e0d46d5"
        "86cbc6bd07a4042493db4d6e0db17f510323a13b7fc6a92f24c647af6a7f1b23"
        "fede14bfd6e9b39b8c183125fbd0af77dc5685612ab19cc27d49b6089a171278"
    ),
}


class SigningChain:
    """A chain of rounds that signs any round at any time.

    Attributes:
        chain: what a policy names.
    """

    def __init__(self, name: str = "a beacon of tests", *, period: int = 3, genesis: int) -> None:
        """Take a key.

        Args:
            name: one of the two that there are.
            period: seconds between rounds.
            genesis: time of round 1, Unix seconds.
        """
        self._secret = int.from_bytes(sha256(name.encode()).digest(), "big") % pairing.ORDER
        key, group = bytes.fromhex(_PUBLIC_KEYS[name]), sha256(b"group").digest()
        self.chain = BeaconChain(key, period, genesis, group, name)

    def round(self, number: int) -> BeaconRound:
        """Return a round, whether it is due or not.

        Args:
            number: from 1.
        """
        return BeaconRound(number, _signed(self._secret, number))

    def info(self) -> dict[str, Any]:
        """Return the chain as drand's API shows it."""
        shown = self.chain.to_json()
        return {
            "public_key": shown["public_key"],
            "period": shown["period"],
            "genesis_time": shown["genesis"],
            "hash": shown["hash"],
            "groupHash": shown["group_hash"],
            "schemeID": shown["scheme"],
            "metadata": {"beaconID": shown["name"]},
        }


@cache
def _signed(secret: int, number: int) -> bytes:
    message = pairing.hash_to_g1(sha256(number.to_bytes(8, "big")).digest())
    point = pairing.multiply(message, secret)
    assert point is not None
    return pairing.encode_g1(point)


GENESIS: Final = START - 100_000
CHAIN: Final = SigningChain(genesis=GENESIS)
OTHER: Final = SigningChain("another beacon", genesis=GENESIS)


class BeaconWindow(PrivateWindow):
    """`PrivateWindow` with rounds of a beacon in noise and sample."""

    delay = 5

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        found, terms = super().document(keys, changes), BeaconTerms(CHAIN.chain, self.delay)
        rounds = [terms.round_at(instant) for instant in found["activation_instants"]]
        return {**found, "beacon": terms.to_json(), "activation_rounds": rounds}

    def number(self, a: int) -> int:
        """Return R_a, which the policy fixes."""
        number = self.policy.round_of(a)
        assert number is not None
        return number

    def round(self, a: int) -> BeaconRound | None:
        return CHAIN.round(self.number(a))

    def released(self, a: int) -> int:
        return 1000 * self.policy.release_instant(a) + 5

    def drawn(self) -> int:
        return 1000 * self.policy.release_instant(len(self.instants)) + 5
