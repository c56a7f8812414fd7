"""What the prover demands of the verifier before it creates a window."""

from ragaudit.encoding.text import hex_encode
from ragaudit.prover.errors import ClocksDiffer, UnpinnedVerifier, VerifierMessageRejected
from ragaudit.prover.settings import VerifierSettings
from ragaudit.prover.verifier_client import VerifierKeys


def checked_keys(keys: VerifierKeys, pinned: VerifierSettings) -> VerifierKeys:
    """Return the verifier's keys if they are the pinned ones.

    Raises:
        VerifierMessageRejected: another key than the settings name.
    """
    arbiter = None if keys.arbiter is None else hex_encode(keys.arbiter.raw)
    for member, shown, expected in (
        ("arbiter_key", arbiter, pinned.arbiter_key),
        ("cosigner_key", str(keys.cosigner), pinned.cosigner_key),
        ("verifier_key", hex_encode(keys.signing.raw), pinned.verifier_key),
        ("verdict_key", hex_encode(keys.verdict.raw), pinned.verdict_key),
    ):
        if expected is not None and shown != expected:
            raise VerifierMessageRejected(
                "the verifier shows another key", where=f"verifier.{member}", expected=expected
            )
    return keys


def check_pins(settings: VerifierSettings) -> None:
    """Return if every key of the verifier is pinned.

    Raises:
        UnpinnedVerifier: whoever answers first would be believed for the others.
    """
    if settings.unpinned:
        names = ", ".join(f"verifier.{name}" for name in settings.unpinned)
        raise UnpinnedVerifier(
            "keys of the verifier are not pinned: whoever answers first is believed",
            where=names,
            expected="the keys that the regulator published, as GET /v1/keys shows them",
        )


def check_clocks(ours: int, verifiers: int, skew: int) -> None:
    """Return if two clocks, in milliseconds, differ by at most ``skew`` seconds."""
    if abs(ours - verifiers) > 1000 * skew:
        raise ClocksDiffer(
            f"our clock is {(ours - verifiers) / 1000:+.1f} s from the verifier's",
            where="clock",
            expected=f"at most {skew} s",
        )
