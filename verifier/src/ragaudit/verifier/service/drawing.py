"""The strata of a window's challenge, drawn from what the verifier holds of it (spec 9.1, 9.11)."""

import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

from ragaudit.encoding.errors import InternalError, NotFound
from ragaudit.ledger.messages.charges import Charge
from ragaudit.ledger.messages.handover import Entry, read_handover
from ragaudit.ledger.messages.items import OPENING, RECORDS, OpeningItem, index_name
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Opening, Record, Version
from ragaudit.ledger.messages.strata import Stratum
from ragaudit.privacy.sample import LoggedRecord, draw_charges, draw_rows, draw_sample
from ragaudit.serving.bodies import MEMORY_BYTES
from ragaudit.verifier.procedure import logged_records
from ragaudit.verifier.service import submissions, windows
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.submissions import Kind
from ragaudit.verifier.service.windows import Window
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
        body = (
            logged_records.read_record(entry).record
            if kind == Record.KIND
            else Charge.parse(entry.body)
        )
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
