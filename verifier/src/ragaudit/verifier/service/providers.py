"""Providers: their pinned keys and signatures, what a window of theirs must say, what may wait.

Who calls: providers by signatures, the auditor by a token (docs/spec/08-services.md §8.1).

What one provider may have stored before the verifier agreed to anything is bounded. A window that
is not countersigned a day after its start never will be: it is forgotten, with all that was
uploaded for it. A refused one stays, as its verdict's evidence: its bytes count for good, or they
would add up day by day.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragaudit.encoding.errors import (
    Conflict,
    MalformedError,
    NotAuthenticated,
    NotFound,
    RejectedError,
)
from ragaudit.encoding.signing import PublicKey, SignatureRejected
from ragaudit.ledger.log.database import Rows
from ragaudit.ledger.messages.identifiers import check_provider
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.signed import (
    DIGEST_FORM,
    DIGEST_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    SignedRequest,
)
from ragaudit.serving.exchange import note
from ragaudit.verifier.service import tables, windows
from ragaudit.verifier.service.database import Database, Origin, Transaction
from ragaudit.verifier.service.errors import CapReached
from ragaudit.verifier.service.windows import Window
from ragaudit.verifier.settings import Limits
from sqlalchemy import ColumnElement, Connection, delete, func, select

if TYPE_CHECKING:
    from fastapi import Request
    from ragaudit.serving.bodies import Body

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", re.ASCII)  # windows and tenants
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Pinned:
    """A provider's row.

    Attributes:
        key: its public key, 32 bytes.
        added: when it was pinned, Unix milliseconds.
    """

    name: str
    key: bytes
    added: int

    @property
    def public(self) -> PublicKey:
        """The pinned key."""
        return PublicKey.from_raw(self.key)


_PROVIDERS = Rows(Pinned, tables.provider)


def add(database: Database, name: str, key: PublicKey) -> None:
    """Pin ``key`` for ``name``; pinning the same key again changes nothing.

    Args:
        key: verifies its requests (8.1), and must be ``keys.provider`` of its policies.

    Raises:
        MalformedRecord: not a provider's name.
        Conflict: another key is pinned for the name, or the key for another name.
    """
    check_provider(name)
    with database.write() as transaction:
        connection = transaction.connection
        for pinned in listed(connection):
            if (pinned.name, pinned.key) == (name, key.raw):
                return
            if pinned.name == name:
                raise Conflict("another key is pinned", where=name, expected="remove it first")
            # What one provider signs would otherwise be a request of the other, too.
            if pinned.key == key.raw:
                raise Conflict("the key is pinned for another provider", where=pinned.name)
        _PROVIDERS.insert(connection, Pinned(name, key.raw, transaction.now))


def remove(database: Database, name: str) -> None:
    """Forget the provider; its windows stay.

    Raises:
        NotFound: no such provider.
    """
    with database.write() as transaction:
        mine = tables.provider.c.name == name
        removed = transaction.connection.execute(delete(tables.provider).where(mine))
        if removed.rowcount == 0:
            raise NotFound("no such provider", where=name)


def listed(connection: Connection) -> list[Pinned]:
    """Return all pinned providers, by name."""
    pinned = _PROVIDERS.all(connection, _PROVIDERS.select())
    return sorted(pinned, key=lambda provider: provider.name)


def find(connection: Connection, name: str) -> PublicKey | None:
    """Return the key pinned for ``name``."""
    pinned = _PROVIDERS.find(connection, tables.provider.c.name == name)
    return None if pinned is None else pinned.public


def check_identity(policy: dict[str, Any], provider: str, keys: Mapping[str, str | None]) -> str:
    """Check that a policy is ``provider``'s, for this verifier; return the window's name.

    Args:
        keys: what the members of the policy's ``keys`` must be, all but ``log``.
        policy: JSON that nobody has checked.
        provider: who signed the request.

    Raises:
        MalformedError: no policy, or an ill-formed window name.
        RejectedError: another provider or another key.
    """
    if policy.get("format") != Policy.FORMAT:
        raise MalformedError("not a policy", where="policy/format", expected=Policy.FORMAT)
    window = policy.get("window")
    if not isinstance(window, str) or NAME.fullmatch(window) is None:
        raise MalformedError("not a window's name", where="policy/window", expected=NAME.pattern)
    if policy.get("provider") != provider:
        raise RejectedError("another provider", where="policy/provider", expected=provider)
    given = policy.get("keys")
    if not isinstance(given, dict):
        raise MalformedError("no keys", where="policy/keys", expected="an object")
    # A policy with another cosigner or verdict key could be opened here and judged elsewhere.
    for role, key in keys.items():
        if given.get(role) != key:
            raise RejectedError("another key", where=f"policy/keys/{role}", expected=key or "null")
    return window


def demand_window(transaction: Transaction, provider: str, limits: Limits) -> None:
    """Check that a provider may file one more window.

    Raises:
        CapReached: it has as many as it may, or as many bytes.
    """
    bytes_left(transaction.connection, provider, limits)
    columns = tables.window.c
    connection, own = transaction.connection, columns.provider == provider
    unsettled = columns.countersigned.is_(None) & columns.refused.is_(None)
    waiting = _count(connection, own & unsettled)
    if waiting >= limits.waiting_windows:
        raise CapReached(
            f"{waiting} windows are not countersigned", expected=f"below {limits.waiting_windows}"
        )
    new = _count(connection, own & (columns.registered > transaction.now - DAY_MS))
    if new >= limits.windows_per_day:
        raise CapReached(
            f"{new} windows registered in 24 hours", expected=f"below {limits.windows_per_day}"
        )


def demand_bytes(transaction: Transaction, provider: str, size: int, limits: Limits) -> None:
    """Check that a provider may upload ``size`` bytes more.

    Raises:
        CapReached: they are too many.
    """
    if size > bytes_left(transaction.connection, provider, limits):
        raise _full(limits)


def bytes_left(connection: Connection, provider: str, limits: Limits) -> int:
    """Return how many bytes a provider may still upload.

    Raises:
        CapReached: there are none left.
    """
    columns, item = tables.window.c, tables.item.c
    # Refused windows, too: their bytes count for good.
    own = (columns.provider == provider) & columns.countersigned.is_(None)
    held = select(func.coalesce(func.sum(item.size), 0)).where(
        item.window.in_(select(columns.origin).where(own))
    )
    left = limits.waiting_bytes - int(connection.execute(held).scalar_one())
    if left <= 0:
        raise _full(limits)
    return left


def forget_expired(transaction: Transaction) -> list[Origin]:
    """Remove the windows that can no longer be countersigned and return their origins.

    A day after start or registration, whichever is later (docs/spec/08-services.md §8.3).
    """
    expired = [
        window.origin
        for window in windows.unsettled(transaction.connection)
        if transaction.now > DAY_MS + _start(transaction.connection, window)
    ]
    for origin in expired:
        windows.forget(transaction, origin)
    return expired


def _start(connection: Connection, window: Window) -> int:
    """Return when a window starts, in Unix milliseconds; nobody has checked its policy yet."""
    start = windows.unchecked_policy(connection, window.origin).get("start")
    # ``type``, not isinstance: true is an int to Python. A start that is past counts no more.
    return max(window.registered, 1000 * start) if type(start) is int else window.registered


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(tables.window).where(condition)
    return int(connection.execute(query).scalar_one())


def _full(limits: Limits) -> CapReached:
    return CapReached(
        "windows that are not countersigned hold too much",
        expected=f"at most {limits.waiting_bytes} bytes",
    )


# Within it a recorded request can be sent again: so each provider's call is idempotent, or refused
# the second time (docs/spec/08-services.md §8.1).
TOLERANCE_MS = 60_000


@dataclass(frozen=True)
class Provider:
    """An authenticated provider."""

    name: str
    key: PublicKey


def claimed(request: "Request", now: int) -> SignedRequest:
    """Return what the signature headers of a request say (docs/spec/08-services.md §8.1).

    Args:
        now: the verifier's clock, Unix milliseconds.

    Raises:
        NotAuthenticated: a missing, repeated or ill-formed header, or a time more than 60 s
            off.
    """
    try:
        claim = SignedRequest.parse(request.headers.getlist)
    except MalformedError as error:
        raise NotAuthenticated(error.what, where=error.where, expected=error.expected) from None
    if abs(claim.time - now) > TOLERANCE_MS:
        raise NotAuthenticated(
            "time too far from the verifier's clock",
            where=TIME_HEADER.lower(),
            expected=f"within {TOLERANCE_MS // 1000} s of {now}",
        )
    return claim


def verify_request(request: "Request", claim: SignedRequest, key: PublicKey) -> Provider:
    """Check the signature over method, path with query, claimed digest of the body, and time.

    Needs nothing of the body, so that nobody else's is read: see `demand_digest`.

    Args:
        claim: of the request, as `claimed` returned it.
        key: the one that is pinned for ``claim.provider``.

    Raises:
        NotAuthenticated: it does not verify under the pinned key.
    """
    try:
        claim.verify(key, method=request.method, target=target(request))
    except SignatureRejected as error:
        raise NotAuthenticated(error.what, where=SIGNATURE_HEADER.lower()) from None
    note(account=claim.provider)
    return Provider(claim.provider, key)


def demand_digest(claim: SignedRequest, body: "Body") -> None:
    """Check that the body is the one whose digest was signed.

    Args:
        body: as it arrived, with its SHA-256.

    Raises:
        NotAuthenticated: it is another one.
    """
    if body.digest != claim.digest:
        raise NotAuthenticated(
            "another body than the one that was signed",
            where=DIGEST_HEADER.lower(),
            expected=DIGEST_FORM,
        )


def target(request: "Request") -> str:
    """Return path with query, as sent: percent-encoded, with ``?`` only where a query follows."""
    # Not the decoded path: two spellings of one path would share a signature.
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.split(b"?", 1)[0]
    query: bytes = request.scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")


def verify_token(request: "Request", digest: bytes) -> None:
    """Check the auditor's token against its stored digest, in constant time.

    Args:
        digest: SHA-256 of the token, 32 bytes.

    Raises:
        NotAuthenticated: no bearer token, or another one.
    """
    header = request.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    given = hashlib.sha256(token.encode("utf-8")).digest()
    if scheme.lower() != "bearer" or not hmac.compare_digest(given, digest):
        raise NotAuthenticated("not the auditor's token", expected="Authorization: Bearer")
    note(operator=True)
