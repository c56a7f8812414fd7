"""Opening a window: its policy, its index commitments, and V's countersignature or refusal."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import (
    Conflict,
    InternalError,
    MalformedError,
    NotFound,
    RejectedError,
)
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.beacon import BeaconChain
from ragaudit.ledger.messages.bodies import OpeningBody, WindowBody
from ragaudit.ledger.messages.chains import activation_anchor
from ragaudit.ledger.messages.challenge import Countersignature, opening_digest
from ragaudit.ledger.messages.handover import check_index_lengths
from ragaudit.ledger.messages.items import (
    COUNTERSIGNATURE,
    EMBEDDER,
    EMPTY_CHECKPOINT,
    OPENING,
    POLICY,
    PREVIOUS,
    TERMS,
    OpeningItem,
    index_name,
)
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.bodies import Body
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.history import Statement
from ragaudit.verifier.keys import SECRET_BYTES, VerifierKeys
from ragaudit.verifier.service import challenge, providers, windows
from ragaudit.verifier.service.auditor import Auditor
from ragaudit.verifier.service.capacity import check_capacity
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import RefusedWindow, TooLate
from ragaudit.verifier.service.providers import NAME, Provider, check_identity
from ragaudit.verifier.service.windows import State, Window, check_state
from ragaudit.verifier.settings import Limits
from ragaudit.verifier.terms import Terms
from sqlalchemy import Connection


class Registrar:
    """Registers windows and countersigns their openings.

    Args:
        auditor: runs checks 1 to 4, and signs refusals.
        terms: of this verifier; every countersignature names their digest (docs/spec 9.4).
        limits: of what one provider may leave waiting.
        chain: the beacon's, of which this verifier finds rounds; None where it finds none.
    """

    def __init__(
        self,
        database: Database,
        keys: VerifierKeys,
        auditor: Auditor,
        terms: Terms,
        limits: Limits,
        chain: BeaconChain | None = None,
    ) -> None:
        self._database = database
        self._limits = limits
        self._chain = chain
        self._keys = keys
        self._terms = terms
        self._auditor = auditor
        self._locks = WeakValueDictionary[Origin, threading.Lock]()  # of calls that run
        self._guard = threading.Lock()

    def register(self, provider: Provider, request: WindowBody) -> tuple[Window, bool]:
        """File a window; one with the same content again changes nothing.

        Args:
            provider: who signed the request.
            request: policy and manifest, which nobody has checked.

        Returns:
            The window as it is stored, and whether it is new.

        Raises:
            MalformedError, RejectedError: `providers.check_identity`.
            RejectedError: its log key is another window's of the provider, it may need more than
                this verifier takes, or it has a beacon that this verifier does not follow.
            Conflict: the window exists with other content.
            CapReached: the provider has too many windows that are not countersigned, or new ones.
        """
        keys = {**self._keys.public(), "provider": provider.key.raw.hex()}
        # The cosigner's name is part of its vkey, and no member of a policy's ``keys``.
        keys.pop("name")
        name = check_identity(request.policy, provider.name, keys)
        check_capacity(request.policy, self._limits)
        _check_beacon(request.policy.get("beacon"), self._chain)
        documents = {
            POLICY: canonical_json.dumps(request.policy),
            EMBEDDER: canonical_json.dumps(request.embedder),
        }
        with self._database.write() as transaction:
            existing = windows.find(transaction.connection, windows.of(provider.name, name))
            if existing is None:
                providers.demand_window(transaction, provider.name, self._limits)
                return self._file(transaction, provider, name, documents), True
            _demand_same(transaction.connection, existing, documents)
            return existing, False

    def _file(
        self, transaction: Transaction, provider: Provider, name: str, documents: dict[str, bytes]
    ) -> Window:
        origin = windows.of(provider.name, name)
        policy = canonical_json.loads(documents[POLICY])
        log_key = _log_key(policy)
        if log_key is not None:
            other = windows.find_by_log_key(transaction.connection, provider.name, log_key)
            if other is not None:
                raise RejectedError(
                    f"the log key of window {other.name}",
                    where="keys/log",
                    expected="a key of its own for each window",
                )
        windows.insert_window(
            transaction,
            origin=origin,
            provider=provider.name,
            name=name,
            origin_hash=sha256(origin.encode()).digest(),
            policy_digest=structure("policy", documents[POLICY]),
            log_key=log_key,
            chain_salt=secrets.token_bytes(SECRET_BYTES),
        )
        # As V holds it now: a window that ends later changes nothing of this evidence (10.1).
        previous = windows.previous_window(transaction.connection, provider.name, policy)
        if previous is not None:
            documents = {**documents, PREVIOUS: previous}
        for item, content in documents.items():
            windows.put_item(transaction, origin, item, content)
        return windows.get(transaction.connection, origin)

    def index_bytes(self, origin: Origin) -> int:
        """Return the size of the largest index commitment that the provider may upload now.

        Raises:
            NotFound: no such window.
            CapReached: its windows that are not countersigned hold too much already.
        """
        with self._database.read() as connection:
            provider = windows.get(connection, origin).provider
            left = providers.bytes_left(connection, provider, self._limits)
        return min(left, self._limits.index_bytes)

    def put_index(self, origin: Origin, tenant: str, body: Body) -> None:
        """Store a tenant's index commitment; the same one again changes nothing.

        Args:
            tenant: of the policy as it was registered.
            body: an index commitment (docs/spec/05-records.md §5.4).

        Raises:
            MalformedError: not an index commitment, by the lengths of its parts.
            NotFound: no such window, or no such tenant in its policy.
            Conflict: another one was stored, or the window is past its opening.
            CapReached: the provider's windows that are not countersigned hold too much.
        """
        with self._database.read() as connection:
            terms = _upload_terms(windows.policy_bytes(connection, origin))
        check_index_lengths(body.file, body.size, columns_allowed=terms.columns, owned=terms.owned)
        with self._database.write() as transaction:
            window = windows.get(transaction.connection, origin)
            # Otherwise anything could be uploaded under names that no check looks at.
            policy = windows.policy_bytes(transaction.connection, origin)
            if tenant not in _upload_terms(policy).tenants:
                raise NotFound("no such tenant in the policy", where=tenant)
            stored = windows.find_item(transaction.connection, origin, index_name(tenant))
            # Before the state is looked at: the same upload again is confirmed at any time.
            if stored is not None and stored.digest == body.digest:
                return
            if stored is not None:
                raise Conflict("another index commitment was stored", where=tenant)
            check_state(origin, window.state, (State.REGISTERED,))
            providers.demand_bytes(transaction, window.provider, body.size, self._limits)
            windows.put_item(transaction, origin, index_name(tenant), body.file)

    def countersign(self, origin: Origin, request: OpeningBody) -> bytes:
        """Check the opening and return its countersignature; the same bytes for the same opening.

        Args:
            request: entry 0 of the log with its salt, and the checkpoint of the empty log.

        Returns:
            Canonical JSON of the countersignature (docs/spec/08-services.md §8.4).

        Raises:
            Conflict: another opening was countersigned, or an index commitment is missing.
            RefusedWindow: checks 1 to 4 failed, now or earlier.
            RejectedError: the window may need more than this verifier takes by now.
        """
        given = _opening_items(request)
        with self._alone(origin):
            with self._database.read() as connection:
                window = windows.get(connection, origin)
                settled = self._settled(connection, window, given)
                if settled is not None:
                    return settled
                # Since the registration the limits may have changed.
                check_capacity(windows.unchecked_policy(connection, origin), self._limits)
            return self._decide(window, request, given)

    def _decide(self, window: Window, request: OpeningBody, given: dict[str, bytes]) -> bytes:
        while True:
            with self._database.read() as connection:
                beside = windows.overlaps(connection, window)
                held = {**given, **beside, TERMS: self._terms.canonical}
                evidence = _evidence(connection, window, held)
            # Outside of any transaction: checks 1 to 4 may take minutes, and nobody else could
            # write.
            refusal = self._auditor.check_opening(evidence, self._database.now())
            if refusal is None:
                try:
                    return self._accept(window, request, given, beside)
                except _Overlapped:  # another window was countersigned meanwhile
                    continue
                except TooLate:  # it was in time when the checks began
                    refusal = self._auditor.check_opening(evidence, self._database.now())
            if refusal is None:
                raise InternalError("check 1 passes after the window's start", where=window.origin)
            return self._refuse(window, given, {**beside, windows.VERDICT: refusal})

    def _accept(
        self,
        window: Window,
        request: OpeningBody,
        given: dict[str, bytes],
        beside: dict[str, bytes],
    ) -> bytes:
        with self._database.write() as transaction:
            # Again: while the checks ran, another call may have countersigned or refused.
            settled = self._settled_now(transaction, window, given)
            if settled is not None:
                return settled
            policy = Policy.from_json(
                windows.unchecked_policy(transaction.connection, window.origin)
            )
            # Two that overlap, each checked before the other was countersigned, would both pass.
            if windows.overlaps(transaction.connection, window) != beside:
                raise _Overlapped
            # A countersignature after an instant would commit to a value that is out already.
            if transaction.now >= 1000 * min(policy.start, *policy.activation_instants):
                raise TooLate("the window has begun", where=window.origin)
            transaction.attest(Statement.COUNTERSIGNATURE, window.origin)
            message = (
                Countersignature(
                    window=window.name,
                    policy_digest=window.policy_digest,
                    opening_digest=opening_digest(request.salt, request.opening),
                    terms_digest=self._terms.digest,
                    activation_anchor=activation_anchor(
                        window.name, challenge.chain_seed(self._keys, window), policy.activations
                    ),
                    time=transaction.now,
                )
                .signed(self._keys.statement)
                .encode()
            )
            added = {TERMS: self._terms.canonical, COUNTERSIGNATURE: message}
            for item, content in {**given, **added}.items():
                windows.put_item(transaction, window.origin, item, content)
            windows.advance(transaction, window.origin, State.COUNTERSIGNED)
            return message

    def _refuse(self, window: Window, given: dict[str, bytes], added: dict[str, bytes]) -> bytes:
        with self._database.write() as transaction:
            settled = self._settled_now(transaction, window, given)
            if settled is not None:
                return settled
            for item, content in {**given, TERMS: self._terms.canonical, **added}.items():
                windows.put_item(transaction, window.origin, item, content)
            windows.advance(transaction, window.origin, State.REFUSED)
        raise _refused(added[windows.VERDICT])

    def _settled_now(
        self, transaction: Transaction, window: Window, given: dict[str, bytes]
    ) -> bytes | None:
        current = windows.get(transaction.connection, window.origin)
        return self._settled(transaction.connection, current, given)

    def _settled(
        self, connection: Connection, window: Window, given: dict[str, bytes]
    ) -> bytes | None:
        """Return the countersignature of this very opening, or None while nothing is decided."""
        if window.refused is not None:
            verdict = windows.read_item(connection, window.origin, windows.VERDICT)
            raise _refused(verdict or b"")
        if window.countersigned is None:
            return None
        for item, content in given.items():
            if windows.read_item(connection, window.origin, item) != content:
                raise Conflict("another opening was countersigned", where=window.origin)
        return windows.read_item(connection, window.origin, COUNTERSIGNATURE)

    @contextmanager
    def _alone(self, origin: Origin) -> Iterator[None]:
        """One countersigning at a time for each window: the checks may take minutes."""
        with self._guard:
            lock = self._locks.get(origin)
            if lock is None:
                lock = self._locks[origin] = threading.Lock()
        with lock:
            yield


class _Overlapped(Exception):
    """Other windows overlap than did when the checks began."""


def _opening_items(request: OpeningBody) -> dict[str, bytes]:
    return {
        OPENING: OpeningItem(request.salt, request.opening).encode(),
        EMPTY_CHECKPOINT: request.empty_checkpoint.encode("utf-8"),
    }


def _evidence(connection: Connection, window: Window, given: dict[str, bytes]) -> Evidence:
    """Return what checks 1 to 4 look at.

    Raises:
        Conflict: the index commitment of one of the policy's tenants is missing.
    """
    held = dict(given)
    for item in windows.list_items(connection, window.origin):
        held[item.name] = windows.read_item(connection, window.origin, item.name) or b""
    for tenant in _upload_terms(windows.policy_bytes(connection, window.origin)).tenants:
        if index_name(tenant) not in held:
            raise Conflict("no index commitment", where=tenant, expected="its upload first")
    return Evidence.of(held)


def _log_key(policy: dict[str, Any]) -> bytes | None:
    """Return the log's public key in a policy that nobody has checked; None if unreadable."""
    keys = policy.get("keys")
    key = keys.get("log") if isinstance(keys, dict) else None
    try:
        return VerifierKey.parse(key).public.raw if isinstance(key, str) else None
    except MalformedError:
        return None


