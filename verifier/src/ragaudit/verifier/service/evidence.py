"""The evidence of a window: sealed from its rows, read and counted.

Sealing writes everything that the evidence derives from rows (activations, checkpoints, receipts
and so on) as items.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO, cast

from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, NotFound
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.items import Clock
from ragaudit.ledger.messages.records import Version
from ragaudit.serving.bodies import MEMORY_BYTES
from ragaudit.serving.rounds import RoundFinder
from ragaudit.verifier.account_records import account_records
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.keys import VerifierKeys
from ragaudit.verifier.service import (
    accesses,
    attached_results,
    attestations,
    cosigner,
    disputes,
    handover,
    handover_parts,
    later_versions,
    other_windows,
    releases,
    submissions,
    windows,
)
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.states import State
from ragaudit.verifier.service.submissions import Kind
from ragaudit.verifier.service.windows import Window
from sqlalchemy import Connection

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
        releases.ensure_activation(transaction, keys, rounds, window, policy, a)
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
        shown = attestations.all_of(connection, origin, attestations.Kind.COSIGNED)
        notes = [each.document.decode() for each in shown]
        derived[names.COSIGNED] = canonical_json.dumps(notes)
    if policy.time_stamps is not None:
        # With their roots: whoever repeats the audit sees whom this verifier trusted.
        derived[names.TIME_STAMPS] = attestations.time_stamps(connection, origin).encode()
        derived[names.STAMP_ROOTS] = stamp_roots
    derived |= other_windows.overlaps(connection, window)
    referred = attached_results.sealed(connection, origin)
    if referred is not None:
        derived[names.TEST_RESULTS] = referred
    for item, kinds in _LISTS.items():
        found = (submissions.documents(connection, origin, kind) for kind in kinds)
        _put_list(transaction, origin, item, chain.from_iterable(found))
    # Otherwise the handover gave them: `handover` derives the item when it takes one.
    if window.records is None:
        _put_list(transaction, origin, names.ENTRIES, _given_entries(connection, origin))
        # Parts without an end are no evidence, and nobody would ever delete them.
        handover_parts.forget(transaction, origin)
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
            "accesses": accesses.count(connection, origin),
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
    return sampler.rounds.status(policy, releases.next_release(connection, window, policy), now)


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
    """Store the canonical JSON array of canonical JSON documents, which may have 240 MiB."""
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
