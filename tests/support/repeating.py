"""Somebody on the way between two parties who sends every request twice, at once, and keeps it.

A load balancer that tries again, a client that lost an answer, or whoever copies what was signed.
"""

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_OWN = {"connection", "content-length", "transfer-encoding", "date", "server"}


@dataclass(frozen=True)
class Reply:
    """What a service answered: status, headers that the next one may see, body."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(compare=False)
    body: bytes

    @property
    def told(self) -> str:
        """The status, and of a problem its name."""
        kind = dict(self.headers).get("content-type", "")
        if not kind.startswith("application/problem+json"):
            return str(self.status)
        name = self.body.partition(b"urn:ragaudit:problem:")[2].partition(b'"')[0]
        return f"{self.status} {name.decode()}"


@dataclass(frozen=True)
class Sent:
    """A request, byte for byte, and both replies to it."""

    method: str
    target: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    replies: tuple[Reply, ...] = ()

    @property
    def signed(self) -> bool:
        """Whether a provider signed it."""
        return "ragaudit-signature" in {name.lower() for name in self.headers}


class Repeating:
    """A service's place on the loopback, from which everything reaches it twice.

    Attributes:
        url: that the other party is told.
        sent: the requests that change something, in the order in which they were answered.
    """

    def __init__(self, service: str) -> None:
        """Listen for the service at an address; it need not run yet."""
        self._service = urlsplit(service)
        self.sent: list[Sent] = []
        repeating = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                reply = repeating.twice(Sent(self.command, self.path, dict(self.headers), body))
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_PUT = _pass_on

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def twice(self, request: Sent) -> Reply:
        """Send a request twice at once; return the better answer, as the sender would have it."""
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(self.send, (request, request))
        if request.method != "GET":
            parts = (request.method, request.target, request.headers, request.body)
            self.sent.append(Sent(*parts, (first, second)))
        return min(first, second, key=lambda reply: reply.status)

    def send(self, request: Sent) -> Reply:
        """Send a request as it was; return the answer."""
        connection = http.client.HTTPConnection(self._service.netloc, timeout=60)
        try:
            connection.request(request.method, request.target, request.body, request.headers)
            found = connection.getresponse()
            headers = tuple(
                (name.lower(), value)
                for name, value in found.getheaders()
                if name.lower() not in _OWN
            )
            return Reply(found.status, headers, found.read())
        except (OSError, http.client.HTTPException):
            return Reply(502, (), b"")  # as a proxy says of a service that is away
        finally:
            connection.close()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
