"""Later versions of indexes, handed over while the window runs (docs/spec/09-audit.md §9.8).

Whether one counts, the log says: its version entry has the digests. What is kept here has an
argument that holds, so that the audit does not fail at the end for what could be said at once.
"""

import threading

from ragaudit.encoding.errors import Conflict, NotFound
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.handover import check_index_lengths
from ragaudit.ledger.messages.items import INDEXES, TERMS, index_name, index_place
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.bodies import Body
from ragaudit.verifier.procedure.indexes import at_one_scale, check_norm
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.capacity import MOST_VERSIONS
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached
from ragaudit.verifier.service.windows import State, check_before, check_state
from ragaudit.verifier.settings import Limits
from ragaudit.verifier.terms import Terms
from sqlalchemy import Connection


class LaterVersions:
    """Takes versions from the countersignature until the log is handed over.

    Args:
        auditor: checks the index argument.
        limits: of what one window may hold.
    """

    def __init__(self, database: Database, auditor: Auditor, limits: Limits) -> None:
        self._database = database
        self._auditor = auditor
        self._limits = limits
        # One at a time: an argument about a large index takes a processor for minutes.
        self._checking = threading.Lock()

    def bytes_left(self, origin: Origin) -> int:
        """Return the size of the largest version that may be uploaded now.

        Raises:
            NotFound: no such window.
            CapReached: its later versions hold too much already.
        """
        with self._database.read() as connection:
            windows.get(connection, origin)
            return min(self._limits.index_bytes, _left(connection, origin, self._limits))

    def put(self, origin: Origin, tenant: str, version: int, body: Body) -> None:
        """Verify and store a version of a tenant's index; the same one again changes nothing.

        Args:
            tenant: of the policy.
            version: 2 or above.
            body: an index commitment (docs/spec/05-records.md §5.4).

        Raises:
            MalformedError: not an index commitment of this policy.
            RejectedError: of another place, or its argument does not hold.
            NotFound: no such window, tenant, or version that there could be.
            Conflict: the policy has no later versions, another one was stored, or the window is
                not open.
            TooLate: after the sampling instant.
            CapReached: later versions of this window hold too much.
        """
        with self._database.read() as connection:
            policy = windows.policy(connection, windows.get(connection, origin))
            if self._known(connection, origin, policy, tenant, version, body):
                return
            terms = windows.read_item(connection, origin, TERMS)
        # Null rows are marked where columns stand, also where the policy declares none.
        columns = bool(policy.retrieval.public_columns) or policy.marks_null_rows
        owned = policy.owners is not None
        check_index_lengths(body.file, body.size, columns_allowed=columns, owned=owned)
        # Outside of any transaction: checking takes a while, and nobody else could write.
        with self._checking:
            data = body.read()
            self._auditor.check_version(data, policy, tenant, version)
            if at_one_scale(policy):
                bounds = Terms.parse(terms or b"").bounds
                check_norm(IndexCommitment.parse(data), policy, bounds["most_norm_ratio"])
        with self._database.write() as transaction:
            # Again: meanwhile another call may have stored it, or the log been handed over.
            if self._known(transaction.connection, origin, policy, tenant, version, body):
                return
            check_before(transaction, origin, policy.sampling_instant)
            if body.size > _left(transaction.connection, origin, self._limits):
                raise _full(self._limits)
            windows.put_item(transaction, origin, index_name(tenant, version), body.file)

    def _known(
        self,
        connection: Connection,
        origin: Origin,
        policy: Policy,
        tenant: str,
        version: int,
        body: Body,
    ) -> bool:
        """Whether this very version is stored; raises where it may not be."""
        if not policy.retrieval.versions:
            raise Conflict("the policy has no later versions", where=origin)
        if tenant not in policy.tenants:
            raise NotFound("no such tenant in the policy", where=tenant)
        if not 2 <= version <= MOST_VERSIONS + 1:
            raise NotFound(f"no version {version}", expected=f"2..{MOST_VERSIONS + 1}")
        stored = windows.find_item(connection, origin, index_name(tenant, version))
        # Before the state is looked at: the same upload again is confirmed at any time.
        if stored is not None and stored.digest == body.digest:
            return True
        if stored is not None:
            raise Conflict("another version was stored", where=f"{tenant}, version {version}")
        window = windows.get(connection, origin)
        check_state(origin, window.state, (State.COUNTERSIGNED,))
        # The entries of a handover are final: no version could be one of them any more.
        if window.records is not None:
            raise Conflict("the log was handed over", where=origin)
        return False


def drop_unlogged(transaction: Transaction, origin: Origin, logged: set[tuple[str, int]]) -> None:
    """Remove the uploaded versions that the log has no entry of: no check would look at them.

    Args:
        origin: of a window whose evidence is being sealed.
        logged: (tenant, version) of the version entries.
    """
    for item in windows.list_items(transaction.connection, origin, INDEXES):
        place = index_place(item.name)
        if place is not None and place[1] != 1 and place not in logged:
            windows.remove_item(transaction, origin, item.name)


def place_of(body: bytes) -> tuple[str, int]:
    """Return (tenant, version) of a version entry's body; MalformedError if it is none."""
    version = Version.parse(body)
    return version.tenant, version.version


def _left(connection: Connection, origin: Origin, limits: Limits) -> int:
    held = sum(
        item.size
        for item in windows.list_items(connection, origin, INDEXES)
        if (place := index_place(item.name)) is not None and place[1] != 1
    )
    if held >= limits.version_bytes:
        raise _full(limits)
    return limits.version_bytes - held


def _full(limits: Limits) -> CapReached:
    return CapReached(
        "later versions of this window hold too much",
        expected=f"at most {limits.version_bytes} bytes",
    )
