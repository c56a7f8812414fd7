"""From the sampling instant on: the receipts list, the challenge, the responses.

Nothing that the sample depends on can change any more at the sampling instant: receipts, disputes,
handover and close are taken before it only, and transactions never go back in time.
"""

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import BinaryIO, cast

from ragaudit.encoding.errors import Conflict, InternalError, NotFound
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.messages.challenge import Challenge, ReceiptsList, Stratum, receipts_digest
from ragaudit.ledger.messages.handover import read_handover
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Record
from ragaudit.privacy.sample import (
    DrawnStratum,
    LoggedRecord,
    draw_sample,
    sampling_seed,
    tenant_stratum_id,
)
from ragaudit.serving.bodies import MEMORY_BYTES, Body
from ragaudit.verifier.evidence import (
    CHALLENGE,
    FINAL_CHECKPOINT,
    RECEIPTS_LIST,
    RECORDS,
    response_name,
)
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.procedure import log_facts
from ragaudit.verifier.service import activation, items, submissions, windows
from ragaudit.verifier.service.database import Database, Origin
from ragaudit.verifier.service.windows import Window
from sqlalchemy import Connection

MAX_SAMPLES = 16  # kept in memory: those of the windows asked about last
MAX_SAMPLED = 2**20  # records in them, but for a larger one that is asked about now


class Sampler:
    """Signs receipts lists, draws challenges, takes responses."""

    def __init__(self, database: Database, keys: VerifierKeys) -> None:
        self._database = database
        self._keys = keys
        self._samples: OrderedDict[Origin, frozenset[int]] = OrderedDict()  # they never change
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
            activation.check_due(policy.sampling_instant, transaction.now)
            receipts = submissions.identities(transaction.connection, origin, submissions.RECEIPT)
            message = ReceiptsList.issue(
                self._keys.statement,
                window=window.name,
                digest=receipts_digest(receipts),
                count=len(receipts),
                time=1000 * policy.sampling_instant - 1,
            )
            items.put(transaction, origin, RECEIPTS_LIST, message.encode())
            windows.mark(transaction, origin, listed=transaction.now)

    def draw(self, origin: Origin) -> None:
        """Draw and sign the challenge of a closed window whose receipts list is signed, once.

        Raises:
            MalformedError: the handover holds a record that cannot be read; there is no
                challenge then, and the audit says why.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
            if window.challenged is not None:
                return
            policy = windows.policy(connection, window)
            final = parse_checkpoint(_demand(connection, origin, FINAL_CHECKPOINT)).head
            preimage = activation.seed(self._keys, window)
            receipts_list = ReceiptsList.parse(_demand(connection, origin, RECEIPTS_LIST))
            seed = sampling_seed(final.root_hash, preimage)
            strata = _strata(connection, window, policy, seed)
        with self._database.write() as transaction:
            if windows.get(transaction.connection, origin).challenged is not None:
                return
            deadline = transaction.now + 1000 * policy.audit.deadline_seconds
            message = Challenge.issue(
                self._keys.statement,
                window=window.name,
                final_root=final.root_hash,
                final_size=final.size,
                preimage=preimage,
                receipts_list=receipts_list,
                strata=strata,
                deadline=deadline,
            )
            items.put(transaction, origin, CHALLENGE, message.encode())
            windows.mark(transaction, origin, challenged=transaction.now, deadline=deadline)

    def challenge(self, origin: Origin) -> bytes:
        """The provider's challenge.

        Raises:
            TooEarly: before the sampling instant.
            Conflict: the window was not closed and handed over in time.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
            policy = windows.policy(connection, window)
        activation.check_due(policy.sampling_instant, self._database.now())
        if window.challenged is None:
            if not complete(window):
                raise Conflict("not closed and handed over in time", where=origin)
            self.sign_list(origin)
            self.draw(origin)
        with self._database.read() as connection:
            return _demand(connection, origin, CHALLENGE)

    def respond(self, origin: Origin, index: int, body: Body) -> None:
        """Keep the response for a sampled record, with its time of receipt.

        Raises:
            NotFound: the record is not in the sample.
            Conflict: no challenge yet, another response was given, or the audit began.
        """
        with self._database.write() as transaction:
            window = windows.get(transaction.connection, origin)
            if window.challenged is None:
                raise Conflict(f"the window is {window.state}", where=origin)
            if index not in self.sample(transaction.connection, origin):
                raise NotFound("not in the sample", where=str(index))
            stored = items.find(transaction.connection, origin, response_name(index))
            if stored is not None and stored.digest == body.digest:
                return
            if stored is not None:
                raise Conflict("another response was given", where=str(index))
            if window.sealed is not None:
                raise Conflict("the audit has begun", where=origin)
            items.put(transaction, origin, response_name(index), body.file)

    def sample(self, connection: Connection, origin: Origin) -> frozenset[int]:
        """The leaf indices that a window's challenge asks for."""
        with self._lock:
            known = self._samples.get(origin)
            if known is not None:
                self._samples.move_to_end(origin)
                return known
        drawn = Challenge.parse(_demand(connection, origin, CHALLENGE)).sampled
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
    """Whether the provider closed the window and handed its log over."""
    return window.closed is not None and window.records is not None


def _strata(
    connection: Connection, window: Window, policy: Policy, seed: bytes
) -> tuple[Stratum, ...]:
    """The sample that log, receipts and ``seed`` determine; MalformedError for a bad record."""
    drawn = draw_sample(
        _records(connection, window.origin),
        tenants=policy.tenants,
        receipts=set(_indices(connection, window.origin, submissions.RECEIPT)),
        rule=policy.audit,
        seed=seed,
    )
    return tuple(_stratum(each, policy.tenants) for each in drawn)


def _records(connection: Connection, origin: Origin) -> Iterator[LoggedRecord]:
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        for data in items.stream(connection, origin, RECORDS):
            file.write(data)
        for entry in read_handover(cast(BinaryIO, file)):
            if entry.kind == Record.KIND:
                # Read as the procedure reads it, so that both draw from the same records.
                record = log_facts.read_record(entry).record
                yield LoggedRecord(entry.index, record.tenant, record.pseudonym)


def _stratum(drawn: DrawnStratum, tenants: Sequence[str]) -> Stratum:
    of_tenant = drawn.stratum.id in {tenant_stratum_id(tenant) for tenant in tenants}
    population = None if of_tenant else drawn.stratum.population
    return Stratum(drawn.stratum.id, population, drawn.sample)


def _indices(connection: Connection, origin: Origin, kind: str) -> list[int]:
    """Leaf indices of the submissions of a kind, rising and distinct."""
    return sorted({index for index, _ in submissions.identities(connection, origin, kind)})


def _demand(connection: Connection, window: Origin, name: str) -> bytes:
    content = items.content(connection, window, name)
    if content is None:
        raise InternalError("an item is missing", where=f"{window}: {name}")
    return content
