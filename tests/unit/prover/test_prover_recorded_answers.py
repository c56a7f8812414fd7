"""Receipts, promises and tree heads of known salts and times are what they were, to the byte.

``tests/vectors/answers.json`` was written by the answer path as it was before several answers were
logged with one statement a table; the digests of what it gave stand for the bytes. To write it
anew, which only a change of the specification justifies, run

    python tests/unit/prover/test_prover_recorded_answers.py
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.store import tables
from ragaudit.prover.window.records import Asked
from recorded_window import DIMENSION, SETTINGS, START, RecordedWindow, recorded
from sqlalchemy import delete

VECTORS = Path(__file__).parents[2] / "vectors" / "answers.json"
FILTER = '{"key":"lang","op":"eq","value":"de"}'


def ask(window: RecordedWindow, request: Request, key: str | None = None) -> bytes:
    asked = Asked.of(request, key)
    return window.retrieval.take(window.live, window.ada, request, asked).answer().encode()


def happenings(window: RecordedWindow) -> Iterator[tuple[str, bytes]]:
    """Yield what leaves for questions of every kind, each with its name."""
    noised, live = window.live.policy.noised, window.live
    window.now = START + 1000
    first = Request("where is the bread?", 3, filter="")
    yield "a first question", ask(window, first)
    window.now += 10
    yield "its retry", ask(window, first)
    window.now += 70_000
    yield "the same when it is no retry any more", ask(window, first, "key")
    yield "a retry by its key", ask(window, first, "key")
    yield "other letters", ask(window, Request("“naïve” \\ \u2028 ẞ", 5, filter=""))
    window.now += 5
    yield "a filter", ask(window, Request("trains", 2, filter=FILTER))
    if noised:
        asked = Request("violin", 2, 0, "")
        promise = window.promises.promise(live, window.bob, asked)
        yield "a promise", promise.encode()
        window.now += 2500
        kept = window.promises.reveal(live, window.bob, 0, window.chain.nonce(0))
        yield "kept", kept.encode()
        again = window.promises.reveal(live, window.bob, 0, window.chain.nonce(0))
        yield "kept again", again.encode()
    else:
        vector = np.linspace(-1, 1, DIMENSION, dtype="<f4").tobytes()
        yield "a vector", ask(window, Request("", 2, filter="", vector=vector, kind="vector"))
    with window.store.write() as connection:
        connection.execute(delete(tables.document).where(tables.document.c.position < 30))
    window.now += 5
    yield "documents that are gone", ask(window, Request("butter", 5, filter=""))


def digests(folder: Path, kind: str, patch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    with recorded(folder, kind, patch) as window:
        found = {"registered": ["", window.root()]}
        for name, data in happenings(window):
            found[name] = [sha256(data).hexdigest(), window.root()]
        return found


@pytest.mark.parametrize("kind", SETTINGS)
def test_what_leaves_is_what_it_was(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert digests(tmp_path, kind, monkeypatch) == json.loads(VECTORS.read_text())[kind]


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2] / "support"))
    made = {}
    for name in SETTINGS:
        with tempfile.TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
            made[name] = digests(Path(temporary), name, patch)
    VECTORS.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
