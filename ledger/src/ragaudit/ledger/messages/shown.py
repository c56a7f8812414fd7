"""What parties show of themselves on request (docs/spec/08-services.md §8.3, §8.6, §8.9).

The provider shows a window, an account's place in it, and log entries, each with the proof that the
log has it: it opens an entry by what its leaf is made of, and says, to whoever has the policy, what
the window's log holds. The verifier shows its keys and its clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.ledger.errors import MalformedRecord, ProofRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import MAX_NAME_BYTES
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import leaf_hash
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.entries import (
    MAX_QUERIES,
    MAX_SLOTS,
    Epoch,
    Opening,
    Registration,
    TenantOpening,
    Version,
)
from ragaudit.ledger.messages.fields import MAX_BODY_BYTES
from ragaudit.ledger.messages.handover import MAX_OPENING_BYTES
from ragaudit.ledger.messages.kernel import (
    MAX_TIME,
    OMITTED,
    Digest,
    Hex,
    Integer,
    Items,
    KeyInHex,
    Message,
    Milliseconds,
    Name,
    Text,
    Vkey,
)
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.policy_terms import MAX_INSTANTS


class OpenedEntry(Message):
    """Salt and body of an entry whose kind the proof fixes.

    Attributes:
        salt: 32 bytes.
    """

    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)] = field(repr=False)

    def leaf(self, kind: str) -> bytes:
        """Return the leaf hash that the entry has in the log.

        Args:
            kind: of the entry, never one that the proof names.
        """
        return leaf_hash(leaf_data(self.salt, kind, self.body))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a log has an entry.

    Attributes:
        index: of the entry, from 0.
        size: of the tree under the checkpoint that proves it.
    """

    index: int
    size: int


class ProvenEntry(Message):
    """An entry that a proof opens, and that the log has it.

    Attributes:
        proof: text of its .tlog-proof.
    """

    ENTRY: ClassVar[type[OpenedEntry]] = OpenedEntry

    entry: OpenedEntry
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] = field(repr=False)

    @classmethod
    def of(cls, salt: bytes, body: bytes, proof: TlogProof) -> Self:
        """Return an entry with its proof.

        Args:
            salt: of the entry, 32 bytes.
            body: of the entry.
            proof: of its inclusion, under a cosigned checkpoint.
        """
        return cls(cls.ENTRY(salt, body), proof.encode().decode())

    def verify(self, kind: str, policy: Policy) -> Place:
        """Return where the window's log has the entry.

        Args:
            kind: of the entry, never one that the proof names.
            policy: of the window; no key is taken from anywhere else.

        Raises:
            MalformedNote, NoteRejected: no checkpoint that log and cosigner signed.
            MalformedProof, ProofRejected: the path.
        """
        proof = TlogProof.parse(self.proof.encode())
        cosigned = verify_tlog_proof(
            proof, leaf=self.entry.leaf(kind), log_key=policy.keys.log,
            cosigners=CosignerPolicy((policy.keys.cosigner,), 1),
        )  # fmt: skip
        return Place(proof.index, cosigned.signed.head.size)


class OpenedOpening(OpenedEntry):
    """Entry 0, which names every tenant."""

    body: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)] = field(repr=False)


class ProvenOpening(ProvenEntry):
    """The opening of a window, proven to be entry 0 of its log."""

    ENTRY = OpenedOpening

    entry: OpenedOpening

    def opened(self, policy: Policy) -> Opening:
        """Return the opening, once it is proven.

        Args:
            policy: of the window.

        Raises:
            ProofRejected: another entry, or the opening of another policy.
            MalformedRecord: a body that is none.
            RagauditError: as `verify`.
        """
        place = self.verify(Opening.KIND, policy)
        opening = Opening.parse(self.entry.body)
        if place.index != 0 or opening.policy_digest != policy.digest:
            raise ProofRejected("not the opening of this policy", where="opening")
        return opening

    def tenant(self, name: str, policy: Policy) -> TenantOpening:
        """Return a tenant's part of the opening; raises as `opened`, and if there is none."""
        return self.opened(policy).tenant(name)


class ShownOpening(Message, where="opening"):
    """The log's entry 0 as it is shown: salt of 32 bytes, and body."""

    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_OPENING_BYTES)] = field(repr=False)
    index: Annotated[int, Integer(0, 0)] = 0


class ShownEntry(Message):
    """A log entry as the provider shows it.

    Attributes:
        index: of the entry, from 1.
        salt: 32 bytes.
        proof: .tlog-proof of its inclusion; None while there is none.
        ENTRY: its kind.
    """

    ENTRY: ClassVar[str]

    index: Annotated[int, Integer(1, MAX_TIME)]
    salt: Digest = field(repr=False)
    body: Annotated[bytes, Hex(limit=MAX_BODY_BYTES)]
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] | None

    def verify_inclusion(self, policy: Policy) -> None:
        """Check that the entry is in the window's log.

        Args:
            policy: of the window, whose log and cosigner it names.

        Raises:
            MalformedError: no proof; whoever may wait for one looks at `proof` first.
            RejectedError: a proof of another entry.
            MalformedError, RejectedError: not a proof under a checkpoint that the policy's
                cosigner signed.
        """
        # Raised, not told by a value: an entry of no log must not pass for one by oversight.
        if self.proof is None:
            raise MalformedError("no proof", where=self.WHERE)
        proof = TlogProof.parse(self.proof.encode())
        # The index decides which activation the account's records have (5.6), so the proof must be
        # of this place, not merely of this log.
        if proof.index != self.index:
            raise RejectedError(f"a proof of leaf {proof.index}", where=self.WHERE)
        # Under the kind's name: the entry of a record is no registration, whatever its body says.
        leaf = leaf_hash(leaf_data(self.salt, self.ENTRY, self.body))
        # A log's signature alone could be of a tree that is shown to this account only.
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        verify_tlog_proof(proof, leaf=leaf, log_key=policy.keys.log, cosigners=cosigners)


class RegistrationEntry(ShownEntry, where="registration"):
    """The log entry of a registration, as the provider shows it and the account shows it on."""

    ENTRY = Registration.KIND

    @property
    def registration(self) -> Registration:
        """The body of the entry; MalformedRecord if it is no registration."""
        return Registration.parse(self.body)


class VersionEntry(ShownEntry, where="version"):
    """The log entry of a later version of an index, as the provider shows it."""

    ENTRY = Version.KIND

    @property
    def version(self) -> Version:
        """The body of the entry; MalformedRecord if it is no version."""
        return Version.parse(self.body)


class EpochEntry(ShownEntry, where="epoch"):
    """The log entry of a later seed epoch, as the provider shows it."""

    ENTRY = Epoch.KIND

    @property
    def epoch(self) -> Epoch:
        """The body of the entry; MalformedRecord if it is no epoch."""
        return Epoch.parse(self.body)


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
    cosigner: Vkey
    verifier: KeyInHex
    verdict: KeyInHex
    time: Milliseconds
