"""What request handlers ask for: the service, an authenticated caller, a body."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated

from anyio import to_thread
from fastapi import Depends, Path, Query, Request, Security
from fastapi.params import Depends as DependsOn
from fastapi.security import APIKeyHeader, HTTPBearer
from ragaudit.encoding.errors import NotAuthenticated
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.bodies import LONGEST, SHORT_BYTES
from ragaudit.ledger.messages.bodies import Body as Json
from ragaudit.ledger.messages.signed import SignedRequest
from ragaudit.serving.bodies import SMALL_BYTES, Body, receive, receive_anonymous
from ragaudit.serving.settings import HEX32_PATTERN, NAME_PATTERN
from ragaudit.verifier.service import providers, windows
from ragaudit.verifier.service.core import Service
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.providers import (
    Provider,
    claimed,
    demand_digest,
    verify_request,
    verify_token,
)

WindowName = Annotated[str, Path(pattern=NAME_PATTERN, description="The window.")]
PseudonymText = Annotated[str, Path(pattern=HEX32_PATTERN, description="An account's, in hex.")]
TenantName = Annotated[str, Path(pattern=NAME_PATTERN, description="The tenant.")]


def service_of(request: Request) -> Service:
    """Return the service of the application that received the request."""
    found: Service = request.app.state.service
    return found


ServiceOf = Annotated[Service, Depends(service_of)]


def _anyones(
    window: WindowName,
    service: ServiceOf,
    provider: Annotated[
        str | None,
        Query(max_length=64, description="Whose window; needed where several have it."),
    ] = None,
) -> Origin:
    """Return the window that a request without a provider's signature is about."""
    if provider is not None:
        return windows.of(provider, window)
    with service.database.read() as connection:
        return windows.resolve(connection, window)


AnyWindow = Annotated[Origin, Depends(_anyones)]
"""A window of whichever provider. One that signs its request has no window but its own."""


_TOKEN = HTTPBearer(scheme_name="auditor", description="The auditor's token.", auto_error=False)
_SIGNATURE = APIKeyHeader(
    name="Ragaudit-Signature",
    scheme_name="provider",
    description="With Ragaudit-Provider, Ragaudit-Time and Content-Digest: docs/spec, 8.1.",
    auto_error=False,
)


def auditor(request: Request, service: ServiceOf, _: Annotated[object, Security(_TOKEN)]) -> None:
    """Demand the auditor's token.

    Raises:
        NotAuthenticated: it is missing, or another one.
    """
    verify_token(request, service.keys.token_digest)


class Signed:
    """An authenticated provider's request about its window, and the body that it signed."""

    def __init__(self, window: Origin, body: Body) -> None:
        self.window = window
        self.body = body


Limit = Callable[[Service, Origin], int]
"""Largest body in bytes, of a provider's request about a window; raises where none is due."""


async def _caller(
    request: Request, service: ServiceOf, _: Annotated[object, Security(_SIGNATURE)]
) -> tuple[SignedRequest, Provider]:
    """Return what a pinned provider signed, and who it is; nothing of the body is read."""
    claim = claimed(request, service.database.now())
    key = await to_thread.run_sync(_pinned, service, claim.provider)
    return claim, verify_request(request, claim, key)


Caller = Annotated[tuple[SignedRequest, Provider], Depends(_caller)]


def signed(limit: Limit) -> DependsOn:
    """Return a dependency: a pinned provider's request, its body of at most ``limit`` bytes.

    Args:
        limit: asked before the body is read, in a thread, as it may need the database.
    """

    async def dependency(
        caller: Caller, window: WindowName, request: Request, service: ServiceOf
    ) -> AsyncIterator[Signed]:
        claim, provider = caller
        # The name in the path is the caller's own: no provider reaches another's window (8.3).
        origin = windows.of(provider.name, window)
        most = await to_thread.run_sync(limit, service, origin)
        async for body in receive(request, most):
            demand_digest(claim, body)
            yield Signed(origin, body)

    return DependsOn(dependency)


def signed_body(kind: type[Json] | None) -> DependsOn:
    """Return a dependency: a pinned provider's request with a JSON body; large ones in turn.

    Args:
        kind: of the body, which says how long it may be; None where there is none.
    """

    most = SHORT_BYTES if kind is None else LONGEST.get(kind, SHORT_BYTES)

    def limit(service: Service, _window: Origin) -> int:
        return min(service.settings.limits.json_bytes, most)

    async def dependency(
        request: Annotated[Signed, signed(limit)], service: ServiceOf
    ) -> AsyncIterator[Signed]:
        if request.body.size <= SMALL_BYTES:
            yield request
            return
        # It waits on disk; parsed it takes up to 16 times its bytes.
        async with service.signed:
            yield request

    return DependsOn(dependency)


def unsigned(limit: Callable[[Service], int]) -> DependsOn:
    """Return a dependency: anybody's body, of at most ``limit`` bytes; large ones in turn.

    Args:
        limit: in bytes.
    """

    async def dependency(request: Request, service: ServiceOf) -> AsyncIterator[bytes]:
        async for place in receive_anonymous(request, limit(service), service.room):
            if place.size <= SMALL_BYTES:
                yield place.settle()
                continue
            # Parsed JSON takes up to 16 times its bytes: together they must not exhaust memory.
            async with service.anonymous:
                yield place.settle()

    return DependsOn(dependency)


def _pinned(service: Service, name: str) -> PublicKey:
    with service.database.read() as connection:
        key = providers.find(connection, name)
    if key is None:
        # Cut: a stranger chose the name, and the answer repeats it.
        raise NotAuthenticated("not a pinned provider", where=name[:64])
    return key
