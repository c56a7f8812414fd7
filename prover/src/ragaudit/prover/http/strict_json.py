"""Bodies are read as everywhere else here: no duplicate keys, no fractions, no deep nesting."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from ragaudit.encoding.canonical_json import loads_any


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Return the body's value; MalformedError if it has no canonical form."""
        return loads_any(await self.body())


class StrictRoute(APIRoute):
    """A route whose JSON bodies have one meaning only."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, given a request that reads strictly."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict
