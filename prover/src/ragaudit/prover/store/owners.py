"""API keys of the owners of tenants' documents (docs/spec/08-services.md §8.1)."""

import hmac

from ragaudit.encoding.errors import NotAuthenticated
from ragaudit.ledger.log.database import Prepared
from ragaudit.prover.errors import UnknownTenant
from ragaudit.prover.keys import token_digest
from ragaudit.prover.store import tables
from ragaudit.prover.store.accounts import new_key
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.inserting import insert_new
from sqlalchemy import bindparam, delete, select, update

_COLUMNS = tables.owner.c
# Built once, as that of the accounts.
_BY_DIGEST = Prepared(
    select(_COLUMNS.tenant, _COLUMNS.key_digest).where(_COLUMNS.key_digest == bindparam("digest"))
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
                connection.execute(
                    update(tables.owner).where(_COLUMNS.tenant == tenant).values(row)
                )
        return key

    def revoke_key(self, tenant: str) -> None:
        """Revoke the API key of a tenant's owner at once.

        Raises:
            UnknownTenant: there is no key of this tenant.
        """
        with self._store.write() as connection:
            gone = connection.execute(delete(tables.owner).where(_COLUMNS.tenant == tenant))
            # Counted by the statement itself: nothing can happen between a look and the change.
            if gone.rowcount != 1:
                raise UnknownTenant("the tenant's owner has no key", where=tenant[:64])

    def key_digests(self) -> dict[bytes, str]:
        """Return the tenants by the SHA-256 of their owners' API keys."""
        with self._store.read() as connection:
            rows = connection.execute(select(_COLUMNS.key_digest, _COLUMNS.tenant))
            return {row.key_digest: row.tenant for row in rows}

    def authenticate(self, key: str) -> str:
        """Return the tenant whose owner has this API key.

        Raises:
            NotAuthenticated: no owner has it; that of an account is none.
        """
        digest = token_digest(key)
        with self._store.look() as connection:
            row = _BY_DIGEST.row(connection, digest=digest)
        # Again, in constant time: the database stops at the first byte that differs.
        if row is None or not hmac.compare_digest(row[1], digest):
            raise NotAuthenticated(
                "unknown API key of an owner", where="Authorization", expected="Bearer <API key>"
            )
        return str(row[0])
