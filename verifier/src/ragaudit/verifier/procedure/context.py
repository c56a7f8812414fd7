"""What the checks look at: the evidence, parsed once, every part owned by one check."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.statements import index_context
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.chains import activation_randomness, verify_activation_preimage
from ragaudit.ledger.checkpoints import parse_checkpoint
from ragaudit.ledger.cosignatures import CosignedCheckpoint, CosignerPolicy, verify_cosigned
from ragaudit.ledger.merkle_commitments import IndexCommitment
from ragaudit.ledger.notes import VerifierKey
from ragaudit.ledger.policy import Policy
from ragaudit.ledger.receipts import PublicReceipt
from ragaudit.ledger.records import Close, Opening, Registration, TenantOpening
from ragaudit.ledger.tree import MemoryTree
from ragaudit.verifier import evidence as items
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.facts import fact
from ragaudit.verifier.procedure.framework import CONFIDENTIAL_PART, Lacking
from ragaudit.verifier.procedure.log_view import (
    RECORD_KIND,
    Entry,
    Log,
    LoggedRecord,
    LoggedRegistration,
    check_bodies,
    check_leaves,
    read_close,
    read_entries,
    read_handover,
    read_record,
    read_registration,
    split_leaves,
)
from ragaudit.verifier.procedure.messages import (
    Activation,
    Challenge,
    Clock,
    Countersignature,
    ReceiptsList,
    opening_digest,
)
from ragaudit.verifier.procedure.responses import Response

Part = Literal["public", "all"]
Progress = Callable[[str, int, int], None]

BEACON: Final = b""
"""Randomness of the beacon: empty, as version 1 knows only the beacon "none"."""


class CommittedEmbedder(Protocol):
    """The committed embedder, where it is at hand."""

    @property
    def digest(self) -> bytes:
        """C_emb of the artefacts that it runs."""

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """The quantised embedding of a text, int8[d]; RagauditError if it has none."""


@dataclass(frozen=True, slots=True)
class Pins:
    """Keys that the verifier knows from elsewhere; None where only the policy names them."""

    provider: PublicKey | None = None
    cosigner: VerifierKey | None = None
    verifier: PublicKey | None = None
    verdict: PublicKey | None = None


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """A checkpoint of the cosigner's store; ``time`` in Unix seconds."""

    size: int
    root: bytes
    time: int


