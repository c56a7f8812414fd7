"""Who asks, for whom, and which collections there are for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragaudit.encoding.errors import NotFound
from ragaudit.prover.errors import MalformedQuery, NotServed
from ragaudit.prover.settings import DelegationSettings, SurfaceSettings
from ragaudit.prover.store.accounts import Account, check_user
from ragaudit.prover.surfaces.queries import Answer, Completion, Hit, Index, Port, Query
from starlette.datastructures import Headers

MAX_IDS = 1000


@dataclass(frozen=True)
class Caller:
    """An authenticated account, and what it can reach."""

    port: Port
    account: Account
    settings: SurfaceSettings
    idempotency_key: str | None = None

    @property
    def collections(self) -> list[str]:
        """Names of the collections of the account's tenant, rising."""
        table = self.settings.collections
        return sorted(name for name, tenant in table.items() if tenant == self.account.tenant)

    def check_collection(self, name: str) -> None:
        """Check that the account's tenant has a collection of exactly this name.

        Args:
            name: as it arrived; compared byte for byte.

        Raises:
            NotFound: none, or another tenant's: an account learns of no difference.
        """
        if self.settings.collections.get(name) != self.account.tenant:
            raise NotFound("no such collection", expected="one of the tenant's, spelt exactly")

    def check_writes(self) -> None:
        """Check that the settings list the account, or the end user, among those that write.

        Raises:
            NotServed: they do not.
        """
        writes, account = self.settings.writes, self.account
        if writes and (
            account.name in writes.accounts
            if account.user is None
            else account.user in writes.users.get(account.name, ())
        ):
            return
        raise NotServed("writing", expected="an account that surfaces.writes lists")

    def index(self) -> Index:
        """Return what is known of the tenant's index."""
        return self.port.index(self.account)

    def ask(self, queries: Sequence[Query]) -> list[Answer]:
        """Return the answers; each query is recorded and charged for itself.

        Args:
            queries: of one call.

        Raises:
            MalformedQuery: more than one call may hold.
            RagauditError: as the prover raises.
        """
        if not 1 <= len(queries) <= self.settings.batch_max:
            expected = f"1 to {self.settings.batch_max} queries in a call"
            raise MalformedQuery(f"{len(queries)} queries", expected=expected)
        return self.port.ask(self.account, queries, self.idempotency_key)

    async def complete(self, question: str, ignored: Sequence[str]) -> Completion:
        """Return the generated answer to a question; it is recorded and charged.

        Args:
            ignored: names of settings that were sent and are not honoured; the receipt has them.

        Raises:
            RagauditError: as the prover raises.
        """
        return await self.port.complete(self.account, question, ignored)

    def fetch(self, ids: Sequence[str]) -> list[Hit]:
        """Return those rows that this account was served in this window.

        Args:
            ids: at most `MAX_IDS`: each costs a look into two stores.

        Raises:
            MalformedQuery: more of them.
        """
        if len(ids) > MAX_IDS:
            raise MalformedQuery(f"{len(ids)} ids", expected=f"at most {MAX_IDS} in a call")
        return self.port.fetch(self.account, ids)


def acting(
    port: Port,
    account: Account,
    settings: DelegationSettings,
    headers: Headers,
    subject: Callable[[str], str],
) -> Account:
    """Return the account that a request is charged to: the key's own, or the end user it names.

    Args:
        account: of the API key.
        headers: of the request.
        subject: returns the end user of a token, once it is verified.

    Raises:
        NotServed: the key may not name anybody, or the end user is unknown and stays so.
        MalformedQuery, NotAuthenticated: as `named_user`.
    """
    if not names_user(settings, headers):
        return account
    if account.name not in settings.accounts:
        raise NotServed("this key cannot name an end user", expected="a key that may delegate")
    return port.end_user(
        replace(account, user=named_user(settings, headers, subject)),
        register=account.tenant in settings.register_tenants,
    )


def names_user(settings: DelegationSettings, headers: Headers) -> bool:
    """Return whether a request names an end user, whatever its key may do."""
    return any(name in headers for name in _user_headers(settings))


def named_user(
    settings: DelegationSettings, headers: Headers, subject: Callable[[str], str]
) -> str:
    """Return the end user whom a request names.

    Args:
        headers: of a request of a key that may name one, and does.
        subject: returns the end user of a token, once it is verified.

    Raises:
        MalformedQuery: two end users, or a name that is not UTF-8.
        MalformedRequest: as `check_user`.
        NotAuthenticated: a token that does not verify.
    """
    names = _user_headers(settings)
    # Each header may come several times: a proxy may have added one to the caller's own.
    [value, *more] = [value for name in names for value in headers.getlist(name)]
    if more:
        raise MalformedQuery("an end user named twice", expected="one header, once")
    if settings.jwt is not None and settings.jwt.header in headers:
        return check_user(subject(value))
    try:
        # Headers arrive as latin-1; the same user in a token is in UTF-8.
        return check_user(value.encode("latin-1").decode("utf-8"))
    except UnicodeError:
        raise MalformedQuery("not UTF-8", where=names[0], expected="an end user") from None


def _user_headers(settings: DelegationSettings) -> list[str]:
    names = [settings.header, None if settings.jwt is None else settings.jwt.header]
    return [name for name in names if name is not None]


def bearer(headers: Mapping[str, str]) -> str | None:
    """Return the key of ``Authorization: Bearer``, None if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def own_header(name: str) -> Callable[[Mapping[str, str]], str | None]:
    """Return a reader of the key from a surface's own header, or else from Authorization.

    Args:
        name: of the header, in lower case.
    """
    return lambda headers: headers.get(name) or bearer(headers)
