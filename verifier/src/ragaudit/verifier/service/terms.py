"""What the service itself acts upon in a window's policy.

Whether a policy is acceptable is check 1 of the audit procedure. `Terms.of` reads a policy that
passed it; `check_identity` looks at what must hold before a window can be filed at all.
"""

import re
from dataclasses import dataclass
from typing import Any

from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.notes import VerifierKey

PROVIDER = re.compile(r"[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?", re.ASCII)
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", re.ASCII)  # windows and tenants
POLICY_FORMAT = "ragaudit/v1/policy"


@dataclass(frozen=True)
class Terms:
    """Times in Unix seconds; ``instants`` are t_1 .. t_A, the last is the sampling instant."""

    provider: str
    window: str
    log_key: VerifierKey
    cosigner_key: VerifierKey
    provider_key: PublicKey
    start: int
    end: int
    instants: tuple[int, ...]
    deadline_seconds: int

    @property
    def origin(self) -> str:
        return origin(self.provider, self.window)

    @property
    def sampling_instant(self) -> int:
        """1000·t_A, in milliseconds."""
        return 1000 * self.instants[-1]

    @property
    def latest_countersignature(self) -> int:
        """The countersignature's time is strictly before this, in milliseconds."""
        return 1000 * min(self.start, self.instants[0])

    @classmethod
    def of(cls, policy: dict[str, Any]) -> "Terms":
        """The terms of a policy that passed check 1."""
        keys = policy["keys"]
        return cls(
            provider=policy["provider"],
            window=policy["window"],
            log_key=VerifierKey.parse(keys["log"]),
            cosigner_key=VerifierKey.parse(keys["cosigner"]),
            provider_key=PublicKey.from_raw(hex_decode(keys["provider"])),
            start=policy["start"],
            end=policy["end"],
            instants=tuple(policy["activation_instants"]),
            deadline_seconds=policy["audit"]["deadline_seconds"],
        )


def origin(provider: str, window: str) -> str:
    """Origin of a window's log (docs/spec/05-records.md §1)."""
    return f"{provider}/ragaudit/{window}"


def policy_digest(canonical: bytes) -> bytes:
    """Digest of a policy's canonical bytes."""
    return structure("policy", canonical)


def check_identity(policy: dict[str, Any], provider: str, keys: dict[str, str]) -> str:
    """Check that a policy is ``provider``'s, for this verifier; returns the window's name.

    Args:
        keys: what the members ``provider``, ``cosigner``, ``verifier`` and ``verdict`` of the
            policy's ``keys`` must be.

    Raises:
        MalformedError: no policy, or an ill-formed window name.
        RejectedError: another provider or another key.
    """
    if policy.get("format") != POLICY_FORMAT:
        raise MalformedError("not a policy", where="policy/format", expected=POLICY_FORMAT)
    window = policy.get("window")
    if not isinstance(window, str) or NAME.fullmatch(window) is None:
        raise MalformedError("not a window's name", where="policy/window", expected=NAME.pattern)
    if policy.get("provider") != provider:
        raise RejectedError(
            "policy of another provider", where="policy/provider", expected=provider
        )
    given = policy.get("keys")
    if not isinstance(given, dict):
        raise MalformedError("no keys", where="policy/keys", expected="an object")
    for role, key in keys.items():
        if given.get(role) != key:
            raise RejectedError("another key", where=f"policy/keys/{role}", expected=key)
    return window