class Interrupted(Exception):
    """The progress callback raised; carries what it raised past the checks."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Context:
    """The evidence of one window as facts.

    Args:
        part: "public" when only the public items are at hand.
        now: the verifier's clock in Unix milliseconds where the opening is checked; None
            afterwards, when the countersignature says when that was.
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        engine: Engine,
        pins: Pins,
        embedder: CommittedEmbedder | None = None,
        part: Part = "all",
        now: int | None = None,
        only: frozenset[int] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.evidence = evidence
        self.engine = engine
        self.pins = pins
        self.embedder = embedder
        self.part = part
        self.now = now
        self.only = only
        self.stated: dict[str, Any] = {}  # numbers that the verdict states beside the results
        self._progress = progress
        self._indices: dict[str, IndexCommitment | Lacking] = {}
        self._accepted: dict[str, Lacking | None] = {}

    def progress(self, step: str, done: int, total: int) -> None:
        """Report where a long check stands."""
        if self._progress is None:
            return
        try:
            self._progress(step, done, total)
        except BaseException as error:
            raise Interrupted(error) from error

    def item(self, name: str, owner: str) -> bytes:
        """The bytes of an item; its absence is the owner's."""
        if name in self.evidence:
            return self.evidence[name]
        if self.part == "public" and not name.startswith(items.PUBLIC):
            raise Lacking(CONFIDENTIAL_PART, f"{name} is confidential")
        raise Lacking(owner, f"{name} is missing")

    def json(self, name: str, owner: str) -> object:
        """The value of a JSON item; that it is none is the owner's."""
        try:
            value: object = canonical_json.loads(self.item(name, owner))
        except MalformedError as error:
            raise Lacking(owner, f"{name}: {error}") from error
        return value

    def list(self, name: str, owner: str) -> list[object]:
        """The elements of a JSON list; that it is none is the owner's."""
        value = self.json(name, owner)
        if not isinstance(value, list):
            raise Lacking(owner, f"{name}: not a list")
        return value

    # --- 1: policy ------------------------------------------------------------------------

    @fact("policy")
    def policy(self) -> Policy:
        """The parsed policy."""
        return Policy.parse(self.item(items.POLICY, "policy"))

    @fact("policy")
    def policy_digest(self) -> bytes:
        """C_policy."""
        return self.policy.digest

    @fact("policy")
    def tenants(self) -> frozenset[str]:
        """The policy's tenants."""
        return frozenset(self.policy.tenants)

    @fact("policy")
    def countersignature(self) -> Countersignature:
        """The verifier's countersignature, its signature checked."""
        found = Countersignature.parse(self.item(items.COUNTERSIGNATURE, "policy"))
        found.verify(self.policy.keys.verifier)
        return found

    @property
    def cosigners(self) -> CosignerPolicy:
        """The one cosigner of the policy."""
        return CosignerPolicy((self.policy.keys.cosigner,), 1)

    # --- 3, 4: commitments and index arguments ----------------------------------------------

    @fact("commitments")
    def opening_parts(self) -> tuple[bytes, bytes]:
        """(salt, body) of the opening as it was countersigned."""
        match self.json(items.OPENING, "commitments"):
            case {"salt": str(salt), "body": str(body), **more} if not more:
                return hex_decode(salt, 32), hex_decode(body)
        raise MalformedError("not an opening", where=items.OPENING, expected="salt and body")

    @fact("commitments")
    def opening_digest(self) -> bytes:
        """What a countersignature of this opening names."""
        return opening_digest(*self.opening_parts)

    @fact("commitments")
    def opening(self) -> Opening:
        """The opening entry's body."""
        return Opening.decode(self.opening_parts[1])

    @fact("commitments")
    def opened(self) -> Mapping[str, TenantOpening]:
        """What the opening says of each tenant."""
        return {each.tenant: each for each in self.opening.tenants}

    @fact("commitments")
    def embedder_digest(self) -> bytes:
        """C_emb of the manifest at hand, which is for the policy's dimension."""
        manifest = self.item(items.EMBEDDER, "commitments")
        value = canonical_json.loads(manifest)
        if not isinstance(value, dict) or value.get("format") != "ragaudit/v1/embedder":
            raise MalformedError("not an embedder's manifest", where=items.EMBEDDER)
        if value.get("dimension") != self.policy.dimension:
            raise RejectedError(
                "embedder of another dimension", expected=str(self.policy.dimension)
            )
        return structure("embedder", manifest)

    def index(self, tenant: str) -> IndexCommitment:
        """The tenant's index commitment, as the opening names it; Lacking("commitments")."""
        if tenant not in self.tenants:
            raise Lacking("registrations", f"tenant {tenant} is not in the policy")
        if tenant not in self._indices:
            try:
                self._indices[tenant] = self._read_index(tenant)
            except Lacking as lacking:
                self._indices[tenant] = lacking
            except RagauditError as error:
                self._indices[tenant] = Lacking("commitments", f"index of {tenant}: {error}")
        found = self._indices[tenant]
        if isinstance(found, Lacking):
            raise Lacking(found.owner, found.reason)
        return found

    def _read_index(self, tenant: str) -> IndexCommitment:
        data = self.item(items.index_name(tenant), "commitments")
        found, named = IndexCommitment.decode(data), self.opening.tenant(tenant)
        policy = self.policy
        place = (found.window, found.tenant, found.version, found.dimension)
        if place != (policy.window, tenant, 1, policy.dimension):
            raise RejectedError(
                f"of {place}", expected=f"{(policy.window, tenant, 1, policy.dimension)}"
            )
        if found.rows != named.rows:
            raise RejectedError(f"{found.rows} rows uploaded, {named.rows} in the opening")
        if found.root != named.index_root:
            raise RejectedError("root is not the opening's", expected=named.index_root.hex())
        if found.proof_digest != named.proof_digest:
            raise RejectedError("proof is not the opening's", expected=named.proof_digest.hex())
        return found

    def accepted_index(self, tenant: str) -> IndexCommitment:
        """The tenant's index, its argument verified; Lacking("index-proof") where it is not."""
        index = self.index(tenant)
        if tenant not in self._accepted:
            self._accepted[tenant] = self._judge_index(index)
        lacking = self._accepted[tenant]
        if lacking is not None:
            raise Lacking(lacking.owner, lacking.reason)
        return index

    def _judge_index(self, index: IndexCommitment) -> Lacking | None:
        context = index_context(
            policy_digest=self.policy_digest,
            window=index.window,
            tenant=index.tenant,
            version=index.version,
            index_root=index.root,
        )
        try:
            self.engine.verify_index(
                context, index.rows, index.dimension, index.commitments, index.proof
            )
        except RejectedError as error:
            return Lacking("index-proof", f"index of {index.tenant}: {error.what}")
        return None

    # --- 5: the log -------------------------------------------------------------------------

    @fact("log")
    def log(self) -> Log:
        """The log: every body rehashes, the leaves give the final root, every body decodes."""
        leaves, entries = self._public_log() if self.part == "public" else self._whole_log()
        head = parse_checkpoint(self.item(items.FINAL_CHECKPOINT, "log")).head
        tree = MemoryTree(leaves)
        if head.size != tree.size:
            raise RejectedError(
                f"{tree.size} entries handed over", expected=f"{head.size} as in the checkpoint"
            )
        if tree.root() != head.root_hash:
            raise RejectedError(
                "what was handed over gives another root", expected=head.root_hash.hex()
            )
        check_bodies(entries)
        return Log(tree, leaves, entries)

    def _public_log(self) -> tuple[tuple[bytes, ...], tuple[Entry, ...]]:
        leaves = split_leaves(self.item(items.LEAVES, "log"))
        entries = read_entries(self.item(items.ENTRIES, "log"))
        check_leaves(entries, leaves)
        return leaves, entries

    def _whole_log(self) -> tuple[tuple[bytes, ...], tuple[Entry, ...]]:
        """Everything handed over; what the verifier derived from it must agree."""
        entries = read_handover(self.item(items.RECORDS, "log"))
        leaves, listed = self._public_log()
        check_leaves(entries, leaves)
        other = [entry for entry in entries if entry.kind != RECORD_KIND]
        if len(entries) != len(leaves) or tuple(other) != listed:
            raise RejectedError("leaves and entries are not those that were handed over")
        return leaves, entries

    @fact("log")
    def final(self) -> CosignedCheckpoint:
        """The final checkpoint, both signatures checked."""
        data = self.item(items.FINAL_CHECKPOINT, "log")
        return verify_cosigned(data, self.policy.keys.log, self.cosigners)

    @property
    def final_time(self) -> int:
        """When the final checkpoint was cosigned, Unix seconds."""
        return self.final.quorum_time

    @fact("log")
    def close(self) -> Close:
        """The close entry's body."""
        entries = self.log.entries
        if not entries:
            raise MalformedError("the log is empty")
        return read_close(entries[-1])

    @fact("log")
    def registrations(self) -> tuple[LoggedRegistration, ...]:
        """All registrations in log order."""
        return tuple(map(read_registration, self.log.of_kind(Registration.KIND)))

    @fact("log")
    def records(self) -> tuple[LoggedRecord, ...]:
        """All records in log order."""
        if self.part == "public":
            raise Lacking(CONFIDENTIAL_PART, "records are confidential")
        return tuple(map(read_record, self.log.of_kind(RECORD_KIND)))

    @property
    def record_count(self) -> int:
        """Number of records, known from the public part too."""
        log = self.log
        if self.part == "public":
            return len(log.leaves) - len(log.entries)
        return len(self.records)

    @fact("log")
    def by_account(self) -> Mapping[bytes, tuple[LoggedRecord, ...]]:
        """Records by pseudonym, in log order."""
        found: dict[bytes, list[LoggedRecord]] = {}
        for each in self.records:
            found.setdefault(each.record.pseudonym, []).append(each)
        return {pseudonym: tuple(records) for pseudonym, records in found.items()}

    @fact("log")
    def registered(self) -> Mapping[bytes, tuple[LoggedRegistration, ...]]:
        """Registrations by pseudonym."""
        found: dict[bytes, list[LoggedRegistration]] = {}
        for each in self.registrations:
            found.setdefault(each.registration.pseudonym, []).append(each)
        return {pseudonym: tuple(each) for pseudonym, each in found.items()}

    def registration(self, pseudonym: bytes) -> LoggedRegistration:
        """The one registration of an account.

        That a record has one is `schedule`'s, that there is only one is `registrations`'.
        """
        found = self.registered.get(pseudonym, ())
        if not found:
            raise Lacking("schedule", f"account {pseudonym.hex()} was never registered")
        if len(found) > 1:
            raise Lacking("registrations", f"account {pseudonym.hex()} is registered twice")
        return found[0]

    # --- 6, 16: what the verifier saw and said ------------------------------------------------

    @fact("split-view")
    def checkpoints(self) -> tuple[KnownCheckpoint, ...]:
        """The cosigner's store, both signatures of each checked, sizes rising."""
        known = []
        for note in self.list(items.CHECKPOINTS, "split-view"):
            if not isinstance(note, str):
                raise MalformedError("not a note", where=items.CHECKPOINTS)
            cosigned = verify_cosigned(note.encode(), self.policy.keys.log, self.cosigners)
            head = cosigned.signed.head
            known.append(KnownCheckpoint(head.size, head.root_hash, cosigned.quorum_time))
        sizes = [each.size for each in known]
        if sizes != sorted(set(sizes)):
            raise RejectedError("sizes do not rise", where=items.CHECKPOINTS)
        return tuple(known)

    @fact("sampling")
    def activations(self) -> Mapping[int, Activation]:
        """The released activations, signed and on the countersigned chain."""
        anchor = self.countersignature.activation_anchor
        window = self.policy.window
        found: dict[int, Activation] = {}
        for value in self.list(items.ACTIVATIONS, "sampling"):
            each = Activation.of(value)
            each.verify(self.policy.keys.verifier)
            if each.window != window or not 1 <= each.a < self.policy.activations:
                raise RejectedError("of another window or instant", where=f"activation {each.a}")
            if each.a in found:
                raise RejectedError("released twice", where=f"activation {each.a}")
            verify_activation_preimage(window, anchor, each.a, each.preimage)
            found[each.a] = each
        return found

    @fact("sampling")
    def covered_sizes(self) -> tuple[int, ...]:
        """Covered size of a = 1, 2, .., A - 1."""
        found = self.activations
        missing = [a for a in range(1, self.policy.activations) if a not in found]
        if missing:
            raise RejectedError("not released", where=f"activation {missing[0]}")
        return tuple(found[a].covered_size for a in range(1, self.policy.activations))

    def randomness(self, a: int) -> bytes:
        """rnd_a of a record's activation; that a record names a released one is `schedule`'s."""
        if a not in self.activations:
            raise Lacking("schedule", f"no activation {a} was released")
        return activation_randomness(self.policy.window, a, self.activations[a].preimage, BEACON)

    @fact("receipts")
    def receipts(self) -> tuple[PublicReceipt, ...]:
        """The submitted receipts that carry a valid signature of the provider."""
        listed = self.list(items.RECEIPTS, "receipts")
        return tuple(_signed_receipts(listed, self.policy))

    @fact("sampling")
    def receipts_list(self) -> ReceiptsList:
        """The verifier's commitment to the receipts, signature checked."""
        found = ReceiptsList.of(self.json(items.RECEIPTS_LIST, "sampling"))
        found.verify(self.policy.keys.verifier)
        return found

    @fact("sampling")
    def challenge(self) -> Challenge:
        """The challenge, signature checked."""
        found = Challenge.parse(self.item(items.CHALLENGE, "sampling"))
        found.verify(self.policy.keys.verifier)
        return found

    @fact("sampling")
    def clock(self) -> Clock:
        """Times that only the verifier's clock says."""
        return Clock.parse(self.item(items.CLOCK, "sampling"))

    @fact("sampling")
    def challenged(self) -> tuple[LoggedRecord, ...]:
        """The challenged records that are in the log, in log order."""
        records = self.records  # what the log lacks is not the sample's defect
        wanted = {index for stratum in self.challenge.strata for index in stratum.sample}
        return tuple(each for each in records if each.index in wanted)

    @property
    def sampled(self) -> tuple[LoggedRecord, ...]:
        """The challenged records whose responses are checked: all, or those in ``only``."""
        challenged = self.challenged
        if self.only is None:
            return challenged
        return tuple(each for each in challenged if each.index in self.only)

    def response(self, record: LoggedRecord) -> Response:
        """The response for a sampled record; Lacking("sampling") without one that is readable."""
        data = self.item(items.response_name(record.index), "sampling")
        try:
            found = Response.decode(data, self.policy.dimension)
        except MalformedError as error:
            raise Lacking("sampling", f"{record.name}: {error}") from error
        if found.index != record.index:
            raise Lacking("sampling", f"{record.name}: answered as {found.index}")
        return found


def _signed_receipts(listed: list[object], policy: Policy) -> Iterator[PublicReceipt]:
    """What the provider signed for this window's log; anyone may submit anything else."""
    for value in listed:
        try:
            receipt = PublicReceipt.from_json(value)
            receipt.verify_signature(policy.keys.provider)
        except RagauditError:
            continue
        if receipt.origin == policy.origin:
            yield receipt
