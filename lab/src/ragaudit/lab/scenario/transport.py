"""Calls into ASGI applications of this process, for HTTP clients of both kinds."""

import asyncio
import json
import threading
from typing import Any

import httpx
from starlette.types import ASGIApp


class Loop:
    """An event loop in a thread of its own, on which the applications run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="services", daemon=True)
        self._thread.start()

    def call(self, transport: httpx.ASGITransport, request: httpx.Request) -> httpx.Response:
        """Run a request on the loop and return its whole response.

        Blocks the calling thread, which must not be the loop's own.

        Args:
            transport: leads into the application; nothing leaves the process.
            request: as a client prepared it.
        """
        return asyncio.run_coroutine_threadsafe(_answer(transport, request), self._loop).result()

    def close(self) -> None:
        """Stop the loop and its thread."""
        asyncio.run_coroutine_threadsafe(
            self._loop.shutdown_default_executor(), self._loop
        ).result()
        # Only now: a worker thread that outlived the loop would answer into a closed one.
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AppTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests to an application; remembers the last answer with each path's last name.

    Attributes:
        asked, answered: last JSON body sent to and received from ``.../<name>``, by name.
        calls: method and path of every request that arrived.
        down: whether the application cannot be reached.
    """

    def __init__(self, app: ASGIApp, loop: Loop) -> None:
        """Lead into an application.

        Args:
            app: the application.
            loop: the one on which it always runs, whichever thread or loop asks.
        """
        # An exception of the application is a 500 to its caller, as over a network.
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._loop = loop
        self.asked: dict[str, Any] = {}
        self.answered: dict[str, Any] = {}
        self.calls: list[tuple[str, str]] = []
        self.down = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._noted(request, self._call(request))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # The application stays on its own loop, whichever loop asks.
        response = await asyncio.to_thread(self._call, request)
        return self._noted(request, response)

    def _call(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("refused", request=request)
        self.calls.append((request.method, request.url.path))
        return self._loop.call(self._transport, request)

    def _noted(self, request: httpx.Request, response: httpx.Response) -> httpx.Response:
        name = request.url.path.rsplit("/", 1)[-1]
        if request.method == "POST" and response.is_success:
            self.asked[name] = _json(request.content)
            self.answered[name] = _json(response.content)
        return response


async def _answer(transport: httpx.ASGITransport, request: httpx.Request) -> httpx.Response:
    response = await transport.handle_async_request(request)
    content = await response.aread()
    return httpx.Response(response.status_code, headers=response.headers, content=content)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
