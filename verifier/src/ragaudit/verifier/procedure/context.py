"""What the checks look at: the evidence, parsed once, every part owned by one check."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.cosignatures import verify_cosigned
from ragaudit.ledger.messages.activation import Activation
from ragaudit.ledger.messages.chains import activation_randomness, verify_activation_preimage
from ragaudit.ledger.messages.challenge import Challenge, ReceiptsList
from ragaudit.ledger.messages.clock import Clock
from ragaudit.ledger.messages.disputes import RegistrationStatement
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.response import Response
from ragaudit.verifier import evidence as items
from ragaudit.verifier.procedure.disputes import KeptDispute
from ragaudit.verifier.procedure.facts import MissingInput, fact
from ragaudit.verifier.procedure.inputs import (
    CommittedEmbedder,
    Interrupted,
    Part,
    Pins,
    Progress,
)
from ragaudit.verifier.procedure.log_facts import LogFacts
from ragaudit.verifier.procedure.log_view import LoggedRecord

__all__ = [
    "BEACON",
    "CommittedEmbedder",
    "Context",
    "Interrupted",
    "KnownCheckpoint",
    "Part",
    "Pins",
    "Progress",
]

BEACON: Final = b""
"""Randomness of the beacon: empty, as version 1 knows only the beacon "none"."""


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """A checkpoint of the cosigner's store; ``time`` in Unix seconds."""

    size: int
    root: bytes
    time: int


class Context(LogFacts):
    """All facts: here those about what the verifier saw, said and asked."""

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
            each = Activation.from_json(value)
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
        """Return rnd_a, 32 bytes, of the activation ``a`` >= 1 that a record names.

        Raises:
            MissingInput: `schedule` if there is no such activation, `sampling` if it was not
                released.
        """
        if a >= self.policy.activations:
            raise MissingInput("schedule", f"there is no activation {a}")
        if a not in self.activations:
            raise MissingInput("sampling", f"activation {a} was not released")
        return activation_randomness(self.policy.window, a, self.activations[a].preimage, BEACON)

    @fact("receipts")
    def receipts(self) -> tuple[PublicReceipt, ...]:
        """The submitted receipts that carry a valid signature of the provider."""
        listed = self.list(items.RECEIPTS, "receipts")
        return tuple(_signed_receipts(listed, self.policy))

    @fact("disputes")
    def disputes(self) -> tuple[KeptDispute, ...]:
        """What accounts disputed, as the verifier kept it."""
        return tuple(map(KeptDispute.from_json, self.list(items.DISPUTES, "disputes")))

    @property
    def disputed_receipts(self) -> tuple[PublicReceipt, ...]:
        """Public halves of judged files that carry a valid signature of the provider."""
        return tuple(_signed_receipts(self.list(items.JUDGED, "receipts"), self.policy))

    @fact("nonces")
    def shown(self) -> frozenset[bytes]:
        """Pseudonyms of the anchored accounts that showed their chain.

        A registration's anchor is the provider's word until a statement about it, signed with the
        registration's dispute key, reached the verifier. Receipts and claims are no evidence of
        that: whoever made the chain has them all.
        """
        found = set()
        for value in self.list(items.STATEMENTS, "nonces"):
            try:
                statement = RegistrationStatement.from_json(value)
                if statement.origin == self.policy.origin and self._is_own(statement):
                    found.add(statement.pseudonym)
            except RagauditError:
                continue
        return frozenset(found)

    def _is_own(self, statement: RegistrationStatement) -> bool:
        """Whether a registration with this anchor has the key that signed; raises if not."""
        registered = self.registered.get(statement.pseudonym, ())
        if len(registered) != 1:  # that there is one only is check 7's
            return False
        registration = registered[0].registration
        if registration.anchor is None or registration.anchor != statement.anchor:
            return False
        if registration.dispute_key is None:
            return False
        statement.verify_signature(PublicKey.from_raw(registration.dispute_key))
        return True

    @fact("sampling")
    def receipts_list(self) -> ReceiptsList:
        """The verifier's commitment to the receipts, signature checked."""
        found = ReceiptsList.parse(self.item(items.RECEIPTS_LIST, "sampling"))
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
        sampled = self.challenge.sampled
        return tuple(each for each in records if each.index in sampled)

    @property
    def sampled(self) -> tuple[LoggedRecord, ...]:
        """The challenged records whose responses are checked: all, or those in ``only``."""
        challenged = self.challenged
        if self.only is None:
            return challenged
        return tuple(each for each in challenged if each.index in self.only)

    def response(self, record: LoggedRecord) -> Response:
        """Return the response for a sampled record.

        Raises:
            MissingInput: `sampling` without one that can be read.
        """
        data = self.item(items.response_name(record.index), "sampling")
        try:
            found = Response.decode(data, self.policy.dimension)
        except MalformedError as error:
            raise MissingInput("sampling", f"{record.name}: {error}") from error
        if found.index != record.index:
            raise MissingInput("sampling", f"{record.name}: answered as {found.index}")
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
