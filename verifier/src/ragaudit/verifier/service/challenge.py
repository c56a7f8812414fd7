"""The activation chain, the sample that its seed gives, and what is answered for it.

What V keeps secret until an instant (docs/spec/05-records.md §5.6): the seed of a window is derived
from a secret file and a random salt in the database; neither alone gives it. What binds is the
order: n_a is computed in a transaction at or after t_a, transactions never go back in time, so no
checkpoint can be cosigned "before t_a" once n_a is known. Under a policy with a beacon nothing is
released before its round is at hand.

Nothing that the sample depends on can change any more at the sampling instant. Receipts, disputes,
handover and close are taken before it only. The strata are drawn from what the verifier holds of
the window (spec 9.1, 9.11).
"""

import hashlib
import hmac
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

from ragaudit.encoding.errors import Conflict, InternalError, NotFound, RejectedError, TooEarly
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.chains import activation_preimage
from ragaudit.ledger.messages.challenge import (
    Activation,
    Challenge,
    ReceiptsList,
    Stratum,
    longest_replay,
    receipts_digest,
)
from ragaudit.ledger.messages.commitments import longest_rows
from ragaudit.ledger.messages.entries import Charge, Opening, Record, Version
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
from ragaudit.verifier.service import cosigner, submissions, tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.submissions import Kind
from ragaudit.verifier.service.windows import State, Window, check_due
from sqlalchemy import Connection, func, insert, select

_SEED_TAG = "ragaudit/v1/activation-seed"


def chain_seed(keys: VerifierKeys, window: Window) -> bytes:
    """Return s_V of the window, 32 bytes: docs/spec/08-services.md §8.4, countersignature.

    It is n_A (docs/spec/05-records.md §5.6), and secret until the challenge.
    """
    message = enc(_SEED_TAG, window.name, window.policy_digest, window.chain_salt)
    return hmac.digest(keys.activation, message, hashlib.sha256)


def due_round(policy: Policy, rounds: RoundFinder, a: int, now: int) -> BeaconRound | None:
    """Return the beacon's round with which an instant's value is released; None without a beacon.

    Args:
        rounds: finds it.
        a: 1 to A.
        now: Unix milliseconds.

    Raises:
        TooEarly: before t_a, or the round is not due or not at hand.
    """
    check_due(policy.release_instant(a), now)
    number = policy.round_of(a)
    if policy.beacon is None or number is None:
        return None
    found = rounds.find(policy.beacon.chain, number)
    if found is None:
        raise TooEarly(
            f"round {number} of the beacon is not at hand", retry_after=1, expected="that round"
        )
    return found


def take_round(database: Database, rounds: RoundFinder, origin: Origin, shown: BeaconRound) -> None:
    """Take a round of a window's beacon from its provider.

    Args:
        shown: as the provider has it.

    Raises:
        Conflict: the window is not countersigned, or its policy names no beacon.
        RejectedError: of no instant of the policy, or it does not verify.
        TooEarly: it is not due.
    """
    with database.read() as connection:
        window = windows.demand_countersigned(windows.get(connection, origin))
        policy = windows.policy(connection, window)
    if policy.beacon is None:
        raise Conflict("the policy names no beacon", where=origin)
    if shown.round not in map(policy.round_of, range(1, policy.activations + 1)):
        raise RejectedError(f"round {shown.round}", where="round", expected="one of an instant")
    # The signers of a chain could make it earlier; nobody else has it.
    check_due(policy.beacon.chain.time(shown.round), database.now())
    rounds.offer(policy.beacon.chain, shown)


def next_release(connection: Connection, window: Window, policy: Policy) -> int:
    """Return the first instant whose value is not released, A + 1 after all of them."""
    columns = tables.activation.c
    query = select(columns.a).where(columns.window == window.origin)
    released = set(connection.scalars(query))
    last = policy.activations if window.challenged is None else policy.activations + 1
    return next((a for a in range(1, policy.activations) if a not in released), last)


def release_activation(
    database: Database, keys: VerifierKeys, rounds: RoundFinder, origin: Origin, a: int
) -> bytes:
    """Return the signed activation of ``a``; the same bytes at every call.

    Args:
        rounds: finds those of the beacon.
        a: 1 to A - 1; n_A is released with the challenge only.

    Returns:
        Canonical JSON (docs/spec/08-services.md §8.4).

    Raises:
        NotFound: no such window or activation (the last instant has none).
        Conflict: the window is not countersigned.
        TooEarly: as `due_round`.
    """
    with database.read() as connection:
        window = windows.get(connection, origin)
        policy = windows.policy(connection, window)
        if not 1 <= a < policy.activations:
            expected = f"1..{policy.activations - 1}"
            raise NotFound("no such activation", where=str(a), expected=expected)
        stored = _find_activation(connection, origin, a)
    if stored is not None:
        return stored
    due_round(policy, rounds, a, database.now())  # spares the early ones a writing transaction
    with database.write() as transaction:
        return ensure_activation(transaction, keys, rounds, window, policy, a)


def ensure_activation(
    transaction: Transaction,
    keys: VerifierKeys,
    rounds: RoundFinder,
    window: Window,
    policy: Policy,
    a: int,
) -> bytes:
    """Return the activation of ``a``, made now if it was not yet.

    Args:
        rounds: finds those of the beacon.
        policy: the window's.
        a: 1 to A - 1.

    Raises:
        TooEarly: as `due_round`.
    """
    stored = _find_activation(transaction.connection, window.origin, a)
    if stored is not None:
        return stored
    instant = policy.activation_instants[a - 1]
    shown = due_round(policy, rounds, a, transaction.now)
    released = _count(transaction.connection, window.origin)
    transaction.attest(Statement.ACTIVATION, window.origin, before=released, after=released + 1)
    message = (
        Activation(
            window=window.name,
            a=a,
            preimage=activation_preimage(
                window.name, chain_seed(keys, window), policy.activations, a
            ),
            # Read in the transaction that releases n_a: every cosignature of before t_a is
            # committed by then, and none of before t_a can follow.
            covered_size=cosigner.covered_size(transaction.connection, window.origin, instant),
            time=transaction.now,
            round=shown,
        )
        .signed(keys.statement)
        .encode()
    )
    row = {"window": window.origin, "a": a, "message": message}
    transaction.connection.execute(insert(tables.activation).values(row))
    return message


def _count(connection: Connection, window: Origin) -> int:
    table = tables.activation
    query = select(func.count()).select_from(table).where(table.c.window == window)
    return int(connection.execute(query).scalar_one())


def _find_activation(connection: Connection, window: Origin, a: int) -> bytes | None:
    columns = tables.activation.c
    condition = (columns.window == window) & (columns.a == a)
    message: bytes | None = connection.scalar(select(columns.message).where(condition))
    return message


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
            whole=policy.generation.charges.prove == "all",
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
        body = (Record if kind == Record.KIND else Charge).parse(entry.body)
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
        """Keep what a sampled generated answer was made of (spec 11.12), unread.

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
        policy = windows.policy_of(self._database, origin)
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
