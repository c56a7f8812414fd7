"""drand's API on the loopback, which answers what a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RoundApi:
    """drand's API on the loopback; ``answer`` gives status, headers and body."""

    def __init__(self, body: bytes) -> None:
        self.answer: Callable[[], tuple[int, dict[str, str], bytes]] = lambda: (200, {}, body)
        self.paths: list[str] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.paths.append(self.path)
                status, headers, body = api.answer()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
