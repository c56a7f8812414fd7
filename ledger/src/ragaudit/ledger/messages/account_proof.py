"""Proof of how many records an account has, and which, or that it has none (spec 5.14)."""

from typing import Annotated, Self

from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.errors import ProofRejected
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.tlog_proof import MAX_PROOF_BYTES, TlogProof, verify_tlog_proof
from ragaudit.ledger.messages.account_index import (
    AccountIndex,
    AccountOpening,
    Accounts,
    account_key,
)
from ragaudit.ledger.messages.kernel import Digest, Items, Message, Origin, Text
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown_entries import OpenedEntry
from ragaudit.ledger.messages.sorted_rows import ProvenRow, verify_absent, verify_present

__all__ = ["AccountProof"]

_AFTER = 2  # the entry itself and the close


class AccountProof(Message, kind="account-proof", where="account proof"):
    """What the log of a closed window says of one account.

    Attributes:
        origin: of the window's log.
        pseudonym: of the account, 32 bytes.
        entry: the log's last entry but one.
        proof: text of its .tlog-proof, under the final checkpoint.
        rows: the account's, or its two neighbours where it has none.
        opening: of the account's row; None where it has none.
    """

    origin: Origin
    pseudonym: Digest
    entry: OpenedEntry
    proof: Annotated[str, Text(1, MAX_PROOF_BYTES)]
    rows: Annotated[tuple[ProvenRow, ...], Items(1, 2)]
    opening: AccountOpening | None

    @classmethod
    def of(
        cls,
        origin: str,
        pseudonym: bytes,
        index: AccountIndex,
        entry: OpenedEntry,
        proof: TlogProof,
    ) -> Self:
        """Return the proof for an account, which may be nobody's.

        Args:
            origin: of the window's log.
            pseudonym: 32 bytes.
            index: of the window.
            entry: as it was logged.
            proof: of the entry, under the final checkpoint.
        """
        rows, opening = index.prove(pseudonym), index.opening(pseudonym)
        return cls(origin, pseudonym, entry, proof.encode().decode(), rows, opening)

    @property
    def records(self) -> tuple[int, ...] | None:
        """Return the log indices of the account's records; None if it was never registered."""
        return None if self.opening is None else self.opening.records

    def verify(self, policy: Policy) -> None:
        """Check that the log of the window says this of the account.

        That the index behind it is sorted and whole is what the verdict's check 22 says.

        Args:
            policy: of the window; no key is taken from anywhere else.

        Raises:
            ProofRejected: of another log or window, not under the final checkpoint, a row that is
                not in the index, or that says something else.
            MalformedNote, NoteRejected: the checkpoint is not one that log and cosigner signed.
            MalformedProof, MalformedRecord: a path of another length, a body that is none.
        """
        if self.origin != policy.origin:
            raise ProofRejected("of another log", where=self.WHERE, expected=policy.origin)
        proof = TlogProof.parse(self.proof.encode())
        cosigners = CosignerPolicy((policy.keys.cosigner,), 1)
        cosigned = verify_tlog_proof(
            proof, leaf=self.entry.leaf(Accounts.KIND), log_key=policy.keys.log, cosigners=cosigners
        )
        # Under another one there could be records behind the index, which it does not count.
        if cosigned.signed.head.size != proof.index + _AFTER:
            raise ProofRejected("not the entry before the last", where="accounts entry")
        body = Accounts.parse(self.entry.body)
        if body.window != policy.window:
            raise ProofRejected("of another window", where=self.WHERE, expected=policy.window)
        key = account_key(body.window, self.pseudonym)
        if self.opening is None:
            verify_absent(self.rows, key, count=body.accounts, root=body.index_root)
            return
        verify_present(self.rows[0], key, count=body.accounts, root=body.index_root)
        self._verify_opened(self.opening, proof.index)

    def _verify_opened(self, opening: AccountOpening, entries: int) -> None:
        (proven,) = self.rows
        if opening.records and opening.records[-1] >= entries:
            raise ProofRejected("a record behind the index", where="opening", expected="before it")
        if opening.digest != proven.row.digest:
            raise ProofRejected("other records than in the index", where="opening")

    def _check(self) -> None:
        if len(self.rows) != (2 if self.opening is None else 1):
            raise MalformedError(f"{len(self.rows)} rows", expected="one opened, or two")
