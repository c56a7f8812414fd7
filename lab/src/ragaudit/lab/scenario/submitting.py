"""What accounts of a constructed window hand in: promises, receipts, disputes, statements."""

from __future__ import annotations

from typing import Any

from ragaudit.lab.scenario.accounts import Account, Asked, TenantIndex
from ragaudit.lab.scenario.answering import AnsweringWindow
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.commitments import IndexTree
from ragaudit.ledger.messages.disputes import Dispute, RegistrationStatement
from ragaudit.ledger.messages.promises import Claim, Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.requests import Answer, Document, Request
from ragaudit.privacy import coalition


class SubmittingWindow(AnsweringWindow):
    """The window with everything that accounts give to the verifier."""

    def promise(self, name: str, text: str, top_k: int, time: int) -> Promise:
        """Sign a promise of an anchored account's next query without logging it.

        Args:
            name: of an account that registered with a chain.
            text: the query.
            top_k: K.
            time: of the promise, seconds after `start`.

        Returns:
            The promise; the account's counter stays where it is.
        """
        account = self.accounts[name]
        openings, _ = self.open_query(account, text)
        record = self.promised(account, openings, top_k, 1000 * (self.start + time))
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=record.encode(),
            request=Request(text, top_k, account.queries),
            openings=openings,
        )

    def promise_of(self, asked: Asked) -> Promise:
        """Return the promise that a logged record keeps: without nonce and C_sel (§5.8)."""
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=asked.record.promised().encode(),
            request=asked.request,
            openings=asked.openings,
        )

    def claim(self, promise: Promise, nonce: bytes, received: int | None = None) -> None:
        """Hand a claim to the verifier.

        Args:
            promise: what the provider signed.
            nonce: what the account revealed for it.
            received: when the verifier takes it, seconds after `start`; 2 s after the promise's own
                time if it is not said.
        """
        self.claims.append(Claim(promise, nonce).to_json())
        made = promise.promised.time + 2000
        taken = made if received is None else 1000 * (self.start + received)
        self.claimed.setdefault(promise.identity, taken)

    def refuse(self, name: str, counter: int, reason: str, time: int) -> None:
        """Sign a refusal and hand it to the verifier (docs/spec/05-records.md §5.8).

        Args:
            name: of the account that is refused.
            counter: number of its queries that the provider says are logged.
            reason: "budget", "closed" or "unavailable"; check 14 says which contradict the log.
            time: seconds after `start`.
        """
        refusal = Refusal(
            origin=self.origin,
            pseudonym=self.accounts[name].pseudonym,
            counter=counter,
            reason=reason,  # type: ignore[arg-type]
            time=1000 * (self.start + time),
        ).signed(self.provider_key)
        self.refusals.append(refusal.to_json())

    def index_of(self, asked: Asked) -> TenantIndex:
        """Return the committed index that answered a query."""
        return asked.answered_by or self.indices[asked.served_tenant]

    # --- receipts ----------------------------------------------------------------------------

    def private_part(self, asked: Asked) -> PrivateReceipt:
        """Return the private part of the receipt of a logged query (§5.8), under a fresh salt_r.

        Rows are those of the index that served the query, so a cheat with another tenant's index
        shows.
        """
        index = self.index_of(asked)
        tree = IndexTree(index.commitment.commitments, index.commitment.row_digests)
        rows = tuple(
            ServedRow(
                position=i,
                id=index.ids[i],
                content=index.texts[i],
                salt=index.salts[i],
                vector=tuple(int(x) for x in index.rows[i][:-4]),
                squares=tuple(int(x) for x in index.rows[i][-4:]),
                blinding=index.blindings[i].tobytes(),
                commitment=index.commitment.commitments[32 * i : 32 * i + 32],
                path=tree.path(i),
            )
            for i in asked.selected
        )
        return PrivateReceipt(
            asked.openings, asked.selected, asked.selection_blinding, self.draw(), rows
        )

    def receipt_file(self, asked: Asked) -> ReceiptFile:
        """Return the whole receipt of a logged query, issued 1 ms after the record's time.

        Each call draws another salt_r, so two files of one record have different identities (§8.8).
        """
        private = self.private_part(asked)
        answer = Answer(tuple(Document(row.position, row.id, row.content) for row in private.rows))
        public = PublicReceipt(
            origin=self.origin,
            index=asked.index,
            salt=asked.salt,
            body=asked.body,
            issued=asked.record.time + 1,
            answer_digest=answer_digest(asked.request, answer, private),
        ).signed(self.provider_key)
        return ReceiptFile(asked.request, answer, public, private)

    def proof_for(self, index: int) -> TlogProof:
        """Return an inclusion proof under the first cosigned checkpoint that covers ``index``.

        Args:
            index: place of the entry in the log.

        Raises:
            StopIteration: no checkpoint covers it yet.
        """
        size, _, note = next(each for each in self.checkpoints if each[0] > index)
        return TlogProof(index, self.tree.inclusion_proof(index, size), note.encode())

    def receipts(self) -> list[dict[str, Any]]:
        """Return the public parts that accounts submitted: those of the first four records."""
        found = []
        for asked in self.asked[:4]:
            public = self.receipt_file(asked).public
            found.append(public.with_proof(self.proof_for(asked.index)).to_json())
        return found

    def disputes(self) -> list[dict[str, Any]]:
        """Return what accounts disputed, as the verifier keeps it; nothing in an honest window."""
        return []

    def dispute(
        self, asked: Asked, about: dict[str, Any] | None = None, **kept: Any
    ) -> dict[str, Any]:
        """Return an entry of the item of disputes, signed by the account that asked.

        Args:
            asked: the query whose record is disputed.
            about: the receipt file as JSON; the honest one if it is not given.
            kept: members ``step``, ``file`` and ``finding`` that the verifier has; null where left
                out.
        """
        return self.dispute_file(asked.account, about or self.receipt_file(asked).to_json(), **kept)

    def dispute_file(self, account: Account, about: dict[str, Any], **kept: Any) -> dict[str, Any]:
        """Return as `dispute`: of any receipt file, by the account that it is of."""
        dispute = Dispute.issue(
            account.dispute_key, pseudonym=account.pseudonym, receipt_file=about
        )
        empty = {"step": None, "file": None, "finding": None}
        return {"dispute": dispute.to_json(), **empty, **kept}

    def judged(self) -> list[dict[str, Any]]:
        """Return public parts of disputed files that were judged; none in an honest window."""
        return []

    def statements(self) -> list[dict[str, Any]]:
        """Return the registration statements: each anchored account shows its chain (§9.5)."""
        return [
            RegistrationStatement(
                origin=self.origin,
                pseudonym=account.pseudonym,
                anchor=account.chain.anchor,
            )
            .signed(account.dispute_key)
            .to_json()
            for account in self.accounts.values()
            if account.chain is not None
        ]

    # --- the close ---------------------------------------------------------------------------

    def estimate(self) -> int:
        """Return k_hat of the records so far (spec 7.2 or 7.5), for the close entry."""
        records = [
            coalition.Record(
                a.record.pseudonym,
                a.record.time,
                a.openings.sketch,
                a.record.nonce is not None,
            )
            for a in self.asked
        ]
        if self.policy.by_direction:
            limit = self.policy.queries_per_account
            return coalition.estimate_direction(records, limit=limit).k_hat
        return coalition.estimate(
            records,
            tau=self.policy.link_time,
            life=self.policy.promise_life,
            threshold=self.policy.estimator.hamming_threshold,
        ).k_hat
