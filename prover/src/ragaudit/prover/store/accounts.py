"""Tenants, their accounts, and the accounts' API keys."""

import hmac
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from anyio import to_thread
from ragaudit.encoding.errors import Conflict, MalformedRequest, NotAuthenticated, UnavailableError
from ragaudit.ledger.log.prepared import Prepared
from ragaudit.ledger.log.rows import Rows
from ragaudit.prover.errors import UnknownAccount, UnknownTenant
from ragaudit.prover.keys import token_digest
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.inserting import insert_new
from ragaudit.serving.validation import NAME_PATTERN
from sqlalchemy import bindparam, select, update

KEY_BYTES = 32
REFRESH_SECONDS = 1.0
ACCOUNT = "account "  # before the name of an account, in that of its queue
_OPERATOR = "operator"
_TENANT = re.compile(NAME_PATTERN, re.ASCII)
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,126}", re.ASCII)


@dataclass(frozen=True)
class Account:
    """A tenant's user."""

    name: str
    tenant: str


@dataclass(frozen=True)
class _Credential(Account):
    """An account with the SHA-256 of its API key; it does not leave this module."""

    key_digest: bytes = field(repr=False)


_ACCOUNTS = Rows(Account, tables.account)
_CREDENTIALS = Rows(_Credential, tables.account)
# Built once: it runs in every request of an account.
_BY_DIGEST = Prepared(_CREDENTIALS.select(tables.account.c.key_digest == bindparam("digest")))


class Accounts:
    """The register of tenants and accounts. API keys are stored as SHA-256 only."""

    def __init__(self, store: Store) -> None:
        self._store = store

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

    def add(self, tenant: str, name: str) -> str:
        """Create an account and return its API key, which is shown this one time.

        Args:
            tenant: that has documents already.
            name: 1 to 127 of ``A-Za-z0-9._@+-``, unique among all tenants.

        Raises:
            MalformedRequest: not a possible account name.
            UnknownTenant: no tenant of this name (ingest its documents first).
            Conflict: the name is taken, whatever the tenant.
        """
        if _ACCOUNT.fullmatch(name) is None:
            raise MalformedRequest(
                "not an account name", where="account", expected="1 to 127 of A-Za-z0-9._@+-"
            )
        key = _new_key()
        with self._store.write() as connection:
            known = connection.scalar(
                select(tables.tenant.c.name).where(tables.tenant.c.name == tenant)
            )
            if known is None:
                raise UnknownTenant("no such tenant", where=tenant[:64])
            # Of any tenant: the pseudonym is derived from the name alone (spec 5.1).
            row = {"name": name, "tenant": tenant, "key_digest": token_digest(key)}
            if insert_new(connection, tables.account, [row]) != 1:
                raise Conflict("the account exists", where=name, expected="another name")
        return key

    def rotate_key(self, name: str) -> str:
        """Replace an account's API key and return the new one; the old one is dead at once.

        Raises:
            UnknownAccount: no account of this name.
        """
        key = _new_key()
        with self._store.write() as connection:
            changed = connection.execute(
                update(tables.account)
                .where(tables.account.c.name == name)
                .values(key_digest=token_digest(key))
            )
            # Counted by the update itself: nothing can happen between a look and the change.
            if changed.rowcount != 1:
                raise UnknownAccount("no such account", where=name[:127])
        return key

    def all(self) -> list[Account]:
        """Return every account, by tenant and name."""
        columns = tables.account.c
        with self._store.read() as connection:
            query = _ACCOUNTS.select().order_by(columns.tenant, columns.name)
            return _ACCOUNTS.all(connection, query)

    def named(self, name: str) -> Account:
        """Return the account of a name.

        Raises:
            UnknownAccount: there is none.
        """
        with self._store.read() as connection:
            query = _ACCOUNTS.select().where(tables.account.c.name == name)
            found = _ACCOUNTS.all(connection, query)
        if not found:
            raise UnknownAccount("no such account", where=name[:127])
        return found[0]

    def key_digests(self) -> dict[bytes, str]:
        """Return the names of all accounts by the SHA-256 of their API keys."""
        with self._store.read() as connection:
            credentials = _CREDENTIALS.all(connection, _CREDENTIALS.select())
        return {credential.key_digest: credential.name for credential in credentials}

    def authenticate(self, key: str) -> Account:
        """Return the account of an API key.

        Raises:
            NotAuthenticated: it is nobody's.
        """
        digest = token_digest(key)
        with self._store.look() as connection:
            row = _BY_DIGEST.row(connection, digest=digest)
        credential = None if row is None else _CREDENTIALS.of(row)
        # Again, in constant time: the database stops at the first byte that differs.
        if credential is None or not hmac.compare_digest(credential.key_digest, digest):
            raise NotAuthenticated(
                "unknown API key", where="Authorization", expected="Bearer <API key>"
            )
        return Account(credential.name, credential.tenant)


class AccountKeys:
    """Whose API key a token is, from memory: good for queues, not for authentication."""

    def __init__(self, accounts: Accounts, operator_digest: bytes) -> None:
        self._accounts = accounts
        self._callers = {operator_digest: _OPERATOR}
        self._read = -REFRESH_SECONDS

    async def caller(self, token: str) -> str | None:
        """Return a name for the account or operator with this token; None if nobody has it.

        A key made less than `REFRESH_SECONDS` ago may not be known yet.

        Args:
            token: as the caller presents it; nothing is granted for it.
        """
        digest = token_digest(token)
        # At most once a second: guessed tokens must not read the whole table each time.
        if digest not in self._callers and monotonic() - self._read >= REFRESH_SECONDS:
            self._read = monotonic()
            with suppress(UnavailableError):  # whoever asks is told so by what follows
                known = await to_thread.run_sync(self._accounts.key_digests)
                # Only added to: a key that was rotated away names its owner's queue: no harm.
                self._callers |= {key: f"{ACCOUNT}{name}" for key, name in known.items()}
        return self._callers.get(digest)


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


def _new_key() -> str:
    return secrets.token_urlsafe(KEY_BYTES)
