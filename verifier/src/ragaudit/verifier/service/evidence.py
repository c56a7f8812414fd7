"""The evidence of a window: what goes into it, who opened it, and the bundles that leave.

Sealing writes everything that the evidence derives from rows (activations, checkpoints, receipts
and so on) as items. Of signed test results (docs/spec 10.11) the reference alone is kept.

Whoever opens confidential evidence is recorded, with the time and the reason, before the first
byte of it leaves: in items beside the evidence, which was sealed before there was anything to open.

Bundles are downloads that may be interrupted (docs/spec/08-services.md §8.3). One is made while it
is sent, block by block; what it takes to begin anywhere in it, sizes and digests of its items, is
kept for the windows that were asked about last.
"""

import hashlib
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import Conflict, InternalError, MalformedError, NotFound
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.bodies import AccessBody, ReferenceBody
from ragaudit.ledger.messages.custody import BUNDLE, EvidenceAccess
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.items import CONFIDENTIAL, PUBLIC, Clock
from ragaudit.ledger.messages.signed_results import MAX_REFERENCES, References, ResultReference
from ragaudit.serving.bodies import MEMORY_BYTES, Resumable
from ragaudit.serving.rounds import RoundFinder
from ragaudit.verifier.accounts import account_records
from ragaudit.verifier.bundle import Archive, Part
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import (
    challenge,
    cosigner,
    disputes,
    handover,
    later_versions,
    submissions,
    windows,
)
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached, TooLate
from ragaudit.verifier.service.submissions import Kind
from ragaudit.verifier.service.windows import State, Window
from sqlalchemy import Connection

_RESULTS = "test-results/"  # no evidence yet: sealing writes the list of them


def attach(database: Database, origin: Origin, name: str, body: ReferenceBody) -> ResultReference:
    """Verify a result, and keep a reference to it for the verdict.

    Args:
        name: of the result, as the auditor chose it.

    Raises:
        MalformedError: not a signed test-result.
        EnvelopeRejected, OtherResult: not signed with that key, or not about this window.
        Conflict: the window is not countersigned, or another result
            has the name. None is ever replaced: who attaches shall not choose by what was found.
        TooLate: the evidence is sealed.
        CapReached: more than MAX_REFERENCES.
    """
    with database.write() as transaction:
        connection = transaction.connection
        window = windows.demand_countersigned(windows.get(connection, origin))
        if window.sealed is not None:
            raise TooLate("the audit has begun", where=origin)
        policy = windows.policy(connection, window)
        envelope = canonical_json.dumps(body.result)
        reference = ResultReference.of(name, envelope, body.key, policy.canonical)
        held = {each.name: each for each in attached_results(connection, origin)}
        if name in held:
            if held[name] != reference:
                raise Conflict("another result has this name", where=name, expected="a new name")
            return reference
        if len(held) >= MAX_REFERENCES:
            raise CapReached("too many test results", where=origin, expected=str(MAX_REFERENCES))
        windows.put_item(transaction, origin, _RESULTS + name, reference.encode())
    return reference


def attached_results(connection: Connection, origin: Origin) -> tuple[ResultReference, ...]:
    """Return what was attached to a window, by rising name."""
    names = [item.name for item in windows.list_items(connection, origin, _RESULTS)]
    held = [windows.read_item(connection, origin, name) for name in names]
    return tuple(ResultReference.parse(each) for each in held if each is not None)


_ACCESSES = "accesses/"


def record_access(
    database: Database, keys: VerifierKeys, origin: Origin, what: str, said: AccessBody
) -> EvidenceAccess:
    """Store that evidence is opened now, durably, and return the record.

    Args:
        keys: `keys.verifier` signs it.
        what: as of `EvidenceAccess`.
        said: by whoever opens it.

    Raises:
        NotFound: no such window.
    """
    with database.write() as transaction:
        window = windows.get(transaction.connection, origin)
        earlier = list_accesses(transaction.connection, origin)
        access = EvidenceAccess.issue(
            keys.statement,
            origin=window.origin,
            before=earlier[-1] if earlier else None,
            what=what,
            reader=said.reader,
            reason=said.reason,
            time=transaction.now,
        )
        content = canonical_json.dumps(access.to_json())
        windows.put_item(transaction, origin, _access_name(access.number), content)
    return access


