"""What accounts of a constructed window hand in: promises, receipts, disputes, statements."""

from __future__ import annotations

from typing import Any

from ragaudit.lab.scenario.accounts import Asked
from ragaudit.lab.scenario.answering import AnsweringWindow
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.disputes import Dispute, RegistrationStatement
from ragaudit.ledger.messages.merkle_commitments import IndexTree
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
        """Promise an anchored account's next query without logging it."""
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
        """The promise that a logged record keeps."""
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=asked.record.promised().encode(),
            request=asked.request,
            openings=asked.openings,
        )

    def claim(self, promise: Promise, nonce: bytes, received: int | None = None) -> None:
        """Hand a claim to the verifier at `start` + ``received``; 2 s after it was promised."""
        self.claims.append(Claim(promise, nonce).to_json())
        made = promise.record.time + 2000
        taken = made if received is None else 1000 * (self.start + received)
        self.claimed.setdefault(promise.identity, taken)

    def refuse(self, name: str, counter: int, reason: str, time: int) -> None:
        refusal = Refusal.issue(
            self.provider_key,
            origin=self.origin,
            pseudonym=self.accounts[name].pseudonym,
            counter=counter,
            reason=reason,  # type: ignore[arg-type]
            time=1000 * (self.start + time),
        )
        self.refusals.append(refusal.to_json())

    # --- receipts ----------------------------------------------------------------------------

    def private_half(self, asked: Asked) -> PrivateReceipt:
        index = self.indices[asked.served_tenant]
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
        private = self.private_half(asked)
        answer = Answer(tuple(Document(row.position, row.id, row.content) for row in private.rows))
        public = PublicReceipt.issue(
            self.provider_key,
            origin=self.origin,
            index=asked.index,
            salt=asked.salt,
            body=asked.body,
            issued=asked.record.time + 1,
            answer_digest=answer_digest(asked.request, answer, private),
        )
        return ReceiptFile(asked.request, answer, public, private)

    def proof_for(self, index: int) -> TlogProof:
        """An inclusion proof under the first cosigned checkpoint that covers ``index``."""
        size, _, note = next(each for each in self.checkpoints if each[0] > index)
        return TlogProof(index, self.tree.inclusion_proof(index, size), note.encode())

    def receipts(self) -> list[dict[str, Any]]:
        """The public halves that accounts submitted: all of the first four records."""
        found = []
        for asked in self.asked[:4]:
            public = self.receipt_file(asked).public
            found.append(public.with_proof(self.proof_for(asked.index)).to_json())
        return found

    def disputes(self) -> list[dict[str, Any]]:
        """What accounts disputed, as the verifier keeps it."""
        return []

    def dispute(
        self, asked: Asked, about: dict[str, Any] | None = None, **kept: Any
    ) -> dict[str, Any]:
        """A dispute of the account that asked ``about`` a receipt file; ``kept``: step, file,
        finding."""
        file = about or self.receipt_file(asked).to_json()
        key = asked.account.dispute_key
        dispute = Dispute.issue(key, pseudonym=asked.account.pseudonym, receipt_file=file)
        empty = {"step": None, "file": None, "finding": None}
        return {"dispute": dispute.to_json(), **empty, **kept}

    def judged(self) -> list[dict[str, Any]]:
        """Public halves of the disputed files that somebody judged."""
        return []

    def statements(self) -> list[dict[str, Any]]:
        """What accounts say of their registrations: each anchored one shows its chain."""
        return [
            RegistrationStatement.issue(
                account.dispute_key,
                origin=self.origin,
                pseudonym=account.pseudonym,
                anchor=account.chain.anchor,
            ).to_json()
            for account in self.accounts.values()
            if account.chain is not None
        ]

    # --- the close ---------------------------------------------------------------------------

    def estimate(self) -> int:
        records = [
            coalition.Record(
                a.record.pseudonym,
                a.record.time,
                a.openings.sketch,
                a.record.nonce is not None,
            )
            for a in self.asked
        ]
        return coalition.estimate(
            records,
            tau=self.policy.link_time,
            life=self.policy.promise_life,
            threshold=self.policy.estimator.hamming_threshold,
        ).k_hat
