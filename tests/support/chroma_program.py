"""An application of Chroma's, a program of its own: it changes URL and key, and nothing else.

    python chroma_program.py URL KEY < calls.json > answers.json

A call is ``[collection, method, arguments]``; an answer is what the method returned, or
``{"error": text}``. ``KEY`` is empty where the store wants none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DIMENSION = 24
Call = tuple[str, str, dict[str, Any]]


def vectors(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Random vectors, float32[count, d]."""
    return np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)


def filled(name: str, count: int, *, seed: int = 1, space: str = "cosine") -> list[Call]:
    """The calls that make a collection."""
    rows: dict[str, Any] = {
        "ids": [f"d{n}" for n in range(count)],
        "embeddings": vectors(count, seed).tolist(),
        "documents": [f"text {n}" for n in range(count)],
        "metadatas": [{"year": 2000 + n % 3} for n in range(count)],
    }
    made: Call = (name, "create", {"configuration": {"hnsw": {"space": space}}})
    return [made, (name, "add", rows)] if count else [made]


def query(name: str, vector: npt.NDArray[np.float32], top_k: int, **more: Any) -> Call:
    """The call that asks one question."""
    return name, "query", {"query_embeddings": [vector.tolist()], "n_results": top_k, **more}


def run(url: str, key: str, calls: list[Call]) -> list[Any]:
    """Run the program; return its answers."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), url, key],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def ids(answer: Any) -> list[str]:
    """The ids of a query's answer."""
    assert "ids" in answer, answer
    return list(answer["ids"][0])


def main(url: str, key: str) -> None:
    """Be the application."""
    import chromadb
    from chromadb.config import Settings

    host, port = url.removeprefix("http://").split(":")
    client = chromadb.HttpClient(
        host=host,
        port=int(port),
        headers={"x-chroma-token": key} if key else {},
        settings=Settings(anonymized_telemetry=False),
    )
    answers: list[Any] = []
    for name, method, arguments in json.load(sys.stdin):
        try:
            if method == "create":
                client.create_collection(name, **arguments)
                answers.append(None)
            else:
                answers.append(getattr(client.get_collection(name), method)(**arguments))
        except Exception as error:
            answers.append({"error": str(error)})
    json.dump(answers, sys.stdout, default=lambda value: value.tolist())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
