"""A window as the provider shows it to everybody: docs/spec/08-services.md §8.6."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ragaudit.encoding.digests import DIGEST_BYTES, SALT_BYTES
from ragaudit.encoding.errors import RejectedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.activation import Activation
from ragaudit.ledger.messages.countersignature import Countersignature
from ragaudit.ledger.messages.embedder_manifest import EmbedderManifest
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.json_fields import Fields
from ragaudit.ledger.messages.policy import MAX_INSTANTS, Policy
from ragaudit.ledger.messages.records import Opening

_WHERE: Final = "window"
_MEMBERS: Final = "window state policy policy_digest countersignature opening embedder activations"


@dataclass(frozen=True, slots=True)
class ShownOpening:
    """The log's entry 0 as it is shown: salt of 32 bytes, and body."""

    salt: bytes = field(repr=False)
    body: bytes = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        return {"index": 0, "salt": self.salt.hex(), "body": self.body.hex()}

    @classmethod
    def from_json(cls, value: Any, where: str) -> Self:
        """Return the entry of a JSON value, the strict inverse of `to_json`.

        Args:
            where: the value's place, for errors.

        Raises:
            MalformedRecord: not such an entry.
        """
        f = Fields(value, "index salt body", MalformedRecord, where)
        f.constant("index", 0)
        return cls(f.hex("salt", SALT_BYTES), f.hex("body", limit=MAX_OPENING_BYTES))


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """The reply of `GET /v1/windows/{w}`; nothing in it has been checked.

    Attributes:
        window, state: its name and state, as the provider says.
        policy_digest: 32 bytes.
        countersignature: None until the verifier has signed one.
        opening: None until the indexes are committed to.
        embedder: C_emb's manifest.
        activations: those released so far, a = 1, 2, ..
    """

    window: str
    state: str
    policy: Policy
    policy_digest: bytes
    countersignature: Countersignature | None
    opening: ShownOpening | None
    embedder: EmbedderManifest
    activations: Sequence[Activation]

    def to_json(self) -> dict[str, Any]:
        """Return the window as a JSON object."""
        signed, opening = self.countersignature, self.opening
        return {
            "window": self.window,
            "state": self.state,
            "policy": self.policy.to_json(),
            "policy_digest": self.policy_digest.hex(),
            "countersignature": None if signed is None else signed.to_json(),
            "opening": None if opening is None else opening.to_json(),
            "embedder": self.embedder.to_json(),
            "activations": [activation.to_json() for activation in self.activations],
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the window of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: not such a window (MalformedPolicy: its policy is none).
        """
        f = Fields(value, _MEMBERS, MalformedRecord, _WHERE)
        policy = Policy.from_json(f.raw("policy"))
        signed, opening = f.raw("countersignature"), f.raw("opening")
        return cls(
            window=f.text("window", 1, 64),
            state=f.text("state", 1, 64),
            policy=policy,
            policy_digest=f.hex("policy_digest", DIGEST_BYTES),
            countersignature=None if signed is None else Countersignature.from_json(signed),
            opening=None if opening is None else ShownOpening.from_json(opening, f.path("opening")),
            embedder=EmbedderManifest.from_json(f.raw("embedder")),
            activations=tuple(
                Activation.from_json(item, where)
                for where, item in f.objects("activations", 0, MAX_INSTANTS)
            ),
        )

    def countersigned(self) -> tuple[Countersignature, Opening]:
        """Return the countersignature and the opening that it names, both checked.

        Raises:
            RejectedError: not countersigned, or another window, policy or opening is.
            SignatureRejected: not signed with the policy's `keys.verifier`.
            MalformedRecord: the opening's body is none.
        """
        signed, shown = self.countersignature, self.opening
        if signed is None or shown is None:
            raise RejectedError("not countersigned", where=_WHERE)
        self._demand("window", self.window, self.policy.window)
        self._demand("policy_digest", self.policy_digest, self.policy.digest)
        opening = Opening.decode(shown.body)
        signed.authenticate(self.policy, opening_salt=shown.salt, opening_body=shown.body)
        self._demand("opening: policy", opening.policy_digest, self.policy.digest)
        return signed, opening

    def authenticate(self) -> tuple[Countersignature, Opening]:
        """Return the countersignature and the opening; everything shown has been checked.

        Raises:
            RejectedError, SignatureRejected, MalformedRecord: as `countersigned`, and another
                embedder than the opening names, or more activations than the policy has.
            ChainRejected: an activation is not the chain's.
        """
        signed, opening = self.countersigned()
        self._demand("embedder", self.embedder.digest(), opening.embedder_digest)
        if len(self.activations) > self.policy.activations:
            raise RejectedError("too many activations", where=_WHERE)
        for number, activation in enumerate(self.activations, start=1):
            activation.authenticate(self.policy, anchor=signed.activation_anchor, number=number)
        return signed, opening

    def _demand(self, where: str, found: object, expected: object) -> None:
        if found != expected:
            shown = expected.hex() if isinstance(expected, bytes) else str(expected)
            raise RejectedError("another one", where=where, expected=shown)


@dataclass(frozen=True, slots=True)
class WindowList:
    """The reply of `GET /v1/windows`: all windows in order of creation."""

    windows: Sequence[ShownWindow]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the windows as a JSON array."""
        return [each.to_json() for each in self.windows]

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the windows of a JSON value, the strict inverse of `to_json`.

        Raises:
            MalformedError: not an array, or one of its windows is none.
        """
        if not isinstance(value, list):
            raise MalformedRecord("not a list of windows", where="windows")
        return cls(tuple(ShownWindow.from_json(each) for each in value))
