"""JSON over HTTP: a deadline for the whole of a call, problem documents, harmless retries."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Self

import httpx
from ragaudit.client.errors import (
    BudgetExhausted,
    InvalidReply,
    ProviderRefusal,
    ServiceUnreachable,
)
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.json_structure import loads
from ragaudit.http import AsyncHttpClient, LongAnswer, PackedAnswer

__all__ = ["Service", "json_value"]

# Larger replies than any of this API are not read to their end.
MAX_REPLY_BYTES = 2**26
ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.25
_BUSY = frozenset({502, 503, 504})
_TOO_MANY = 429
# No byte of the request has left when one of these is raised.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Service:
    """One base URL. Used on one event loop.

    Attributes:
        base_url: without a slash at its end.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect nowhere yet.

        Args:
            base_url: ``http://`` or ``https://``, host, perhaps a path.
            api_key: sent with each request; without need none must go to another address.
            timeout_seconds: of one call, retries and every byte of the reply included.
            transport: for tests and proxies.

        Raises:
            MalformedError: no such URL, or a key that HTTP cannot carry.
        """
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise MalformedError("not a header value", where="API key", expected="printable ASCII")
        self.base_url = base_url.rstrip("/")
        self._seconds = timeout_seconds
        self._http = AsyncHttpClient(
            _checked_url(self.base_url),
            headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
            timeout=timeout_seconds,
            most=MAX_REPLY_BYTES,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def get(self, path: str) -> Any:
        """Return the JSON value at ``path``; errors as :meth:`request`.

        Args:
            path: below the base URL, with a leading slash.
        """
        return self.value(path, await self.request("GET", path))

    async def get_text(self, path: str) -> str:
        """Return the text at ``path``; errors as :meth:`request`.

        Args:
            path: below the base URL, with a leading slash.

        Raises:
            InvalidReply: not UTF-8.
        """
        data = await self.request("GET", path)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidReply("the reply is no text", where=self._place(path)) from error

    async def post(self, path: str, body: object, *, repeatable: bool) -> Any:
        """Send JSON and return the reply's JSON; errors as :meth:`request`.

        Args:
            path: below the base URL.
            body: the JSON value.
            repeatable: whether a second arrival does no harm.
        """
        return self.value(path, await self.request("POST", path, body, repeatable=repeatable))

    def value(self, path: str, data: bytes) -> Any:
        """Return the JSON value of a reply's bytes.

        Args:
            path: that replied, for the error.
            data: the reply.

        Raises:
            InvalidReply: not JSON.
        """
        try:
            return json_value(data)
        except ValueError as error:
            raise InvalidReply("the reply is not JSON", where=self._place(path)) from error

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        repeatable: bool = True,
        seconds: float | None = None,
    ) -> bytes:
        """Return the bytes of a reply with status 2xx.

        Args:
            method: of HTTP.
            path: below the base URL.
            body: a JSON value, or None for no body.
            repeatable: whether a second arrival does no harm.
            seconds: less than the service's time for the whole call.

        Raises:
            ProviderRefusal: a problem document; BudgetExhausted for status 429 with a refusal.
            ServiceUnreachable: no whole reply in time.
            InvalidReply: a redirection, an endless reply, or an error that is no document.
        """
        limit = self._seconds if seconds is None else min(seconds, self._seconds)
        begun = asyncio.get_running_loop().time()
        try:
            # Around all attempts: httpx bounds each read alone, which a slow drip never exceeds.
            async with asyncio.timeout(limit):
                return await self._attempts(method, path, body, repeatable, begun + limit)
        except TimeoutError as error:
            raise ServiceUnreachable(
                f"no whole reply within {limit:.3g} s", where=self._place(path)
            ) from error

    async def _attempts(
        self, method: str, path: str, body: object, repeatable: bool, deadline: float
    ) -> bytes:
        """Try until there is a reply that counts, while that does no harm and time is left."""
        pause, sent = FIRST_PAUSE_SECONDS, False
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            wait = pause
            try:
                response = await self._once(method, path, body)
            except httpx.TransportError as error:
                # Once true it stays so: an earlier attempt may have arrived, if not this one.
                sent = sent or not isinstance(error, _NOT_SENT)
                if last or not (repeatable or not sent):
                    raise ServiceUnreachable(
                        f"no reply ({type(error).__name__})", where=self._place(path), sent=sent
                    ) from error
            else:
                wait = max(pause, retry_after(response) or 0.0)
                again = _asks_again(response.status_code, response.content, repeatable)
                # A wait beyond the deadline would turn a clear refusal into a timeout.
                seconds_left = deadline - asyncio.get_running_loop().time()
                if last or not again or wait >= seconds_left:
                    return self._checked(path, response)
                # A service that replied has seen the request.
                sent = True
            await asyncio.sleep(wait)
            # Doubled, so that many clients do not keep a busy service busy.
            pause *= 2
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(self, method: str, path: str, body: object) -> httpx.Response:
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = None if body is None else {"Content-Type": "application/json"}
        try:
            return await self._http.request(method, path, content=content, headers=headers)
        except PackedAnswer:  # spec 8.10, 1
            raise InvalidReply("a compressed reply", where=self._place(path)) from None
        except LongAnswer:
            raise InvalidReply("the reply is too long", where=self._place(path)) from None

    def _checked(self, path: str, response: httpx.Response) -> bytes:
        status, data = response.status_code, response.content
        if 200 <= status < 300:
            return data
        # Without a document it is not this API that answered: a proxy's page is no refusal.
        problem = _problem(data)
        if status < 400 or problem is None:
            raise InvalidReply(
                f"HTTP status {status} without a problem document", where=self._place(path)
            )
        kind = BudgetExhausted if _is_budget(status, problem) else ProviderRefusal
        raise kind(status, problem, where=self._place(path), retry_after=retry_after(response))

    def _place(self, path: str) -> str:
        return f"{self.base_url}{path}"


def json_value(data: bytes) -> Any:
    """Return the value of JSON bytes.

    Args:
        data: UTF-8; also of a peer that wants the parser to fail, or to take all memory.

    Raises:
        ValueError: anything else, and what the structure of JSON is not allowed
            (`ragaudit.encoding.json_structure`).
    """
    try:
        return loads(data)
    except MalformedError as error:
        raise ValueError(str(error)) from error


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of ``Retry-After`` (RFC 9110 §10.2.3), or None; dates are not read."""
    # Nine digits are thirty years: no advice to wait.
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _asks_again(status: int, data: bytes, repeatable: bool) -> bool:
    """Return whether the same call may succeed: busy, or shed before anything was done with it."""
    # A used-up budget is final; any other 429 asks for patience.
    if status == _TOO_MANY:
        return not _is_budget(status, _problem(data) or {})
    return repeatable and status in _BUSY


def _is_budget(status: int, problem: Mapping[str, Any]) -> bool:
    return status == _TOO_MANY and "refusal" in problem


def _problem(data: bytes) -> dict[str, Any] | None:
    try:
        value = json_value(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _checked_url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise MalformedError("not a URL", where="base_url", expected="http(s)://host[:port]")
    return url
