"""Answering the verifier's challenge: docs/spec/09-audit.md §9.1.

A noise key is opened for nothing but a record of the recomputed sample: the challenge is checked
against the log, the chain and the policy before anything is opened.
"""

from collections.abc import Callable, Sequence

import numpy as np
from ragaudit import core
from ragaudit.circuits.statements import SelectionStatement
from ragaudit.ledger.messages.challenge import Challenge, Stratum
from ragaudit.ledger.messages.merkle_commitments import KeyOpening
from ragaudit.ledger.messages.records import Record
from ragaudit.ledger.messages.response import Response
from ragaudit.privacy import sample
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.errors import ChallengeRejected, UnknownRecord
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.entries import entry_at, record_at, records
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.receipts import LoggedRecord
from sqlalchemy import insert, select, update


class ChallengeWorker:
    """Checks challenges, proves the sampled records, hands the responses over."""

    def __init__(self, *, store: Store, mechanism: Mechanism, verifier: VerifierClient) -> None:
        self._store = store
        self._mechanism = mechanism
        self._verifier = verifier

    def check(self, live: OpenWindow, challenge: Challenge) -> tuple[int, ...]:
        """Return the sampled positions, rising, if the challenge is the one that must be.

        Raises:
            RejectedError: the verifier did not sign it for this window (`Challenge.authenticate`).
            ChallengeRejected: another final tree, other strata, or another sample.
        """
        challenge.authenticate(live.policy, anchor=live.anchor)
        head = live.log.entries.head()
        if (challenge.final_size, challenge.final_root) != (head.size, head.root_hash):
            raise ChallengeRejected("another final tree", where="final_root")
        with self._store.read() as connection:
            logged = [
                _sampled(each.position, Record.decode(each.body))
                for each in records(connection, live.name)
            ]
        receipts = _receipts(challenge, live.policy.tenants)
        if len(receipts) > challenge.receipts_list.count:
            raise ChallengeRejected(
                f"{len(receipts)} records with receipts",
                where="strata",
                expected=f"at most {challenge.receipts_list.count}, as the receipts list counts",
            )
        drawn = sample.draw_sample(
            logged,
            tenants=live.policy.tenants,
            receipts=receipts,
            rule=live.policy.audit,
            seed=sample.sampling_seed(head.root_hash, challenge.preimage),
        )
        expected = tuple(_stratum(each, live.policy.tenants) for each in drawn)
        if expected != challenge.strata:
            raise ChallengeRejected(
                "strata or sample do not recompute",
                where="strata",
                expected="the sample that the log, the policy and the chain determine",
            )
        return tuple(sorted({position for each in drawn for position in each.sample}))

    def prepare(
        self,
        live: OpenWindow,
        positions: Sequence[int],
        notify: Callable[[float], None] | None = None,
    ) -> None:
        """Prove and store the responses that are not stored yet; ``notify`` gets the share."""
        table = tables.response
        with self._store.read() as connection:
            query = select(table.c.position).where(table.c.window == live.name)
            have = set(connection.scalars(query))
            missing = [position for position in positions if position not in have]
            slots = {
                position: Record.decode(entry_at(connection, live.name, position).body).slot
                for position in missing
            }
        missing.sort(key=lambda position: (slots[position], position))  # see `SeedTree.open`
        for done, position in enumerate(missing):
            if notify is not None:
                notify(done / len(missing))
            message = self.respond(live, position)
            with self._store.write() as connection:
                connection.execute(
                    insert(table).values(
                        window=live.name, position=position, message=message, delivered=False
                    )
                )

    def deliver(self, live: OpenWindow) -> None:
        """Hand over every stored response that the verifier does not have."""
        table = tables.response
        mine = table.c.window == live.name
        with self._store.read() as connection:
            waiting = connection.execute(
                select(table.c.position, table.c.message)
                .where(mine, table.c.delivered.is_(False))
                .order_by(table.c.position)
            ).all()
        for position, message in waiting:
            self._verifier.put_response(live.name, position, message)
            with self._store.write() as connection:
                connection.execute(
                    update(table).where(mine, table.c.position == position).values(delivered=True)
                )

    def respond(self, live: OpenWindow, position: int) -> bytes:
        """Return the response for one record (docs/spec/08-services.md §8.5)."""
        with self._store.read() as connection:
            logged = record_at(connection, live.name, position)
        if logged is None:
            raise UnknownRecord("no record there", where=f"entry {position}")
        record = Record.decode(logged.body)
        opened = logged.openings.openings
        disclosed = live.policy.query_text_disclosure == "sampled"
        return Response(
            index=position,
            key=self.open_key(live, record),
            salt_q=opened.salt_q if disclosed else None,
            query=opened.query.encode() if disclosed else None,
            salt_e=opened.salt_e,
            embedding=opened.embedding,
            salt_f=opened.salt_f,
            filter=opened.filter.encode(),
            salt_s=opened.salt_s,
            sketch=opened.sketch,
            proof=self.prove(live, record, logged),
        ).encode()

    def open_key(self, live: OpenWindow, record: Record) -> KeyOpening:
        """Open the noise key of a sampled record."""
        return live.seed.open(record.slot, record.counter)

    def prove(self, live: OpenWindow, record: Record, logged: LoggedRecord) -> bytes:
        """Prove that the committed selection is the one of embedding, noise and index."""
        index, openings = live.indexes[record.tenant], logged.openings
        return core.prove_selection(
            self.statement(live, record, logged),
            index.rows,
            index.blindings,
            openings.selected,
            openings.selection_blinding,
        )

    def statement(
        self, live: OpenWindow, record: Record, logged: LoggedRecord
    ) -> SelectionStatement:
        """Return what there is to prove of a record."""
        index = live.indexes[record.tenant]
        return SelectionStatement.of(
            record,
            body=logged.body,
            index_root=index.root,
            commitments=index.commitments,
            seed_root=live.seed.commit().root,
            activation_randomness=live.activation_randomness(record.activation),
            query=np.array(logged.openings.openings.embedding, dtype=np.int16),
            noise=self._mechanism.draw_noise(live, index, record, record.nonce),
        )


def _sampled(position: int, record: Record) -> sample.LoggedRecord:
    return sample.LoggedRecord(position, record.tenant, record.pseudonym)


def _stratum(drawn: sample.DrawnStratum, tenants: Sequence[str]) -> Stratum:
    of_tenant = drawn.stratum.id in {sample.tenant_stratum_id(tenant) for tenant in tenants}
    population = None if of_tenant else drawn.stratum.population
    return Stratum(drawn.stratum.id, population, drawn.sample)


def _receipts(challenge: Challenge, tenants: Sequence[str]) -> set[int]:
    """The records for which receipts were submitted: the populations of those strata."""
    of_tenants = {sample.tenant_stratum_id(tenant) for tenant in tenants}
    return {
        position
        for stratum in challenge.strata
        if stratum.id not in of_tenants
        for position in stratum.population or ()
    }
