"""A window without noise over WordNet's glosses in Chroma, through the real services.

As a program: ``python tests/support/wordnet_window.py ROWS QUERIES`` prints what it took.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chroma_server
import httpx
import numpy as np
import numpy.typing as npt
import wordnet
from ragaudit.cli.up.run import Options, Parties, Stop, run_integrity
from ragaudit.cli.up.store import Found, chosen, chroma_collections
from ragaudit.embedders import registry
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.prover.surfaces.chroma import collection_id

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"
NAME, K, PAGE = "glosses", 10, 2000


def fill(http: httpx.Client, glosses: list[wordnet.Gloss]) -> npt.NDArray[np.float32]:
    """Fill a cosine collection as an application fills it; the vectors that were sent."""
    vectors = registry.load().embed([gloss.text for gloss in glosses])
    body = {"name": NAME, "configuration": {"hnsw": {"space": "cosine"}}}
    place = f"{BASE}/{http.post(BASE, json=body).json()['id']}"
    for at in range(0, len(glosses), PAGE):
        part = glosses[at : at + PAGE]
        rows = {
            "ids": [gloss.id for gloss in part],
            "documents": [gloss.text for gloss in part],
            "metadatas": [{"words": list(gloss.words)} for gloss in part],
            "embeddings": vectors[at : at + PAGE].tolist(),
        }
        assert http.post(f"{place}/add", json=rows).is_success
    return vectors


def halves(glosses: list[wordnet.Gloss]) -> list[str]:
    """The second halves of texts, as the demo's questions are (spec 2.1)."""
    return [" ".join(it.text.split()[len(it.text.split()) // 2 :]) for it in glosses]


@dataclass
class Shown:
    """What `run_integrity` tells; ``ready`` is set when the applications can ask."""

    parties: Future[Parties] = field(default_factory=Future)

    def doing(self, what: str) -> None:
        """Not shown."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Not shown."""

    def ready(self, parties: Parties, found: Found) -> None:
        """The applications can ask."""
        self.parties.set_result(parties)

    def ended(self, verdict: Future[Verdict]) -> None:
        """Whoever waits for the parties learns that there will be none."""
        if not self.parties.done():
            why = verdict.exception() or AssertionError("it ended before it was ready")
            self.parties.set_exception(why)


class WordNetWindow:
    """A prover and a verifier of their own before a Chroma server; made by `opened`."""

    def __init__(self, parties: Parties, end: Stop, verdict: Future[Verdict]) -> None:
        self.folder = parties.folder
        [key] = parties.keys.values()
        self.http = httpx.Client(
            base_url=parties.prover_url,
            headers={"x-chroma-token": key},
            trust_env=False,
            timeout=120,
        )
        self._end = end
        self._verdict = verdict

    def ask(self, vector: npt.NDArray[np.float32]) -> tuple[list[str], str]:
        """The ids of an answer, and its receipt."""
        body = {"query_embeddings": [vector.tolist()], "n_results": K, "include": ["distances"]}
        answer = self.http.post(f"{BASE}/{collection_id(NAME)}/query", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["ids"][0], answer.headers["Ragaudit-Receipt"]

    def receipt(self, name: str) -> bytes:
        """A receipt file."""
        token = self.http.headers["x-chroma-token"]
        headers = {"Authorization": f"Bearer {token}"}
        return self.http.get(f"/v1/receipts/{name}", headers=headers).raise_for_status().content

    def verdict(self) -> Verdict:
        """Close the window and return what the verifier says of it."""
        self._end()
        return self._verdict.result()


@contextmanager
def opened(url: str, folder: Path) -> Iterator[WordNetWindow]:
    """A window over the collection of a Chroma server, until the verdict or the block's end."""
    found = chosen(chroma_collections(url), [NAME])
    collections = {each.tenant: each.name for each in found.served}
    backend = {"kind": "chroma", "chroma": {"url": url, "collections": collections}}
    options = Options(folder=folder, found=found, backend=backend)
    end, shown = Stop(), Shown()
    with ThreadPoolExecutor(1) as pool:
        verdict = pool.submit(run_integrity, options, shown, end)
        verdict.add_done_callback(shown.ended)
        try:
            window = WordNetWindow(shown.parties.result(), end, verdict)
            with window.http:
                yield window
        finally:
            end()


class PeakMemory(threading.Thread):
    """The largest resident sizes of the services, MiB by name, while the block runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, float] = {}
        self._folder = str(folder)
        self._ended = threading.Event()

    def __enter__(self) -> PeakMemory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Look at each process whose command names the folder."""
        while not self._ended.wait(0.5):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    arguments = (process / "cmdline").read_bytes().decode().split("\0")
                    status = (process / "status").read_text()
                except OSError:
                    continue
                for name in ("prover", "verifier"):
                    if any(part.startswith(f"{self._folder}/{name}/") for part in arguments):
                        line = next(it for it in status.splitlines() if it.startswith("VmHWM"))
                        self.peaks[name] = int(line.split()[1]) / 1024


def main(rows: int, queries: int) -> None:
    """Measure one window and print it as JSON."""
    assert wordnet.installed(), "make setup-servers"
    glosses = wordnet.glosses(rows)
    asked = registry.load().embed(halves(glosses[:: max(1, rows // queries)][:queries]))
    took: dict[str, Any] = {"rows": rows, "queries": queries}
    with (
        chroma_server.ChromaServer() as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=600) as http,
        tempfile.TemporaryDirectory() as folder,
        PeakMemory(Path(folder)) as memory,
    ):
        since = time.perf_counter()
        vectors = fill(http, glosses).astype(np.float64)
        took["fill_seconds"] = round(time.perf_counter() - since, 1)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        since = time.perf_counter()
        with opened(server.url, Path(folder)) as window:
            took["open_seconds"] = round(time.perf_counter() - since, 1)
            seconds, found = [], 0
            number = {gloss.id: at for at, gloss in enumerate(glosses)}
            for query in asked:
                since = time.perf_counter()
                ids, _ = window.ask(query)
                seconds.append(time.perf_counter() - since)
                cosines = vectors @ (query / np.linalg.norm(query)).astype(np.float64)
                least = np.partition(cosines, -K)[-K]
                # The store turns vectors a little: equal texts stay equal within this.
                found += sum(bool(cosines[number[name]] >= least - 1e-6) for name in ids)
            took["recall"] = found / (K * len(asked))
            for name, part in (("p50", 50), ("p95", 95), ("least", 0)):
                took[f"answer_{name}_ms"] = round(1000 * float(np.percentile(seconds, part)), 1)
            since = time.perf_counter()
            took["verdict"] = window.verdict().result
            took["verdict_seconds"] = round(time.perf_counter() - since, 1)
        took["peak_mib"] = {name: round(size) for name, size in memory.peaks.items()}
    print(json.dumps(took, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
