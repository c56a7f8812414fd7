"""What the prover demands of the verifier before it creates a window."""

import ssl
from pathlib import Path

from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.messages.shown_keys import ShownKeys
from ragaudit.prover.errors import (
    ClocksDiffer,
    MalformedSettings,
    UnpinnedVerifier,
    VerifierMessageRejected,
)
from ragaudit.prover.settings import VerifierSettings


def checked_keys(keys: ShownKeys, pinned: VerifierSettings) -> ShownKeys:
    """Return the verifier's keys if they are the pinned ones.

    Raises:
        VerifierMessageRejected: another key than the settings name, or an arbiter's that they do
            not name.
    """
    arbiter = None if keys.arbiter is None else hex_encode(keys.arbiter.raw)
    for member, shown, expected in (
        ("arbiter_key", arbiter, pinned.arbiter_key),
        ("cosigner_key", str(keys.cosigner), pinned.cosigner_key),
        ("verifier_key", hex_encode(keys.verifier.raw), pinned.verifier_key),
        ("verdict_key", hex_encode(keys.verdict.raw), pinned.verdict_key),
    ):
        # A verifier without an arbiter is what no pin says; the other pins are `check_pins`'.
        demanded = member == "arbiter_key" and not pinned.allow_unpinned
        if shown != expected and (expected is not None or demanded):
            raise VerifierMessageRejected(
                f"the verifier shows another key, {shown}",
                where=f"verifier.{member}",
                expected=expected or "none",
            )
    return keys


def check_pins(settings: VerifierSettings) -> None:
    """Return if every key of the verifier is pinned, or none has to be.

    Raises:
        UnpinnedVerifier: whoever answers first would be believed for the others.
    """
    if settings.unpinned and not settings.allow_unpinned:
        names = ", ".join(f"verifier.{name}" for name in settings.unpinned)
        raise UnpinnedVerifier(
            "keys of the verifier are not pinned: whoever answers first is believed",
            where=names,
            expected="the keys that the regulator published, as GET /v1/keys shows them; or "
            "verifier.allow_unpinned: true",
        )


def check_clocks(ours: int, verifiers: int, skew: int) -> None:
    """Return if two clocks, in milliseconds, differ by at most ``skew`` seconds."""
    if abs(ours - verifiers) > 1000 * skew:
        raise ClocksDiffer(
            f"our clock is {(ours - verifiers) / 1000:+.1f} s from the verifier's",
            where="clock",
            expected=f"at most {skew} s",
        )


def trusted_authorities(authorities: Path | None) -> ssl.SSLContext | bool:
    """Return what certificates of servers are verified by: a file of authorities, or the system's.

    Raises:
        MalformedSettings: no certificates in the file.
    """
    if authorities is None:
        return True
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError):
        raise MalformedSettings(
            "no certificates", where=f"verifier.ca_file: {authorities}", expected="a PEM file"
        ) from None
