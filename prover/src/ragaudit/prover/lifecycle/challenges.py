"""Answering the verifier's challenge: docs/spec/08-services.md §8.5.

A noise key is opened for nothing but a record of the recomputed sample: the challenge is checked
against the log, the chain and the policy before anything is opened.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.ledger.messages.challenge import NO_KEY, Challenge, Stratum
from ragaudit.ledger.messages.commitments import KeyOpening
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.privacy import sample
from ragaudit.privacy.sample import draw_charges, draw_rows
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.errors import BackendUnavailable, ChallengeRejected, UnknownRecord
from ragaudit.prover.lifecycle.evidence import (
    ChannelEvidence,
    RowEvidence,
    charges_among,
    deliver_evidence,
    logged_charges,
    response,
)
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store, insert_new
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import LoggedRecord, entries, entry_at, record_at
from ragaudit.prover.work import ProvenIndex, WindowWork, WitnessedSelection, chunk_records
from ragaudit.serving.jobs.job import Job
from ragaudit.serving.jobs.runner import Runner
from sqlalchemy import Connection, select, update

Chunk = tuple[LoggedRecord, ...]


class Place(NamedTuple):
    """Where a sampled record is: all that is kept of it until it is proven.

    Attributes:
        tenant, version: of its index.
        slot: of its noise key.
        position: in the log.
    """

    tenant: str
    version: int
    slot: int
    position: int


_WAVE: Final = 16  # jobs that are prepared together


class ChallengeWorker:
    """Checks challenges, proves the sampled records, hands the responses over.

    What a proof speaks of comes from the mechanism that answered, and from the openings as stored.
    """

    def __init__(
        self,
        *,
        store: Store,
        backend: Backend,
        mechanism: Mechanism,
        verifier: VerifierClient,
        runner: Runner,
    ) -> None:
        """Collect the parts.

        Args:
            backend: has the documents of sampled rows.
        """
        self._store = store
        self._rows = RowEvidence(store, backend)
        self._mechanism = mechanism
        self._verifier = verifier
        self._runner = runner
        self._channel = ChannelEvidence(store)

    def check(self, live: OpenWindow, challenge: Challenge) -> tuple[int, ...]:
        """Return the sampled positions, rising, if the challenge is the one that must be.

        Args:
            challenge: as the verifier sent it, or as it is stored; parsed only.

        Raises:
            RejectedError: the verifier did not sign it for this window (`Challenge.authenticate`).
            ChallengeRejected: another final tree, other strata, or another sample.
        """
        # Signed for this window and on the countersigned chain: nobody else can have keys opened.
        challenge.authenticate(live.policy, anchor=live.anchor)
        # The sample's seed is made of this root: another tree would have another sample.
        head = live.log.entries.head()
        if (challenge.final_size, challenge.final_root) != (head.size, head.root_hash):
            raise ChallengeRejected("another final tree", where="final_root")
        receipts = _receipts(challenge)
        # The verifier signed this count before the chain decided the sample: it cannot put
        # records into the strata afterwards to have their keys opened.
        if len(receipts) > challenge.receipts_list.count:
            raise ChallengeRejected(
                f"{len(receipts)} records with receipts",
                where="strata",
                expected=f"at most {challenge.receipts_list.count}, as the receipts list counts",
            )
        policy = live.policy
        seed = sample.sampling_seed(head.root_hash, challenge.preimage, challenge.beacon)
        with self._store.read() as connection:
            strata = sample.draw_sample(
                _records(connection, live.name),
                tenants=policy.tenants,
                receipts=receipts,
                rule=policy.audit,
                seed=seed,
            )
            if policy.generation is not None:
                strata += draw_charges(
                    logged_charges(connection, live.name),
                    tenants=policy.tenants,
                    rule=policy.audit,
                    whole=policy.generation.charges.prove == "all",
                    seed=seed,
                )
        if policy.owners is not None and policy.owners.rows is not None:
            counts = {tenant: live.versions.latest(tenant).count for tenant in policy.tenants}
            strata += draw_rows(counts, rule=policy.owners.rows, seed=seed)
        expected = tuple(
            Stratum.of(each.stratum.id, each.stratum.population, each.sample) for each in strata
        )
        if expected != challenge.strata:
            raise ChallengeRejected(
                "strata or sample do not recompute",
                where="strata",
                expected="the sample that the log, the policy and the chain determine",
            )
        # A record in two strata is opened once (spec 9.1).
        return tuple(sorted(challenge.sampled))

    def prepare(
        self,
        live: OpenWindow,
        positions: Sequence[int],
        notify: Callable[[float], None] | None = None,
        rows: Mapping[str, Sequence[int]] = MappingProxyType({}),
    ) -> None:
        """Prove and open what is sampled, and store the responses that are not stored yet.

        Args:
            positions: of the sampled records and charge entries, as `check` returned them.
            notify: called with the share done, from time to time.
            rows: the sampled rows, positions by tenant, of a challenge that was checked.

        Raises:
            BackendUnavailable: the documents of rows cannot be had now; all proofs are made.
        """
        # First, and again behind the proofs: a document store that is away must not keep them
        # waiting, and what is opened early has changed least.
        with suppress(BackendUnavailable):
            self._rows.prepare(live, rows)
        work = WindowWork(self._runner, live.name)
        with self._store.read() as connection:
            charged = charges_among(connection, live.name, positions)
        sampled = sorted(set(positions).difference(charged))

        def proven(count: float) -> None:
            if notify is not None:
                notify(count / len(positions))

        self._channel.prepare(live, charged, work, proven)
        with self._store.read() as connection:
            table = tables.response
            query = select(table.c.position).where(table.c.window == live.name)
            stored = set(connection.scalars(query))
            chunks = [
                chunk
                for chunk in _chunks(live, [_place(connection, live, at) for at in sampled])
                # As they were before a restart, so that results that are there are found again.
                if not stored.issuperset(place.position for place in chunk)
            ]
        done = 0
        for places in _waves(chunks):

            def report(share: float, done: int = done, count: int = len(places)) -> None:
                proven(len(charged) + len(sampled) * (done + share * count) / len(chunks))

            with self._store.read() as connection:
                wave = [tuple(_logged(connection, live, at) for at in each) for each in places]
            jobs = {self._job(live, work, chunk): chunk for chunk in wave}
            for job, proofs in work.proofs(list(jobs), report):
                self._keep(live, jobs[job], proofs)
            done += len(wave)
        work.done()
        self._rows.prepare(live, rows)

    def deliver(self, live: OpenWindow) -> None:
        """Hand over everything stored that the verifier does not have, responses at the end.

        Args:
            live: the challenged window, after its time of release (spec 5.2).

        Raises:
            VerifierUnreachable, VerifierRefused: some were not delivered; call again.
        """
        # First: the audit may begin once all responses are there.
        deliver_evidence(self._store, live.name, self._verifier)
        table = tables.response
        of_window = table.c.window == live.name
        with self._store.read() as connection:
            positions = connection.scalars(
                select(table.c.position)
                .where(of_window, table.c.delivered.is_(False))
                .order_by(table.c.position)
            ).all()
        for position in positions:
            with self._store.read() as connection:
                message = connection.scalar(
                    select(table.c.message).where(of_window, table.c.position == position)
                )
            assert message is not None  # a response stays
            # Marked only when the verifier has it: after a crash the same bytes are sent again.
            self._verifier.put_response(live.name, position, message)
            with self._store.write() as connection:
                connection.execute(
                    update(table)
                    .where(of_window, table.c.position == position)
                    .values(delivered=True)
                )

    def respond(self, live: OpenWindow, logged: LoggedRecord, proof: bytes) -> bytes:
        """Return the encoded response for one record.

        Args:
            logged: a sampled record, as `check` returned its position.
            proof: its selection argument, as a job made it.
        """
        return response(
            live,
            logged.position,
            logged.openings.openings,
            key=self.open_key(live, logged.record),
            proof=self.argument(proof),
        )

    def argument(self, proof: bytes) -> bytes:
        """Return the argument to hand over for the one that was made: the same."""
        return proof

    def _job(self, live: OpenWindow, work: WindowWork, chunk: Chunk) -> Job:
        record = chunk[0].record
        index = live.index_of(record.tenant, record.version)
        return work.selections(
            ProvenIndex(index.rows, index.blindings, index.commitments),
            [self.selection(live, logged.record, logged) for logged in chunk],
            f"{len(chunk)} records from entry {chunk[0].position}",
        )

    def _keep(self, live: OpenWindow, chunk: Chunk, proofs: Sequence[bytes]) -> None:
        rows = [
            {
                "window": live.name,
                "position": logged.position,
                "message": self.respond(live, logged, proof),
                "delivered": False,
            }
            for logged, proof in zip(chunk, proofs, strict=True)
        ]
        with self._store.write() as connection:
            insert_new(connection, tables.response, rows)

    def open_key(self, live: OpenWindow, record: Record) -> KeyOpening:
        """Return the noise key of a sampled record with its paths to C_seed; without noise none.

        Args:
            record: a sampled one: its noise is no secret after this.
        """
        if not live.policy.noised:
            return NO_KEY
        return live.epochs.tree(record.epoch).open(record.slot, record.counter)

    def selection(
        self, live: OpenWindow, record: Record, logged: LoggedRecord
    ) -> WitnessedSelection:
        """Return what there is to prove of a record, with the witness.

        The argument (docs/spec/04-arguments.md) says that the committed selection follows from
        embedding, noise and index.

        Args:
            record: parsed from the body of ``logged``.
            logged: with the stored openings.
        """
        openings = logged.openings
        statement = self.statement(live, record, logged)
        return WitnessedSelection(statement, openings.selected, openings.selection_blinding)

    def statement(
        self, live: OpenWindow, record: Record, logged: LoggedRecord
    ) -> SelectionStatement:
        """Return what there is to prove of a record; the verifier builds the same.

        Args:
            record: parsed from the body of ``logged``.
            logged: with the stored openings.
        """
        index, policy = live.index_of(record.tenant, record.version), live.policy
        noised = policy.noised
        return SelectionStatement.of(
            record,
            body=logged.body,
            index_root=index.root,
            commitments=index.commitments,
            seed_root=live.epochs.tree(record.epoch).commit().root if noised else None,
            activation_randomness=live.activation_randomness(record.activation) if noised else None,
            query=np.array(logged.openings.openings.embedding, dtype=np.int16),
            # The noise is drawn again from the committed key: it is never stored.
            noise=self._mechanism.draw_noise(live, index, record, record.nonce)
            if noised
            else np.zeros(index.count, dtype=np.int64),
            allowed=index.allowed(request_filter(logged.openings.request.filter, policy)),
            squared_norm=policy.squared_norm,
            keeps_ties=not noised,
        )


def _records(connection: Connection, window: str) -> Iterator[sample.LoggedRecord]:
    for entry in entries(connection, window):
        if entry.kind == Record.KIND:
            record = Record.parse(entry.body)
            yield sample.LoggedRecord(entry.index, record.tenant, record.pseudonym)


def _place(connection: Connection, live: OpenWindow, position: int) -> Place:
    record = Record.parse(entry_at(connection, live.name, position).body)
    return Place(record.tenant, record.version, record.slot, position)


def _logged(connection: Connection, live: OpenWindow, place: Place) -> LoggedRecord:
    logged = record_at(connection, live.name, place.position)
    if logged is None:
        raise UnknownRecord("no record there", where=f"entry {place.position}")
    return logged


def _chunks(live: OpenWindow, sampled: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """Yield the records that one job proves each time: of one index, in order of their slots."""
    # `SeedTree.open` keeps the tree of one slot.
    for (tenant, version), members in groupby(sorted(sampled), lambda it: it[:2]):
        of_index = list(members)
        step = chunk_records(live.index_of(tenant, version).count)
        for start in range(0, len(of_index), step):
            yield of_index[start : start + step]


def _waves(chunks: Sequence[Sequence[Place]]) -> Iterator[Sequence[Sequence[Place]]]:
    """Yield chunks by some: each holds its records and their noise until it is proven."""
    for start in range(0, len(chunks), _WAVE):
        yield chunks[start : start + _WAVE]


def _receipts(challenge: Challenge) -> set[int]:
    """Return the records with submitted receipts: the populations of the submitters' strata."""
    return {
        position
        for stratum in challenge.strata
        # The log gives a tenant's records; only of submitted ones must the verifier say which.
        if not stratum.whole
        for position in stratum.population or ()
    }
