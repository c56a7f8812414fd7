"""Who calls, and which service answers."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from ragaudit.encoding.errors import NotAuthenticated
from ragaudit.prover.service import Service
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.mount import Surfaces
from ragaudit.serving.exchange import note

_account_scheme = HTTPBearer(
    auto_error=False, scheme_name="account", description="API key of an account"
)
_owner_scheme = HTTPBearer(
    auto_error=False, scheme_name="owner", description="API key of a tenant's owner"
)
_operator_scheme = HTTPBearer(
    auto_error=False, scheme_name="operator", description="token of the operator"
)

Credentials = HTTPAuthorizationCredentials | None


async def service(request: Request) -> Service:
    """Return the service of this application."""
    found: Service = request.app.state.service
    return found


ServiceDependency = Annotated[Service, Depends(service)]


def account(
    used: ServiceDependency, credentials: Annotated[Credentials, Depends(_account_scheme)]
) -> Account:
    """Return the account whose API key the request carries."""
    found = used.accounts.authenticate(_token(credentials))
    note(account=found.name, tenant=found.tenant)
    return found


def owner(
    used: ServiceDependency, credentials: Annotated[Credentials, Depends(_owner_scheme)]
) -> str:
    """Return the tenant whose owner's API key the request carries."""
    tenant = used.owners.authenticate(_token(credentials))
    note(owner=True, tenant=tenant)
    return tenant


OwnerDependency = Annotated[str, Depends(owner)]


def operator(
    used: ServiceDependency, credentials: Annotated[Credentials, Depends(_operator_scheme)]
) -> None:
    """Return if the request carries the operator's token."""
    used.check_operator(_token(credentials))
    note(operator=True)


AccountDependency = Annotated[Account, Depends(account)]


def acting(request: Request, caller: AccountDependency) -> Account:
    """Return the account itself, or the end user whom its request names (docs/surfaces.md)."""
    surfaces: Surfaces = request.app.state.surfaces
    found = surfaces.acting(caller, request)
    note(user=found.user)
    return found


ActingDependency = Annotated[Account, Depends(acting)]


def _token(credentials: Credentials) -> str:
    if credentials is None:
        raise NotAuthenticated(
            "no credentials", where="Authorization", expected="Bearer <key or token>"
        )
    return credentials.credentials