def list_accesses(connection: Connection, origin: Origin) -> list[EvidenceAccess]:
    """Return all accesses of a window, from the first.

    Raises:
        InternalError: one is missing.
    """
    return [
        read_access(connection, origin, number)
        for number in range(count_accesses(connection, origin))
    ]


def count_accesses(connection: Connection, origin: Origin) -> int:
    """Return how often confidential evidence of a window was opened."""
    return windows.count_items(connection, origin, _ACCESSES)


def read_access(connection: Connection, origin: Origin, number: int) -> EvidenceAccess:
    """Return an access.

    Args:
        number: below `count_accesses`.

    Raises:
        InternalError: it is missing.
    """
    data = windows.read_item(connection, origin, _access_name(number))
    if data is None:
        raise InternalError("an access is missing", where=f"{origin}: {number}")
    return EvidenceAccess.from_json(canonical_json.loads(data))


def _access_name(number: int) -> str:
    return f"{_ACCESSES}{number}.json"


_LISTS = {
    names.RECEIPTS: (Kind.RECEIPT, Kind.UNCOSIGNED),
    names.REFUSALS: (Kind.REFUSAL,),
    names.CLAIMS: (Kind.CLAIM,),
    names.STATEMENTS: (Kind.STATEMENT,),
}
_CONFIDENTIAL_COUNTS = ("claims", "disputes", "responses", "sampled")
# As they are shown, in the order in which they happen.
_TIMES = (
    "registered",
    "countersigned",
    "refused",
    "records",
    "closed",
    "listed",
    "challenged",
    "deadline",
    "sealed",
    "decided",
)


def seal(
    transaction: Transaction,
    keys: VerifierKeys,
    rounds: RoundFinder,
    window: Window,
    stamp_roots: bytes = b"",
) -> None:
    """Write what the evidence derives from rows; nothing is added to the window afterwards.

    Args:
        rounds: finds those of the beacon, which are all at hand (`AuditRunner.due`).
        window: its row, as read in ``transaction``.
        stamp_roots: PEM, of the time-stamping authorities that are trusted.
    """
    connection, origin = transaction.connection, window.origin
    policy = windows.policy(connection, window)
    # Those that nobody asked for, too: the evidence holds every one that has an instant.
    released = [
        challenge.ensure_activation(transaction, keys, rounds, window, policy, a)
        for a in range(1, policy.activations)
    ]
    notes = [checkpoint.note.decode() for checkpoint in cosigner.all_of(connection, origin)]
    derived = {
        names.ACTIVATIONS: _array(released),
        names.CHECKPOINTS: canonical_json.dumps(notes),
        names.CLOCK: _clock(connection, window),
        names.DISPUTES: _array(disputes.kept(connection, origin)),
        names.JUDGED: _array(disputes.judged(connection, origin)),
    }
    if policy.cosigners is not None:
        shown = cosigner.attested(connection, origin, cosigner.Kind.COSIGNED)
        notes = [each.document.decode() for each in shown]
        derived[names.COSIGNED] = canonical_json.dumps(notes)
    if policy.time_stamps is not None:
        # With their roots: whoever repeats the audit sees whom this verifier trusted.
        derived[names.TIME_STAMPS] = cosigner.time_stamps(connection, origin).encode()
        derived[names.STAMP_ROOTS] = stamp_roots
    derived |= windows.overlaps(connection, window)
    if referred := attached_results(connection, origin):
        derived[names.TEST_RESULTS] = References(referred).encode()
    for item, kinds in _LISTS.items():
        found = (submissions.documents(connection, origin, kind) for kind in kinds)
        _put_list(transaction, origin, item, chain.from_iterable(found))
    # Otherwise the handover gave them: `handover` derives the item when it takes one.
    if window.records is None:
        _put_list(transaction, origin, names.ENTRIES, _given_entries(connection, origin))
        # Parts without an end are no evidence, and nobody would ever delete them.
        handover.forget_parts(transaction, origin)
    for item, content in derived.items():
        windows.put_item(transaction, origin, item, content)
    later_versions.drop_unlogged(transaction, origin, _logged_versions(connection, origin))
    windows.advance(transaction, origin, State.AUDITING)


