"""20,000 glosses of WordNet in Chroma: integers of norm 4095 rank as the store's own floats do, and
a window over them is opened, asked and audited by the real services."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import chroma_server
import httpx
import numpy as np
import numpy.typing as npt
import pytest
import wordnet
import wordnet_window
from ragaudit.circuits import metrics
from ragaudit.circuits.quantise import IntegerRows, quantise_rows
from ragaudit.embedders import registry
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.chroma import ChromaStore

pytestmark = pytest.mark.nightly

ROWS, QUERIES, K = 20_000, 500, 10
ASKED = 50


@pytest.fixture(scope="module")
def server() -> Iterator[chroma_server.ChromaServer]:
    """Chroma with a cosine collection, filled as an application fills it."""
    if not wordnet.installed():
        pytest.skip("WordNet is not installed: make setup-servers")
    with chroma_server.ChromaServer() as running:
        with httpx.Client(base_url=running.url, trust_env=False, timeout=300) as http:
            wordnet_window.fill(http, wordnet.glosses(ROWS))
        yield running


@pytest.fixture(scope="module")
def store(server: chroma_server.ChromaServer) -> Iterator[ChromaStore]:
    with closing(
        ChromaStore(ChromaSettings(url=server.url, collections={"acme": "glosses"}))
    ) as opened:
        yield opened


def test_integers_rank_as_floats_do(store: ChromaStore, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [document for page in store.pages("acme", 1000) for document in page]
    assert len(documents) == ROWS == store.count("acme")
    rows = np.array([document.vector for document in documents], dtype=np.float64)
    integers = metrics.scaled(rows, store.metric("acme") or "", norm_bound=4095)
    # Halves of texts change places among equal ones at most; questions may be nearer to a draw.
    every = wordnet.glosses(ROWS)[:: ROWS // QUERIES]
    for kind, asked, least in (
        ("halves", wordnet_window.halves(every), 0.999),
        ("questions", [f"What is meant by {it.words[0]}?" for it in every], 0.998),
    ):
        queries = registry.load().embed(asked).astype(np.float64)
        share, cases = recall(rows, integers, queries)
        with capsys.disabled():
            print(f"\nrecall@{K} of B = 4095, N = {ROWS}, {kind}: {share:.5f}; other: {len(cases)}")
            for number, gap in cases:
                print(f"  {asked[number]!r}: scores that changed places differ by {gap:.1e}")
        assert share >= least
        # Rounding, not another ranking: it differs by less than integers can tell.
        assert all(gap < 4 / 4095 for _, gap in cases)


def test_a_window_is_opened_asked_and_audited(
    server: chroma_server.ChromaServer, store: ChromaStore, tmp_path: Path
) -> None:
    documents = [document for page in store.pages("acme", 1000) for document in page]
    ids = [document.id for document in documents]
    rows = np.array([document.vector for document in documents], dtype=np.float64)
    integers = metrics.scaled(rows, "cosine", norm_bound=4095).astype(np.int64)
    every = wordnet.glosses(ROWS)[:: ROWS // ASKED][:ASKED]
    queries = registry.load().embed(wordnet_window.halves(every))
    with wordnet_window.opened(server.url, tmp_path) as window:
        for number, query in enumerate(queries):
            found, receipt = window.ask(query)
            scores = integers @ quantise_rows(query[np.newaxis], 4095)[0].astype(np.int64)
            assert found == [ids[at] for at in np.argsort(-scores, kind="stable")[:K]]
            if number % 10 == 0:
                file = ReceiptFile.parse(window.receipt(receipt))
                assert [document.id for document in file.answer.documents] == found
                file.verify_answer_digest()
        verdict = window.verdict()
    claims = verdict.predicate.to_json()["claims"]
    assert verdict.result == "PASS"
    assert (claims["integrity"]["result"], claims["privacy"]["result"]) == ("PASS", "NOT CLAIMED")


def recall(
    rows: npt.NDArray[np.float64],
    integers: IntegerRows,
    queries: npt.NDArray[np.float64],
) -> tuple[float, list[tuple[int, float]]]:
    """The share of the K nearest that integers find, and the queries with another set.

    A row is found if its cosine is as large as that of the K-th: rows with one text are one row.
    """
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = queries / np.linalg.norm(queries, axis=1, keepdims=True) @ unit.T
    # Exact in binary64: no sum reaches 2^53.
    scores = quantise_rows(queries, 4095).astype(np.float64) @ integers.astype(np.float64).T
    found, cases = 0, []
    for number, (real, exact) in enumerate(zip(cosines, scores, strict=True)):
        best = np.argsort(-exact, kind="stable")[:K]
        least = np.partition(real, -K)[-K]
        hits = int(np.count_nonzero(real[best] >= least - 1e-12))
        found += hits
        if hits < K:
            cases.append((number, float(least - real[best].min())))
    return found / (K * len(queries)), cases
