"""The surfaces of one application: which there are, who calls them, and how they say no."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request, Response
from ragaudit.encoding.errors import MalformedSettings, RagauditError
from ragaudit.prover.errors import MalformedQuery
from ragaudit.prover.settings import SurfaceName, SurfaceSettings
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.accounts import Caller as Waiting
from ragaudit.prover.surfaces.caller import Caller, acting, bearer, named_user, names_user
from ragaudit.prover.surfaces.dialects import Dialect, Run, SurfaceRoute, check_key
from ragaudit.prover.surfaces.queries import Port
from ragaudit.serving.application import add_routes
from ragaudit.serving.exchange import note
from ragaudit.serving.problems import response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

if TYPE_CHECKING:
    from ragaudit.prover.surfaces.mcp import McpEndpoint
    from ragaudit.prover.surfaces.tokens import Tokens

_KEY_HEADER = "idempotency-key"


class Surfaces:
    """The surfaces that the settings enable, before one port of the prover."""

    def __init__(
        self,
        settings: SurfaceSettings,
        port: Port,
        tokens: "Tokens | None",
        run: Run = run_in_threadpool,
    ) -> None:
        """Collect the parts.

        Args:
            tokens: verifies end users' tokens; None where the settings name no keys of them.
            run: runs questions, which wait for nothing but what the port waits for.

        Raises:
            MalformedSettings: a header that names the end user is one that a surface reads itself.
        """
        self.settings = settings
        self.port = port
        self.run = run
        self._tokens = tokens
        self._mcp: McpEndpoint | None = None
        self._dialects: list[Dialect] = []
        self._routers: list[APIRouter] = []
        for name in settings.enabled:
            self._add(name)
        _check_headers(settings)

    def _add(self, name: SurfaceName) -> None:
        """Load one surface: whoever enables none loads none."""
        match name:
            case "openai":
                from ragaudit.prover.surfaces import openai

                self._dialects.append(openai.OPENAI)
                self._routers += openai.router, openai.completions
            case "chroma":
                from ragaudit.prover.surfaces import chroma

                self._dialects.append(chroma.CHROMA)
                self._routers.append(chroma.router)
            case "qdrant":
                from ragaudit.prover.surfaces import qdrant

                self._dialects.append(qdrant.QDRANT)
                self._routers.append(qdrant.router)
            case "dify":
                from ragaudit.prover.surfaces import dify

                self._dialects.append(dify.DIFY)
                self._routers.append(dify.router)
            case "mcp":
                from ragaudit.prover.surfaces import mcp

                self._dialects.append(mcp.MCP)
                self._mcp = mcp.McpEndpoint()

    def mount(self, app: FastAPI) -> None:
        """Add the routes of the surfaces, after those of the application itself.

        Args:
            app: before its first request; the surfaces find themselves in its state.
        """
        app.state.surfaces = self
        add_routes(app, *self._routers)
        if self._mcp is not None:
            app.router.routes.append(self._mcp.route())

    @property
    def asked(self) -> list[SurfaceRoute]:
        """The routes that take questions."""
        routes = [each for router in self._routers for each in router.routes]
        return [each for each in routes if isinstance(each, SurfaceRoute) and each.asks]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep what must run while requests are answered."""
        async with AsyncExitStack() as stack:
            if self._tokens is not None:
                stack.enter_context(self._tokens.running())
            if self._mcp is not None:
                await stack.enter_async_context(self._mcp.run())
            yield

    def caller(self, key: str | None, request: Request) -> Caller:
        """Return who calls.

        Args:
            key: the API key, None without one.
            request: with the headers that may name an end user.

        Raises:
            NotAuthenticated, NotServed, MalformedQuery: as `acting`.
        """
        own = self.port.account(check_key(key))
        note(account=own.name, tenant=own.tenant)
        account = self.acting(own, request)
        keys = request.headers.getlist(_KEY_HEADER)
        if len(keys) > 1:
            raise MalformedQuery("several keys", where=_KEY_HEADER, expected="one")
        note(user=account.user)
        return Caller(
            self.port,
            account,
            self.settings,
            keys[0] if keys else None,
        )

    def acting(self, account: Account, request: Request) -> Account:
        """Return the account that is charged, see `caller.acting`.

        Args:
            account: of the API key.
            request: with the headers that may name an end user.
        """
        return acting(self.port, account, self.settings.delegation, request.headers, self._subject)

    def key(self, path: str, headers: Headers) -> str | None:
        """Return the API key that counts on a path: that of its surface, or of the prover's own.

        Args:
            path, headers: of the request.
        """
        dialect = self._dialect(path)
        return bearer(headers) if dialect is None else dialect.key(headers)

    async def queue(self, caller: Waiting, headers: Headers) -> Waiting:
        """Return in whose queue a request waits: an end user of a delegating key has an own one.

        Args:
            caller: the account of the request's key.
            headers: of the request.
        """
        delegation = self.settings.delegation
        if caller.name not in delegation.accounts or not names_user(delegation, headers):
            return caller
        try:
            user = await run_in_threadpool(named_user, delegation, headers, self._subject)
        except RagauditError:
            # Whoever invents tokens makes no queues with them: these requests are the key's.
            return caller
        return caller._replace(user=user)

    def body_limit(self, path: str, otherwise: int) -> int:
        """Return how long a body may be: rows and vectors are longer than our own messages.

        Args:
            otherwise: the limit of paths that are no surface's.
        """
        return self.settings.max_body_bytes if self._dialect(path) else otherwise

    def respond(self, error: RagauditError, path: str) -> Response:
        """Return an error in the shape of the path's surface, or as a problem document."""
        dialect = self._dialect(path)
        return response(error, path) if dialect is None else dialect.error(error)

    def _dialect(self, path: str) -> Dialect | None:
        return next((each for each in self._dialects if each.covers(path)), None)

    def _subject(self, token: str) -> str:
        assert self._tokens is not None  # a header of tokens is read only where they are verified
        return self._tokens.subject(token)


def _check_headers(settings: SurfaceSettings) -> None:
    own = {"authorization", "x-chroma-token", "api-key", _KEY_HEADER, "content-type", "host"}
    jwt = settings.delegation.jwt
    names = [settings.delegation.header, None if jwt is None else jwt.header]
    given = [name.lower() for name in names if name is not None]
    if own & set(given) or len(set(given)) < len(given):
        raise MalformedSettings(
            "a header with two meanings", where="surfaces.delegation", expected="another name"
        )