def stored(database: Database, origin: Origin) -> Evidence:
    """Return the items of a window as evidence, each read when it is asked for."""
    with database.read() as connection:
        items = windows.list_items(connection, origin)
    # The verdict is signed over evidence, and who opened it was written down later.
    held = {
        item.name: item
        for item in items
        if item.name.startswith((names.PUBLIC, names.CONFIDENTIAL))
    }

    # One at a time: the responses of a large sample do not fit into memory together.
    def opened(name: str) -> BinaryIO:
        # On disk once it is long: a log of a million records has most of a gigabyte.
        file = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES))  # noqa: SIM115
        try:
            with database.read() as connection:
                windows.copy_item(connection, origin, held[name], file)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def read(name: str) -> bytes:
        with opened(name) as file:
            return file.read()

    return Evidence(held, read, opened)


def status(
    database: Database, auditor: Auditor, sampler: Sampler, origin: Origin
) -> dict[str, Any]:
    """Return what `GET /v1/windows/{w}` shows (docs/spec/08-services.md §8.3).

    Args:
        auditor: reads the verdicts that it signed.
        sampler: knows how many records were sampled.

    Returns:
        JSON; times in Unix milliseconds, null for what has not happened.
    """
    with database.read() as connection:
        window = windows.get(connection, origin)
        verdict = windows.read_item(connection, origin, windows.VERDICT)
        claims = None if verdict is None else auditor.claims(verdict)
        counts = {
            "entries": handover.count_entries(connection, origin),
            "checkpoints": cosigner.count(connection, origin),
            "receipts": submissions.count(connection, origin, Kind.RECEIPT),
            "refusals": submissions.count(connection, origin, Kind.REFUSAL),
            "claims": submissions.count(connection, origin, Kind.CLAIM),
            "disputes": disputes.count(connection, origin),
            "statements": submissions.count(connection, origin, Kind.STATEMENT),
            "responses": windows.count_items(connection, origin, names.RESPONSES),
            "accesses": count_accesses(connection, origin),
            "sampled": _sampled(connection, sampler, window),
        }
        deleted = windows.find_item(connection, origin, windows.DELETION)
        beacon = _beacon(connection, sampler, window, database.now())
    return {
        **({} if beacon is None else {"beacon": beacon}),
        "window": window.name,
        "provider": window.provider,
        "state": window.state,
        "policy_digest": window.policy_digest.hex(),
        "time": database.now(),
        "times": {
            **{name: getattr(window, name) for name in _TIMES},
            "deleted": None if deleted is None else deleted.received,
        },
        # What is gone is not none.
        "counts": counts if deleted is None else {**counts, **dict.fromkeys(_CONFIDENTIAL_COUNTS)},
        "result": None if verdict is None else auditor.result(verdict),
        "claims": None if claims is None else claims.results,
    }


def _beacon(
    connection: Connection, sampler: Sampler, window: Window, now: int
) -> dict[str, Any] | None:
    """Where a countersigned window stands with its beacon; None where its policy names none."""
    if window.countersigned is None:
        return None
    policy = windows.policy(connection, window)
    if policy.beacon is None:
        return None
    return sampler.rounds.status(policy, challenge.next_release(connection, window, policy), now)


def verdict(database: Database, origin: Origin) -> bytes:
    """Return the signed verdict.

    Raises:
        NotFound: there is none yet.
    """
    with database.read() as connection:
        windows.get(connection, origin)
        content = windows.read_item(connection, origin, windows.VERDICT)
    if content is None:
        raise NotFound("no verdict yet", where=origin)
    return content


def account(database: Database, origin: Origin, pseudonym: bytes) -> Iterator[bytes]:
    """Return the lines of what the evidence holds of an account (docs/spec/10-verdict.md §10.8).

    Args:
        pseudonym: 32 bytes.

    Raises:
        NotFound: at once, if there is no verdict yet, or no such account.
    """
    verdict(database, origin)
    with database.read() as connection:
        window = windows.get(connection, origin)
    return account_records(stored(database, origin), window.provider, window.name, pseudonym)


def _sampled(connection: Connection, sampler: Sampler, window: Window) -> int:
    if window.challenged is None:
        return 0
    gone = windows.find_item(connection, window.origin, names.CHALLENGE) is None
    return 0 if gone else len(sampler.sample(connection, window.origin))


def _array(documents: Sequence[bytes]) -> bytes:
    """Return the canonical JSON array of canonical JSON documents."""
    return b"[" + b",".join(documents) + b"]"


def _put_list(
    transaction: Transaction, origin: Origin, item: str, documents: Iterable[bytes]
) -> None:
    """Store the canonical JSON array of canonical JSON documents, which may have 2 GiB."""
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        separator = b"["
        for document in documents:
            file.write(separator + document)
            separator = b","
        file.write(b"]" if separator == b"," else b"[]")
        windows.put_item(transaction, origin, item, cast(BinaryIO, file))


def _clock(connection: Connection, window: Window) -> bytes:
    responses = {
        int(item.name.removeprefix(names.RESPONSES).removesuffix(".bin")): item.received
        for item in windows.list_items(connection, window.origin, names.RESPONSES)
    }
    places = submissions.places(connection, window.origin, Kind.CLAIM)
    claims = {place.identity: place.received for place in places}
    return Clock(responses, claims, window.closed, window.records).encode()


def _logged_versions(connection: Connection, origin: Origin) -> set[tuple[str, int]]:
    """(tenant, version) of the version entries of the log, as far as they can be read."""
    found: set[tuple[str, int]] = set()
    item = windows.find_item(connection, origin, names.ENTRIES)
    if item is None:
        return found
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        windows.copy_item(connection, origin, item, cast(BinaryIO, file))
        file.seek(0)
        for entry in Entries.stream(cast(BinaryIO, file)):
            # What is malformed is check 5's; it names no version that anybody could look up.
            if entry.kind == Version.KIND:
                with suppress(MalformedError):
                    found.add(later_versions.place_of(entry.body))
    return found


def _given_entries(connection: Connection, origin: Origin) -> Iterator[bytes]:
    for given in handover.entries_of(connection, origin):
        entry = Entry(given.index, given.kind, given.salt, given.body)
        yield canonical_json.dumps(entry.to_json())


MOST_KEPT = 4
RESUMABLE_MS = 24 * 3600 * 1000


class Bundles:
    """Makes the bundles of decided windows. Safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[tuple[Origin, Part], tuple[bytes, Archive]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, origin: Origin, part: Part) -> Resumable:
        """Return the bundle of a window.

        Args:
            part: "public" leaves out every confidential item.

        Raises:
            NotFound: there is no verdict yet.
        """
        archive = self._archive(origin, part)
        return Resumable(archive.size, archive.tag, archive.pieces)

    def place(self, origin: Origin, number: int) -> str:
        """Return the path at which a download goes on that an access began.

        Args:
            number: of the access.
        """
        with self._database.read() as connection:
            window = windows.get(connection, origin)
        path = f"/v1/windows/{quote(window.name, safe='')}/bundle/confidential/{number}"
        return f"{path}?provider={quote(window.provider, safe='')}"

    def demand_opened(self, origin: Origin, number: int) -> None:
        """Check that an access opened the whole bundle within the last day.

        Args:
            number: of the access.

        Raises:
            NotFound: no such access, or too long ago: whoever still needs the bundle opens it anew.
        """
        with self._database.read() as connection:
            windows.get(connection, origin)
            known = number < count_accesses(connection, origin)
            access = read_access(connection, origin, number) if known else None
        if access is None or access.what != BUNDLE:
            raise NotFound("no such access to the bundle", where=str(number))
        if self._database.now() >= access.time + RESUMABLE_MS:
            raise NotFound("opened more than a day ago", where=str(number), expected="open it anew")

    def _archive(self, origin: Origin, part: Part) -> Archive:
        signed = verdict(self._database, origin)
        state = self._state(origin, signed)
        key = origin, part
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == state:
                self._kept.move_to_end(key)
                return kept[1]
        # Not under the lock: it reads every item, and others ask for other windows.
        archive = Archive.of(stored(self._database, origin), signed, part=part)
        with self._lock:
            self._kept[key] = state, archive
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return archive

    def _state(self, origin: Origin, signed: bytes) -> bytes:
        """Digest of verdict and items as they are now: confidential ones may have been deleted."""
        digest = hashlib.sha256(signed)
        with self._database.read() as connection:
            for item in windows.list_items(connection, origin):
                if item.name.startswith((PUBLIC, CONFIDENTIAL)):
                    digest.update(enc("item", item.name, item.digest))
        return digest.digest()
