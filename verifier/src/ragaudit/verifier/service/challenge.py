"""The sample that the seed of V's activation chain gives, and what is answered for it.

Nothing that it depends on can change any more at the sampling instant. Receipts, disputes, handover
and close are taken before it only. The strata are drawn from what the verifier holds of the window
(spec 9.1, 9.11).
"""

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

from ragaudit.encoding.errors import Conflict, InternalError, NotFound
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.messages.challenge import Challenge, ReceiptsList, receipts_digest
from ragaudit.ledger.messages.charges import Charge
from ragaudit.ledger.messages.generation_terms import GenerationTerms
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.ledger.messages.items import (
    CHALLENGE,
    FINAL_CHECKPOINT,
    OPENING,
    RECEIPTS_LIST,
    RECORDS,
    OpeningItem,
    budget_name,
    index_name,
    replay_name,
    response_name,
    rows_name,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, Record, Version
from ragaudit.ledger.messages.replays import longest_replay
from ragaudit.ledger.messages.sampled_rows import longest_rows
from ragaudit.ledger.messages.strata import Stratum
from ragaudit.privacy.sample import (
    LoggedRecord,
    draw_charges,
    draw_rows,
    draw_sample,
    sampling_seed,
)
from ragaudit.serving.bodies import MEMORY_BYTES, Body
from ragaudit.serving.rounds import RoundFinder
from ragaudit.verifier.history import Statement
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.procedure import logged
from ragaudit.verifier.service import submissions, windows
from ragaudit.verifier.service.database import Database, Origin
from ragaudit.verifier.service.releases import chain_seed, due_round, ensure_activation
from ragaudit.verifier.service.submissions import Kind
from ragaudit.verifier.service.windows import State, Window, check_due
from sqlalchemy import Connection

_BYTES_OF_ROW: Final = 64  # in an index commitment: its commitment and its digest


def draw_strata(
    connection: Connection, window: Window, policy: Policy, seed: bytes
) -> tuple[Stratum, ...]:
    """Return the sample that log, receipts, indexes and ``seed`` determine.

    Args:
        seed: of `sampling_seed`.

    Raises:
        MalformedError: the handover holds a record that cannot be read.
    """
    receipts = submissions.places(connection, window.origin, Kind.RECEIPT)
    drawn = draw_sample(
        _logged(connection, window.origin, Record.KIND),
        tenants=policy.tenants,
        receipts={place.position for place in receipts},
        rule=policy.audit,
        seed=seed,
    )
    if policy.generation is not None:
        drawn += draw_charges(
            _logged(connection, window.origin, Charge.KIND),
            tenants=policy.tenants,
            rule=policy.audit,
            whole=policy.generation.prove == "all",
            seed=seed,
        )
    if policy.owners is not None and policy.owners.rows is not None:
        counts = _last_rows(connection, window.origin, policy)
        drawn += draw_rows(counts, rule=policy.owners.rows, seed=seed)
    return tuple(
        Stratum.of(each.stratum.id, each.stratum.population, each.sample) for each in drawn
    )


def _logged(connection: Connection, origin: Origin, kind: str) -> Iterator[LoggedRecord]:
    """Yield the records of the handover, or its charge entries."""
    for entry in _entries(connection, origin, kind):
        # Read as the procedure reads it, so that both draw from the same records.
        body = logged.read_record(entry).record if kind == Record.KIND else Charge.parse(entry.body)
        yield LoggedRecord(entry.index, body.tenant, body.pseudonym)


def _last_rows(connection: Connection, origin: Origin, policy: Policy) -> dict[str, int]:
    """Return N of the last version of each tenant's index, in policy order."""
    opening = Opening.parse(OpeningItem.parse(demand_item(connection, origin, OPENING)).body)
    last = {opened.tenant: opened for opened in opening.tenants}
    if policy.retrieval.versions:
        for entry in _entries(connection, origin, Version.KIND):
            index = Version.parse(entry.body).index
            last[index.tenant] = index
    found = {}
    for tenant in policy.tenants:
        index = last[tenant]
        item = windows.find_item(connection, origin, index_name(tenant, index.version))
        # A log may claim more rows than anybody could draw from: check 3 says so, and nothing is
        # drawn here from an index that is not at hand.
        held = item is not None and item.size > _BYTES_OF_ROW * index.rows
        found[tenant] = index.rows if held else 0
    return found


def _entries(connection: Connection, origin: Origin, kind: str) -> Iterator[Entry]:
    """Yield the entries of the handover that are of a kind."""
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        for data in windows.stream_item(connection, origin, RECORDS):
            file.write(data)
        yield from (entry for entry in read_handover(cast(BinaryIO, file)) if entry.kind == kind)


def demand_item(connection: Connection, window: Origin, name: str) -> bytes:
    """Return an item of a window, which is there unless it was deleted.

    Raises:
        NotFound: it was, with the confidential evidence.
        InternalError: it is missing.
    """
    content = windows.read_item(connection, window, name)
    if content is None and windows.find_item(connection, window, windows.DELETION) is not None:
        raise NotFound("deleted with the confidential evidence", where=f"{window}: {name}")
    if content is None:
        raise InternalError("an item is missing", where=f"{window}: {name}")
    return content


# Of an argument (4.10) beside its M points: 9 + 3 (mx + my) + 2 k of them, each log at most 33.
_BUDGET_WORDS = 512
MAX_SAMPLES = 16  # kept in memory: those of the windows asked about last
MAX_SAMPLED = 2**20  # records in them, but for a larger one that is asked about now


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a challenge asks for.

    Attributes:
        entries: leaf indices of records and charge entries.
        rows: how many rows of each tenant's index; none of tenants that are not in it.
    """

    entries: frozenset[int]
    rows: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.entries) + len(self.rows)


class Sampler:
    """Signs receipts lists, draws challenges, takes responses.

    Attributes:
        rounds: finds those of the beacon.
    """

    def __init__(self, database: Database, keys: VerifierKeys, rounds: RoundFinder) -> None:
        self._database = database
        self.rounds = rounds
        self._keys = keys
        self._samples: OrderedDict[Origin, Sampled] = OrderedDict()  # they never change
        self._lock = threading.Lock()

    def sign_list(self, origin: Origin) -> None:
        """Commit to the receipts of a window at or after its sampling instant, once.

        Raises:
            TooEarly: before the sampling instant.
        """
        with self._database.write() as transaction:
            window = windows.get(transaction.connection, origin)
            if window.listed is not None:
                return
            policy = windows.policy(transaction.connection, window)
            check_due(policy.sampling_instant, transaction.now)
            transaction.attest(Statement.RECEIPTS_LIST, origin)
            places = submissions.places(transaction.connection, origin, Kind.RECEIPT)
            receipts = [(place.position, place.identity) for place in places]
            message = ReceiptsList(
                window=window.name,
                digest=receipts_digest(receipts),
                count=len(receipts),
                # The end of the intake, not the time of this call, which an outage may delay (8.4).
                time=1000 * policy.sampling_instant - 1,
            ).signed(self._keys.statement)
            windows.put_item(transaction, origin, RECEIPTS_LIST, message.encode())
            windows.note(transaction, origin, listed=transaction.now)

    def draw(self, origin: Origin) -> None:
        """Draw and sign the challenge of a closed window whose receipts list is signed, once.

        Raises:
            TooEarly: as `due_round`.
            MalformedError: the handover holds a record that cannot be read; there is no
                challenge then, and the audit says why.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
            if window.challenged is not None:
                return
            policy = windows.policy(connection, window)
            final = parse_checkpoint(demand_item(connection, origin, FINAL_CHECKPOINT)).head
            preimage = chain_seed(self._keys, window)
            receipts_list = ReceiptsList.parse(demand_item(connection, origin, RECEIPTS_LIST))
            shown = due_round(policy, self.rounds, policy.activations, self._database.now())
            beacon = b"" if shown is None else shown.randomness
            seed = sampling_seed(final.root_hash, preimage, beacon)
            strata = draw_strata(connection, window, policy, seed)
        with self._database.write() as transaction:
            # Another call may have drawn meanwhile: its challenge, with its deadline, is out.
            if windows.get(transaction.connection, origin).challenged is not None:
                return
            # Those that nobody asked for, too: who got the challenge can be sure of all rounds.
            for a in range(1, policy.activations):
                ensure_activation(transaction, self._keys, self.rounds, window, policy, a)
            transaction.attest(Statement.CHALLENGE, origin)
            deadline = transaction.now + 1000 * policy.audit.deadline_seconds
            message = Challenge(
                window=window.name,
                final_root=final.root_hash,
                final_size=final.size,
                preimage=preimage,
                receipts_list=receipts_list,
                strata=strata,
                deadline=deadline,
                round=shown,
            ).signed(self._keys.statement)
            windows.put_item(transaction, origin, CHALLENGE, message.encode())
            windows.advance(transaction, origin, State.CHALLENGED, deadline=deadline)

    def challenge(self, origin: Origin) -> bytes:
        """Return the provider's challenge, drawn now if it was not yet.

        Returns:
            Canonical JSON (docs/spec/08-services.md §8.4), the same bytes at every call.

        Raises:
            TooEarly: before the sampling instant, or as `due_round`.
            Conflict: the window was not closed and handed over in time.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
            policy = windows.policy(connection, window)
        check_due(policy.sampling_instant, self._database.now())
        if window.challenged is None:
            if not complete(window):
                raise Conflict("not closed and handed over in time", where=origin)
            # Before n_A leaves the service: no receipt may be chosen by what the sample is (8.4).
            self.sign_list(origin)
            self.draw(origin)
        with self._database.read() as connection:
            return demand_item(connection, origin, CHALLENGE)

    def respond(self, origin: Origin, index: int, body: Body) -> None:
        """Keep the response for a sampled record, with its time of receipt.

        Args:
            index: leaf index of the record.
            body: the response (docs/spec/08-services.md §8.5). It is kept unread: what it holds is
                the business of checks 16 to 19.

        Raises:
            NotFound: the record is not in the sample.
            Conflict: no challenge yet, another response was given, or the audit began.
        """
        self._keep(origin, response_name(index), body, index)

    def put_budget(self, origin: Origin, tenant: str, body: Body) -> None:
        """Keep the budget argument of a tenant's charge entries (spec 11.12), unread.

        Raises:
            NotFound: no such tenant, or no generation channel in this window.
            Conflict: as `respond`.
        """
        if tenant not in self._generating(origin)[0].tenants:
            raise NotFound("no such tenant with charge entries", where=tenant)
        self._keep(origin, budget_name(tenant), body, None)

    def put_replay(self, origin: Origin, index: int, body: Body) -> None:
        """Keep what a sampled answer in words was made of (spec 11.12), unread.

        Args:
            index: leaf index of the charge entry.

        Raises:
            NotFound, Conflict: as `respond`, and NotFound where the policy has no replay.
        """
        if not self._generating(origin)[1].replays:
            raise NotFound("nothing is replayed in this window", where=origin)
        self._keep(origin, replay_name(index), body, index)

    def put_rows(self, origin: Origin, tenant: str, body: Body) -> None:
        """Keep what opens the sampled rows of a tenant's index (spec 9.11), unread.

        Raises:
            NotFound: no rows of this tenant are in the sample.
            Conflict: as `respond`; or the deadline has passed.
        """
        with self._database.read() as connection:
            if tenant not in self._challenged(connection, origin).rows:
                raise NotFound("no rows in the sample", where=tenant)
        self._keep(origin, rows_name(tenant), body, None, in_time=True)

    def rows_bytes(self, origin: Origin) -> int:
        """Return how long an opening of rows may be in this window, in bytes.

        Raises:
            NotFound: none are sampled in this window.
            Conflict: no challenge yet.
        """
        with self._database.read() as connection:
            policy = windows.policy(connection, windows.get(connection, origin))
            counts = self._challenged(connection, origin).rows.values()
        if not counts:
            raise NotFound("no rows in the sample", where=origin)
        # Whose rows they are, the path says; the largest sample has the longest opening.
        return longest_rows(max(counts), policy.dimension)

    def budget_bytes(self, origin: Origin) -> int:
        """Return how long a budget argument may be (spec 4.10); NotFound as `put_budget`."""
        return 32 * (self._generating(origin)[1].uses + _BUDGET_WORDS)

    def replay_bytes(self, origin: Origin) -> int:
        """Return how long a replay may be in this window, in bytes; NotFound as `put_replay`."""
        policy, terms = self._generating(origin)
        with self._database.read() as connection:
            item = OpeningItem.parse(demand_item(connection, origin, OPENING))
        # Whose entry it is, the log says; the largest index has the longest replay.
        rows = max(opened.rows for opened in Opening.parse(item.body).tenants)
        return longest_replay(terms.answerer, policy.dimension, rows)

    def _generating(self, origin: Origin) -> tuple[Policy, GenerationTerms]:
        """Return the policy of a window, and the terms of its generation channel; NotFound."""
        with self._database.read() as connection:
            policy = windows.policy(connection, windows.get(connection, origin))
        if policy.generation is None:
            raise NotFound("no generation channel in this window", where=origin)
        return policy, policy.generation

    def _keep(
        self, origin: Origin, name: str, body: Body, index: int | None, *, in_time: bool = False
    ) -> None:
        """Store an item of a challenged window; of an entry of its sample, if it is about one.

        Args:
            in_time: whether it is refused after the deadline.
        """
        with self._database.write() as transaction:
            sampled = self._challenged(transaction.connection, origin)
            window = windows.get(transaction.connection, origin)
            if index is not None and index not in sampled.entries:
                raise NotFound("not in the sample", where=str(index))
            stored = windows.find_item(transaction.connection, origin, name)
            if stored is not None and stored.digest == body.digest:
                return
            if stored is not None:
                raise Conflict("another response was given", where=name)
            # Late is allowed: check 16 reads the time of receipt. After sealing, items stand still.
            if window.sealed is not None:
                raise Conflict("the audit has begun", where=origin)
            if in_time and window.deadline is not None and transaction.now > window.deadline:
                raise Conflict("the deadline has passed", where=name)
            windows.put_item(transaction, origin, name, body.file)

    def _challenged(self, connection: Connection, origin: Origin) -> Sampled:
        """Return what the challenge of a window asks for; Conflict where there is none yet."""
        window = windows.get(connection, origin)
        if window.challenged is None:
            raise Conflict(f"the window is {window.state}", where=origin)
        return self.sampled(connection, origin)

    def sample(self, connection: Connection, origin: Origin) -> frozenset[int]:
        """Return the leaf indices that a window's challenge asks for; raises as `sampled`."""
        return self.sampled(connection, origin).entries

    def sampled(self, connection: Connection, origin: Origin) -> Sampled:
        """Return what a window's challenge asks for.

        Raises:
            InternalError: the window has no challenge.
        """
        with self._lock:
            known = self._samples.get(origin)
            if known is not None:
                self._samples.move_to_end(origin)
                return known
        challenge = Challenge.parse(demand_item(connection, origin, CHALLENGE))
        rows = {tenant: len(sample) for tenant, sample in challenge.sampled_rows.items()}
        drawn = Sampled(challenge.sampled, rows)
        with self._lock:
            self._samples[origin] = drawn
            while self._too_many():  # anybody may ask for any window's
                self._samples.popitem(last=False)
        return drawn

    def forget(self, origin: Origin) -> None:
        """Let go of a window's sample: it is read again should anybody ask for it."""
        with self._lock:
            self._samples.pop(origin, None)

    def _too_many(self) -> bool:
        kept = len(self._samples)
        return kept > MAX_SAMPLES or (
            kept > 1 and sum(map(len, self._samples.values())) > MAX_SAMPLED
        )


def complete(window: Window) -> bool:
    """Return whether the provider closed the window and handed its log over."""
    return window.closed is not None and window.records is not None
