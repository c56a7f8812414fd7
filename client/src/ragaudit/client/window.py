"""A window as the provider shows it, believed only as far as the verifier has signed it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.shown import ShownWindow

__all__ = ["Pins", "Window", "authenticate"]


@dataclass(frozen=True)
class Pins:
    """What the account knows from elsewhere; one of the two is enough to trust a window.

    Attributes:
        verifier: the verifier's key (`keys.verifier`), which signs countersignatures.
        policy_digest: of the policy that the account agreed to.
    """

    verifier: PublicKey | None = None
    policy_digest: bytes | None = None

    @property
    def none(self) -> bool:
        """Return whether nothing is pinned: then whoever answers can claim to be any window."""
        return self.verifier is None and self.policy_digest is None

    def demanded(self, expected: str, *, allow_unpinned: bool) -> "Pins":
        """Return these pins.

        Args:
            expected: how pins are given here, for the error.
            allow_unpinned: whether to go without.

        Raises:
            MalformedError: there are none, and ``allow_unpinned`` is false.
        """
        if self.none and not allow_unpinned:
            raise MalformedError(
                "nothing is pinned: whoever answers could show a window of its own",
                expected=expected,
            )
        return self


@dataclass(frozen=True)
class Window:
    """A window whose countersignature, opening, embedder and activations were checked.

    Attributes:
        name, state: as the provider says.
        view: policy, opening and activations for receipt checks.
        embedder: C_emb's manifest, as JSON.
        pinned: whether a pin was compared.
        shown: all of it, as the provider shows it.
    """

    name: str
    state: str
    view: WindowView
    embedder: Mapping[str, Any]
    pinned: bool
    shown: ShownWindow = field(repr=False)

    @property
    def origin(self) -> str:
        """Return the origin of the window's log, unique among all providers."""
        return self.view.policy.origin


def authenticate(shown: ShownWindow, pins: Pins) -> Window:
    """Return the window of `GET /v1/windows/{w}`, believed as far as the verifier signed it.

    Args:
        shown: the reply.
        pins: what is known from elsewhere.

    Raises:
        StateConflict: not countersigned yet.
        AnswerRejected: another key or policy than pinned, a bad signature, an opening or embedder
            other than countersigned.
        MalformedError: its opening's body is none.
    """
    try:
        return _authenticate(shown, pins)
    except (AnswerRejected, StateConflict, MalformedError):
        raise
    except RagauditError as error:
        where = f"window, {error.where}" if error.where else "window"
        raise AnswerRejected(error.what, where=where, expected=error.expected) from error


def _authenticate(shown: ShownWindow, pins: Pins) -> Window:
    policy = shown.policy
    if shown.countersignature is None:
        # As honest as any window before its countersignature, or while the verifier is away.
        raise StateConflict(
            "the window is not countersigned",
            where=shown.window,
            expected="the verifier's signature",
        )
    if pins.verifier is not None:
        _same("verifier key", policy.keys.verifier.raw, pins.verifier.raw)
    if pins.policy_digest is not None:
        _same("policy digest", policy.digest, pins.policy_digest)
    signed, opening = shown.authenticate()
    if signed.time >= 1000 * min(policy.activation_instants[0], policy.start):
        raise AnswerRejected("countersigned too late", where="countersignature")
    covered = [activation.covered_size for activation in shown.activations]
    view = WindowView(policy, opening, covered)
    return Window(shown.window, shown.state, view, shown.embedder.to_json(), not pins.none, shown)


def _same(where: str, actual: bytes, expected: bytes) -> None:
    if actual != expected:
        raise AnswerRejected("another one", where=where, expected=expected.hex())
