"""JSON of both services: bodies are read strictly, and signed messages leave as they were signed.

A body may be written with any spacing and key order, but duplicate keys, fractions, lone
surrogates, deep nesting and integers beyond ±(2^53 - 1) are refused: it has one meaning only
(docs/spec/01-encoding.md §1.4).
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from ragaudit.encoding.canonical_json import loads_any
from ragaudit.encoding.errors import MalformedError, MalformedRequest

__all__ = ["StrictRoute", "json_object", "json_value", "signed_json"]


def json_value(data: bytes) -> Any:
    """Return the value of a JSON body.

    Args:
        data: the body, in any spelling.

    Raises:
        MalformedRequest: not JSON, or a value that has no canonical form.
    """
    try:
        return loads_any(data)
    except MalformedError as error:
        raise MalformedRequest(
            error.what,
            where=f"body {error.where}".strip(),
            expected=error.expected or "JSON in UTF-8, without duplicate keys",
        ) from None


def json_object(data: bytes) -> dict[str, Any]:
    """Return the object of a JSON body; MalformedRequest for anything else.

    Args:
        data: the body, in any spelling.
    """
    value = json_value(data)
    if not isinstance(value, dict):
        raise MalformedRequest("not an object", where="body")
    return value


def signed_json(content: bytes) -> Response:
    """Return the answer that holds a signed message, byte for byte as it was signed.

    Args:
        content: canonical JSON. A framework that wrote it anew could break the signature.
    """
    return Response(content, media_type="application/json")


class _StrictRequest(Request):
    async def json(self) -> Any:
        """Return the body's value; MalformedRequest if it has no canonical form."""
        # The framework would use json.loads, which takes the last of two equal keys.
        return json_value(await self.body())


class StrictRoute(APIRoute):
    """A route whose body the framework reads, strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, given a request that reads strictly."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict
