"""Tenants, accounts and the owners of documents, and whose key a request shows."""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import NamedTuple

from anyio import to_thread
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import (
    Conflict,
    MalformedError,
    MalformedRequest,
    NotAuthenticated,
    UnavailableError,
)
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.database import Prepared, Rows, Several
from ragaudit.prover.errors import UnknownAccount, UnknownTenant
from ragaudit.prover.keys import token_digest
from ragaudit.prover.sequencer import Lookup
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store, insert_new
from ragaudit.serving.settings import NAME_PATTERN
from sqlalchemy import Connection, bindparam, delete, select, update

KEY_BYTES = 32
MAX_USER_BYTES = 1024
_TENANT = re.compile(NAME_PATTERN, re.ASCII)
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,126}", re.ASCII)


@dataclass(frozen=True)
class Account:
    """Who asks: an account that the operator added, or an end user whom such an account names.

    The latter is a pair, and never the same as an account or as another pair, whatever the names.

    Attributes:
        name: of the account.
        tenant: of both.
        user: whom the account names; None for the account itself.
        dispute_key: 32 bytes, of registrations that bring none of their own; None without one.
    """

    name: str
    tenant: str
    user: str | None = None
    dispute_key: bytes | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """What tables and locks know it by: the name, or a digest of the pair."""
        if self.user is None:
            return self.name
        # One text for each pair, and no name begins with the sign before it.
        return f"+{hashlib.sha256(dumps([self.name, self.user])).hexdigest()}"

    def disputing_with(self, dispute_key: bytes | None) -> "Account":
        """Return this account, with a dispute key if it has none of its own.

        Args:
            dispute_key: of the account that names it, 32 bytes; None if that has none either.
        """
        return self if self.dispute_key else replace(self, dispute_key=dispute_key)

    def to_json(self) -> dict[str, str]:
        """Return tenant and name, the user of an end user, and the dispute key, if there is one."""
        return {
            "tenant": self.tenant, "name": self.name,
            **({} if self.user is None else {"user": self.user}),
            **({} if self.dispute_key is None else {"dispute_key": self.dispute_key.hex()}),
        }  # fmt: skip


@dataclass(frozen=True)
class _Row:
    """An account as it is stored; the SHA-256 of its API key does not leave this module."""

    id: str
    named_by: str | None
    end_user: str | None
    tenant: str
    dispute_key: bytes | None
    key_digest: bytes = field(repr=False)

    @property
    def account(self) -> Account:
        """Whose row it is."""
        return Account(self.named_by or self.id, self.tenant, self.end_user, self.dispute_key)


_ROWS = Rows(_Row, tables.account)
_COLUMNS = tables.account.c
_BY_DIGEST = Several(_ROWS.select(), _COLUMNS.key_digest)


class Accounts:
    """The register of tenants and accounts. API keys are stored as SHA-256 only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of_keys = Lookup(self._find_keys)

    def tenants(self) -> list[str]:
        """Return the names of the tenants, rising."""
        with self._store.read() as connection:
            return list(connection.scalars(select(tables.tenant.c.name).order_by("name")))

    def ensure_tenants(self, names: Iterable[str]) -> None:
        """Register the tenants of an outside backend, which nobody ingests.

        Args:
            names: those that are known already stay.

        Raises:
            MalformedRequest: not a possible name of a tenant.
        """
        known = set(self.tenants())
        new = sorted({name for name in names if name not in known})
        for name in new:
            check_tenant_name(name)
        if new:
            with self._store.write() as connection:
                insert_new(connection, tables.tenant, [{"name": name} for name in new])

    def add(self, tenant: str, name: str, dispute_key: bytes | None = None) -> str:
        """Create an account and return its API key, which is shown this one time.

        Args:
            tenant: that has documents already.
            name: 1 to 127 of ``A-Za-z0-9._@+-``, unique among all tenants' accounts.
            dispute_key: as `Account`'s.

        Raises:
            MalformedRequest: not a possible account name, or not an Ed25519 public key.
            UnknownTenant: no tenant of this name (ingest its documents first).
            Conflict: the name is taken, whatever the tenant.
        """
        if _ACCOUNT.fullmatch(name) is None:
            raise MalformedRequest(
                "not an account name", where="account", expected="1 to 127 of A-Za-z0-9._@+-"
            )
        check_dispute_key(dispute_key)
        key = new_key()
        with self._store.write() as connection:
            known = connection.scalar(
                select(tables.tenant.c.name).where(tables.tenant.c.name == tenant)
            )
            if known is None:
                raise UnknownTenant("no such tenant", where=tenant[:64])
            # Of any tenant: the pseudonym is derived from the name alone (spec 5.1).
            if not _insert(
                connection, Account(name, tenant, dispute_key=dispute_key), token_digest(key)
            ):
                raise Conflict("the account exists", where=name, expected="another name")
        return key

    def add_end_user(self, name: str, user: str, *, tenant: str) -> Account:
        """Return an end user, who has no API key, created unless there is one already.

        Args:
            name: of the account that names the user.
            user: as of `check_user`.
            tenant: of both.

        Raises:
            UnknownAccount: the tenant has no account of this name.
            MalformedRequest: as `check_user`.
        """
        account = Account(name, tenant, check_user(user))
        if self.named(name).tenant != tenant:
            raise UnknownAccount("no such account of this tenant", where=name[:127])
        with self._store.write() as connection:
            # Of no key: what is hashed is never drawn as one.
            _insert(connection, account, secrets.token_bytes(KEY_BYTES))
        return account

    def rotate_key(self, name: str) -> str:
        """Replace an account's API key and return the new one; the old one is dead at once.

        Raises:
            UnknownAccount: no account of this name.
        """
        key = new_key()
        with self._store.write() as connection:
            changed = connection.execute(
                update(tables.account)
                .where(_COLUMNS.id == name, _COLUMNS.named_by.is_(None))
                .values(key_digest=token_digest(key))
            )
            # Counted by the update itself: nothing can happen between a look and the change.
            if changed.rowcount != 1:
                raise UnknownAccount("no such account", where=name[:127])
        return key

    def keep_dispute_key(self, account: Account, dispute_key: bytes, *, over: bool = False) -> None:
        """Keep the dispute key of an account, for windows that register it from now on.

        Args:
            account: or end user, who is there.
            dispute_key: an Ed25519 public key, 32 bytes.
            over: whether another one may be there: the operator's to say, since whoever holds a
                stolen API key would otherwise take the disputes of later windows from the account.

        Raises:
            MalformedRequest: not an Ed25519 public key.
            Conflict: it has another one.
        """
        check_dispute_key(dispute_key)
        kept = _COLUMNS.dispute_key
        change = update(tables.account).where(_COLUMNS.id == account.id)
        if not over:
            change = change.where(kept.is_(None) | (kept == dispute_key))
        with self._store.write() as connection:
            changed = connection.execute(change.values(dispute_key=dispute_key))
        # Counted by the update itself, as above.
        if changed.rowcount != 1:
            raise Conflict(
                "the account has another dispute key",
                where=account.name,
                expected="the same; only the operator replaces it",
            )

    def all(self) -> list[Account]:
        """Return every account and end user, by tenant, name and user.

        An end user without a dispute key has that of the account that names it.
        """
        with self._store.read() as connection:
            rows = _ROWS.all(connection, _ROWS.select())
        keys = {row.id: row.dispute_key for row in rows}
        found = [row.account.disputing_with(keys.get(row.named_by or "")) for row in rows]
        return sorted(found, key=lambda each: (each.tenant, each.name, each.user or ""))

    def named(self, name: str, user: str | None = None) -> Account:
        """Return the account of a name, or an end user whom it names.

        Raises:
            UnknownAccount: there is none.
        """
        with self._store.read() as connection:
            pair = (_COLUMNS.id == name) if user is None else (_COLUMNS.named_by == name)
            row = _ROWS.find(connection, pair, _COLUMNS.end_user.is_not_distinct_from(user))
        if row is None:
            what = "no such account" if user is None else "no such end user of this account"
            raise UnknownAccount(what, where=name[:127])
        return row.account

    def key_digests(self, among: Sequence[bytes] | None = None) -> dict[bytes, str]:
        """Return the names of accounts by the SHA-256 of their API keys.

        Args:
            among: the digests to look up; None for those of all accounts.
        """
        wanted = _ROWS.select(_COLUMNS.named_by.is_(None))
        if among is not None:
            wanted = wanted.where(_COLUMNS.key_digest.in_(among))
        with self._store.read() as connection:
            rows = _ROWS.all(connection, wanted)
        return {row.key_digest: row.id for row in rows}

    def authenticate(self, key: str) -> Account:
        """Return the account of an API key.

        Raises:
            NotAuthenticated: it is nobody's.
        """
        digest = token_digest(key)
        found = self._of_keys.get(digest)
        # Again, in constant time: the database stops at the first byte that differs.
        if found is None or not hmac.compare_digest(found.key_digest, digest):
            raise NotAuthenticated(
                "unknown API key", where="Authorization", expected="Bearer <API key>"
            )
        return found.account

    def _find_keys(self, digests: Sequence[bytes]) -> dict[bytes, _Row]:
        with self._store.look() as connection:
            rows = map(_ROWS.of, _BY_DIGEST.rows(connection, digests))
            return {row.key_digest: row for row in rows}


def check_tenant_name(name: str) -> None:
    """Check the form of a tenant's name.

    Args:
        name: 1 to 64 of ``a-z``, ``0-9`` and inner ``-`` (spec 5.1).

    Raises:
        MalformedRequest: of another form.
    """
    if _TENANT.fullmatch(name) is None:
        raise MalformedRequest(
            "not a tenant name", where="tenant", expected="1 to 64 of a-z, 0-9 and inner -"
        )


def check_user(user: str) -> str:
    """Return the name of an end user, as it is: no case, no Unicode form is changed.

    Args:
        user: 1 to `MAX_USER_BYTES` bytes of UTF-8.

    Raises:
        MalformedRequest: of another length, with a character that cannot be printed, or with space
            around it.
    """
    # Names stand in logs and on screens: no control character, no change of direction.
    if not (user.isprintable() and user == user.strip()):
        raise MalformedRequest(
            "cannot be printed", where="end user", expected="letters, digits, signs"
        )
    if not 1 <= len(user.encode()) <= MAX_USER_BYTES:
        raise MalformedRequest(
            "too long, or empty", where="end user", expected=f"1 to {MAX_USER_BYTES} bytes"
        )
    return user


def check_dispute_key(key: bytes | None) -> None:
    """Check that a dispute key is an Ed25519 public key, if there is one.

    Args:
        key: 32 bytes, or None.

    Raises:
        MalformedRequest: it is none: a registration that nobody is there to mend would fail for it.
    """
    try:
        if key is not None:
            PublicKey.from_raw(key)
    except MalformedError as error:
        raise MalformedRequest(
            error.what, where="dispute_key", expected="an Ed25519 public key, 64 digits 0-9a-f"
        ) from None


def _insert(connection: Connection, account: Account, digest: bytes) -> bool:
    """Insert an account; return whether it is new."""
    row = {
        "id": account.id,
        "named_by": None if account.user is None else account.name,
        "end_user": account.user,
        "tenant": account.tenant,
        "dispute_key": account.dispute_key,
        "key_digest": digest,
    }
    return insert_new(connection, tables.account, [row]) == 1


def new_key() -> str:
    """Return a fresh API key, of which the caller stores the digest alone."""
    return secrets.token_urlsafe(KEY_BYTES)


_OWNER = tables.owner.c
# Built once, as that of the accounts.
_OWNER_BY_DIGEST = Prepared(
    select(_OWNER.tenant, _OWNER.key_digest).where(_OWNER.key_digest == bindparam("digest"))
)


class Owners:
    """The register of owners: at most one API key of each tenant, stored as its SHA-256 only."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def give_key(self, tenant: str) -> str:
        """Return a new API key of a tenant's owner, shown this one time; an old one is dead.

        Args:
            tenant: that has documents already.

        Raises:
            UnknownTenant: no tenant of this name.
        """
        key = new_key()
        row = {"tenant": tenant, "key_digest": token_digest(key)}
        with self._store.write() as connection:
            known = select(tables.tenant.c.name).where(tables.tenant.c.name == tenant)
            if connection.scalar(known) is None:
                raise UnknownTenant("no such tenant", where=tenant[:64])
            if not insert_new(connection, tables.owner, [row]):
                connection.execute(update(tables.owner).where(_OWNER.tenant == tenant).values(row))
        return key

    def revoke_key(self, tenant: str) -> None:
        """Revoke the API key of a tenant's owner at once.

        Raises:
            UnknownTenant: there is no key of this tenant.
        """
        with self._store.write() as connection:
            gone = connection.execute(delete(tables.owner).where(_OWNER.tenant == tenant))
            # Counted by the statement itself: nothing can happen between a look and the change.
            if gone.rowcount != 1:
                raise UnknownTenant("the tenant's owner has no key", where=tenant[:64])

    def key_digests(self, among: Sequence[bytes] | None = None) -> dict[bytes, str]:
        """Return the tenants by the SHA-256 of their owners' API keys.

        Args:
            among: the digests to look up; None for those of all owners.
        """
        wanted = select(_OWNER.key_digest, _OWNER.tenant)
        if among is not None:
            wanted = wanted.where(_OWNER.key_digest.in_(among))
        with self._store.read() as connection:
            return {row.key_digest: row.tenant for row in connection.execute(wanted)}

    def authenticate(self, key: str) -> str:
        """Return the tenant whose owner has this API key.

        Raises:
            NotAuthenticated: no owner has it; that of an account is none.
        """
        digest = token_digest(key)
        with self._store.look() as connection:
            row = _OWNER_BY_DIGEST.row(connection, digest=digest)
        # Again, in constant time: the database stops at the first byte that differs.
        if row is None or not hmac.compare_digest(row[1], digest):
            raise NotAuthenticated(
                "unknown API key of an owner", where="Authorization", expected="Bearer <API key>"
            )
        return str(row[0])


REFRESH_SECONDS = 1.0
_MOST_LOOKED_UP = 1000  # digests in one statement; databases take 32,766 and more


class Caller(NamedTuple):
    """Whose request waits: no two that are different are equal, whatever their names.

    Attributes:
        kind: ``account``, ``owner``, ``operator`` or ``peer``.
        name: of the account; the tenant of an owner; the network of a peer.
        user: whom the account names; None for the account itself.
    """

    kind: str
    name: str = ""
    user: str | None = None


OPERATOR = Caller("operator")


class CallersKeys:
    """Whose key a token is, from memory: good for queues, not for authentication.

    For one event loop. Keys in use are looked up again once a second, in a thread: one that was
    rotated or revoked must not fill the queue of the account that it was taken from.
    """

    def __init__(self, accounts: Accounts, owners: Owners, operator_digest: bytes) -> None:
        self._accounts = accounts
        self._owners = owners
        self._operator = {operator_digest: OPERATOR}
        self._callers: dict[bytes, Caller] = dict(self._operator)
        self._read = -REFRESH_SECONDS
        self._used: set[bytes] = set()  # of accounts and owners, since they were looked up
        self._looked = monotonic()
        self._looking: asyncio.Task[None] | None = None

    async def caller(self, token: str) -> Caller | None:
        """Return which account, owner or operator has this token; None if nobody has it.

        A key made less than `REFRESH_SECONDS` ago may not be known yet.

        Args:
            token: as the caller presents it; nothing is granted for it.
        """
        digest = token_digest(token)
        # At most once a second: guessed tokens must not read the whole tables each time.
        if digest not in self._callers and monotonic() - self._read >= REFRESH_SECONDS:
            self._read = monotonic()
            with suppress(UnavailableError):  # whoever asks is told so by what follows
                self._callers = self._operator | await to_thread.run_sync(self._known)
        return self.known(digest)

    def known(self, digest: bytes) -> Caller | None:
        """Return whose token has a SHA-256, of those that were read; None where nothing is known.

        A key that died counts until it was used and looked up: about `REFRESH_SECONDS`.

        Args:
            digest: of the token; nothing is granted for it.
        """
        caller = self._callers.get(digest)
        if caller is not None and caller is not OPERATOR:
            self._used.add(digest)
            if monotonic() - self._looked >= REFRESH_SECONDS and self._looking is None:
                self._looking = asyncio.get_running_loop().create_task(self._look())
        return caller

    async def _look(self) -> None:
        """Forget those keys that were used and are nobody's any more."""
        used, self._used = list(self._used), set()
        try:
            with suppress(UnavailableError):  # what cannot be looked up is not dead
                for first in range(0, len(used), _MOST_LOOKED_UP):
                    some = used[first : first + _MOST_LOOKED_UP]
                    alive = await to_thread.run_sync(self._known, some)
                    for digest in some:
                        if digest not in alive:
                            self._callers.pop(digest, None)
        finally:
            self._looked, self._looking = monotonic(), None

    def _known(self, among: Sequence[bytes] | None = None) -> dict[bytes, Caller]:
        accounts = {
            key: Caller("account", name) for key, name in self._accounts.key_digests(among).items()
        }
        owners = {
            key: Caller("owner", tenant) for key, tenant in self._owners.key_digests(among).items()
        }
        return accounts | owners
