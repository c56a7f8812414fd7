"""What parties show of themselves on request (docs/spec/08-services.md §8.3, §8.6, §8.9).

The provider shows a window and an account's place in it, the verifier its keys and its clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeAlias, TypeVar

from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.notes import MAX_NAME_BYTES
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.entries import MAX_QUERIES, MAX_SLOTS, Epoch, Opening, Version
from ragaudit.ledger.messages.items import LogKey
from ragaudit.ledger.messages.kernel import (
    OMITTED,
    Digest,
    Integer,
    Items,
    KeyInHex,
    Message,
    Milliseconds,
    Name,
    Text,
)
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import MAX_INSTANTS, Policy
from ragaudit.ledger.messages.shown_entries import (
    EpochEntry,
    RegistrationEntry,
    ShownEntry,
    ShownOpening,
    VersionEntry,
)

_Entry = TypeVar("_Entry", bound=ShownEntry)

MAX_VERSIONS = 100_000  # of all tenants in one window


class ShownWindow(Message, where="window"):
    """The reply of `GET /v1/windows/{w}`; nothing in it has been checked.

    Attributes:
        window, state: its name and state, as the provider says.
        policy_digest: 32 bytes.
        countersignature: None until the verifier has signed one.
        opening: None until the indexes are committed to.
        embedder: C_emb's manifest.
        activations: those released so far, a = 1, 2, ..
        versions: entries of later index versions, by rising index.
        epochs: entries of later seed epochs, likewise; None where the policy allows none.
    """

    window: Name
    state: Name
    policy: Policy
    policy_digest: Digest
    countersignature: Countersignature | None
    opening: ShownOpening | None
    embedder: EmbedderManifest
    activations: Annotated[tuple[Activation, ...], Items(0, MAX_INSTANTS)]
    versions: Annotated[tuple[VersionEntry, ...], Items(0, MAX_VERSIONS)] = ()
    epochs: Annotated[Annotated[tuple[EpochEntry, ...], Items(0, MAX_INSTANTS)] | None, OMITTED] = (
        None
    )

    def _check(self) -> None:
        if (self.epochs is None) == self.policy.epochs:
            expected = "a list" if self.policy.epochs else "no such member"
            raise MalformedError("epochs or none", where="epochs", expected=expected)

    def countersigned(self) -> tuple[Countersignature, Opening]:
        """Return the countersignature and the opening that it names, both checked.

        Raises:
            RejectedError: not countersigned, or another window, policy or opening is.
            SignatureRejected: not signed with the policy's `keys.verifier`.
            MalformedRecord: the opening's body is none.
        """
        signed, shown = self.countersignature, self.opening
        if signed is None or shown is None:
            raise RejectedError("not countersigned", where=self.WHERE)
        # A caller may have pinned the digest, or gone by the name: both must be the policy's.
        self._demand("window", self.window, self.policy.window)
        self._demand("policy_digest", self.policy_digest, self.policy.digest)
        opening = Opening.parse(shown.body)
        signed.authenticate(self.policy, opening_salt=shown.salt, opening_body=shown.body)
        # The countersignature names policy and opening side by side; only the opening's body says
        # that they belong together.
        self._demand("opening: policy", opening.policy_digest, self.policy.digest)
        opening.check_terms(noised=self.policy.noised, owned=self.policy.owners is not None)
        return signed, opening

    def logged_versions(self) -> list[tuple[int, Version]]:
        """Return (log index, body) of the later index versions that the log holds.

        One without a proof is not in a cosigned log yet: no instant can have activated it.

        Raises:
            MalformedError, RejectedError: an entry that is no version, or not in the log.
        """
        return [(entry.index, entry.version) for entry in self._proven(self.versions)]

    def logged_epochs(self) -> list[tuple[int, Epoch]]:
        """Return (log index, body) of the later seed epochs, as `logged_versions` does.

        Raises:
            MalformedError, RejectedError: an entry that is no epoch, or not in the log.
        """
        return [(entry.index, entry.epoch) for entry in self._proven(self.epochs or ())]

    def _proven(self, entries: Sequence[_Entry]) -> list[_Entry]:
        proven = [entry for entry in entries if entry.proof is not None]
        for entry in proven:
            entry.verify_inclusion(self.policy)
        return proven

    def authenticate(self) -> tuple[Countersignature, Opening]:
        """Return the countersignature and the opening; everything shown has been checked.

        Raises:
            RejectedError, SignatureRejected, MalformedRecord: as `countersigned`, and another
                embedder than the opening names, or more activations than the policy has.
            ChainRejected: an activation is not the chain's.
        """
        signed, opening = self.countersigned()
        # Otherwise an account would repeat embeddings (5.9, step 9) with a model that the provider
        # chose later.
        self._demand("embedder", self.embedder.digest(), opening.embedder_digest)
        # Before any of them is checked: each costs a signature and a walk along the chain.
        if len(self.activations) > self.policy.activations:
            raise RejectedError("too many activations", where=self.WHERE)
        # By place: one left out or given twice would shift the covered sizes, and with them the
        # activation that a record has to name (5.6).
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
        return [window.to_json() for window in self.windows]

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the windows of a JSON value, the strict inverse of `to_json`.

        Args:
            value: a JSON array, as the provider sent it.

        Raises:
            MalformedError: not an array, or one of its windows is none.
        """
        if not isinstance(value, list):
            raise MalformedRecord("not a list of windows", where="windows")
        return cls(tuple(ShownWindow.from_json(window) for window in value))


Queries: TypeAlias = Annotated[int, Integer(0, MAX_QUERIES)]


class ShownAccount(Message, where="account"):
    """The reply of `GET /v1/windows/{w}/account`; nothing in it has been checked.

    Attributes:
        slot, registration: None before the registration.
        anchor: of the nonce chain, 32 bytes; None for a plain account.
        dispute_key: 32 bytes, None if the account gave none.
        counter: of the next query.
        remaining: how many queries are left.
    """

    tenant: Name
    pseudonym: Digest
    slot: Annotated[int, Integer(0, MAX_SLOTS - 1)] | None
    anchor: Digest | None
    dispute_key: Digest | None
    counter: Queries
    remaining: Queries
    registration: RegistrationEntry | None


class ShownKeys(Message, where="keys"):
    """The reply of the verifier's `GET /v1/keys`; nothing in it is signed.

    Whoever puts them into a policy must have compared them with keys that it got another way.

    Attributes:
        arbiter: whose findings it takes; None: nobody's.
        name: of the verifier.
        time: its clock, Unix milliseconds.
    """

    arbiter: KeyInHex | None
    name: Annotated[str, Text(1, MAX_NAME_BYTES)]
    cosigner: LogKey
    verifier: KeyInHex
    verdict: KeyInHex
    time: Milliseconds
