"""A window as the provider shows it, believed only as far as the verifier has signed it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.client.errors import AnswerRejected, StateConflict
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PublicKey, verify
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.tree import MAX_TREE_SIZE
from ragaudit.ledger.messages.chains import verify_activation_preimage
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.records import MAX_TIME, Opening

__all__ = ["Pins", "Window", "authenticate"]

MAX_OPENING_BYTES = 2**20


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
        """Nothing is pinned: whoever answers can claim to be any window."""
        return self.verifier is None and self.policy_digest is None

    def demanded(self, wanted: str, *, allow_unpinned: bool) -> "Pins":
        """Return these; MalformedError if there are none, and none was said to be needed.

        Args:
            wanted: how pins are given here.
        """
        if self.none and not allow_unpinned:
            raise MalformedError(
                "nothing is pinned: whoever answers could show a window of its own",
                expected=wanted,
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
    shown: Mapping[str, Any] = field(repr=False)

    @property
    def origin(self) -> str:
        """Origin of the window's log: no other provider's window of this name has it."""
        return self.view.policy.origin


def authenticate(value: Any, pins: Pins) -> Window:
    """Return the window of `GET /v1/windows/{w}`.

    Raises:
        StateConflict: not countersigned yet.
        AnswerRejected: another key or policy than pinned, a bad signature, an opening or embedder
            other than countersigned.
        MalformedError: not such a window.
    """
    try:
        return _authenticate(value, pins)
    except (AnswerRejected, StateConflict, MalformedError):
        raise
    except RagauditError as error:
        where = f"window, {error.where}" if error.where else "window"
        raise AnswerRejected(error.what, where=where, expected=error.expected) from error


def _authenticate(value: Any, pins: Pins) -> Window:
    members = "window state policy policy_digest countersignature opening embedder activations"
    f = Fields(value, members, MalformedRecord, "window")
    policy = Policy.from_json(f.raw("policy"))
    name = f.text("window", 1, 64)
    _same("window", name, policy.window)
    _same("policy_digest", f.hex("policy_digest", 32), policy.digest)
    if f.raw("countersignature") is None:
        # As honest as any window before its countersignature, or while the verifier is away.
        raise StateConflict(
            "the window is not countersigned", where=name, expected="the verifier's signature"
        )
    if pins.verifier is not None:
        _same("verifier key", policy.keys.verifier.raw, pins.verifier.raw)
    if pins.policy_digest is not None:
        _same("policy digest", policy.digest, pins.policy_digest)
    opening, salt = _opening(f.raw("opening"))
    anchor = _countersignature(f.raw("countersignature"), policy, opening, salt)
    _same("opening: policy", opening.policy_digest, policy.digest)
    embedder = f.raw("embedder")
    _same("embedder", _embedder_digest(embedder), opening.embedder_digest)
    covered = [
        _activation(item, place, policy, anchor, number)
        for number, (place, item) in enumerate(f.objects("activations", 0, policy.activations), 1)
    ]
    state = f.text("state", 1, 64)
    view = WindowView(policy, opening, covered)
    return Window(name, state, view, embedder, not pins.none, value)


def _opening(value: Any) -> tuple[Opening, bytes]:
    f = Fields(value, "index salt body", MalformedRecord, "window.opening")
    f.constant("index", 0)
    body = f.hex("body", limit=MAX_OPENING_BYTES)
    return Opening.decode(body), f.hex("salt", 32)


def _countersignature(value: Any, policy: Policy, opening: Opening, salt: bytes) -> bytes:
    """Check the countersignature; return the anchor of the activation chain."""
    members = "window policy_digest opening_digest terms_digest activation_anchor time"
    f = Fields(value, f"format {members} signature", MalformedRecord, "countersignature")
    f.constant("format", "ragaudit/v1/countersignature")
    f.constant("window", policy.window)
    opening_digest = structure("opening-digest", salt, opening.encode())
    _same("countersigned policy", f.hex("policy_digest", 32), policy.digest)
    _same("countersigned opening", f.hex("opening_digest", 32), opening_digest)
    anchor, time = f.hex("activation_anchor", 32), f.integer("time", 0, MAX_TIME)
    terms = f.hex("terms_digest", 32)
    fields = (policy.window, policy.digest, opening_digest, terms, anchor, time)
    verify(policy.keys.verifier, f.hex("signature", 64), "countersignature", *fields)
    if time >= 1000 * policy.activation_instants[0] or time >= 1000 * policy.start:
        raise AnswerRejected("countersigned too late", where="countersignature")
    return anchor


def _activation(value: Any, place: str, policy: Policy, anchor: bytes, number: int) -> int:
    """Check a released activation; return its covered size."""
    names = "format window a preimage covered_size time signature"
    f = Fields(value, names, MalformedRecord, place)
    f.constant("format", "ragaudit/v1/activation")
    f.constant("window", policy.window)
    f.constant("a", number)
    preimage = f.hex("preimage", 32)
    covered, time = f.integer("covered_size", 0, MAX_TREE_SIZE), f.integer("time", 0, MAX_TIME)
    fields = (policy.window, number, preimage, covered, time)
    verify(policy.keys.verifier, f.hex("signature", 64), "activation", *fields)
    verify_activation_preimage(policy.window, anchor, number, preimage)
    return covered


def _embedder_digest(manifest: Any) -> bytes:
    """C_emb of a manifest; its members are compared by whoever loads the embedder."""
    return structure("embedder", dumps(manifest))


def _same(where: str, found: object, expected: object) -> None:
    if found != expected:
        shown = expected.hex() if isinstance(expected, bytes) else str(expected)
        raise AnswerRejected("another one", where=where, expected=shown)
