"""What the auditor of a window is shown: responses, sampled rows, and proofs of the channel.

Evidence is stored before it is delivered: what was proven or opened stays the same across
restarts. Of the generation channel (docs/spec/11-generation.md §11.12) that is, of every tenant,
the budget argument over all of its charge entries; of sampled entries a response, the charge
argument of their group, and what their answer was made of. Of sampled rows
(docs/spec/09-audit.md §9.11), a document that the store no longer has as it was committed to is
opened without its text: the row then counts as changed since.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.budgets import BudgetStatement, ChargeEntry, ChargeStatement
from ragaudit.ledger.messages.challenge import PaidRow, Replay, Response
from ragaudit.ledger.messages.commitments import KeyOpening, RowsHead, SampledRow, encode_rows
from ragaudit.ledger.messages.entries import Charge
from ragaudit.ledger.messages.filters import request_filter
from ragaudit.ledger.messages.requests import Openings
from ragaudit.privacy.sample import LoggedRecord
from ragaudit.prover.backends.interface import Backend, Document
from ragaudit.prover.errors import UnknownRecord
from ragaudit.prover.index.committed import CommittedIndex, part
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store, insert_new
from ragaudit.prover.verifier.client import VerifierClient, budget_call, replay_call, rows_call
from ragaudit.prover.window.charges import (
    StoredCharge,
    answer_of_charge,
    charge_at,
    charges_of,
    made_of,
)
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import entries
from ragaudit.prover.work import ChargedGroup, ChargedRows, ProvenIndex, WindowWork, chunk_groups
from ragaudit.serving.jobs.job import Job
from sqlalchemy import Connection, select, update

_FETCHED: Final = 100  # documents at a time, as an answer has them
_WAVE: Final = 16  # jobs that are prepared together
_ROWS: Final = 1000  # read at a time: a driver may hold all rows of a query in memory


def response(
    live: OpenWindow, index: int, openings: Openings, *, key: KeyOpening, proof: bytes
) -> bytes:
    """Return the encoded response for a sampled record or charge entry.

    Args:
        index: its place in the log.
        openings: of its digests.
        key: opens its noise key.
        proof: its argument; empty where another response has that of its group.
    """
    # The verifier gets the embedding in any case, the text only as the policy says.
    disclosed = live.policy.query_text_disclosure == "sampled"
    return Response(
        index=index,
        key=key,
        salt_q=openings.salt_q if disclosed else None,
        query=openings.question.data if disclosed else None,
        salt_e=openings.salt_e,
        embedding=openings.embedding,
        salt_f=openings.salt_f,
        filter=openings.filter.encode(),
        salt_s=openings.salt_s,
        sketch=openings.sketch,
        proof=proof,
    ).encode()


def missing_evidence(connection: Connection, window: str, call: str) -> bool:
    """Return whether nothing is stored for a call.

    Args:
        call: its path within the window.
    """
    columns = tables.evidence.c
    query = select(columns.call).where(columns.window == window, columns.call == call)
    return connection.execute(query).first() is None


def keep_evidence(connection: Connection, window: str, call: str, message: bytes) -> None:
    """Store what a call is to hand over; what is stored already stays.

    Args:
        call: its path within the window.
        message: encoded.
    """
    row = {"window": window, "call": call, "message": message, "delivered": False}
    insert_new(connection, tables.evidence, [row])


def deliver_evidence(store: Store, window: str, verifier: VerifierClient) -> None:
    """Hand over everything stored that the verifier does not have.

    Raises:
        VerifierUnreachable, VerifierRefused: some was not delivered; call again.
    """
    columns = tables.evidence.c
    left = (columns.window == window) & columns.delivered.is_(False)
    with store.read() as connection:
        calls = connection.scalars(select(columns.call).where(left).order_by(columns.call))
        waiting = calls.all()
    for call in waiting:
        this = (columns.window == window) & (columns.call == call)
        with store.read() as connection:
            message = connection.execute(select(columns.message).where(this)).scalar_one()
        verifier.put_evidence(window, call, message)
        with store.write() as connection:
            connection.execute(update(tables.evidence).where(this).values(delivered=True))


@dataclass(frozen=True, slots=True)
class TenantCharges:
    """The charge entries of a tenant, one or more, in the log's order.

    Packed: an entry takes some 130 bytes and four for each row that it charges.

    Attributes:
        version: of the index that they charge.
        positions: int64[R], in the log, rising.
        points: B_0 || .. || B_(R-1), 32 R bytes; empty where nothing is charged to rows.
        charged: what they charge.
    """

    version: int
    positions: npt.NDArray[np.int64] = field(repr=False)
    points: bytes = field(repr=False)
    charged: ChargedRows = field(repr=False)

    @classmethod
    def read(cls, connection: Connection, window: str, tenant: str) -> "TenantCharges | None":
        """Return the charge entries as stored, None if there are none.

        Args:
            connection: reads the prover's database.
            window, tenant: by name.
        """
        version = None
        positions, ends = array("q"), array("q")
        points, rows, blindings = bytearray(), bytearray(), bytearray()
        for each in charges_of(connection, window, tenant):
            version = each.body.version
            positions.append(each.position)
            points += each.body.charge or b""
            rows += each.rows.astype("<u4").tobytes()
            ends.append(len(rows) // 4)
            blindings += each.blinding
        if version is None:
            return None
        charged = ChargedRows.of(rows, np.frombuffer(ends, np.int64), blindings)
        return cls(version, np.frombuffer(positions, np.int64), bytes(points), charged)

    def numbers(self, positions: Sequence[int]) -> list[int]:
        """Return n_t of those entries that stand at some positions of the log, rising."""
        return np.flatnonzero(np.isin(self.positions, np.array(positions, np.int64))).tolist()


class RowEvidence:
    """Opens and stores the sampled rows of a window, once: what the store holds then decides."""

    def __init__(self, store: Store, backend: Backend) -> None:
        self._store = store
        self._backend = backend

    def prepare(self, live: OpenWindow, sampled: Mapping[str, Sequence[int]]) -> None:
        """Open what is not stored yet.

        Args:
            sampled: positions, rising, by tenant.

        Raises:
            BackendUnavailable: the documents cannot be had now; call again.
        """
        for tenant, positions in sampled.items():
            call = rows_call(tenant)
            with self._store.read() as connection:
                if not missing_evidence(connection, live.name, call):
                    continue
            message = self.response(live, tenant, positions)
            with self._store.write() as connection:
                keep_evidence(connection, live.name, call, message)

    def response(self, live: OpenWindow, tenant: str, positions: Sequence[int]) -> bytes:
        """Return the encoded response for a tenant's rows.

        Args:
            positions: of the last version, rising.
        """
        # The last version that was logged, whether it came into force or not.
        index = live.versions.latest(tenant)
        rows = []
        for start in range(0, len(positions), _FETCHED):
            places = positions[start : start + _FETCHED]
            documents = self._backend.fetch(tenant, [index.ids[at] for at in places])
            rows += [
                self.opened(live, index, at, document)
                for at, document in zip(places, documents, strict=True)
            ]
        return encode_rows(RowsHead(tenant, index.version, index.document_secret), rows)

    def opened(
        self, live: OpenWindow, index: CommittedIndex, at: int, document: Document | None
    ) -> SampledRow:
        """Return what opens a row.

        Args:
            at: its position.
            document: as the store has it now; None where it has none.
        """
        committed = part(index.content_digests, at)
        same = document is not None and live.form.digest(document) == committed
        numbers = index.rows[at].tolist()
        return SampledRow(
            position=at,
            id=index.ids[at],
            content=document.content if document is not None and same else None,
            attributes=document.attributes if document is not None and same else None,
            content_digest=committed,
            salt=part(index.salts, at),
            vector=tuple(numbers[: index.dimension]),
            squares=tuple(numbers[index.dimension :]),
            blinding=index.blindings[at].tobytes(),
        )


class Piece(NamedTuple):
    """A job, and what to do with its proofs.

    Attributes:
        entries: of the sample, that it is about.
        keep: stores what is made of the proofs.
    """

    entries: int
    job: Job
    keep: Callable[[Sequence[bytes]], None]


class ChannelEvidence:
    """Makes and stores the evidence of a window's generation channel, once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def prepare(
        self,
        live: OpenWindow,
        sampled: Sequence[int],
        work: WindowWork,
        notify: Callable[[float], None],
    ) -> None:
        """Prove and open what is not stored yet.

        Args:
            sampled: places of the sampled charge entries in the log, rising.
            work: of this window.
            notify: called with how many of the sampled are done, from time to time.
        """
        done = 0
        # Those of several tenants together: no worker waits for another tenant's last job.
        for wave in _waves(self._pieces(live, sampled, work)):
            of_wave = sum(piece.entries for piece in wave)

            def report(share: float, done: int = done, count: int = of_wave) -> None:
                notify(done + share * count)

            keeps = {piece.job: piece.keep for piece in wave}
            for job, proofs in work.proofs(list(keeps), report):
                keeps[job](proofs)
            done += of_wave

    def _pieces(
        self, live: OpenWindow, sampled: Sequence[int], work: WindowWork
    ) -> Iterator[Piece]:
        for tenant in live.policy.tenants:
            with self._store.read() as connection:
                charges = TenantCharges.read(connection, live.name, tenant)
            if charges is not None:
                places = charges.numbers(sampled)
                yield from _Tenant(self._store, live, work, tenant, charges).pieces(places)


