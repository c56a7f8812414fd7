"""What a verifier or a provider signs after the verdict, held against the window's public bundle.

That confidential evidence was opened or deleted (docs/spec/08-services.md §8.4), or all that the
provider had (§8.12): each names a window, and the verdict key is all that a reader has to know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ragaudit.encoding.errors import RefusedError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.tree import TreeHead
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.custody import (
    AccessesRejected,
    Deletion,
    EvidenceAccess,
    ProviderDeletion,
)
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.bundle import Bundle, open_bundle

__all__ = ["Judged"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A window as its verdict has it.

    Attributes:
        verdict: its signature verified.
        policy: that the verdict is about.
        final: head of the final checkpoint; None for a window that never had one.
        public: how many entries of the log are public.
    """

    verdict: Verdict
    policy: Policy
    final: TreeHead | None
    public: int

    @classmethod
    def read(cls, path: Path, verdict_key: PublicKey) -> Self:
        """Return the window of a bundle.

        Args:
            path: of the bundle, of either part.
            verdict_key: that must have signed the verdict, from elsewhere.

        Raises:
            MalformedBundle, MalformedVerdict, MalformedError: not a bundle, or its verdict or an
                item is none.
            VerdictRejected: the verdict is not signed with that key.
            RejectedError: an item is not the one that the verdict names.
            RefusedError: the verdict names no policy.
        """
        with open_bundle(path) as bundle:
            verdict = Verdict.verify(bundle.verdict, verdict_key)
            policy = _named(bundle, verdict, items.POLICY)
            note = _named(bundle, verdict, items.FINAL_CHECKPOINT)
            public = _count_public(bundle, verdict)
        if policy is None:
            raise RefusedError("the verdict names no policy", where=items.POLICY)
        final = None if note is None else parse_checkpoint(note).head
        return cls(verdict, Policy.parse(policy), final, public)

    def verify_deletion(self, statement: Deletion | ProviderDeletion) -> None:
        """Check that all confidential evidence of this window is what was deleted.

        Raises:
            RejectedError: it is about another window, verdict or checkpoint, or other items.
            SignatureRejected: the policy's `keys.verifier` did not sign it; of a provider's, its
                `keys.provider`.
        """
        if isinstance(statement, ProviderDeletion):
            statement.authenticate(
                self.policy.keys.provider,
                self.verdict,
                origin=self.policy.origin,
                checkpoint=self.final,
                public=self.public,
            )
            return
        statement.authenticate(
            self.policy.keys.verifier,
            self.verdict,
            origin=self.policy.origin,
            checkpoint=self.final,
        )

    def verify_accesses(
        self, accesses: Sequence[EvidenceAccess], shown: int, *, by_provider: bool = False
    ) -> None:
        """Check that these are all the times that confidential evidence was opened.

        Args:
            accesses: as their holder lists them.
            shown: how many there are by `counts.accesses`, which the service shows to anyone; of a
                provider's list, by its operator.
            by_provider: whether the list is the provider's (8.13).

        Raises:
            AccessesRejected: one is missing, changed, or out of order, or of another window.
            SignatureRejected: the policy's key of the holder did not sign one.
        """
        keys = self.policy.keys
        key = keys.provider if by_provider else keys.verifier
        EvidenceAccess.verify_all(accesses, key, origin=self.policy.origin)
        if len(accesses) != shown:
            raise AccessesRejected(
                f"{len(accesses)} accesses", where="counts.accesses", expected=f"{shown}"
            )


def _count_public(bundle: Bundle, verdict: Verdict) -> int:
    if not _names(bundle, verdict, items.ENTRIES):
        return 0
    # One by one: a window with a generation channel has an entry for each question.
    with bundle.evidence.open(items.ENTRIES) as file:
        return sum(1 for _ in Entries.stream(file))


def _named(bundle: Bundle, verdict: Verdict, name: str) -> bytes | None:
    """An item that the verdict names, None if it names none of this name."""
    return bundle.evidence[name] if _names(bundle, verdict, name) else None


def _names(bundle: Bundle, verdict: Verdict, name: str) -> bool:
    digest = verdict.subjects.get(name)
    if digest is not None and bundle.digests.get(name) != digest:
        raise RejectedError("not the item that the verdict names", where=name, expected=digest)
    return digest is not None
