"""A server that never comes to an end of its answer's head."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def dripping() -> Iterator[tuple[str, threading.Event]]:
    """A server that sends a byte of a head now and then; its address, and whether it was asked."""
    listener, asked = socket.create_server(("127.0.0.1", 0)), threading.Event()
    ended = threading.Event()

    def drip(peer: socket.socket) -> None:
        asked.set()
        with peer, suppress(OSError):
            peer.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not ended.wait(0.01):
                peer.sendall(b"x")

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        ended.set()
        listener.close()
