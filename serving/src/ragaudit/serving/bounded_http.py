"""Calls to servers that are not ours: each may be slow, broken, or another one.

Answers are bounded in size and in time and never unpacked; the environment of the process decides
nothing; the trace of the request that is being worked on is passed on.
"""

import ssl
import time
from functools import cache
from pathlib import Path

import httpx
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.serving.exchange import outgoing

ANSWER_TIMEOUTS = 12  # for a whole answer, in timeouts of one phase


class OddAnswer(Exception):
    """An answer that is not read to its end."""


class PackedAnswer(OddAnswer):
    """One that would have to be unpacked: a small one could become huge."""


class LongAnswer(OddAnswer):
    """One with more bytes than the caller takes."""


class BoundedHttp:
    """Calls to one server. Safe to use from several threads."""

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        most: int,
        verify: ssl.SSLContext | bool = True,
        headers: dict[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        proxy: str | None = None,
        connects: int = 1,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the server, with a path if it has one.
            timeout: seconds for each phase of a call; an answer has `ANSWER_TIMEOUTS` of them.
            most: bytes that are read of an answer.
            verify: as of `trusted_authorities`.
            headers: sent with every call; may hold a secret.
            transport: instead of the network, for tests.
            proxy: URL of the HTTP proxy through which the server is reached.
            connects: how often a connection is tried; a request is sent once.
        """
        self._timeout = timeout
        self._most = most
        if verify is True:
            verify = _usual_authorities()
        if transport is None and connects > 1:
            transport = httpx.HTTPTransport(verify=verify, retries=connects - 1)
        self._http = httpx.Client(
            event_hooks={"request": [_pass_trace_on]},
            base_url=url,
            timeout=timeout,
            # Proxy and authorities are settings, not variables.
            trust_env=False,
            verify=verify,
            transport=transport,
            proxy=proxy,
            headers={"Accept-Encoding": "identity", **(headers or {})},
        )
        self.build_request = self._http.build_request

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def send(self, request: httpx.Request) -> httpx.Response:
        """Return the response with its body; of its headers, ``Retry-After`` only.

        Redirections are not followed.

        Args:
            request: of `build_request`.

        Raises:
            httpx.HTTPError: no answer, or none in time.
            PackedAnswer, LongAnswer: it is not read.
        """
        response = self._http.send(request, stream=True)
        try:
            # Whatever the peer was asked for: what it packs is not unpacked.
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise PackedAnswer
            body, until = bytearray(), time.monotonic() + ANSWER_TIMEOUTS * self._timeout
            for part in response.iter_bytes():
                body += part
                # A peer that sends a byte now and then never runs into the phases' timeout.
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("a drip", request=request)
                if len(body) > self._most:
                    raise LongAnswer
        finally:
            response.close()
        wait = response.headers.get("retry-after")
        return httpx.Response(
            response.status_code,
            headers={} if wait is None else {"retry-after": wait},
            content=bytes(body),
            request=request,
        )


def trusted_authorities(authorities: Path | None, setting: str) -> ssl.SSLContext | bool:
    """Return the authorities that servers' certificates are checked by; True for the system's.

    Args:
        authorities: a PEM file.
        setting: that names it, for the error.

    Raises:
        MalformedSettings: no certificates in the file.
    """
    if authorities is None:
        return True
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError):
        raise MalformedSettings(
            "no certificates", where=f"{setting}: {authorities}", expected="a PEM file"
        ) from None


@cache
def _usual_authorities() -> ssl.SSLContext:
    """The list is long: it is read once, however many servers are asked."""
    return httpx.create_ssl_context(trust_env=False)


def _pass_trace_on(request: httpx.Request) -> None:
    request.headers.update(outgoing())
