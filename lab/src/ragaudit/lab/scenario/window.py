"""A small window from end to end in one process: a provider, its accounts, and a verifier.

`Window().evidence()` gives an honest window's items (docs/spec/10-verdict.md §10.1). A provider
that cheats is a subclass which overrides the step where it cheats; everything after that step
follows from it, so that what is wrong is that step and nothing else. Times are real Unix times of
a future window; nothing waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.noise import NOISE_TAG, noise_key
from ragaudit.circuits.selection import scores, select
from ragaudit.circuits.sketch import sketch
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import salted
from ragaudit.encoding.signing import sign
from ragaudit.lab.scenario.opening import Account, Asked, OpenedWindow, TenantIndex
from ragaudit.lab.scenario.policy import (
    BITS,
    CHALLENGED,
    CLOSED,
    COUNTERSIGNED,
    DEADLINE_SECONDS,
    END,
    HANDED_OVER,
    START,
)
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages import chains
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.accounts import AccountIndex, ListedRecord
from ragaudit.ledger.messages.challenge import (
    NO_KEY,
    Activation,
    Challenge,
    Countersignature,
    ReceiptsList,
    Response,
    Stratum,
    opening_digest,
    receipts_digest,
)
from ragaudit.ledger.messages.commitments import IndexTree, KeyOpening, counter_key, slot_key
from ragaudit.ledger.messages.disputes import Dispute, RegistrationStatement
from ragaudit.ledger.messages.entries import (
    Accounts,
    Charge,
    Close,
    Record,
    Registration,
)
from ragaudit.ledger.messages.handover import Entry, write_handover
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.promises import Claim, Promise, Refusal
from ragaudit.ledger.messages.receipts import (
    PrivateReceipt,
    PublicReceipt,
    ReceiptFile,
    ServedRow,
    answer_digest,
    read_public_part,
)
from ragaudit.ledger.messages.requests import Answer, Document, Openings, Request
from ragaudit.privacy import coalition
from ragaudit.privacy import sample as sampling
from ragaudit.verifier.engines import fastest_engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import OwnGenerator


class Window(OpenedWindow):
    """An honest window; see the module's description."""

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
        stream = self.stream_key(record, key, record.nonce or b"", NOISE_TAG)
        return fastest_engine().sample_noise(self.policy.sigma, stream, self.noised_rows(record))

    def stream_key(self, asked: Record | Charge, key: bytes, nonce: bytes, tag: str) -> bytes:
        """Return the key of a record's noise, or of a charge entry's coins, by its tag."""
        members = ("window", "tenant", "version", "pseudonym", "epoch", "slot", "counter")
        of = {name: getattr(asked, name) for name in members}
        randomness = self.randomness(asked.activation)
        return noise_key(key, **of, activation_randomness=randomness, nonce=nonce, tag=tag)

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

    # --- what accounts give to the verifier ---------------------------------------------------

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

    def close(self) -> None:
        """Log the close entry, dated at the window's end, and have the final root cosigned."""
        self.log_documents()
        if self.policy.account_index:
            self.log_accounts(self.account_index())
        body = Close(self.window, len(self.asked), self.estimate(), 1000 * END)
        self.append("close", self.alter_close(body).encode())
        # Strictly before the sampling instant, or check 16 says that the root followed the sample.
        self.checkpoint(CLOSED - START)

    def log_documents(self) -> None:
        """Log what lists the documents of each tenant: here there is nothing."""

    def account_index(self) -> AccountIndex:
        """Return the index of all accounts and their records: a hook for cheats."""
        registered, records = [], []
        for position, (kind, salt, body) in enumerate(self.entries):
            if kind == Registration.KIND:
                registered.append(Registration.parse(body).pseudonym)
            elif kind == Record.KIND:
                records.append(ListedRecord(position, salt, Record.parse(body).pseudonym))
        return AccountIndex.build(self.window, registered, records)

    def log_accounts(self, index: AccountIndex) -> None:
        """Log the entry that commits to an account index: a hook for cheats.

        Args:
            index: of the log as it is now.
        """
        self.append(Accounts.KIND, index.entry.encode())

    def alter_close(self, body: Close) -> Close:
        """Return the close entry to log: a hook for cheats."""
        return body

    def play(self) -> None:
        """Play the whole window, up to the final checkpoint."""
        self.open()
        for event, *arguments in self.script():
            getattr(self, event)(*arguments)
        self.close()

    @property
    def generator(self) -> OwnGenerator | None:
        """The verifier's own language model: none where nothing is generated."""
        return None

    # --- the verifier ------------------------------------------------------------------------

    def countersignature(self) -> bytes:
        """Return a countersignature in time: 20 s before the first activation instant."""
        return self.countersigned_at(1000 * COUNTERSIGNED)

    def countersigned_at(self, time: int) -> bytes:
        """Return the verifier's countersignature of this opening (docs/spec/08-services.md §8.4).

        Args:
            time: Unix milliseconds; check 1 refuses one that is not before start and t_1.
        """
        _, salt, body = self.entries[0]
        return (
            Countersignature(
                window=self.window,
                policy_digest=self.policy.digest,
                opening_digest=opening_digest(salt, body),
                terms_digest=self.terms.digest,
                activation_anchor=chains.activation_anchor(
                    self.window, self.chain_seed, len(self.instants)
                ),
                time=time,
            )
            .signed(self.verifier_key)
            .encode()
        )

    def activation(self, a: int, covered: int) -> dict[str, Any]:
        """Return the signed activation a as JSON (docs/spec/08-services.md §8.4).

        Args:
            a: 1..A-1.
            covered: covered_size(a).
        """
        return (
            Activation(
                window=self.window,
                a=a,
                preimage=self.preimage(a),
                covered_size=covered,
                time=self.released(a),
                round=self.round(a),
            )
            .signed(self.verifier_key)
            .to_json()
        )

    def receipts_list(self, receipts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the signed receipts list as JSON (docs/spec/08-services.md §8.4).

        Args:
            receipts: public parts as JSON; those of one identity at one index count once (§8.8).
        """
        read = [read_public_part(each) for each in receipts]
        listed = {(each.index, each.identity) for each in read}
        return (
            ReceiptsList(
                window=self.window,
                digest=receipts_digest(listed),
                count=len(listed),
                time=1000 * self.instants[-1] - 1,
            )
            .signed(self.verifier_key)
            .to_json()
        )

    def draw_sample(self, receipts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the strata with their samples as JSON (docs/spec/09-audit.md §9.1).

        Args:
            receipts: public parts that were submitted before the sampling instant.
        """
        drawn = sampling.draw_sample(
            self.logged(),
            tenants=self.policy.tenants,
            receipts={read_public_part(each).index for each in receipts},
            rule=self.policy.audit,
            seed=self.sampling_seed,
        )
        return shown_strata(drawn)

    @property
    def sampling_seed(self) -> bytes:
        """Return the seed of all samples of the window's final log, 32 bytes."""
        beacon = self.beacon(len(self.instants))
        return sampling.sampling_seed(self.tree.root(), self.chain_seed, beacon)

    def logged(self) -> list[sampling.LoggedRecord]:
        """Return the records of the entries as they are now, for the sample."""
        found = []
        for i, (kind, _, body) in enumerate(self.entries):
            if kind == "record":
                record = Record.parse(body)
                found.append(sampling.LoggedRecord(i, record.tenant, record.pseudonym))
        return found

    def challenge(self, strata: list[dict[str, Any]], listed: dict[str, Any]) -> dict[str, Any]:
        """Return the signed challenge as JSON (docs/spec/08-services.md §8.4).

        Args:
            strata: of `draw_sample`.
            listed: of `receipts_list`.
        """
        return (
            Challenge(
                window=self.window,
                final_root=self.tree.root(),
                final_size=self.tree.size,
                preimage=self.chain_seed,
                receipts_list=ReceiptsList.from_json(listed),
                strata=tuple(Stratum.from_json(each, "strata") for each in strata),
                deadline=self.drawn() + 1000 * DEADLINE_SECONDS,
                round=self.round(len(self.instants)),
            )
            .signed(self.verifier_key)
            .to_json()
        )

    def sign_challenge(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sign a challenge as it is, also one that no verifier would write.

        Args:
            message: with or without a signature, which is replaced.
        """
        unsigned = {name: value for name, value in message.items() if name != "signature"}
        digest = hashlib.sha256(canonical_json.dumps(unsigned)).digest()
        signature = sign(self.verifier_key, "challenge", message["window"], digest)
        return {**unsigned, "signature": signature.hex()}

    # --- responses ---------------------------------------------------------------------------

    def open_key(self, asked: Asked) -> KeyOpening:
        """Return the opening of a record's noise key (docs/spec/05-records.md §5.5).

        The key is the one that was used. C_seed has no path for a slot, counter or epoch beyond the
        policy's: the paths are empty then, so that the check which owns that defect is reached.
        """
        if not self.policy.noised:
            return NO_KEY
        record = asked.record
        if (
            record.epoch != 1
            or record.slot >= self.slots
            or record.counter >= self.queries_per_account
        ):
            return KeyOpening(asked.key, (), ())
        return replace(self.seed_commitment.open(record.slot, record.counter), key=asked.key)

    def statement(self, asked: Asked) -> SelectionStatement:
        """Return the honest statement about a record, over the index that served it (§4.6.1)."""
        noised, index = self.policy.noised, self.index_of(asked).commitment
        return SelectionStatement.of(
            asked.record,
            body=asked.record.encode(),
            index_root=index.root,
            commitments=index.commitments,
            seed_root=self.seed_root_of(asked.record) if noised else None,
            activation_randomness=self.randomness(asked.record.activation) if noised else None,
            query=asked.embedding,
            noise=asked.noise,
            allowed=self.allowed(asked.record, asked.openings.filter),
            squared_norm=self.policy.squared_norm,
            keeps_ties=not noised,
        )

    def seed_root_of(self, record: Record) -> bytes:
        """Return the root of C_seed of a record's epoch: here there is one."""
        return self.seed_root

    def allowed(self, record: Record, wanted: str) -> tuple[int, ...] | None:
        """Return the positions that may be served, of a filter and without null rows: here all.

        Args:
            record: whose version is searched.
            wanted: the filter's canonical text.
        """
        return None

    def prove(self, asked: Asked) -> bytes:
        """Return the selection argument of a record: a hook for cheats."""
        index = self.index_of(asked)
        return core.prove_selection(
            self.statement(asked),
            index.rows,
            index.blindings,
            asked.selected,
            asked.selection_blinding,
        )

    def response(self, asked: Asked) -> bytes:
        """Return the response to the challenge about one record (docs/spec/08-services.md §8.5)."""
        return self.shown_response(asked, self.open_key(asked), self.prove(asked))

    def shown_response(self, asked: Any, key: KeyOpening, proof: bytes) -> bytes:
        """Return a response with openings, embedding and place of what was asked and logged."""
        openings = asked.openings
        shown = self.policy.query_text_disclosure == "sampled"
        return Response(
            index=asked.index,
            key=key,
            salt_q=openings.salt_q if shown else None,
            query=openings.question.data if shown else None,
            salt_e=openings.salt_e,
            embedding=tuple(asked.embedding.tolist()),
            salt_f=openings.salt_f,
            filter=openings.filter.encode(),
            salt_s=openings.salt_s,
            sketch=openings.sketch,
            proof=proof,
        ).encode()

    # --- everything --------------------------------------------------------------------------

    def handover(self) -> bytes:
        """Return the handover of the entries as they are now, with the sketches of records."""
        return write_handover(
            Entry(i, kind, salt, body, *self.sketches.get(i, (b"", b"")))
            for i, (kind, salt, body) in enumerate(self.entries)
        )

    def handed_over(self) -> dict[str, bytes]:
        """Return the items that the verifier derives from a handover of the entries."""
        entries = [Entry(i, *entry).to_json() for i, entry in enumerate(self.entries)]
        others = [entry for entry in entries if entry["kind"] != "record"]
        return {
            names.RECORDS: self.handover(),
            names.LEAVES: b"".join(self.leaves()),
            names.ENTRIES: canonical_json.dumps(others),
        }

    def opened(self) -> dict[int, Any]:
        """Return what may be sampled, by its place in the log."""
        return {asked.index: asked for asked in self.asked}

    def items(self) -> dict[str, bytes]:
        """Play the window and return all items of its evidence (docs/spec/10-verdict.md §10.1).

        A window plays once: a second call logs everything again.
        """
        self.play()
        receipts, disputes = self.receipts(), self.disputes()
        listed = self.receipts_list(receipts)
        strata = self.draw_sample(receipts)
        challenge = self.challenge(strata, listed)
        sampled = Challenge.from_json(challenge).sampled
        by_index = self.opened()
        covered = self.covered_sizes()
        # The clock's item names one time of intake for each sampled record: half a second in.
        received = 1000 * CHALLENGED + 500
        dumps = canonical_json.dumps
        return {
            **self.opening_items(),
            **self.handed_over(),
            names.COUNTERSIGNATURE: self.countersignature(),
            names.ACTIVATIONS: dumps(
                [self.activation(a, size) for a, size in enumerate(covered, start=1)]
            ),
            names.RECEIPTS_LIST: dumps(listed),
            names.FINAL_CHECKPOINT: self.checkpoints[-1][2].encode(),
            names.CHECKPOINTS: dumps([note for _, _, note in self.checkpoints]),
            names.RECEIPTS: dumps(receipts),
            names.REFUSALS: dumps(self.refusals),
            names.CLOCK: Clock(
                dict.fromkeys(sampled, received), self.claimed, 1000 * CLOSED, 1000 * HANDED_OVER
            ).encode(),
            names.CLAIMS: dumps(self.claims),
            names.DISPUTES: dumps(disputes),
            names.JUDGED: dumps(self.judged()),
            names.STATEMENTS: dumps(self.statements()),
            names.CHALLENGE: dumps(challenge),
            **{names.response_name(i): self.response(by_index[i]) for i in sorted(sampled)},
        }

    def evidence_of_opening(self) -> Evidence:
        """Return what the verifier has before it countersigns; the window must be open."""
        return Evidence.of(self.opening_items())

    def evidence(self) -> Evidence:
        """Play the window and return its evidence; once, as `items`."""
        return Evidence.of(self.items())


def shown_strata(drawn: Iterable[sampling.DrawnStratum]) -> list[dict[str, Any]]:
    """Return drawn strata as the challenge shows them."""
    parts = ((each.stratum.id, each.stratum.population, each.sample) for each in drawn)
    return [Stratum.of(*each).to_json() for each in parts]


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