class _Tenant:
    """The charge entries of one tenant, of which there is one or more."""

    def __init__(
        self,
        store: Store,
        live: OpenWindow,
        work: WindowWork,
        tenant: str,
        charges: TenantCharges,
    ) -> None:
        assert live.policy.generation is not None  # there are charges
        self._store = store
        self._live = live
        self._terms = live.policy.generation
        self._work = work
        self._tenant = tenant
        self._charges = charges
        self._index = live.index_of(tenant, charges.version)

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        """Yield the jobs of what is not stored yet, the budget's and those of sampled entries.

        Args:
            places: n_t of the sampled entries, rising.
        """
        size = self._terms.charges.group
        groups = [places[start : start + size] for start in range(0, len(places), size)]
        if not self._terms.charges_rows:
            # Under NAIVE nothing is charged to rows, and there is nothing to prove of them.
            for group in groups:
                if not self._is_stored(group):
                    self._keep([group], [b""])
            return
        if not self._has_budget():
            yield Piece(0, self._budget(), self._keep_budget)
        # Of all groups at once: each sum is the one before it and a little more.
        sums = core.running_sums(self._charges.points, places)
        step = chunk_groups(self._index.count, size)
        for start in range(0, len(groups), step):
            # As it was before a restart, so that results that are there are found again.
            chunk = groups[start : start + step]
            if not self._is_stored(chunk[-1]):
                count = sum(map(len, chunk))
                job = self._job(chunk, sums[start * size : start * size + count])
                yield Piece(count, job, partial(self._keep, chunk))

    def _has_budget(self) -> bool:
        with self._store.read() as connection:
            return not missing_evidence(connection, self._live.name, budget_call(self._tenant))

    def _budget(self) -> Job:
        statement = BudgetStatement.of(
            policy_digest=self._live.policy.digest,
            window=self._live.name,
            tenant=self._tenant,
            version=self._index.version,
            index_root=self._index.root,
            # Of the final log, which is frozen: an entry that is left out has another root.
            log_root=self._live.log.entries.head().root_hash,
            rows=self._index.count,
            uses=self._terms.uses,
            charges=self._charges.points,
            squared_norm=self._live.policy.squared_norm,
        )
        return self._work.budget(statement, self._charges.charged, f"budget of {self._tenant}")

    def _keep_budget(self, proofs: Sequence[bytes]) -> None:
        (proof,) = proofs
        with self._store.write() as connection:
            keep_evidence(connection, self._live.name, budget_call(self._tenant), proof)

    def _is_stored(self, group: Sequence[int]) -> bool:
        table = tables.response
        last = (table.c.window == self._live.name) & (table.c.position == self._position(group[-1]))
        with self._store.read() as connection:
            return connection.execute(select(table.c.position).where(last)).first() is not None

    def _keep(self, groups: Sequence[Sequence[int]], proofs: Sequence[bytes]) -> None:
        """Store the responses of groups, the last one of each with its argument, and replays."""
        rows, replays = [], {}
        with self._store.read() as connection:
            for group, proof in zip(groups, proofs, strict=True):
                for number in group:
                    logged = self._logged(connection, number)
                    last = number == group[-1]
                    rows.append(
                        {
                            "window": self._live.name,
                            "position": logged.entry.index,
                            "message": self._response(logged, proof if last else b""),
                            "delivered": False,
                        }
                    )
                    if (replay := self._replay(connection, logged)) is not None:
                        replays[replay_call(logged.entry.index)] = replay.encode()
        with self._store.write() as connection:
            insert_new(connection, tables.response, rows)
            for call, message in replays.items():
                keep_evidence(connection, self._live.name, call, message)

    def _position(self, number: int) -> int:
        return int(self._charges.positions[number])

    def _logged(self, connection: Connection, number: int) -> StoredCharge:
        position = self._position(number)
        found = charge_at(connection, self._live.name, position)
        if found is None:
            raise UnknownRecord("no charge there", where=f"entry {position}")
        return found

    def _job(self, groups: Sequence[Sequence[int]], sums: Sequence[bytes]) -> Job:
        """Return the job of groups, with the sum of the points before each of their entries."""
        wanted, before = [], iter(sums)
        with self._store.read() as connection:
            for group in groups:
                logged = [self._logged(connection, number) for number in group]
                statement = ChargeStatement(
                    self._terms.uses,
                    self._index.commitments,
                    tuple(self._entry(each, next(before)) for each in logged),
                    self._live.policy.squared_norm,
                )
                wanted.append(ChargedGroup(statement, group))
        index = ProvenIndex(self._index.rows, self._index.blindings, self._index.commitments)
        first = self._position(groups[0][0])
        name = f"{sum(map(len, groups))} charges from entry {first}"
        return self._work.charges(index, wanted, self._charges.charged, name)

    def _entry(self, logged: StoredCharge, before: bytes) -> ChargeEntry:
        body, live = logged.body, self._live
        assert body.threshold is not None  # rows are charged
        assert body.charge is not None
        return ChargeEntry.of(
            policy_digest=live.policy.digest,
            window=live.name,
            tenant=body.tenant,
            version=body.version,
            index_root=self._index.root,
            seed_root=live.epochs.tree(body.epoch).commit().root,
            activation_randomness=live.activation_randomness(body.activation),
            body=logged.entry.body,
            log_index=logged.entry.index,
            query=np.array(logged.opened.openings.embedding, dtype=np.int16),
            threshold=body.threshold,
            allowed=self._index.allowed(request_filter(logged.opened.request.filter, live.policy)),
            charged_before=before,
            charge=body.charge,
        )

    def _response(self, logged: StoredCharge, proof: bytes) -> bytes:
        body = logged.body
        return response(
            self._live,
            logged.entry.index,
            logged.opened.openings,
            key=self._live.epochs.tree(body.epoch).open(body.slot, body.counter),
            proof=proof,
        )

    def _replay(self, connection: Connection, logged: StoredCharge) -> Replay | None:
        """Return what opens an entry; None where there is none, or the policy has no replay."""
        answer = answer_of_charge(connection, self._live.name, logged.entry.index)
        found = made_of(connection, self._live.name, logged.entry.index)
        paid = (
            PaidRow(at, tuple(self._index.rows[at].tolist()), self._index.blindings[at].tobytes())
            for at in logged.rows.tolist()
        )
        if found is None or answer is None or answer.answer is None or answer.salt is None:
            # A void has released sums, and the rows that give them.
            return Replay.of_void(logged.blinding, paid) if self._terms.adaptive else None
        return Replay(
            logged.blinding, tuple(paid), found.used, found.votes, answer.answer, answer.salt
        )


def _waves(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces by some: each holds its statements until it is proven."""
    waiting = iter(pieces)
    while wave := list(islice(waiting, _WAVE)):
        yield wave


def logged_charges(connection: Connection, window: str) -> Iterator[LoggedRecord]:
    """Yield the charge entries of a window's log, for the sample."""
    for entry in entries(connection, window):
        if entry.kind == Charge.KIND:
            body = Charge.parse(entry.body)
            yield LoggedRecord(entry.index, body.tenant, body.pseudonym)


def charges_among(connection: Connection, window: str, positions: Iterable[int]) -> list[int]:
    """Return those positions of a window's log at which charge entries stand, rising."""
    wanted, position = set(positions), tables.charge.c.position
    query = select(position).where(tables.charge.c.window == window).order_by(position)
    charges = connection.scalars(query.execution_options(yield_per=_ROWS))
    return [at for at in charges if at in wanted]