def _check_beacon(beacon: object, chain: BeaconChain | None) -> None:
    """RejectedError for a beacon of another chain than the verifier's own."""
    if not isinstance(beacon, dict) or beacon.get("kind") == "none":
        return  # the policy is judged later
    followed = None if chain is None else chain.hash.hex()
    # Who holds a chain's key knows its rounds: only the verifier can say whom it believes.
    if beacon.get("hash") != followed:
        raise RejectedError(
            "a beacon that this verifier does not follow",
            where="beacon/hash",
            expected=followed or 'kind "none"',
        )


@dataclass(frozen=True)
class _UploadTerms:
    """What a policy that nobody has checked says of index commitments.

    Attributes:
        columns, owned: whether rows may have public columns, and have id keys.
        tenants: those that can be uploaded to, in the policy's order.
    """

    columns: bool
    owned: bool
    tenants: dict[str, None]


@lru_cache(maxsize=4)  # each tenant of a window brings its index, one after the other
def _upload_terms(data: bytes) -> _UploadTerms:
    policy = canonical_json.loads(data)
    tenants = policy.get("tenants")
    found = tenants if isinstance(tenants, list) else []
    names = [tenant.get("id") for tenant in found if isinstance(tenant, dict)]
    allowed = [name for name in names if isinstance(name, str) and NAME.fullmatch(name)]
    return _UploadTerms(
        bool(policy.get("public_columns")), "owners" in policy, dict.fromkeys(allowed)
    )


def _demand_same(connection: Connection, window: Window, documents: dict[str, bytes]) -> None:
    same = all(
        windows.read_item(connection, window.origin, item) == content
        for item, content in documents.items()
    )
    if not same:
        raise Conflict("the window exists with other content", where=window.origin)


def _refused(verdict: bytes) -> RefusedWindow:
    return RefusedWindow("the window is refused", canonical_json.loads(verdict))
