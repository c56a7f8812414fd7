"""Every list of every message that parties read: what a stranger fills it with is bounded."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hostile_json import with_each_list_long
from memory_taken import peak
from message_examples import examples, has_a_list, messages
from ragaudit.encoding.errors import RagauditError

SIZE = 2**18
# For a byte of JSON at this size; the most have policies, which are encoded again, and CPython's
# encoder keeps the pieces of 100,000 items before it joins them.
MESSAGE = 12


@pytest.fixture(scope="module")
def documents() -> dict[Any, Any]:
    return examples()


def test_every_message_with_a_list_has_an_example(documents: dict[Any, Any]) -> None:
    """A new message belongs to the test below by itself, once there is a document of it."""
    without = [kind for kind in messages() if kind not in documents]
    assert [kind.__name__ for kind in without if has_a_list(kind)] == []
    assert len(without) < 10


def test_reading_a_long_list_takes_memory_in_proportion(documents: dict[Any, Any]) -> None:
    """What JSON itself takes is test_json_structure's; this is what a message makes of it."""
    tried = set()
    for kind, document in documents.items():
        for place, hostile in with_each_list_long(document, SIZE):
            size = len(json.dumps(hostile))

            def read(hostile: Any = hostile, kind: Any = kind) -> object:
                with suppress(RagauditError):
                    return kind.from_json(hostile)
                return None

            taken = peak(read, MESSAGE * size)
            assert taken <= MESSAGE * size, f"{kind.__name__} {place}: {taken / size:.1f}"
            tried.add(kind.__name__)
    assert {"Challenge", "ReceiptsBody", "EntriesBody", "Replay", "WindowChain"} <= tried
