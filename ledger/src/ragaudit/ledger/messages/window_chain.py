"""The chain of a provider's windows, with their keys (docs/spec/08-services.md §8.11)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.log.tree import TreeHead, leaf_hash
from ragaudit.ledger.messages.challenge import Countersignature
from ragaudit.ledger.messages.entries import Opening
from ragaudit.ledger.messages.kernel import Items, Message, ProviderName, Text
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ShownOpening

__all__ = ["ChainedWindow", "Link", "WindowChain"]

MAX_WINDOWS = 10_000


class ChainedWindow(Message):
    """A window of the chain; nothing in it has been checked.

    Attributes:
        opening: the log's entry 0.
        proof: text of its .tlog-proof, under the final checkpoint; None before the handover.
    """

    policy: Policy
    countersignature: Countersignature
    opening: ShownOpening
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)] | None

    @property
    def cosigners(self) -> CosignerPolicy:
        """Return whose signatures a checkpoint of the window must have."""
        return CosignerPolicy((self.policy.keys.cosigner,), 1)

    def verify(self) -> TreeHead | None:
        """Check what the verifier signed, and that the log begins with it; return the log's end.

        Returns:
            The head of the final checkpoint, as the provider shows it; None before the handover.

        Raises:
            RejectedError, SignatureRejected: another window, policy or opening was countersigned,
                or the opening is not entry 0 of a log that log and cosigner signed.
            MalformedError: an opening or a proof that is none.
        """
        salt, body = self.opening.salt, self.opening.body
        self.countersignature.authenticate(self.policy, opening_salt=salt, opening_body=body)
        # The countersignature names both; that they belong together, only the opening's body says.
        if Opening.parse(body).policy_digest != self.policy.digest:
            raise RejectedError("of another policy", where="opening")
        if self.proof is None:
            return None
        proof = TlogProof.parse(self.proof.encode())
        if proof.index:
            raise RejectedError(
                f"a proof of leaf {proof.index}", where="opening", expected="leaf 0"
            )
        leaf = leaf_hash(leaf_data(salt, Opening.KIND, body))
        keys = self.policy.keys
        found = verify_tlog_proof(proof, leaf=leaf, log_key=keys.log, cosigners=self.cosigners)
        return found.signed.head


@dataclass(frozen=True, slots=True)
class Link:
    """What a verified chain says of one window.

    Attributes:
        window: its name.
        log: the vkey of its log, whose name is the origin.
        provider_key: signs its receipts; another one than before was changed at the boundary.
        size: of the log at its end; None before the handover.
        continues: name of the window whose end the policy names; None: it begins anew.
    """

    window: str
    log: str
    provider_key: PublicKey
    size: int | None
    continues: str | None


class WindowChain(Message, kind="window-chain", where="window chain"):
    """All countersigned windows of a provider, in order of creation."""

    provider: ProviderName
    windows: Annotated[tuple[ChainedWindow, ...], Items(0, MAX_WINDOWS)]

    def verify(self, verifiers: Collection[PublicKey] = ()) -> tuple[Link, ...]:
        """Check every window and every link; return what they say, in order.

        Args:
            verifiers: the pinned `keys.verifier`, more than one where the provider changed its
                verifier; none: whoever shows the chain could have made up verifier and windows.

        Raises:
            RejectedError: a window that was not countersigned, a key or name that is used twice, a
                link to another end than that of an earlier window of the list.
            MalformedError: an opening, proof or checkpoint that is none.
        """
        before: dict[str, tuple[ChainedWindow, TreeHead | None]] = {}
        links = []
        keys: set[bytes] = set()
        for number, window in enumerate(self.windows):
            policy = window.policy
            try:
                self._check_names(policy, verifiers)
                # Under one key a checkpoint of one log could be shown as another one's (6.4).
                if policy.origin in before or policy.keys.log.public.raw in keys:
                    raise RejectedError("a window or a log key for the second time")
                head = window.verify()
                continues = _continued(policy, before)
            except RagauditError as error:
                where = f"{self.WHERE}, window {number}"
                where = f"{where}: {error.where}" if error.where else where
                kind = MalformedError if isinstance(error, MalformedError) else RejectedError
                raise kind(error.what, where=where, expected=error.expected) from error
            before[policy.origin] = (window, head)
            keys.add(policy.keys.log.public.raw)
            size = None if head is None else head.size
            log, signs = str(policy.keys.log), policy.keys.provider
            links.append(Link(policy.window, log, signs, size, continues))
        return tuple(links)

    def _check_names(self, policy: Policy, verifiers: Collection[PublicKey]) -> None:
        if policy.provider != self.provider:
            raise RejectedError("of another provider", expected=self.provider)
        if verifiers and policy.keys.verifier not in verifiers:
            for key in verifiers:
                if policy.keys.role(key):  # a wrong pin accuses nobody
                    raise MalformedError(policy.keys.mistaken(key), expected="the verifier's key")
            expected = " or ".join(key.raw.hex() for key in verifiers)
            raise RejectedError("another verifier's", expected=expected)


def _continued(
    policy: Policy, before: dict[str, tuple[ChainedWindow, TreeHead | None]]
) -> str | None:
    """Return the name of the window whose end a policy names, None if it names none."""
    if policy.previous_checkpoint is None:
        return None
    note = policy.previous_checkpoint.encode()
    origin = parse_checkpoint(note).checkpoint.origin
    if origin not in before:
        raise RejectedError("continues a window that is not listed before it", where=origin)
    window, end = before[origin]
    named = verify_cosigned(note, window.policy.keys.log, window.cosigners).signed.head
    if end is None:
        raise RejectedError("continues a window that is shown as not ended", where=origin)
    if named != end:
        raise RejectedError("continues another end of the window", where=origin)
    return window.policy.window
