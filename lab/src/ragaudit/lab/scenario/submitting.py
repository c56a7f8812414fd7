"""What accounts of a constructed window are answered, and what they hand in afterwards."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import noise_key
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.sketch import sketch
from ragaudit.encoding.digests import salted
from ragaudit.lab.scenario.accounts import Account, Asked, TenantIndex
from ragaudit.lab.scenario.opening import OpenedWindow
from ragaudit.lab.scenario.policy import BITS
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages.commitments import IndexTree, counter_key, slot_key
from ragaudit.ledger.messages.disputes import Dispute, RegistrationStatement
from ragaudit.ledger.messages.entries import (
    Record,
    Registration,
)
from ragaudit.ledger.messages.promises import Claim, Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
)
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request
from ragaudit.privacy import coalition
from ragaudit.verifier.engines import fastest_engine


class AnsweringWindow(OpenedWindow):
    """The window with its log, in which accounts register and ask."""

    # --- the log -----------------------------------------------------------------------------

    def checkpoint(self, time: int) -> None:
        """Sign the tree as it is, have it cosigned, and keep the note.

        Args:
            time: of the cosignature, seconds after `start`; negative before the window.
        """
        note = self.cosigned(self.tree, self.start + time)
        self.checkpoints.append((self.tree.size, self.start + time, note))

    # --- accounts ----------------------------------------------------------------------------

    def register(self, name: str, tenant: str, anchored: bool, time: int) -> None:
        """Register an account and log its entry, on the next slot.

        Args:
            name: in this scenario; its hash is the pseudonym.
            tenant: of the account.
            anchored: whether it brings the anchor of a nonce chain.
            time: seconds after `start`.
        """
        pseudonym = hashlib.sha256(f"pseudonym of {name}".encode()).digest()
        chain = (
            chains.NonceChain(self.window, pseudonym, self.draw(), self.queries_per_account)
            if anchored
            else None
        )
        account = Account(name, tenant, pseudonym, chain)
        body = Registration(
            window=self.window,
            pseudonym=pseudonym,
            tenant=tenant,
            slot=sum(kind == "registration" for kind, _, _ in self.entries),
            anchor=chain.anchor if chain else None,
            dispute_key=account.dispute_key.public.raw,
            time=1000 * (self.start + time),
        )
        account.registration = self.alter_registration(account, body)
        self.accounts[name] = account
        self.append("registration", account.registration.encode())

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        """Return the registration to log: a hook for cheats, which may log another one.

        Args:
            account: who registers.
            body: the honest entry.
        """
        return body

    # --- queries -----------------------------------------------------------------------------

    def query(self, name: str, text: str, top_k: int, time: int) -> Asked:
        """Answer and log a query, and count it.

        Args:
            name: of a registered account.
            text: the query.
            top_k: K.
            time: of the record, seconds after `start`.
        """
        account = self.accounts[name]
        asked = self.answer(account, text, top_k, 1000 * (self.start + time))
        account.queries += 1
        self.log_record(asked)
        return asked

    def log_record(self, asked: Asked) -> None:
        """Log an answered query; its place and the leaf's salt are set on it."""
        asked.index = self.append("record", asked.body)
        asked.salt = self.entries[asked.index][1]
        self.sketches[asked.index] = (asked.openings.salt_s, asked.openings.sketch)
        self.asked.append(asked)

    def answer(self, account: Account, text: str, top_k: int, time: int) -> Asked:
        """Return an answered query that is not logged and not counted.

        Args:
            account: its next counter is used, with the nonce of its chain if it has one and it is
                not used up; beyond the chain the record has no nonce, so a cheat can go over its
                budget.
            text: the query.
            top_k: K.
            time: of the record, Unix milliseconds.
        """
        request = Request(text, top_k, account.queries if account.chain else None)
        openings = self.open_request(account, request)
        record = self.promised(account, openings, top_k, time)
        if account.chain is not None and account.queries < account.chain.length:
            # A selection stands in until the noise, which the nonce decides, is known.
            nonce = account.chain.nonce(account.queries)
            record = replace(record, nonce=nonce, selection_commitment=bytes(32))
        return self.serve(account, request, openings, self.alter_record(account, record))

    def serve(
        self, account: Account, request: Request, openings: Openings, record: Record
    ) -> Asked:
        """Draw the noise of a record, select, and commit to the selection; log nothing.

        Args:
            account: decides, by `served_tenant`, whose index is scored.
            request: goes into the receipt as it is.
            openings: of the record's digests.
            record: what is claimed; noise and proof are about it, altered or not.
        """
        embedding = np.array(openings.embedding, dtype=np.int16)
        key = self.noise_secret(record)
        noise = self.noise(record, key)
        served = self.served_tenant(account)
        selected = self.select(served, embedding, noise, record.top_k)
        blinding = self.scalar()
        commitment = core.commit_selection(selected, blinding)
        record = replace(record, selection_commitment=commitment)
        body = self.encode_record(record)
        return Asked(
            account, request, record, body, b"", openings, embedding, key, noise, served, selected,
            blinding,
        )  # fmt: skip

    def embed(self, text: str) -> npt.NDArray[np.int16]:
        """Return int16[d], the quantised vector of a query: a hook for cheats."""
        return self.embedder.embed(text).astype(np.int16)

    def embed_request(self, request: Request) -> npt.NDArray[np.int16]:
        """Return int16[d], e of a request: a hook for cheats."""
        return self.embed(request.query)

    def open_request(self, account: Account, request: Request) -> Openings:
        """Return the openings of a request's digests, with fresh salts: a hook for cheats.

        Args:
            account: who asks; a cheat may treat one differently.
            request: what is asked.
        """
        embedding = self.embed_request(request)
        return Openings(
            query=request.query,
            vector=request.vector,
            kind=request.kind,
            salt_q=self.draw(),
            embedding=tuple(int(x) for x in embedding),
            salt_e=self.draw(),
            filter=request.filter,
            salt_f=self.draw(),
            sketch=self.make_sketch(account, embedding),
            salt_s=self.draw(),
        )

    def make_sketch(self, account: Account, embedding: npt.NDArray[np.int16]) -> bytes:
        """Return the sketch of a query vector (spec 2.4): a hook for cheats."""
        return sketch(embedding, self.policy.estimator.seed, BITS)

    def promised(self, account: Account, openings: Openings, top_k: int, time: int) -> Record:
        """Return the record that a promise would name: nonce and C_sel are absent.

        Args:
            account: registered; the slot and the counter are its.
            openings: whose digests the record holds.
            top_k: K.
            time: Unix milliseconds.

        Returns:
            The record under the later of the activations of opening and registration, as check 9
            demands; the first one where no checkpoint covers either.
        """
        registration = account.registration
        assert registration is not None
        place = next(
            i
            for i, (kind, _, body) in enumerate(self.entries)
            if kind == "registration" and body == registration.encode()
        )
        sizes = self.covered_sizes()
        # Check 9 demands the larger of the two. An entry that no instant covers has none: 1 stands
        # in for it.
        due = [chains.activation_of(index, sizes) or 1 for index in (0, place)]
        encoded = np.array(openings.embedding, dtype="<i2").tobytes()
        return Record(
            policy_digest=self.policy.digest,
            window=self.window,
            tenant=account.tenant,
            version=1,
            rows=self.indices[account.tenant].commitment.rows,
            top_k=top_k,
            filter_digest=salted(openings.salt_f, openings.filter),
            pseudonym=account.pseudonym,
            epoch=1,
            slot=registration.slot,
            counter=account.queries,
            activation=max(due),
            time=time,
            nonce=None,
            query_digest=salted(openings.salt_q, openings.question.data),
            embedding_digest=salted(openings.salt_e, encoded),
            sketch_digest=salted(openings.salt_s, openings.sketch),
            selection_commitment=None,
        )

    def alter_record(self, account: Account, record: Record) -> Record:
        """Return the record to go on with: a hook for cheats.

        What follows (noise, selection, proof) is about the altered record.
        """
        return record

    def encode_record(self, record: Record) -> bytes:
        """Return the body to log: a hook for cheats that log other bytes than they prove."""
        return record.encode()

    def noise_secret(self, record: Record) -> bytes:
        """Return k, the key that C_seed holds at the record's slot and counter (§5.5), 32 bytes.

        Computed from the secret and not from the tree, so there is one for counters beyond the
        budget.
        """
        slot = slot_key(self.seed_secret, self.window, record.epoch, record.slot)
        return counter_key(slot, record.counter)

    def noise(self, record: Record, key: bytes) -> npt.NDArray[np.int64]:
        """Return int64[N], the noise of a record (docs/spec/03-noise.md §3.3, §3.4).

        Args:
            record: names the activation and the nonce on which the key stream depends.
            key: k, of 32 bytes; `noise_secret` has the honest one.
        """
        stream = noise_key(
            key,
            window=record.window,
            tenant=record.tenant,
            version=record.version,
            pseudonym=record.pseudonym,
            epoch=record.epoch,
            slot=record.slot,
            counter=record.counter,
            activation_randomness=self.randomness(record.activation),
            nonce=record.nonce or b"",
        )
        return fastest_engine().sample_noise(self.policy.sigma, stream, self.noised_rows(record))

    def noised_rows(self, record: Record) -> int:
        """Return N of the index that a record asks, however many rows are claimed."""
        return self.rows

    def served_tenant(self, account: Account) -> str:
        """Return whose index answers an account: a hook for cheats."""
        return account.tenant

    def select(
        self,
        tenant: str,
        embedding: npt.NDArray[np.int16],
        noise: npt.NDArray[np.int64],
        top_k: int,
    ) -> tuple[int, ...]:
        """Return T, the selected rows in rising order (docs/spec/02-integers.md §2.3).

        Args:
            tenant: whose index is scored.
            embedding: int16[d].
            noise: int64[N].
            top_k: K; fewer rows are selected where noised scores tie at the boundary.
        """
        return select(scores(self.indices[tenant].vectors, embedding) + noise, top_k)


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
        request = Request(text, top_k, account.queries)
        openings = self.open_request(account, request)
        record = self.promised(account, openings, top_k, 1000 * (self.start + time))
        return Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=record.encode(),
            request=request,
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
        tree = self.tree_of(index)
        rows = tuple(served_row(index, tree, i) for i in asked.selected)
        return PrivateReceipt(
            asked.openings, asked.selected, asked.selection_blinding, self.draw(), rows
        )

    def receipt_file(self, asked: Asked) -> ReceiptFile:
        """Return the whole receipt of a logged query, issued 1 ms after the record's time.

        Each call draws another salt_r, so two files of one record have different identities (§8.8).
        """
        private = self.private_part(asked)
        answer = self.answered(asked, private)
        public = PublicReceipt(
            origin=self.origin,
            index=asked.index,
            salt=asked.salt,
            body=asked.body,
            issued=asked.record.time + 1,
            answer_digest=answer_digest(asked.request, answer, private),
        ).signed(self.provider_key)
        return ReceiptFile(asked.request, answer, public, private)

    def answered(self, asked: Asked, private: PrivateReceipt) -> Answer:
        """Return the documents of an answer, without noise with their scores: a hook for cheats."""
        found = []
        for row in private.rows:
            score = None if self.policy.noised else self.score(asked, row.position)
            shown = row.content, row.columns, row.attributes
            found.append(Document(row.position, row.id, *shown, score))
        return Answer(tuple(found))

    def score(self, asked: Asked, position: int) -> int:
        """Return <e, X_i> of a row of the index that answered."""
        row = self.index_of(asked).vectors[position].astype(np.int64)
        return int(row @ asked.embedding.astype(np.int64))

    def tree_of(self, index: TenantIndex) -> IndexTree:
        """Return the tree of an index."""
        held = index.commitment
        return IndexTree(held.commitments, held.row_digests, held.columns, held.id_keys)

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
            found.append(public.with_proofs(self.proof_for(asked.index)).to_json())
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
        if not self.policy.noised:
            return 0  # nothing is claimed of coalitions
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


def served_row(index: TenantIndex, tree: IndexTree, i: int) -> ServedRow:
    """Return a row of an index with everything that opens it, from the index's tree."""
    held = index.commitment
    return ServedRow(
        position=i,
        id=index.ids[i],
        content=index.texts[i],
        salt=index.salts[i],
        vector=tuple(int(x) for x in index.rows[i][:-4]),
        squares=tuple(int(x) for x in index.rows[i][-4:]),
        blinding=index.blindings[i].tobytes(),
        commitment=held.commitments[32 * i : 32 * i + 32],
        path=tree.path(i),
        columns=index.columns[i],
        attributes=index.attributes[i],
    )
