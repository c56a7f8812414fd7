"""A small RAG as a process of its own: retrieval by the repository's embedder, answers verbatim.

    python tests/support/toy_rag.py DOCUMENTS MODE

It prints its port. Modes: ``leaky`` quotes the nearest document and names it; ``silent`` says the
same whatever it holds; the others answer badly.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_THINGS = ("bridge", "archive", "harvest", "engine", "survey", "contract", "vessel", "orchard",
           "library", "reactor", "quarry", "treaty", "garden", "signal", "market")  # fmt: skip
_DEEDS = ("opened", "repaired", "measured", "sold", "inspected", "abandoned", "rebuilt", "leased")
_WHEN = ("spring", "autumn", "winter", "summer")
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def documents(count: int, seed: int) -> list[dict[str, str]]:
    """Exchangeable documents: all of one kind, none with a topic of its own."""
    rng = random.Random(seed)

    def name() -> str:
        return "".join(rng.choice(_SYLLABLES) for _ in range(3)).capitalize()

    def sentence() -> str:
        return (
            f"The {rng.choice(_THINGS)} of {name()} was {rng.choice(_DEEDS)} by {name()} in the "
            f"{rng.choice(_WHEN)} after the {rng.choice(_THINGS)} at {name()} had failed."
        )

    return [
        {"id": f"doc-{seed}-{at}", "title": f"Notes on {name()}",
         "text": " ".join(sentence() for _ in range(4))}
        for at in range(count)
    ]  # fmt: skip


def write(path: Path, found: Sequence[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in found), encoding="utf-8")
    return path


@contextmanager
def running(corpus: Path, mode: str) -> Iterator[str]:
    """The address of a RAG that runs until the block ends."""
    with subprocess.Popen(
        [sys.executable, __file__, str(corpus), mode], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/ask"
        finally:
            process.kill()


class _Rag(BaseHTTPRequestHandler):
    corpus: list[dict[str, str]]
    vectors: Any
    embedder: Any
    mode: str
    asked = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["question"]
        type(self).asked += 1
        if self.mode == "dead":
            self.connection.close()
        elif self.mode == "slow":
            time.sleep(3)
            self._say(200, {"answer": "late"})
        elif self.mode == "text":
            self._say(200, None, b"<html>")
        elif self.mode == "elsewhere":
            self._say(200, {"reply": "here"})
        elif self.mode == "overloaded":
            self._say(503, {"error": "later"})
        elif self.mode == "locked":
            self._say(401, {"error": "key"})
        elif self.mode == "flaky" and self.asked % 3 == 0:
            self._say(429, {"error": "later"}, retry_after="0")
        elif self.mode == "echo":
            self._say(200, {"answer": f"key {self.headers['X-Key']}", "sources": []})
        elif self.mode == "filter":
            self._say(400, {"error": "content"})
        elif self.mode == "silent":
            self._say(200, {"answer": "I do not know.", "sources": []})
        else:
            self._say(200, self._answer(question))

    def _answer(self, question: str) -> dict[str, Any]:
        found = self.vectors @ self.embedder.embed([question])[0]
        best = self.corpus[int(found.argmax())]
        return {"answer": f"According to {best['title']}: {best['text']}", "sources": [best["id"]]}

    def _say(
        self, status: int, value: Any, raw: bytes | None = None, retry_after: str | None = None
    ) -> None:
        data = json.dumps(value).encode() if raw is None else raw
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing: the test shows what went wrong."""


def main() -> None:
    _Rag.corpus = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    _Rag.mode = sys.argv[2]
    if _Rag.mode in ("leaky", "flaky"):
        from ragaudit.embedders.registry import load

        _Rag.embedder = load()
        found = _Rag.embedder.embed([f"{each['title']}. {each['text']}" for each in _Rag.corpus])
        _Rag.vectors = found / (found**2).sum(axis=1, keepdims=True) ** 0.5
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Rag)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
