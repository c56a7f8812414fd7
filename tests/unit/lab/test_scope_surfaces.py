"""Our surfaces before a store in memory: nothing is found, and what is broken in them is."""

from pathlib import Path

import pytest
import scope_runs
from leaking_ports import NAMES, Answering, Fetching, filled
from surface_app import KEYS, MemoryPort, serving, surface_app

STORES = ("chroma", "qdrant", "openai", "mcp", "dify")


def findings_of(
    port: MemoryPort, store: str, folder: Path, *arguments: str
) -> set[tuple[str, str]]:
    keys = {account.tenant: key for key, account in KEYS.items()}
    path = scope_runs.target(folder, store, "http://x", keys, collections=NAMES)
    app = surface_app(filled(port, folder / "canaries.jsonl"))
    with serving(app) as number:
        scope_runs.target(folder, store, f"http://127.0.0.1:{number}", keys, collections=NAMES)
        report = scope_runs.scope(path, "--rounds", "2", *arguments)
    assert report["controlled"] == ["acme", "globex"]
    return scope_runs.found(report)


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_nothing_is_found(store: str, tmp_path: Path) -> None:
    assert findings_of(MemoryPort(), store, tmp_path) == set()


@pytest.mark.parametrize("store", STORES)
def test_rows_of_others_in_an_answer_are_found(store: str, tmp_path: Path) -> None:
    found = findings_of(Answering(), store, tmp_path, "--only", "nearest")
    assert ("nearest", "id" if store == "mcp" else "content") in found
    if store in ("chroma", "qdrant"):
        assert ("nearest", "vector") in found


@pytest.mark.parametrize(
    ("store", "probe"), [("chroma", "get-ids"), ("qdrant", "get-ids"), ("mcp", "fetch-id")]
)
def test_rows_by_ids_of_others_are_found(store: str, probe: str, tmp_path: Path) -> None:
    assert (probe, "content") in findings_of(Fetching(), store, tmp_path, "--only", probe)
