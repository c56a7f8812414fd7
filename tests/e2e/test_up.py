"""`ragaudit up` in front of Chroma's own server, with an application that changes URL and key."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chroma_server
import numpy as np
import pytest
from chroma_program import filled, ids, query, run, vectors
from ragaudit.circuits.quantise import quantise, quantise_rows
from ragaudit.ledger.messages.policy import LARGE_B
from up_process import UpProcess

pytestmark = pytest.mark.slow
RAGAUDIT = (sys.executable, "-m", "ragaudit.cli")
QUERIES = 8


@pytest.fixture(scope="module")
def chroma() -> Iterator[str]:
    with chroma_server.ChromaServer() as server:
        calls = [*filled("handbook", 240), *filled("secrets", 40, seed=2), *filled("empty", 0)]
        assert run(server.url, "", calls) == [None] * 5
        yield server.url


def exact(shown: Any, vector: Any, top_k: int) -> list[str]:
    """The oracle: the store's vectors as integers, ranked in the open, in the order of ids."""
    order = sorted(range(len(shown["ids"])), key=lambda at: shown["ids"][at])
    integers = quantise_rows(np.array(shown["embeddings"])[order], LARGE_B).astype(np.int64)
    scores = integers @ quantise(vector, LARGE_B).astype(np.int64)
    best = np.lexsort((np.arange(len(order)), -scores))[:top_k]
    return [shown["ids"][order[at]] for at in best]


def test_the_same_program_before_the_store_and_before_the_prover(
    chroma: str, tmp_path: Path
) -> None:
    asked = vectors(QUERIES, 7)
    filtered = query("handbook", vectors(1, 8)[0], 4, where={"year": 2001})
    program = [*(query("handbook", each, 5) for each in asked), filtered]
    stored, *plain = run(chroma, "", [("handbook", "get", {"include": ["embeddings"]}), *program])
    keep = tmp_path / "kept"
    with UpProcess(
        "--chroma", chroma, "--port", "0", "--column", "year=integer", "--keep", str(keep)
    ) as up:
        up.until("left out: empty")
        url = up.until(r"Point your application at\s+(\S+)")[1]
        key = up.until(r"^  key\s+(\S+)")[1]
        up.until("your application writes is passed on to the store")
        up.until("Ctrl-C")
        bypasses = [("secrets", "count", {}), ("handbook", "get", {"limit": 3})]
        *answers, other, listed = run(url, key, [*program, *bypasses])
        for each, answer in zip(asked, answers, strict=False):
            assert ids(answer) == exact(stored, each, 5)
        # float32 breaks a near tie otherwise, once in a long while.
        same = [ids(one) == ids(two) for one, two in zip(plain, answers, strict=True)]
        assert sum(same) >= QUERIES and same[-1]
        assert "no such collection" in other["error"]
        assert "reading a collection" in listed["error"]
        up.until(r"handbook-app .*receipt up\.\d+")
        up.until(r"chromaGet .*refused: not-served")
        row = {"ids": ["new"], "embeddings": vectors(1, 12).tolist(), "documents": ["a new text"]}
        assert run(url, key, [("handbook", "upsert", row)]) == [None]
        (kept,) = run(chroma, "", [("handbook", "get", {"ids": ["new"]})])
        assert kept["documents"] == ["a new text"]
        assert run(chroma, "", [("handbook", "delete", {"ids": ["new"]})]) != ["error"]
        assert up.stop() == 0, up.text
    assert "integrity: PASS" in up.text and "NOT CLAIMED" in up.text
    assert f"{QUERIES + 1} of them records" in up.text
    stream = map(json.loads, (keep / "prover" / "audit.jsonl").read_text().splitlines())
    retrievals = [each for each in stream if each["event"]["action"] == "retrieval"]
    assert len(retrievals) == QUERIES + 1
    assert {each["organization"]["name"] for each in retrievals} == {"handbook"}
    judged = subprocess.run(
        [*RAGAUDIT, "verifier", "recheck", str(keep / "bundle.zip"), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode in {0, 5}, judged.stderr + judged.stdout
    assert json.loads(judged.stdout)["stands"] is True
    assert "NOT CLAIMED" in (keep / "report.txt").read_text()


def test_shadow_mode_compares_and_proves_nothing(chroma: str) -> None:
    reads = [
        *(query("handbook", each, 5) for each in vectors(QUERIES, 9)),
        query("handbook", vectors(1, 8)[0], 4, where={"year": 2001}),
        ("handbook", "get", {"limit": 3}),
    ]
    row = {"ids": ["new"], "embeddings": vectors(1, 10).tolist(), "documents": ["a new text"]}
    after = [("handbook", "upsert", row), query("handbook", vectors(1, 11)[0], 3)]
    plain = run(chroma, "", reads)
    with UpProcess("--chroma", chroma, "--port", "0", "--shadow", "--collection", "handbook") as up:
        url = up.until(r"Point your application at\s+(\S+)")[1]
        up.until("Ctrl-C")
        answers = run(url, "", [*reads, *after])
        assert answers[: len(reads)] == plain
        up.until("refused: get: reading a collection")
        assert up.stop() == 0, up.text
    assert "no verdict" in up.text and "PASS" not in up.text
    assert f"{QUERIES + 2} queries were compared" in up.text
    assert "1 were asked after a write" in up.text and "declared public: year" in up.text
    (deleted,) = run(chroma, "", [("handbook", "delete", {"ids": ["new"]})])
    assert "error" not in (deleted or {})


def test_it_stops_by_itself_and_prints_one_object(chroma: str) -> None:
    with UpProcess(
        "--chroma", chroma, "--port", "0", "--collection", "secrets", "--seconds", "1", "--json"
    ) as up:
        assert up.wait() == 0, up.text
    verdict = json.loads(up.lines[-1])
    assert verdict["claims"]["integrity"]["result"] == "PASS"
    assert verdict["claims"]["privacy"]["result"] == "NOT CLAIMED"
