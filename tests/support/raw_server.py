"""Servers that speak to each connection as a test says, and to none as HTTP says."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server, by its address; ``answer`` has each connection in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            answer(peer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


@contextmanager
def dripping() -> Iterator[tuple[str, threading.Event]]:
    """A server that sends a byte of a head now and then; its address, and whether it was asked."""
    asked, ended = threading.Event(), threading.Event()

    def drip(peer: socket.socket) -> None:
        asked.set()
        peer.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while not ended.wait(0.01):
            peer.sendall(b"x")

    with raw_server(drip) as url:
        try:
            yield url, asked
        finally:
            ended.set()
